"""Purge: erases memories for good. First a plan with a confirmation code, then the rows, then all traces in the files.

The rows are deleted in one transaction that also records that the files must be swept. After a crash during the sweep, the next run
of the chore sweeps again.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.domain import Memory, Outcome
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.language.relation_notation import format_relation
from memory_mcp.personas.registry import Persona
from memory_mcp.store import conversations, erasure, memories, summary_rows
from memory_mcp.store.files.persona_context import STATE_KEYS
from memory_mcp.store.graph import relations
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import adopted_originals

CODE_DIGITS = 8

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a purge of some keys would erase. `code` confirms it; empty if nothing would be erased.

    `quoted_in`: other memories with the same text. `stated`: relations stated outside of any memory, of entities that no other memory
    mentions. `in_context`: persona_context.json quotes a memory, or can't be read. `kept_in`: files of older servers with a memory.
    `turns`: how many turns of conversations go with them.
    """

    erased: tuple[Memory, ...]
    outcomes: tuple[Outcome, ...]
    code: str
    quoted_in: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    in_context: bool = False
    kept_in: tuple[str, ...] = ()
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of a purge. `unsearched`: foreign tables in the persona's database that couldn't be searched."""

    keys: tuple[str, ...]
    unsearched: tuple[str, ...] = ()


def plan(persona: Persona, keys: Sequence[str], *, every_persona: bool = True) -> Plan:
    """Plan a purge of these keys, without changing anything. Only memories in the trash are erased.

    `every_persona`: whether the caller may learn the contents of files that several personas share.
    """
    wanted = list(dict.fromkeys(keys))
    with persona.database.read() as connection:
        stored = memories.by_keys(connection, wanted)
        erased = [stored[key] for key in wanted if key in stored and stored[key].deleted_at is not None]
        erased_keys = {memory.key for memory in erased}.union(summary_rows.citing(connection, [memory.key for memory in erased]))
        quoted = [key for key in erasure.quoting(connection, erased) if key not in erased_keys] if erased else []
        texts = erasure.texts_of(connection, erased)
        with_summaries = erasure.texts_of(connection, list(memories.by_keys(connection, list(erased_keys)).values()))
        turns = conversations.count_turns_about(connection, erased_keys, with_summaries)
        stated = relations.stated_by_hand_about(connection, [memory.id for memory in erased])
    outcomes = tuple(_outcome(key, stored.get(key)) for key in wanted)
    if not erased:
        return Plan((), outcomes, "")
    return Plan(
        tuple(erased),
        outcomes,
        code_of(persona, erased),
        tuple(quoted),
        tuple(text for text in map(format_relation, stated) if text),
        _is_in_context(persona, texts),
        tuple(adopted_originals.holding(persona.database.path.parent, [memory.key for memory in erased], texts, shared=every_persona)),
        turns,
    )


def code_of(persona: Persona, erased: Sequence[Memory]) -> str:
    """A code of exactly these memories of this persona in their current state."""
    parts = [persona.name, *sorted(f"{memory.key} {memory.revision} {memory.deleted_at}" for memory in erased)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:CODE_DIGITS] if erased else ""


def check_code(given: str, code: str) -> None:
    """Check a confirmation code.

    Raises:
        InvalidInput: it isn't the code of the current list.
    """
    if given.strip().casefold() != code or not code:
        raise InvalidInput(
            "confirm does not fit",
            "it is not the code of this list, or the list has changed since" if code else "there is nothing to erase",
            "Ask again without confirm, look at the list, and send the code that comes with it",
        )


def erase(persona: Persona, keys: Sequence[str], *, rule: str, now: datetime) -> Erased:
    """Delete those of these memories that are in the trash from every table. `sweep` must follow."""
    _clear_context(persona, keys)

    def work(connection: apsw.Connection) -> tuple[list[Operation], list[str]]:
        deleted = [memory for memory in memories.by_keys(connection, list(keys)).values() if memory.deleted_at is not None]
        return erasure.erase(connection, deleted, now, rule) if deleted else ([], [])

    done, unsearched = persona.database.write(work)
    persona.words.stored.clear()
    persona.log.append(persona.name, *done)
    return Erased(tuple(str(operation.key) for operation in done), tuple(unsearched))


def sweep(persona: Persona, indexes: IndexCache) -> bool:
    """Remove all traces of erased memories from the persona's files. Returns True if none are left.

    Raises:
        StoreError: a file can't be written.
    """
    with persona.database.read() as connection:
        mark = erasure.sweep_due(connection)
        dropped = stored_vectors.dropped_chunks(connection)
    if mark is None:
        return True
    indexes.erase(persona.database, dropped)
    if not erasure.sweep_file(persona.database):
        return False
    persona.database.write(lambda connection: erasure.note_swept(connection, mark))
    return True


def _clear_context(persona: Persona, keys: Sequence[str]) -> None:
    """Clear states in the context that come only from these memories. Before the rows are deleted, from which the states are known."""
    with persona.database.read() as connection:
        erased = [key for key, memory in memories.by_keys(connection, list(keys)).items() if memory.deleted_at is not None]
        states = erasure.states_only_of(connection, erased)
    try:
        current = persona.context.read() if states else {}
        gone = {STATE_KEYS[part]: "" for part, values in states.items() if part in STATE_KEYS and current.get(STATE_KEYS[part]) in values}
        if gone:
            persona.context.update(gone)
    except StoreError as error:  # a damaged context must not prevent a purge
        logger.warning("what was erased of %s may still be in its context: %s", persona.name, error)


def _is_in_context(persona: Persona, texts: Sequence[str]) -> bool:
    try:
        values = json.dumps(persona.context.read(), ensure_ascii=False)
    except StoreError:  # unknown until the file is repaired
        return True
    return any(json.dumps(text, ensure_ascii=False)[1:-1] in values for text in texts)


def _outcome(key: str, memory: Memory | None) -> Outcome:
    if memory is None:
        return Outcome(key, "not_found", "this persona has no memory with that key")
    if memory.deleted_at is None:
        return Outcome(key, "not_in_trash", "only what is in the trash is erased; forget it first")
    return Outcome(key, "would_erase")
