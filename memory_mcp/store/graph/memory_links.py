"""Links between memories: the next in a conversation, a replacement, nearly the same content, a possible contradiction, and what is
newer: its source says that what its target says no longer holds.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Filters
from memory_mcp.store.memories import CURRENT, TOLD_TIME, where
from memory_mcp.store.session_order import nearest_in_session
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import to_text

# Methods that derive links from the memories, again when those change.
DERIVED = ("rule", "vectors", "contradiction")
MADE = ("temporal_sequence", "same_session", "reference", "semantic_similarity", "contradiction", "newer")
# Links with a direction.
DIRECTED = ("temporal_sequence", "reference", "causality", "newer")
# A link that a person took back stays, so that it isn't made again, with the method 'undone', and is none. Of a link that comes from elsewhere: one that is here stays, unless a person took it back there.
UNLESS_UNDONE = (
    "ON CONFLICT (source, target, type) DO UPDATE SET method = excluded.method, weight = excluded.weight WHERE excluded.method = 'undone'"
)
_IS_NEWER = "type = 'newer' AND method <> 'undone'"
# How many steps lead from a memory to the newest one.
LONGEST_CHAIN = 8
# Relations of which an entity has one at a time.
SINGLE_TYPES = ("lives_in", "works_at", "works_for", "born_on", "born_in", "birthday", "married_to", "deadline", "due_on", "located_at")
# Relations that exclude each other.
OPPOSITE_TYPES = (
    ("likes", "hates"), ("likes", "dislikes"), ("loves", "hates"), ("trusts", "distrusts"), ("supports", "opposes"), ("friend_of", "enemy_of")
)  # fmt: skip
# The number of linked memories before and after in the conversation; all pairs of a long one would be more links than memories.
SESSION_EACH = 3
_IN_SESSION = "m.session_id IS NOT NULL AND m.id IN (SELECT value FROM json_each(?1))"
_STORED = f"{_IN_SESSION} AND m.deleted_at IS NULL"
# The memory before each of these in its session, without the trash.
_BEFORE = f"SELECT o.id, m.id FROM memories m JOIN memories o ON o.id = ({nearest_in_session('<')}) WHERE {_STORED}"
# The memory after each of these: its predecessor changed.
_AFTER = f"SELECT o.id FROM memories m JOIN memories o ON o.id = ({nearest_in_session('>')}) WHERE {_IN_SESSION}"
# The next few memories of the same session before and after each of these, as (earlier, later).
_TOGETHER = f"""
SELECT o.id, m.id FROM memories m JOIN memories o ON o.id IN ({nearest_in_session("<", SESSION_EACH)}) WHERE {_STORED}
UNION SELECT m.id, o.id FROM memories m JOIN memories o ON o.id IN ({nearest_in_session(">", SESSION_EACH)}) WHERE {_STORED}
"""
_REPLACED = """
SELECT m.id, p.id FROM memories m JOIN memories p ON p.key = m.supersedes
WHERE m.deleted_at IS NULL AND m.id <> p.id AND m.id IN (SELECT value FROM json_each(?))
"""


# Memories with evidence against this one's: another target of a relation of which only one holds at a time, or an opposite relation.
# CROSS JOIN: only what this memory states of these types leads on. Who is in many memories has evidence of co-occurrence from each of them.
_AGAINST = f"""
SELECT DISTINCT o.memory FROM relation_evidence own CROSS JOIN json_each(?2) a ON a.value ->> 0 = own.type
CROSS JOIN entities s ON s.id = own.source CROSS JOIN entities t ON t.id = own.target
CROSS JOIN entities p ON coalesce(p.merged_into, p.id) = coalesce(s.merged_into, s.id)
CROSS JOIN relation_evidence o INDEXED BY relation_evidence_of_type ON o.source = p.id AND o.type = a.value ->> 1 AND o.type <> 'co_occurrence'
CROSS JOIN entities q ON q.id = o.target CROSS JOIN memories m ON m.id = o.memory
WHERE own.memory = ?1 AND o.memory <> ?1 AND {CURRENT}
    AND (o.type = own.type) = (coalesce(q.merged_into, q.id) <> coalesce(t.merged_into, t.id))
