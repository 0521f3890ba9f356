"""A mark of the graph's state that changes with who is in it and with every relation: what was computed of one state is good until then.

It is drawn by chance and never counted: a file that is put back from a backup, or another one, never meets the mark of another state.
"""

import apsw

_CHANGED = "UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'"
_MARK = f"""
INSERT OR REPLACE INTO properties(name, value) VALUES ('graph_revision', lower(hex(randomblob(16))));
CREATE TRIGGER graph_gains_relation AFTER INSERT ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_changes_relation AFTER UPDATE ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_loses_relation AFTER DELETE ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_gains_entity AFTER INSERT ON entities BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_loses_entity AFTER DELETE ON entities BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_changes_entity AFTER UPDATE OF merged_into, made_by, type, extraction_count, first_mentioned_at ON entities
    WHEN old.merged_into IS NOT new.merged_into OR old.made_by <> new.made_by OR old.type <> new.type
        OR (old.extraction_count > 0) <> (new.extraction_count > 0) OR old.first_mentioned_at IS NOT new.first_mentioned_at
    BEGIN {_CHANGED}; END;
"""
# The strongest relations of an entity, and the weight of all, without looking at the others' rows.
_INDEXES = """
CREATE INDEX relations_by_source_strength ON relations(source, weight * confidence DESC, weight, confidence, type);
CREATE INDEX relations_by_target_strength ON relations(target, weight * confidence DESC, weight, confidence, type);
"""


def create(connection: apsw.Connection) -> None:
    """The mark with what changes it, and the indexes of strength. Released: a change is a further migration."""
    connection.execute(_MARK + _INDEXES)


def of(connection: apsw.Connection) -> str:
    """The mark of the state that this connection sees; empty in a file that can't be brought up to date."""
    return str(connection.execute("SELECT value FROM properties WHERE name = 'graph_revision'").get or "")
