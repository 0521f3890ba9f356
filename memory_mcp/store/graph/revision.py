"""A mark of the graph's state that changes with who is in it and with every relation: what was computed of one state is good until then.

It is drawn by chance and never counted: a file that is put back from a backup, or another one, never meets the mark of another state.
"""

import apsw

_CHANGED = "UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'"
_TRIGGERS = f"""
INSERT OR REPLACE INTO properties(name, value) VALUES ('graph_revision', lower(hex(randomblob(16))));
CREATE TRIGGER graph_gains_relation AFTER INSERT ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_changes_relation AFTER UPDATE ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_loses_relation AFTER DELETE ON relations BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_gains_entity AFTER INSERT ON entities BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_loses_entity AFTER DELETE ON entities BEGIN {_CHANGED}; END;
CREATE TRIGGER graph_changes_entity AFTER UPDATE OF merged_into, made_by, extraction_count ON entities
    WHEN old.merged_into IS NOT new.merged_into OR old.made_by <> new.made_by OR (old.extraction_count > 0) <> (new.extraction_count > 0)
    BEGIN {_CHANGED}; END;
"""


def create(connection: apsw.Connection) -> None:
    """The mark, and what changes it. Released: a change is a further migration."""
    connection.execute(_TRIGGERS)


def of(connection: apsw.Connection) -> str:
    """The mark of the state that this connection sees; empty in a file that can't be brought up to date."""
    return str(connection.execute("SELECT value FROM properties WHERE name = 'graph_revision'").get or "")
