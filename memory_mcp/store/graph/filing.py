"""What memories are filed under: who said them, and their tags."""

import json
from collections.abc import Iterable, Set

import apsw

from memory_mcp.text.names import bare

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


def filed_under(connection: apsw.Connection, memory_ids: Iterable[int]) -> list[tuple[str, str | None]]:
    """Who said these memories, as a Person, and what they are tagged with, of an unknown type."""
    wanted = json.dumps(list(memory_ids))
    sources = connection.execute(
        "SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND m.id IN (SELECT value FROM json_each(?))", (wanted,)
    ).fetchall()
    tags = connection.execute(
        "SELECT DISTINCT CAST(t.value AS TEXT) FROM memories m, json_each(CASE WHEN json_valid(m.tags) THEN m.tags ELSE '[]' END) t "
        "WHERE m.id IN (SELECT value FROM json_each(?))",
        (wanted,),
    ).fetchall()
    return [*((str(source), "Person") for (source,) in sources), *((str(tag), None) for (tag,) in tags)]


def filed(connection: apsw.Connection) -> set[str]:
    """The names under which memories are filed, those in the trash too: who said them, and their tags. Without honorifics."""
    every = [row[0] for row in connection.execute("SELECT id FROM memories")]
    return {bare(label) for label, _ in filed_under(connection, every)}


def filed_in_the_trash(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """Those of these names, without honorifics, that memories in the trash are filed under, or were before their tags were changed."""
    return _filed(connection, names, _IN_THE_TRASH)


def filed_openly(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """The same of all other memories."""
    return _filed(connection, names, _OPEN)


def _filed(connection: apsw.Connection, names: Set[str], labels: str) -> set[str]:
    return {name for (label,) in connection.execute(labels) if (name := bare(label)) in names} if names else set()
