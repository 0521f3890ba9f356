"""Erasing memories for good: first a list with a code, then, with that code, the rows, and then every trace of them in the files.

The rows go in one transaction that also notes that the files have to be swept. A crash in the sweep leaves that note, and the
next round of the chore sweeps again.
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
from memory_mcp.personas.registry import Persona
from memory_mcp.store import erasure, memories, summary_rows
from memory_mcp.store.files.persona_context import STATE_KEYS
from memory_mcp.store.graph import relations
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexShelf
from memory_mcp.text.relation_notation import format_relation
from memory_mcp.upkeep import adopted_originals

CODE_DIGITS = 8

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a purge of some keys would erase. `code` is what it wants to be confirmed with; empty where nothing would be erased.

    `quoted_in`: other memories that hold the same text. `stated`: relations that somebody stated outside of any memory, of those whom
    no other memory names. `in_context`: persona_context.json quotes it, or can't be read. `kept_in`: files of older servers that still hold it.
    """

    erased: tuple[Memory, ...]
    outcomes: tuple[Outcome, ...]
    code: str
    quoted_in: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    in_context: bool = False
    kept_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Erased:
    """What a purge did. `unsearched`: tables of an older server in the persona's file that could not be searched."""

    keys: tuple[str, ...]
    unsearched: tuple[str, ...] = ()


def plan(persona: Persona, keys: Sequence[str]) -> Plan:
    """What a purge of these keys would do. Only what lies in the trash is erased. Changes nothing."""
    wanted = list(dict.fromkeys(keys))
    with persona.database.read() as connection:
        found = memories.by_keys(connection, wanted)
        erased = [found[key] for key in wanted if key in found and found[key].deleted_at is not None]
        going = {memory.key for memory in erased}.union(summary_rows.citing(connection, [memory.key for memory in erased]))
        quoted = [key for key in erasure.quoting(connection, erased) if key not in going] if erased else []
        said = erasure.texts_of(connection, erased)
        stated = relations.stated_by_hand_about(connection, [memory.id for memory in erased])
    outcomes = tuple(_outcome(key, found.get(key)) for key in wanted)
    if not erased:
        return Plan((), outcomes, "")
    return Plan(
        tuple(erased),
        outcomes,
        code_of(persona, erased),
        tuple(quoted),
        tuple(text for text in map(format_relation, stated) if text),
        _is_in_context(persona, said),
        tuple(adopted_originals.holding(persona.database.path.parent, [memory.key for memory in erased], said)),
    )


def code_of(persona: Persona, erased: Sequence[Memory]) -> str:
    """A code that means exactly these memories of this persona as they are now."""
    told = [persona.name, *sorted(f"{memory.key} {memory.revision} {memory.deleted_at}" for memory in erased)]
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogatepass")).hexdigest()[:CODE_DIGITS] if erased else ""


def check_code(given: str, code: str) -> None:
    """Refuses a confirmation that means something else.

    Raises:
        InvalidInput: it is not the code of the list as it is now.
    """
    if given.strip().casefold() != code or not code:
        raise InvalidInput(
            "confirm does not fit",
            "it is not the code of this list, or the list has changed since" if code else "there is nothing to erase",
            "Ask again without confirm, look at the list, and send the code that comes with it",
        )


def erase(persona: Persona, keys: Sequence[str], *, rule: str, now: datetime) -> Erased:
    """Takes those of these memories that lie in the trash out of every table. `sweep` has to follow."""
    _clear_context(persona, keys)

    def work(connection: apsw.Connection) -> tuple[list[Operation], list[str]]:
        found = [memory for memory in memories.by_keys(connection, list(keys)).values() if memory.deleted_at is not None]
        return erasure.erase(connection, found, now, rule) if found else ([], [])

    done, unsearched = persona.database.write(work)
    for operation in done:
        persona.log.append(persona.name, operation)
    return Erased(tuple(str(operation.key) for operation in done), tuple(unsearched))


def sweep(persona: Persona, indexes: IndexShelf) -> bool:
    """Removes from the persona's files whatever erased memories have left there. True: nothing is left, or nothing was to be done.

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
    """A state that the context has from these memories alone goes. First: when the rows are gone, nobody knows it any more."""
    with persona.database.read() as connection:
        erased = [key for key, memory in memories.by_keys(connection, list(keys)).items() if memory.deleted_at is not None]
        states = erasure.states_told(connection, erased)
    try:
        stands = persona.context.read() if states else {}
        gone = {STATE_KEYS[part]: "" for part, said in states.items() if part in STATE_KEYS and stands.get(STATE_KEYS[part]) in said}
        if gone:
            persona.context.update(gone)
    except StoreError as error:  # a file that its owner has to mend keeps nothing from being erased
        logger.warning("what was erased of %s may still be in its context: %s", persona.name, error)


def _is_in_context(persona: Persona, said: Sequence[str]) -> bool:
    try:
        values = json.dumps(persona.context.read(), ensure_ascii=False)
    except StoreError:  # it may: nobody can tell before somebody has mended the file
        return True
    return any(json.dumps(text, ensure_ascii=False)[1:-1] in values for text in said)


def _outcome(key: str, memory: Memory | None) -> Outcome:
    if memory is None:
        return Outcome(key, "not_found", "this persona has no memory with that key")
    if memory.deleted_at is None:
        return Outcome(key, "not_in_trash", "only what is in the trash is erased; forget it first")
    return Outcome(key, "would_erase")
