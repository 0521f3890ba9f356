"""How long memories are kept: what is due for the trash, what is due to be erased, and the chore that does both.

The rules are those of `retention` in config.json. Nothing is erased that did not lie in the trash before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import apsw

from memory_mcp.config.settings import Retention, Settings
from memory_mcp.domain import KINDS, Kind, Memory
from memory_mcp.errors import Overloaded
from memory_mcp.personas.registry import Persona
from memory_mcp.store import erasure, memories, operations
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors import index_queue
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import purge

AT_ONCE = 100
INTERVAL = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Due:
    """A memory and the rule that is over for it, such as `conversation_days 30`."""

    memory: Memory
    rule: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What the rules would do now: the first of those that would go into the trash, and for good, and how many there are of each."""

    to_trash: tuple[Due, ...] = ()
    to_erase: tuple[Due, ...] = ()
    trash_total: int = 0
    erase_total: int = 0


def list_due(persona: Persona, rules: Retention, now: datetime, limit: int = AT_ONCE) -> Listed:
    """What is due at `now`. Changes nothing."""
    with persona.database.read() as connection:
        to_trash, trash_total = _due_for_trash(connection, rules, now, limit)
        if rules.trash_days is None:
            return Listed(tuple(to_trash), (), trash_total)
        found = erasure.long_in_trash(connection, now - timedelta(days=rules.trash_days), limit)
    rule = f"trash_days {rules.trash_days:g}"
    return Listed(tuple(to_trash), tuple(Due(memory, rule) for memory in found.memories), trash_total, found.total)


def expire(persona: Persona, rules: Retention, now: datetime, limit: int = AT_ONCE) -> list[str]:
    """Puts what is due into the trash, the oldest first, at most `limit`. Returns the keys."""
    if not any(_limits(rules)):
        return []
    done = persona.database.write(lambda connection: _expire(connection, rules, now, limit))
    for operation in done:
        persona.log.append(persona.name, operation)
    return [str(operation.key) for operation in done]


def step(
    persona: Persona, now: datetime, settings: Settings, indexes: IndexCache, forget_cached: Callable[[], None] = lambda: None
) -> bool:
    """The chore: one batch into the trash, one batch for good, and then the sweep. Returns whether there may be more.

    `forget_cached` is called after something was erased.
    """
    rules = settings.retention
    due = list_due(persona, rules, now, limit=1)
    if due.trash_total:
        return bool(expire(persona, rules, now))
    if due.to_erase:
        found = list_due(persona, rules, now)
        purge.erase(persona, [one.memory.key for one in found.to_erase], rule=found.to_erase[0].rule, now=now)
        forget_cached()
        return True
    if not purge.sweep(persona, indexes):
        raise Overloaded(f"what was erased of {persona.name} is not swept out of its files yet", "somebody reads them for long")
    return False


def next_due(persona: Persona, now: datetime, settings: Settings) -> datetime | None:  # noqa: ARG001  as a chore is asked
    """When the next memory may be due, if nothing is written until then; None: never. What is protected may make it too early."""
    rules = settings.retention
    with persona.database.read() as connection:
        moments = [
            oldest + timedelta(days=days)
            for kind, days in _limits(rules)
            if (oldest := erasure.oldest_unprotected(connection, kind, rules.keep_importance, rules.keep_tags))
        ]
        in_trash = erasure.longest_in_trash(connection) if rules.trash_days is not None else None
    if in_trash and rules.trash_days is not None:
        moments.append(in_trash + timedelta(days=rules.trash_days))
    return min(moments, default=None)


def _expire(connection: apsw.Connection, rules: Retention, now: datetime, limit: int) -> list[Operation]:
    due, _ = _due_for_trash(connection, rules, now, limit)
    for one in due:
        memories.set_deleted(connection, one.memory.id, now)
    changed = [one.memory for one in due]
    ids = [*(memory.id for memory in changed), *memories.replaced_by(connection, changed)]
    bm25_index.refresh(connection, ids)
    index_queue.enqueue(connection, ids)
    mentions.recount(connection, {entity for found in mentions.of_memories(connection, ids).values() for entity in found})
    relations.sum_up(connection, relations.pairs_of_memories(connection, ids), now)
    done = [
        Operation("delete", one.memory.key, now, before={"content": one.memory.content}, metadata={"rule": one.rule, "by": "retention"})
        for one in due
    ]
    for operation in done:
        operations.record(connection, operation)
    return done


def _due_for_trash(connection: apsw.Connection, rules: Retention, now: datetime, limit: int) -> tuple[Sequence[Due], int]:
    due: list[Due] = []
    total = 0
    for kind, days in _limits(rules):
        found = erasure.expired(connection, kind, now - timedelta(days=days), rules.keep_importance, rules.keep_tags, limit)
        due += [Due(memory, f"{kind}_days {days:g}") for memory in found.memories]
        total += found.total
    return sorted(due, key=lambda one: one.memory.updated_at)[:limit], total


def _limits(rules: Retention) -> Iterator[tuple[Kind, float]]:
    for kind in KINDS:
        days: float | None = getattr(rules, f"{kind}_days")
        if days is not None:
            yield kind, days