LIMIT ?3
"""
# Both ends by their indexes: an OR would look at all links.
_OF_MEMORY = """
SELECT l.source, l.target, l.type, l.weight, l.confidence, l.method, count(*) OVER () FROM (
    SELECT *, target AS other FROM memory_links WHERE source = ?1 UNION ALL SELECT *, source FROM memory_links WHERE target = ?1) l
JOIN memories m ON m.id = l.other WHERE m.deleted_at IS NULL AND l.method <> 'undone' AND (?2 = '[]' OR l.type IN (SELECT value FROM json_each(?2)))
ORDER BY l.weight * l.confidence DESC, l.other DESC, l.type LIMIT ?3
"""
# Memory → what says, directly or by what is newer still, that it no longer holds.
_NEWER = f"""
WITH RECURSIVE newer(earlier, id, steps) AS (
    SELECT value, value, 0 FROM json_each(?)
    UNION SELECT n.earlier, l.source, n.steps + 1 FROM newer n JOIN memory_links l ON l.target = n.id AND l.type = 'newer' AND l.method <> 'undone'
        JOIN memories s ON s.id = l.source AND s.deleted_at IS NULL WHERE n.steps < {LONGEST_CHAIN}
    UNION SELECT n.earlier, s.id, n.steps + 1 FROM newer n JOIN memories p ON p.id = n.id AND n.steps > 0
        JOIN memories s ON s.supersedes = p.key AND s.deleted_at IS NULL WHERE n.steps < {LONGEST_CHAIN})
SELECT newer.earlier, m.id FROM newer JOIN memories m ON m.id = newer.id WHERE newer.id <> newer.earlier AND {CURRENT} {{}}
ORDER BY {TOLD_TIME}, m.id
"""


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two memories. `weight` is how strong it is, `confidence` how certain, both 0 to 1."""

    source: int
    target: int
    type: str
    weight: float
    confidence: float
    method: str


def contradicting_memories(connection: apsw.Connection, memory_id: int, limit: int) -> list[int]:
    """Current memories that state a relation which contradicts one that this memory states."""
    against = [pair for type_, other in OPPOSITE_TYPES for pair in ((type_, other), (other, type_))] + [
        (type_, type_) for type_ in SINGLE_TYPES
    ]
    rows = connection.execute(_AGAINST, (memory_id, json.dumps(against), limit))
    return [int(row[0]) for row in rows]


def replace(connection: apsw.Connection, memory_ids: Iterable[int], method: str, links: Iterable[Link], now: datetime) -> None:
    """Replaces the links that this method found for these memories."""
    wanted = json_ids(memory_ids)
    for end in ("source", "target"):
        connection.execute(f"DELETE FROM memory_links WHERE method = ? AND {end} IN (SELECT value FROM json_each(?))", (method, wanted))
    add(connection, links, now)


def add(connection: apsw.Connection, links: Iterable[Link], now: datetime) -> None:
    """Adds links. One between the same two of the same type stays as it is."""
    connection.executemany(
        "INSERT OR IGNORE INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,?,?,?,?,?)",
        [(link.source, link.target, link.type, link.weight, link.confidence, link.method, to_text(now)) for link in links],
    )


def replace_newer(connection: apsw.Connection, source: int, method: str, links: Iterable[Link], now: datetime) -> None:
    """Replaces what this method found to be no longer so because of a memory. What was taken back stays so, and what another method
    found.
    """
    connection.execute("DELETE FROM memory_links WHERE type = 'newer' AND method = ? AND source = ?", (method, source))
    add(connection, links, now)


def newest(connection: apsw.Connection, ids: Iterable[int], filters: Filters) -> dict[int, int]:
    """Memory → the current memory that says last that it no longer holds, of those that pass the filters."""
    condition, values = where(filters)
    rows: Iterable[Any] = connection.execute(_NEWER.format(condition), (json_ids(ids), *values))
    return dict(rows)


