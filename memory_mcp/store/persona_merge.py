"""Merging one persona's database into another: memories, versions, chunks, vectors, operations, merges, and stated relations.

Derived data, such as summaries and cooccurrence, is computed again. Columns are copied by name, so that columns of later migrations
are included. Keys stay unique: a key that another memory has gets a suffix, which is the same in every merge of the same persona.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Draft
from memory_mcp.store import conversations, memories, memory_rows, summary_rows, tombstones
from memory_mcp.store.graph import relation_queue as graph_queue
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.transfer import graph_import
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.memories import write_digest
from memory_mcp.store.timestamps import optional_from_text
from memory_mcp.store.vectors import index_queue, stored_vectors

NOTE = "merged_from"

Row = dict[str, Any]


@dataclass(slots=True)
class Merged:
    """The numbers of memories that were copied, existed already, or were skipped because they had been purged. `renamed`: old key → new."""

    taken: int = 0
    known: int = 0
    erased_before: int = 0
    renamed: dict[str, str] = field(default_factory=dict)


def merge_into(here: apsw.Connection, there: apsw.Connection, name: str, now: datetime) -> Merged:
    """Copy everything from the persona `name` with the database `there`. Call it in a transaction of `here`."""
    rows = list(_dicts(there.execute("SELECT * FROM memories ORDER BY id")))
    keys, gone, merged = _keys(here, there, rows, name)
    fresh = [row for row in rows if row["key"] in keys]
    sessions = _sessions(here, fresh, name)
    first = int(here.execute("SELECT coalesce(max(id), 0) + 1 FROM memories").get)
    ids = {row["id"]: first + offset for offset, row in enumerate(fresh)}
    known_keys = {**{row["key"]: row["key"] for row in rows}, **_merged_before(here, name), **keys}
    for row in fresh:
        _insert(here, "memories", _converted(row, ids, known_keys, sessions, name))
    _copy_records(here, there, keys, known_keys)
    _copy_chunks(here, there, ids)
    conversations.merge_into(here, there, {key: known for key, known in known_keys.items() if key not in gone})
    conversations.erase_turns(here, [], [row["content"] for row in rows if row["key"] in gone])
    _copy_feedback(here, there, ids)
    graph_queue.enqueue_unnamed(here, ids.values())
    graph_import.merge_graph(here, there, ids, now)
    replaced = memory_rows.replaced_by(here, list(memories.by_ids(here, ids.values()).values()))
    relations.sum_up(here, relations.pairs_of_memories(here, replaced), now)
    changed = dict.fromkeys([*ids.values(), *replaced])
    bm25_index.refresh(here, changed)
    index_queue.enqueue(here, changed)
    live = {tombstones.digest(key) for (key,) in here.execute("SELECT key FROM memories")}
    tombstones.merge(here, {digest: at for digest, at in tombstones.read_all(there).items() if digest not in live})
    return merged


def _keys(here: apsw.Connection, there: apsw.Connection, rows: Sequence[Row], name: str) -> tuple[dict[str, str], set[str], Merged]:
    """Old key → new key, for each memory to copy, and the keys of those that were erased here."""
    merged = Merged()
    keys: dict[str, str] = {}
    taken = dict(here.execute("SELECT key, content FROM memories"))
    before = _merged_before(here, name)
    other_keys = {row["key"]: f"{row['key']}_{_suffix(name, row['key'])}" for row in rows}
    erased = [key for key, other in other_keys.items() if any(tombstones.erased_at(here, candidate) for candidate in (key, other))]
    gone = {*erased, *summary_rows.citing(there, erased)}  # summaries repeat what was purged
    for row in rows:
        key = row["key"]
        other = other_keys[key]
        if key in before or taken.get(key) == row["content"]:
            merged.known += 1
        elif key in gone:
            merged.erased_before += 1
        else:
            keys[key] = other if key in taken else key
            merged.taken += 1
            if key in taken:
                merged.renamed[key] = other
    return keys, {row["key"] for row in rows if row["key"] in gone and row["key"] not in before}, merged


def _suffix(name: str, key: str) -> str:
    return hashlib.sha256(f"{name} {key}".encode()).hexdigest()[:8]


def _merged_before(here: apsw.Connection, name: str) -> dict[str, str]:
    """The memories of an earlier merge: key in the other persona → key here."""
    return dict(
        here.execute(
            f"SELECT json_extract(metadata, '$.{NOTE}.key'), key FROM memories WHERE json_extract(metadata, '$.{NOTE}.persona') = ?",
            (name,),
        )
    )


def _sessions(here: apsw.Connection, rows: Sequence[Row], name: str) -> dict[str, str]:
    """Session → new name, for session ids that both personas use: they stay separate."""
    wanted = {row["session_id"] for row in rows if row["session_id"] is not None}
    existing = here.execute(
        f"SELECT DISTINCT session_id FROM memories WHERE session_id IS NOT NULL AND json_extract(metadata, '$.{NOTE}.persona') IS NOT ?",
        (name,),
    )
    return {session: f"{session} ({name})" for (session,) in existing if session in wanted}


def _converted(row: Row, ids: Mapping[int, int], keys: Mapping[str, str], sessions: Mapping[str, str], name: str) -> Row:
    metadata = {**json.loads(row.get("metadata") or "{}"), NOTE: {"persona": name, "key": row["key"]}}
    if row["kind"] == "summary" and metadata.get(summary_rows.OF) == "session":
        metadata[summary_rows.SUBJECT] = sessions.get(metadata.get(summary_rows.SUBJECT, ""), metadata.get(summary_rows.SUBJECT))
    session = sessions.get(row["session_id"], row["session_id"])
    draft = Draft(content=row["content"], source=row["source"], session_id=session, occurred_at=optional_from_text(row["occurred_at"]))
    return {
        **row,
        "id": ids[row["id"]],
        "key": keys[row["key"]],
        "session_id": session,
        "supersedes": keys.get(row["supersedes"], row["supersedes"]),
        "write_digest": write_digest(draft),
        "metadata": json.dumps(metadata, ensure_ascii=False),
    }


def _copy_records(here: apsw.Connection, there: apsw.Connection, keys: Mapping[str, str], known_keys: Mapping[str, str]) -> None:
    """Copy versions, operations, and merges of these memories."""
    for table in ("memory_versions", "operations"):
        for row in _dicts(there.execute(f"SELECT * FROM {table} WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),))):
            row.pop("id", None)
            _insert(here, table, {**row, "key": keys[row["key"]]}, "OR IGNORE ")
    merges: dict[str, str] = dict(there.execute("SELECT key, into_key FROM merges"))
    for key, into in merges.items():
        if key in keys:
            here.execute("INSERT OR IGNORE INTO merges VALUES (?, ?)", (keys[key], known_keys.get(into, into)))


def _copy_chunks(here: apsw.Connection, there: apsw.Connection, ids: Mapping[int, int]) -> None:
    chunks: dict[int, int] = {}
    for row in _dicts(there.execute("SELECT * FROM chunks ORDER BY id")):
        old, memory = row.pop("id"), row["memory_id"]
        if memory in ids:
            _insert(here, "chunks", {**row, "memory_id": ids[memory]})
            chunks[old] = here.last_insert_rowid()
    vectors = there.execute("SELECT generation, chunk, blob FROM vectors")
    here.executemany(
        "INSERT INTO vectors(generation, chunk, blob) VALUES (?, ?, ?)",
        ((generation, chunks[chunk], blob) for generation, chunk, blob in vectors if chunk in chunks),
    )
    stored_vectors.note_change(here)


def _copy_feedback(here: apsw.Connection, there: apsw.Connection, ids: Mapping[int, int]) -> None:
    """Copy the verdicts on these memories, and their showings."""
    for table in ("feedback", "showings"):
        for row in _dicts(there.execute(f"SELECT * FROM {table}")):
            if row["memory"] in ids:
                _insert(here, table, {**row, "memory": ids[row["memory"]]})


def _insert(here: apsw.Connection, table: str, row: Row, conflict: str = "") -> None:
    columns = ", ".join(f'"{name}"' for name in row)
    here.execute(f"INSERT {conflict}INTO {table}({columns}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def _dicts(cursor: apsw.Cursor) -> Iterable[Row]:
    names: list[str] = []
    for row in cursor:
        names = names or [column[0] for column in cursor.get_description()]
        yield dict(zip(names, row, strict=True))
