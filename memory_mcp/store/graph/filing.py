"""What memories are filed under, who said them and their tags: which of some names those in the trash have, and which the others."""

from collections.abc import Set

import apsw

from memory_mcp.text.entities.folding import bare

_LABELS = """
SELECT m.source FROM memories m WHERE m.source IS NOT NULL AND m.deleted_at {deleted}
UNION ALL SELECT CAST(t.value AS TEXT) FROM memories m, json_each(iif(json_valid(m.tags), m.tags, '[]')) t WHERE m.deleted_at {deleted}
UNION ALL SELECT CAST(t.value AS TEXT) FROM memory_versions v JOIN memories m ON m.key = v.key, json_each(iif(json_valid(v.tags), v.tags, '[]')) t
WHERE m.deleted_at {deleted}
"""


def filed_in_the_trash(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """Those of these names, without honorifics, that memories in the trash are filed under, or were before their tags were changed."""
    return _filed(connection, names, "IS NOT NULL")


def filed_openly(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """The same of all other memories."""
    return _filed(connection, names, "IS NULL")


def _filed(connection: apsw.Connection, names: Set[str], deleted: str) -> set[str]:
    found: set[str] = set()
    seen: set[str] = set()
    for (label,) in connection.execute(_LABELS.format(deleted=deleted)) if names else ():
        if label in seen:
            continue
        seen.add(label)
        found |= names & {bare(label)}
        if len(found) == len(names):
            break
    return found
