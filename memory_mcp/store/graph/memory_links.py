"""Memory to memory: what follows what in a conversation, what replaces what, what says nearly the same, what may contradict what."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.memories import CURRENT, event_time_of, session_order
from memory_mcp.store.timestamps import to_text

# The ways of finding a link that follow from the memories, and are found anew.
DERIVED = ("rule", "vectors", "contradiction")
MADE = ("temporal_sequence", "same_session", "reference", "semantic_similarity", "contradiction")
NAMED_LIMIT = 8
# Links that lead from one memory to the other; the others lie between two.
DIRECTED = ("temporal_sequence", "reference", "causality")
# Of such a relation somebody has one at a time.
SINGLE_TYPES = ("lives_in", "works_at", "works_for", "born_on", "born_in", "birthday", "married_to", "deadline", "due_on", "located_at")
# Who session_order in the one to somebody does not stand in the other.
OPPOSITE_TYPES = (
    ("likes", "hates"), ("likes", "dislikes"), ("loves", "hates"), ("trusts", "distrusts"), ("supports", "opposes"), ("friend_of", "enemy_of")
)  # fmt: skip
# So many before and after a memory in its conversation it is linked to; all pairs of a long one would be more links than memories.
SESSION_EACH = 3
# The memory before each of these in its session, of those that are not in the trash.
_BEFORE = f"""
SELECT p.id, m.id FROM memories m JOIN memories p ON p.id = (
    SELECT q.id FROM memories q WHERE q.session_id = m.session_id AND q.deleted_at IS NULL
        AND {session_order("q", "<", "m")} ORDER BY {event_time_of("q")} DESC, q.id DESC LIMIT 1)
WHERE m.session_id IS NOT NULL AND m.deleted_at IS NULL AND m.id IN (SELECT value FROM json_each(?))
"""
# The memory after each of these: it follows another one now.
_AFTER = f"""
SELECT n.id FROM memories m JOIN memories n ON n.id = (
    SELECT q.id FROM memories q WHERE q.session_id = m.session_id AND q.deleted_at IS NULL
        AND {session_order("q", ">", "m")} ORDER BY {event_time_of("q")}, q.id LIMIT 1)
WHERE m.session_id IS NOT NULL AND m.id IN (SELECT value FROM json_each(?))
"""
# Of the same session the next few before and after each of these, told as earlier and later.
_TOGETHER = f"""
SELECT q.id, m.id FROM memories m JOIN memories q ON q.id IN (
    SELECT o.id FROM memories o WHERE o.session_id = m.session_id AND o.deleted_at IS NULL
        AND {session_order("o", "<", "m")} ORDER BY {event_time_of("o")} DESC, o.id DESC LIMIT {SESSION_EACH})
WHERE m.session_id IS NOT NULL AND m.deleted_at IS NULL AND m.id IN (SELECT value FROM json_each(?1))
UNION SELECT m.id, q.id FROM memories m JOIN memories q ON q.id IN (
    SELECT o.id FROM memories o WHERE o.session_id = m.session_id AND o.deleted_at IS NULL
        AND {session_order("o", ">", "m")} ORDER BY {event_time_of("o")}, o.id LIMIT {SESSION_EACH})
WHERE m.session_id IS NOT NULL AND m.deleted_at IS NULL AND m.id IN (SELECT value FROM json_each(?1))
"""
_REPLACED = """
SELECT m.id, p.id FROM memories m JOIN memories p ON p.key = m.supersedes
WHERE m.deleted_at IS NULL AND m.id <> p.id AND m.id IN (SELECT value FROM json_each(?))
"""


# Who is one with whom this memory names, at most so many.
_NAMED = """
SELECT DISTINCT p.id FROM entity_mentions own JOIN entities e ON e.id = own.entity
JOIN entities p ON coalesce(p.merged_into, p.id) = coalesce(e.merged_into, e.id) WHERE own.memory = ?1 ORDER BY own.start LIMIT ?2
"""
_TEXTS = f"""
SELECT m.id, m.content FROM memories m WHERE m.id IN (SELECT value FROM json_each(?)) AND m.kind <> 'summary' AND {CURRENT}
"""
# Evidence of other memories that session_order against what this one's says: of types of which one holds at a time another target, or
# a type that is the contrary of it.
_AGAINST = f"""
SELECT DISTINCT o.memory FROM relation_evidence own JOIN entities s ON s.id = own.source JOIN entities t ON t.id = own.target
JOIN entities p ON coalesce(p.merged_into, p.id) = coalesce(s.merged_into, s.id)
JOIN relation_evidence o ON o.source = p.id JOIN entities q ON q.id = o.target JOIN memories m ON m.id = o.memory
WHERE own.memory = ?1 AND o.memory <> ?1 AND {CURRENT} AND (
    (own.type = o.type AND own.type IN (SELECT value FROM json_each(?2)) AND coalesce(q.merged_into, q.id) <> coalesce(t.merged_into, t.id))
    OR (json_array(own.type, o.type) IN (SELECT value FROM json_each(?3)) AND coalesce(q.merged_into, q.id) = coalesce(t.merged_into, t.id)))
