"""Retention: which memories are due for the trash or for a purge, and the chore that does both.

The rules are those of `retention` in config.json. Only memories in the trash are purged.

Expiry (`expires_at`) is one rule for everything that reads: what has expired is moved to the trash before a persona is read
(`trash_expired`), so that no search, sum or name needs a clock.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import apsw

from memory_mcp.config.settings import Retention, Settings
from memory_mcp.domain import KINDS, Kind, Memory
from memory_mcp.errors import Overloaded
from memory_mcp.personas.registry import Persona
from memory_mcp.store import erasure, expiry, memories, summary_rows, trash
from memory_mcp.store.operations import Operation
from memory_mcp.store.timestamps import optional_from_text, optional_to_text, to_text
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import purge

AT_ONCE = 100
# A caller waits while what has expired is moved, and entities are counted once for each write.
EXPIRED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Due:
    """A memory and the rule by which it is due, such as `conversation_days 30`."""

    memory: Memory
    rule: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What the rules would do now: the first memories for the trash and for a purge, and the total numbers."""

    to_trash: tuple[Due, ...] = ()
    to_erase: tuple[Due, ...] = ()
    trash_total: int = 0
    erase_total: int = 0


def list_due(persona: Persona, rules: Retention, now: datetime, limit: int = AT_ONCE) -> Listed:
    """The memories that are due at `now`. Changes nothing."""
    with persona.database.read() as connection:
        to_trash, trash_total = _due_for_trash(connection, rules, now, limit)
        if rules.trash_days is None:
            return Listed(tuple(to_trash), (), trash_total)
        in_trash = erasure.long_in_trash(connection, now - timedelta(days=rules.trash_days), limit)
    rule = f"trash_days {rules.trash_days:g}"
    return Listed(tuple(to_trash), tuple(Due(memory, rule) for memory in in_trash.memories), trash_total, in_trash.total)


def expire(persona: Persona, rules: Retention, now: datetime, limit: int = AT_ONCE) -> list[str]:
    """Move due memories to the trash, the oldest first, at most `limit`. Returns their keys."""
    if not any(_limits(rules)):
        return []
    done = persona.database.write(lambda connection: _move(connection, _due_for_trash(connection, rules, now, limit)[0], now))
    persona.log.append(persona.name, *done)
    return [str(operation.key) for operation in done]


def trash_expired(persona: Persona, now: datetime) -> bool:
    """Move all memories that have expired to the trash, with the summaries made from them. Returns whether there were any.

    Raises:
        StoreError: nothing can be written, such as on a full disk.
    """
    expiring = persona.database.kept("next expiry", lambda: _next_expiry(persona))
    if expiring is None or expiring > to_text(now):
        return False
    while done := persona.database.write(lambda connection: _expire_by_time(connection, now)):
        persona.log.append(persona.name, *done)
    persona.words.clear()
    return True


def step(
    persona: Persona, now: datetime, settings: Settings, indexes: IndexCache, forget_cached: Callable[[], None] = lambda: None
) -> bool:
    """The chore: move a batch to the trash, purge a batch, then sweep. Returns whether there may be more.

    `forget_cached` is called after a purge.
    """
    rules = settings.retention
    if trash_expired(persona, now):
        return True
    due = list_due(persona, rules, now, limit=1)
    if due.trash_total:
        return bool(expire(persona, rules, now))
    if due.to_erase:
        listed = list_due(persona, rules, now)
        purge.erase(persona, [entry.memory.key for entry in listed.to_erase], rule=listed.to_erase[0].rule, now=now)
        forget_cached()
        return True
    if not purge.sweep(persona, indexes):
        raise Overloaded("erased content of {} isn't removed from its files yet", "a long read is running", "", persona.name)
    return False


def next_due(persona: Persona, now: datetime, settings: Settings) -> datetime | None:  # noqa: ARG001  as a chore is asked
    """When the next memory may become due if nothing is written; None for never. May be too early because of protected memories."""
    rules = settings.retention
    with persona.database.read() as connection:
        moments = [
            oldest + timedelta(days=days)
            for kind, days in _limits(rules)
            if (oldest := erasure.oldest_unprotected(connection, kind, rules.keep_importance, rules.keep_tags))
        ]
        in_trash = erasure.longest_in_trash(connection) if rules.trash_days is not None else None
        expiring = optional_from_text(expiry.next_expiry(connection))
    if expiring:
        moments.append(expiring)
    if in_trash and rules.trash_days is not None:
        moments.append(in_trash + timedelta(days=rules.trash_days))
    return min(moments, default=None)


def _next_expiry(persona: Persona) -> str | None:
    with persona.database.read_statement() as connection:
        return expiry.next_expiry(connection)


def _expire_by_time(connection: apsw.Connection, now: datetime) -> list[Operation]:
    expired = erasure.past_expiry(connection, now, EXPIRED_AT_ONCE).memories
    summary_rows.withhold(connection, expired, now)
    return _move(connection, [Due(memory, f"expires_at {optional_to_text(memory.expires_at) or ''}".strip()) for memory in expired], now)


def _move(connection: apsw.Connection, due: Sequence[Due], now: datetime) -> list[Operation]:
    """Move memories to the trash. Returns the operations to log."""
    rules = {entry.memory.id: entry.rule for entry in due}
    whole = memories.by_ids(connection, rules)
    return trash.move(
        connection, [whole[entry.memory.id] for entry in due], lambda memory: {"rule": rules[memory.id], "by": "retention"}, now
    )


def _due_for_trash(connection: apsw.Connection, rules: Retention, now: datetime, limit: int) -> tuple[Sequence[Due], int]:
    due: list[Due] = []
    total = 0
    for kind, days in _limits(rules):
        expired = erasure.expired(connection, kind, now - timedelta(days=days), rules.keep_importance, rules.keep_tags, limit)
        due += [Due(memory, f"{kind}_days {days:g}") for memory in expired.memories]
        total += expired.total
    return sorted(due, key=lambda entry: entry.memory.updated_at)[:limit], total


def _limits(rules: Retention) -> Iterator[tuple[Kind, float]]:
    for kind in KINDS:
        days: float | None = getattr(rules, f"{kind}_days")
        if days is not None:
            yield kind, days
