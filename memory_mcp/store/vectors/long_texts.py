"""Memories that a generation's model may have to split, and the rule by which their chunks were made."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.domain import Chunk
from memory_mcp.store import properties
from memory_mcp.store.memories import EVENT_TIME
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.vectors import chunks, stored_vectors

_RULE = "split:"
# No text has more tokens than bytes; 16 are for the day in front of it. A text with chunks of the generation may have become short.
_MAY_BE_LONG = (
    "(octet_length(m.content) + coalesce(octet_length(m.source), 0) + 16 > ?2 OR EXISTS (SELECT 1 FROM chunks c WHERE c.generation = ?1 AND c.memory_id = m.id) "
    "OR (SELECT count(*) FROM chunks c WHERE c.memory_id = m.id AND c.generation IS NULL AND c.question IS NULL) > 1)"
)


@dataclass(frozen=True, slots=True)
class LongText:
    """A memory's content, and the prefix of each of its chunks in the text that is embedded."""

    memory_id: int
    content: str
    label: str


def among(connection: apsw.Connection, generation: str, memory_ids: Collection[int], over_bytes: int, zone: ZoneInfo) -> list[LongText]:
    """Those of these memories that may have to be split in a generation that embeds texts up to `over_bytes` whole."""
    rows = connection.execute(
        f"SELECT m.id, m.content, m.source, {EVENT_TIME} FROM memories m "
        f"WHERE m.id IN (SELECT value FROM json_each(?3)) AND {_MAY_BE_LONG} ORDER BY m.id",
        (generation, over_bytes, json_ids(memory_ids)),
    )
    return [
        LongText(memory_id, content, stored_vectors.embedded_text("", source, event_time, zone))
        for memory_id, content, source, event_time in rows
    ]


def rule(connection: apsw.Connection, generation: str) -> str | None:
    """The rule that splits the long texts of a generation; None before the first."""
    return properties.value(connection, _RULE + generation)


def set_rule(connection: apsw.Connection, generation: str, new_rule: str, over_bytes: int) -> None:
    """Set the rule of a generation. Long memories of the serving generation are queued and keep their chunks until then; those of
    another generation lose theirs."""
    if stored_vectors.serving_generation(connection) == generation:
        connection.execute(
            f"INSERT OR IGNORE INTO index_queue(memory_id) SELECT m.id FROM memories m WHERE {_MAY_BE_LONG} ORDER BY m.id",
            (generation, over_bytes),
        )
    else:
        connection.execute(
            "DELETE FROM vectors WHERE generation = ?1 AND chunk IN (SELECT p.id FROM chunks p JOIN memories m ON m.id = p.memory_id "
            f"WHERE p.question IS NULL AND {_MAY_BE_LONG})",
            (generation, over_bytes),
        )
        chunks.drop_generation(connection, generation)
    properties.put(connection, _RULE + generation, new_rule)


def forget_rules(connection: apsw.Connection, keep: Collection[str]) -> None:
    """Delete the rules of all generations but these."""
    connection.execute(
        "DELETE FROM properties WHERE name >= ?1 AND name < ?1 || char(1114111) AND substr(name, length(?1) + 1) NOT IN (SELECT value FROM json_each(?2))",
        (_RULE, json.dumps(list(keep))),
    )


def resplit(connection: apsw.Connection, generation: str, text: LongText, wanted: Sequence[Chunk]) -> None:
    """Split a memory into the `wanted` spans in a generation, unless its content changed meanwhile: then it is queued again anyway."""
    if connection.execute("SELECT content FROM memories WHERE id = ?", (text.memory_id,)).get != text.content:
        return
    lost = chunks.resplit(connection, text.memory_id, generation, wanted)
    if lost and stored_vectors.serving_generation(connection) == generation:
        connection.executemany("INSERT OR IGNORE INTO dropped_chunks VALUES (?)", [(chunk,) for chunk in lost])
