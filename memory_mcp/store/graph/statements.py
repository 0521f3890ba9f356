"""Relations that say something of some entities: what was stated or read, not that two were named together."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from memory_mcp.store.rows import packed
from memory_mcp.text.relation_notation import days

# Of every entity its strongest relations in either direction, straight from an index. One of a pair that was only named together says nothing.
_STRONGEST = """SELECT x.id FROM json_each(:here) h CROSS JOIN relations x ON x.id IN (
    SELECT y.id FROM relations y WHERE y.{end} = +h.value AND y.type <> 'co_occurrence' ORDER BY y.weight * y.confidence DESC LIMIT :most)"""
_AROUND = f"""
SELECT r.source, s.name AS source_name, r.type, r.target, t.name AS target_name, r.directed, r.valid_from, r.valid_to
FROM ({_STRONGEST.format(end="source")} UNION {_STRONGEST.format(end="target")}) f
JOIN relations r ON r.id = f.id JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target
ORDER BY r.weight * r.confidence DESC, r.id
"""
# What a memory states and nobody has taken back. A day goes by its own name: one such as 10月17日 may mean another year by now.
_STANDING = """
SELECT iif(s.subtype IS 'day', s.name, coalesce(v.source_said, s.name)), v.type, iif(t.subtype IS 'day', t.name, coalesce(v.target_said, t.name))
FROM relation_evidence v JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target
WHERE v.memory = ? AND v.method = 'stated' AND EXISTS (SELECT 1 FROM relations r WHERE r.type = v.type AND (
    (r.source = coalesce(s.merged_into, s.id) AND r.target = coalesce(t.merged_into, t.id))
    OR (NOT r.directed AND r.source = coalesce(t.merged_into, t.id) AND r.target = coalesce(s.merged_into, s.id))))
ORDER BY v.id
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation with the names of its ends. `valid_from` and `valid_to` are the first and the last day on which it holds, None where nobody
    said."""

    source: int
    source_name: str
    type: str
    target: int
    target_name: str
    directed: bool
    valid_from: str | None = None
    valid_to: str | None = None

    @property
    def line(self) -> str:
        """As it is told: 健太 > likes > 苺; `—` where it has no direction; its days behind one that holds for a time."""
        arrow = ">" if self.directed else "—"
        return f"{self.source_name} {arrow} {self.type} {arrow} {self.target_name}{days(self.valid_from, self.valid_to)}"


def around(connection: apsw.Connection, entities: Iterable[int], most: int) -> list[Statement]:
    """The relations of these entities, the strongest first, at most so many of each in either direction. Only what something current
    speaks for; merged entities are one."""
    here = json.dumps(list(entities))
    columns = "source, source_name, type, target, target_name, directed, valid_from, valid_to"
    rows = packed(connection, columns, _AROUND, {"here": here, "most": most})
    return [
        Statement(source, source_name, type_, target, target_name, bool(directed), valid_from, valid_to)
        for source, source_name, type_, target, target_name, directed, valid_from, valid_to in rows
    ]


def standing(connection: apsw.Connection, memory_id: int) -> list[str]:
    """The relations that a memory states and that hold, as `unrelate` takes them."""
    return [" > ".join(row) for row in connection.execute(_STANDING, (memory_id,))]
