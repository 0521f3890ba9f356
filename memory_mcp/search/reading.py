"""Reads the memories of candidates: what they say, and what confirms them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import apsw

from memory_mcp.domain import Candidate, Confirmation, Memory
from memory_mcp.language.tokens import normalise
from memory_mcp.store import memory_dates
from memory_mcp.store.replacements import confirmed_memories

_NOT_SAID = re.compile(r"[\W_]+")

# What a memory says, and its stated time, or those that its text names.
Statement = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Read:
    """Memories by id, what each says, and what confirms it."""

    memories: dict[int, Memory] = field(default_factory=dict)
    statements: dict[int, Statement] = field(default_factory=dict)
    confirmations: dict[int, Confirmation] = field(default_factory=dict)


def read(connection: apsw.Connection, wanted: Sequence[Candidate], count: int, now: datetime) -> Read:
    """The memories of the first `count` of these candidates, of all where some of those would not be shown."""
    found = Read()
    for some in (wanted[:count], wanted[count:]):
        memories, confirmed = confirmed_memories(connection, [candidate.memory_id for candidate in some], now)
        found.memories.update(memories)
        found.confirmations.update(confirmed)
        found.statements.update((memory_id, statement_of(memory)) for memory_id, memory in memories.items())
        statements = found.statements
        if len(set(statements.values())) < len(statements):  # 「今日は走った」 of another day is another statement
            times = memory_dates.of_memories(connection, [memory_id for memory_id, (_, stated) in statements.items() if stated is None])
            statements.update((memory_id, (statements[memory_id][0], tuple(named))) for memory_id, named in times.items())
        shown, _ = distinct(some, statements, count)
        if len(shown) == count or not wanted[count:]:
            break
    return found


def distinct(candidates: Sequence[Candidate], statements: Mapping[int, Statement], limit: int) -> tuple[list[Candidate], int]:
    """The first of these candidates that say different things, and how many before them say the same."""
    chosen: dict[Statement, Candidate] = {}
    repeated = 0
    for candidate in candidates:
        if candidate.memory_id not in statements or len(chosen) == limit:
            break
        repeated += (statement := statements[candidate.memory_id]) in chosen
        chosen.setdefault(statement, candidate)
    return list(chosen.values()), repeated


def statement_of(memory: Memory) -> Statement:
    """The content of a memory but for punctuation, width and case, and its stated time: the same of another time is different."""
    return _NOT_SAID.sub("", normalise(memory.content)) or memory.content, memory.occurred_at
