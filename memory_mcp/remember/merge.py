"""Merges memories into one of them on request, and undoes a merge completely.

The kept memory gets all tags and the greatest importance. The others move to the trash, and the kept one replaces them, also as the
successor of what they had replaced. The changes are recorded in one row for each memory, under one operation_id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Memory, Outcome
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, memory_merges, operations, trash, versions
from memory_mcp.store.operations import Operation
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.wording import sentence

MERGE, UNDO = "merge", "undo_merge"


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge or of undoing one; `operation_id` undoes it."""

    operation_id: str
    outcomes: tuple[Outcome, ...]


def merge(persona: Persona, keys: Sequence[str], into: str, *, reason: str | None, now: datetime, privacy: Privacy) -> Merged:
    """Merges the memories with these keys into the one with the key `into`.

    Raises:
        InvalidInput: there is nothing to merge, or one of them is in the trash, was replaced, or is a summary.
        MemoryNotFound: this persona has no memory with one of the keys.
    """
    others = [key for key in dict.fromkeys(keys) if key != into]
    if not others:
        raise InvalidInput("nothing to merge", "no key was given but that of the kept memory", "Name the others with merge")
    redacted_reason = Redaction(privacy).optional(reason)
    done = persona.database.write(lambda connection: _merge(connection, others, into, redacted_reason, now))
    persona.log.append(persona.name, *done)
    return Merged(done[0].operation_id, (Outcome(into, "kept"), *(Outcome(key, "merged", f"into {into}") for key in others)))


def undo(persona: Persona, operation_id: str, *, now: datetime) -> Merged:
    """Undoes a merge: memories unchanged since become what they were, the others are reported.

    Raises:
        InvalidInput: it is undone already.
        MemoryNotFound: this persona has no merge with that operation_id.
    """
    outcomes, done = persona.database.write(lambda connection: _undo(connection, operation_id, now))
    persona.log.append(persona.name, *done)
    return Merged(done[0].operation_id if done else "", tuple(outcomes))


def _merge(connection: apsw.Connection, others: Sequence[str], into: str, reason: str | None, now: datetime) -> list[Operation]:
    by_key = _mergeable(connection, [into, *others])
    kept, rest = by_key[into], [by_key[key] for key in others]
    tags = tuple(dict.fromkeys(tag for memory in (kept, *rest) for tag in memory.tags))
    importance = max(memory.importance for memory in (kept, *rest))
    if (tags, importance) != (kept.tags, kept.importance):
        versions.keep(connection, kept, reason or "merged")
        memories.change(connection, kept, content=kept.content, tags=tags, importance=importance, now=now)
    after = memories.by_keys(connection, [into])[into]
    metadata = {"of": list(others), **({"reason": reason} if reason else {})}
    done = [Operation(MERGE, into, now, _state(kept), _state(after), metadata)]
    for memory in rest:
        memories.set_deleted(connection, memory.id, now)
        memory_merges.note(connection, memory.key, into)
        gone = {"deleted_at": to_text(now)}
        done.append(Operation(MERGE, memory.key, now, {"deleted_at": None}, gone, {"into": into}, operation_id=done[0].operation_id))
    trash.refresh(connection, [after, *rest], now)
    operations.record(connection, *done)
    return done


def _mergeable(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Memory]:
    by_key = memories.by_keys(connection, keys)
    for key in keys:
        memory = by_key.get(key)
        if memory is None:
            raise MemoryNotFound("no memory has the key {}", "", "Take the keys from organize or a recall", key)
        obstacle = (
            "it is in the trash"
            if memory.deleted_at
            else sentence("{} has replaced it", memory.superseded_by)
            if memory.superseded_by
            else "it is a summary, which is made anew by itself"
            if memory.kind == "summary"
            else None
        )
        if obstacle:
            raise InvalidInput("{} can't be merged", obstacle, "Leave it out", key)
    if len({memory.privacy_level == "secret" for memory in by_key.values()}) > 1:
        raise InvalidInput(
            "these can't be merged", "one of them is secret, and its tags would not be any more", "Make all of them secret first"
        )
    if len({memory.expires_at for memory in by_key.values()}) > 1:
        raise InvalidInput("these can't be merged", "they don't expire at the same time", "Give all of them the same expires_at first")
    return by_key


def _undo(connection: apsw.Connection, operation_id: str, now: datetime) -> tuple[list[Outcome], list[Operation]]:
    rows = memory_merges.recorded(connection, operation_id, MERGE)
    if not rows:
        raise MemoryNotFound(
            "no merge has the operation_id {}", "", "Take it from the answer of the merge, or from organize's `merges`", operation_id[:80]
        )
    if memory_merges.undone(connection, operation_id, UNDO):
        raise InvalidInput("this merge has been undone already", "", "A memory that was merged again has another operation_id")
    by_key = memories.by_keys(connection, [row.key for row in rows])
    outcomes = [_undo_one(connection, row, by_key.get(row.key)) for row in rows]
    trash.refresh(connection, list(by_key.values()), now)
    done = [Operation(UNDO, rows[0].key, now, metadata={"undoes": operation_id})]
    done += [
        Operation(UNDO, outcome.key, now, metadata={"undoes": operation_id}, operation_id=done[0].operation_id)
        for outcome in outcomes[1:]
        if outcome.outcome == "restored"
    ]
    operations.record(connection, *done)
    return outcomes, done


def _undo_one(connection: apsw.Connection, row: memory_merges.Recorded, memory: Memory | None) -> Outcome:
    if memory is None or row.before is None or row.after is None:
        return Outcome(row.key, "not_found", "it was erased for good since")
    if "revision" in row.before:  # the kept memory
        if _state(memory) != row.after:
            return Outcome(row.key, "unchanged", "it was changed since the merge, and keeps its tags and importance")
        if row.before != row.after:
            memory_merges.restore_state(
                connection, memory, tuple(row.before["tags"]), row.before["importance"], row.before["revision"], row.before["updated_at"]
            )
        return Outcome(row.key, "restored")
    if memory.deleted_at is None or memory.deleted_at != from_text(row.after["deleted_at"]):
        return Outcome(row.key, "unchanged", "it was restored or forgotten since the merge")
    memories.set_deleted(connection, memory.id, None)
    memory_merges.drop(connection, [memory.key])
    return Outcome(row.key, "restored")


def _state(memory: Memory) -> Mapping[str, Any]:
    """The fields of the kept memory that a merge changes."""
    return {
        "tags": list(memory.tags),
        "importance": memory.importance,
        "revision": memory.revision,
        "updated_at": to_text(memory.updated_at),
    }