def newer_and_earlier(connection: apsw.Connection, memory_id: int) -> tuple[set[int], set[int]]:
    """The memories that are directly newer than this one, and those that this one is newer than."""
    newer = connection.execute(f"SELECT source FROM memory_links WHERE target = ? AND {_IS_NEWER}", (memory_id,))
    earlier = connection.execute(f"SELECT target FROM memory_links WHERE source = ? AND {_IS_NEWER}", (memory_id,))
    return {source for (source,) in newer}, {target for (target,) in earlier}


def undo_newer(connection: apsw.Connection, newer: int, earlier: int) -> str | None:
    """Takes back that one memory is newer than another. Returns the method that had made the link; None if there was none."""
    method = connection.execute(f"SELECT method FROM memory_links WHERE source = ? AND target = ? AND {_IS_NEWER}", (newer, earlier)).get
    connection.execute(
        "UPDATE memory_links SET method = 'undone', weight = 0 WHERE source = ? AND target = ? AND type = 'newer'", (newer, earlier)
    )
    return method and str(method)


def types(connection: apsw.Connection) -> tuple[str, ...]:
    """The types that links can have: the derived ones, and those that an import contained."""
    brought = connection.execute("SELECT DISTINCT type FROM memory_links ORDER BY type")
    return tuple(dict.fromkeys((*MADE, *(row[0] for row in brought))))


def of_memory(connection: apsw.Connection, memory_id: int, types: Sequence[str], limit: int) -> tuple[list[Link], int]:
    """The links of a memory with memories outside the trash, of these types where some are given; the strongest first, then the latest.
    Also returns how many there are.
    """
    rows: list[Any] = connection.execute(_OF_MEMORY, (memory_id, json.dumps(list(types)), limit)).fetchall()
    return [Link(*row[:-1]) for row in rows], int(rows[0][-1]) if rows else 0


def contradictions(connection: apsw.Connection, limit: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs of current memories of which one may no longer be so, the latest first, and how many there are."""
    current = f"EXISTS (SELECT 1 FROM memories m WHERE m.id = l.{{}} AND {CURRENT})"
    rows: list[Any] = connection.execute(
        "SELECT DISTINCT min(l.source, l.target), max(l.source, l.target) FROM memory_links l "
        f"WHERE l.type IN ('contradiction', 'newer') AND l.method <> 'undone' AND {current.format('source')} "
        f"AND {current.format('target')} ORDER BY 2 DESC, 1 DESC"
    ).fetchall()
    return rows[:limit], len(rows)


def methods_of_newer(connection: apsw.Connection, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """(newer, earlier) → what linked them, of the pairs that are linked so; a pair has its memories in any order."""
    rows = connection.execute(
        f"SELECT source, target, method FROM memory_links WHERE {_IS_NEWER} "
        "AND source IN (SELECT value FROM json_each(?1)) AND target IN (SELECT value FROM json_each(?1))",
        (json.dumps([memory for pair in pairs for memory in pair]),),
    )
    return {(newer, earlier): method for newer, earlier, method in rows}


def link_memories(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> None:
    """Links these memories to the one before in their session (`temporal_sequence`), to the nearest of the session (`same_session`) and to
    what they replace (`reference`)."""
    ids = set(memory_ids)
    ids |= {int(row[0]) for row in connection.execute(_AFTER, (json.dumps(sorted(ids)),))}
    wanted = json.dumps(sorted(ids))
    connection.execute(
        "DELETE FROM memory_links WHERE method = 'rule' AND (target IN (SELECT value FROM json_each(?1)) AND type = 'temporal_sequence' "
        "OR source IN (SELECT value FROM json_each(?1)) AND type = 'reference')",
        (wanted,),
    )
    for query, type_ in ((_BEFORE, "temporal_sequence"), (_TOGETHER, "same_session"), (_REPLACED, "reference")):
        rows: list[Any] = connection.execute(query, (wanted,)).fetchall()
        add(connection, [Link(source, target, type_, 1, 1, "rule") for source, target in rows], now)