LIMIT ?4
"""
# Both ends by their indexes: an OR would look at all links.
_OF_MEMORY = """
SELECT l.source, l.target, l.type, l.weight, l.confidence, l.method, count(*) OVER () FROM (
    SELECT *, target AS other FROM memory_links WHERE source = ?1 UNION ALL SELECT *, source FROM memory_links WHERE target = ?1) l
JOIN memories m ON m.id = l.other WHERE m.deleted_at IS NULL AND (?2 = '[]' OR l.type IN (SELECT value FROM json_each(?2)))
ORDER BY l.weight * l.confidence DESC, l.other DESC, l.type LIMIT ?3
"""


@dataclass(frozen=True, slots=True)
class Link:
    """Between two memories; `weight` is how much there is of it, `confidence` how sure it is, both 0 to 1."""

    source: int
    target: int
    type: str
    weight: float
    confidence: float
    method: str


def texts_with_shared_entities(connection: apsw.Connection, memory_id: int, limit: int) -> dict[int, str]:
    """The texts of the latest current memories that name somebody whom this one names."""
    near: set[int] = set()
    for (entity,) in connection.execute(_NAMED, (memory_id, NAMED_LIMIT)).fetchall():
        # The latest of each alone: somebody who is named in every memory would else be looked through each time.
        latest = connection.execute("SELECT memory FROM entity_mentions WHERE entity = ? ORDER BY memory DESC LIMIT ?", (entity, limit))
        near |= {int(row[0]) for row in latest}
    wanted = sorted(near - {memory_id}, reverse=True)[:limit]
    return dict(connection.execute(_TEXTS, (json.dumps(wanted),)))


def contradicting_memories(connection: apsw.Connection, memory_id: int, limit: int) -> list[int]:
    """Current memories that state a relation which does not go with one that this memory states."""
    opposite = [json.dumps(pair, separators=(",", ":")) for one, other in OPPOSITE_TYPES for pair in ((one, other), (other, one))]
    rows = connection.execute(_AGAINST, (memory_id, json.dumps(SINGLE_TYPES), json.dumps(opposite), limit))
    return [int(row[0]) for row in rows]


def replace(connection: apsw.Connection, memory_ids: Iterable[int], method: str, found: Iterable[Link], now: datetime) -> None:
    """What this method finds for these memories, instead of what it found before."""
    wanted = json.dumps(list(memory_ids))
    for end in ("source", "target"):
        connection.execute(f"DELETE FROM memory_links WHERE method = ? AND {end} IN (SELECT value FROM json_each(?))", (method, wanted))
    connection.executemany(
        "INSERT OR IGNORE INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,?,?,?,?,?)",
        [(one.source, one.target, one.type, one.weight, one.confidence, one.method, to_text(now)) for one in found],
    )


def types(connection: apsw.Connection) -> tuple[str, ...]:
    """The types that links can have: those that are made here, and those that an import has brought."""
    brought = connection.execute("SELECT DISTINCT type FROM memory_links ORDER BY type")
    return tuple(dict.fromkeys((*MADE, *(row[0] for row in brought))))


def of_memory(connection: apsw.Connection, memory_id: int, types: Sequence[str], limit: int) -> tuple[list[Link], int]:
    """The links of a memory with memories that are not in the trash, of these types where some are named, the strongest first, then those
    with the latest memories; and how many there are."""
    rows: list[Any] = connection.execute(_OF_MEMORY, (memory_id, json.dumps(list(types)), limit)).fetchall()
    return [Link(*row[:-1]) for row in rows], int(rows[0][-1]) if rows else 0


def contradictions(connection: apsw.Connection, limit: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs of current memories that may contradict each other, the latest first, and how many there are."""
    current = f"EXISTS (SELECT 1 FROM memories m WHERE m.id = l.{{}} AND {CURRENT})"
    rows: list[Any] = connection.execute(
        f"SELECT l.source, l.target FROM memory_links l WHERE l.type = 'contradiction' AND {current.format('source')} "
        f"AND {current.format('target')} ORDER BY max(l.source, l.target) DESC, min(l.source, l.target) DESC"
    ).fetchall()
    return rows[:limit], len(rows)


def link(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> None:
    """Links these memories to what went before them in their session (`temporal_sequence`), to the nearest of the same session
    (`same_session`) and to what they replace (`reference`)."""
    ids = set(memory_ids)
    ids |= {int(row[0]) for row in connection.execute(_AFTER, (json.dumps(sorted(ids)),))}
    wanted = json.dumps(sorted(ids))
    connection.execute(
        "DELETE FROM memory_links WHERE method = 'rule' AND target IN (SELECT value FROM json_each(?)) AND type = 'temporal_sequence'",
        (wanted,),
    )
    for query, type_ in (
        (_BEFORE, "temporal_sequence"),
        (_TOGETHER, "same_session"),
        (_REPLACED, "reference"),
    ):
        connection.executemany(
            "INSERT OR IGNORE INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,?,1,1,'rule',?)",
            [(source, target, type_, to_text(now)) for source, target in connection.execute(query, (wanted,)).fetchall()],
        )
