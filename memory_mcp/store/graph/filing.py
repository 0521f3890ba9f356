"""What memories are filed under, who said them and their tags: which of some names those in the trash have, and which the others."""

from collections.abc import Set

import apsw

from memory_mcp.text.entities.folding import bare

# Many memories have the same tags: each list is taken apart once.
_LABELS = """
SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND m.deleted_at {deleted}
UNION ALL SELECT CAST(t.value AS TEXT) FROM (SELECT DISTINCT m.tags FROM memories m WHERE m.tags IS NOT NULL AND m.deleted_at {deleted}
    UNION SELECT v.tags FROM {earlier} ON v.key = m.key WHERE v.tags IS NOT NULL AND m.deleted_at {deleted}) k
JOIN json_each(iif(json_valid(k.tags), k.tags, '[]')) t ON t.type <> 'null'
"""
# The trash is the smaller part: looked through first.
_IN_THE_TRASH = _LABELS.format(deleted="IS NOT NULL", earlier="memories m CROSS JOIN memory_versions v")
_OPEN = _LABELS.format(deleted="IS NULL", earlier="memory_versions v CROSS JOIN memories m")


def filed_in_the_trash(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """Those of these names, without honorifics, that memories in the trash are filed under, or were before their tags were changed."""
    return _filed(connection, names, _IN_THE_TRASH)


def filed_openly(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """The same of all other memories."""
    return _filed(connection, names, _OPEN)


def _filed(connection: apsw.Connection, names: Set[str], labels: str) -> set[str]:
    return {name for (label,) in connection.execute(labels) if (name := bare(label)) in names} if names else set()
