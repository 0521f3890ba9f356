"""Relations that say something of some entities: what was stated or read, not that two were named together."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from memory_mcp.store.rows import packed
from memory_mcp.text.entities.stated import days

# Of every entity its strongest relations in either direction, straight from an index. One of a pair that was only named together says nothing.
_STRONGEST = """SELECT x.id FROM json_each(:here) h CROSS JOIN relations x ON x.id IN (
    SELECT y.id FROM relations y WHERE y.{end} = +h.value AND y.type <> 'co_occurrence' ORDER BY y.weight * y.confidence DESC LIMIT :most)"""
_AROUND = f"""
SELECT r.source, s.name AS source_name, r.type, r.target, t.name AS target_name, r.directed, r.valid_from, r.valid_to
FROM ({_STRONGEST.format(end="source")} UNION {_STRONGEST.format(end="target")}) f
JOIN relations r ON r.id = f.id JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target
ORDER BY r.weight * r.confidence DESC, r.id
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
