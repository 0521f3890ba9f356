"""Moves memories to the trash. They can be restored until retention purges them."""

from collections.abc import Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Memory, Outcome
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, summary_rows, trash
from memory_mcp.store.operations import Operation


def forget(persona: Persona, keys: Sequence[str], *, reason: str | None, dry_run: bool, now: datetime, privacy: Privacy) -> list[Outcome]:
    """The outcome for each key: `forgotten` (or `would_forget`), `already_forgotten`, `not_found`."""
    wanted = list(dict.fromkeys(keys))
    if dry_run:
        with persona.database.read() as connection:
            by_key = memories.by_keys(connection, wanted)
        return [_outcome(key, by_key.get(key), "would_forget") for key in wanted]
    redacted_reason = Redaction(privacy).optional(reason)
    by_key, done = persona.database.write(lambda connection: forget_stored(connection, wanted, redacted_reason, now))
    persona.words.clear()
    persona.log.append(persona.name, *done)
    return [_outcome(key, by_key.get(key), "forgotten") for key in wanted]


def forget_stored(
    connection: apsw.Connection, keys: Sequence[str], reason: str | None, now: datetime
) -> tuple[dict[str, Memory], list[Operation]]:
    """The same inside a transaction: the memories before the change, by key, and the operations to log."""
    by_key = memories.by_keys(connection, keys)
    present = [memory for memory in by_key.values() if memory.deleted_at is None]
    done = trash.move(connection, present, lambda _: {"reason": reason} if reason else {}, now)
    summary_rows.withhold(connection, present, now)
    return by_key, done


def _outcome(key: str, memory: Memory | None, done: str) -> Outcome:
    if memory is None:
        return Outcome(key, "not_found", "this persona has no memory with that key")
    if memory.deleted_at is not None:
        return Outcome(key, "already_forgotten", "it is in the trash; revise with restore=true brings it back")
    return Outcome(key, done)
