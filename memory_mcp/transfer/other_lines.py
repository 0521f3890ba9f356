"""The lines of an import that are no memories: earlier states of one, the persona's context, a note that got shorter.

Each is told by its first field, and taken once: the same line again changes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Version
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.deduplication import NOTES, ORIGIN, leftovers
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.forget import forget_stored
from memory_mcp.remember.redact import check_key
from memory_mcp.store import memories, versions
from memory_mcp.store.files.persona_context import PEOPLE
from memory_mcp.store.operations import Operation
from memory_mcp.text.privacy.redaction import Redaction

VERSION, CONTEXT, PIECES = "version_of", "persona_context", "pieces_of"
CONTEXT_LIMIT = 200_000
SHORTENED = "no longer in the note"


@dataclass(frozen=True, slots=True)
class Context:
    """What persona_context.json says elsewhere."""

    told: Mapping[str, Any]


Besides = Version | Context | tuple[str, int]


def checked_context(row: Mapping[str, Any]) -> Context:
    """The context of a line that has `persona_context`.

    Raises:
        InvalidInput: it can't be stored as one.
    """
    told = row[CONTEXT]
    if len(row) > 1 or not isinstance(told, dict):
        raise InvalidInput(
            "persona_context can't be used", "it stands in a line of its own, and is an object", "Take it as the export wrote it"
        )
    try:
        size = len(json.dumps(told, ensure_ascii=False, allow_nan=False).encode())
    except ValueError as error:
        raise InvalidInput("persona_context can't be used", "it is not plain JSON", "Take it as the export wrote it") from error
    if size > CONTEXT_LIMIT or not all(isinstance(told.get(name, {}), dict) for name in PEOPLE):
        why = f"it has more than {CONTEXT_LIMIT:,} bytes" if size > CONTEXT_LIMIT else f"{' and '.join(PEOPLE)} are objects"
        raise InvalidInput("persona_context can't be used", why, "Take it as the export wrote it")
    return Context(told)


def redacted(other: Besides, found: Redaction) -> Besides:
    """The same without what is not stored here; what went is counted in `found`.

    Raises:
        InvalidInput: a key holds what may not be stored.
    """
    if isinstance(other, Version):
        check_key(other.key, found.rules)
        return replace(
            other,
            content=found.text(other.content),
            tags=tuple(found.texts(other.tags)),
            reason=found.optional(other.reason),
            category=found.optional(other.category),
        )
    return Context(found.tree(other.told)) if isinstance(other, Context) else other


def take(persona: Persona, other: Besides, now: datetime, foreseen: Foreseen | None, may_drop: bool) -> dict[str, int]:
    """Does what a line says, or in a dry run only looks. Returns what is to be counted, by the names of `ImportResult`.

    `may_drop`: whether the caller may put anything in the trash.

    Raises:
        InvalidInput: it fits no memory of this persona.
    """
    if isinstance(other, Context):
        return _take_context(persona, other, dry=foreseen is not None)
    if isinstance(other, Version):
        return _take_version(persona, other, foreseen)
    stem, pieces = other
    with persona.database.read() as connection:
        found = memories.by_keys(connection, leftovers(connection, stem, pieces)).values()
    gone = [memory.key for memory in found if memory.deleted_at is None and _is_note(memory.metadata.get(ORIGIN))]
    if gone and not may_drop:
        why = "putting them in the trash needs the scope delete"
        raise InvalidInput(f"{len(gone)} pieces are no longer in the note", why, "Use a token that has it, or forget them")
    if gone and not foreseen:
        _drop(persona, gone, now)
    return {"dropped": len(gone)}


def _take_context(persona: Persona, context: Context, dry: bool) -> dict[str, int]:
    """Only what this persona's own context leaves open is taken: what it says is newer, or of somebody else."""
    own = persona.context.read()
    changes: dict[str, Any] = {}
    for name, value in context.told.items():
        if name in PEOPLE:
            open_fields = {part: said for part, said in value.items() if said and not own[name].get(part)}
            changes.update({name: open_fields} if open_fields else {})
        elif value not in (None, "") and own.get(name) in (None, ""):
            changes[name] = value
    if changes and not dry:
        persona.context.update(changes)
    return {"context": 1} if changes else {"already_known": 1}


def _take_version(persona: Persona, version: Version, foreseen: Foreseen | None) -> dict[str, int]:
    if foreseen and foreseen.would_store(version.key):
        return {"versions": 1}

    def add(connection: apsw.Connection) -> bool:
        memory = memories.by_keys(connection, [version.key]).get(version.key)
        if memory is None or memory.revision <= version.revision:
            why = f"its revision is {memory.revision}" if memory else "this persona has no memory with that key"
            raise InvalidInput(f"revision {version.revision} of {version.key} can't be stored", why, "Import the memory with its versions")
        if any(known.revision == version.revision for known in versions.for_export(connection, version.key)):
            return False
        return foreseen is not None or versions.add_imported(connection, version)

    if foreseen:
        with persona.database.read() as connection:
            added = add(connection)
    else:
        added = persona.database.write(add)
    return {"versions": 1} if added else {"already_known": 1}


def _drop(persona: Persona, keys: Sequence[str], now: datetime) -> None:
    def drop(connection: apsw.Connection) -> list[Operation]:
        return forget_stored(connection, keys, SHORTENED, now)[1]

    for operation in persona.database.write(drop):
        persona.log.append(persona.name, operation)


def _is_note(origin: object) -> bool:
    return isinstance(origin, dict) and origin.get("format") == NOTES
