"""The lines of an import that are not memories: earlier versions, the persona's context, the number of pieces of a note, the name of a vault.

The first field of a line determines its kind. Importing the same line again changes nothing.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

import apsw

from memory_mcp.domain import Version
from memory_mcp.errors import InvalidInput
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.deduplication import NOTES, ORIGIN, leftovers
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.forget import forget_stored
from memory_mcp.remember.validation import check_key
from memory_mcp.store import memories, versions
from memory_mcp.store.files.persona_context import PEOPLE
from memory_mcp.transfer.formats.obsidian_notes import digest
from memory_mcp.wording import sentence

VERSION, CONTEXT, PIECES, VAULT = "version_of", "persona_context", "pieces_of", "notes_of"
CONTEXT_LIMIT = 200_000
# Beside a context that is a whole, such as who a character is: what becomes of it where the persona is somebody already.
ON_KNOWN = "on_known"
OnKnownContext = Literal["fill", "keep", "replace"]
# The field of the context with what of a character card has no other place.
CARD = "character_card"
SHORTENED, DELETED = "no longer in the note", "its note was deleted"


@dataclass(frozen=True, slots=True)
class Context:
    """Fields of persona_context.json. Those of an export fill what is empty; a character is kept out where the persona is another one already, or
    replaces it."""

    fields: Mapping[str, Any]
    on_known: OnKnownContext = "fill"


@dataclass(frozen=True, slots=True)
class Vault:
    """The vault of the notes before this line. Those with the key prefixes `unread` are there and couldn't be read. `deleted`: exported notes that
    are no longer there, by the digests of their keys. `forget`: the memories of notes that are no longer there are to be moved to the trash."""

    name: str
    unread: frozenset[str]
    deleted: Mapping[str, str]
    forget: bool = False


@dataclass(frozen=True, slots=True)
class DeletedNote:
    """A note that is no longer in its vault, and the keys of its memories."""

    note: str
    keys: tuple[str, ...]


MemoryLine = Version | Context | tuple[str, int]
OtherLine = MemoryLine | Vault


def checked_context(row: Mapping[str, Any]) -> Context:
    """The context of a `persona_context` line.

    Raises:
        InvalidInput: it can't be stored.
    """
    fields = row[CONTEXT]
    on_known = next((known for known in get_args(OnKnownContext) if known == row.get(ON_KNOWN, "fill")), None)
    if row.keys() - {CONTEXT, ON_KNOWN} or not isinstance(fields, dict) or on_known is None:
        raise InvalidInput(
            "persona_context can't be used", "it must be an object on a line of its own", "Use the line as the export wrote it"
        )
    try:
        size = len(json.dumps(fields, ensure_ascii=False, allow_nan=False).encode())
    except ValueError as error:
        raise InvalidInput("persona_context can't be used", "it is not plain JSON", "Use the line as the export wrote it") from error
    if size > CONTEXT_LIMIT or not all(isinstance(fields.get(name, {}), dict) for name in PEOPLE):
        why = (
            sentence("it has more than {} bytes", f"{CONTEXT_LIMIT:,}")
            if size > CONTEXT_LIMIT
            else sentence("{} must be objects", " and ".join(PEOPLE))
        )
        raise InvalidInput("persona_context can't be used", why, "Use the line as the export wrote it")
    return Context(fields, on_known)


def redacted(other: MemoryLine, redaction: Redaction) -> MemoryLine:
    """A copy without private data; `redaction` counts what was removed.

    Raises:
        InvalidInput: a key contains data that must not be stored.
    """
    if isinstance(other, Version):
        check_key(other.key, redaction.rules)
        return replace(
            other,
            content=redaction.text(other.content),
            tags=tuple(redaction.texts(other.tags)),
            reason=redaction.optional(other.reason),
            category=redaction.optional(other.category),
        )
    return replace(other, fields=redaction.tree(other.fields)) if isinstance(other, Context) else other


def check_adds(adds_only: bool) -> None:
    """Refuse lines other than memories where only such may come that add something.

    Raises:
        InvalidInput: this is such an import.
    """
    if adds_only:
        raise InvalidInput("this line changes what is stored", "this import only adds", "Remove the line")


def deleted_notes(persona: Persona, vault: Vault, present: Set[str]) -> list[DeletedNote]:
    """The notes of this vault with memories outside the trash, except those `present`: key prefixes of notes, or keys of memories."""
    with persona.database.read() as connection:
        stored = memories.of_vault(connection, vault.name)
        if vault.deleted:
            exported = [key for key in memories.keys_with_prefix(connection, "") if digest(key) in vault.deleted]
            stored += [
                (key, vault.deleted[digest(key)])
                for key, memory in memories.by_keys(connection, exported).items()
                if memory.deleted_at is None
            ]
    kept = present | vault.unread
    notes: dict[str, list[str]] = {}
    for key, note in stored:
        if kept.isdisjoint((key, key.rpartition("_")[0])):
            notes.setdefault(note, []).append(key)
    return [DeletedNote(note, tuple(keys)) for note, keys in notes.items()]


def forget_notes(persona: Persona, notes: Sequence[DeletedNote], now: datetime, dry_run: Foreseen | None, may_delete: bool) -> int:
    """Moves the memories of deleted notes to the trash, or with `dry_run` only counts them.

    Raises:
        InvalidInput: the caller may not move memories to the trash.
    """
    keys = [key for note in notes for key in note.keys]
    if keys and not may_delete:
        why = "moving them to the trash requires the scope delete"
        raise InvalidInput("{} notes are no longer in the vault", why, "Use a token with that scope, or forget them", len(notes))
    if keys and not dry_run:
        _drop(persona, keys, now, DELETED)
    return len(keys)


def import_line(persona: Persona, other: MemoryLine, now: datetime, dry_run: Foreseen | None, may_delete: bool) -> dict[str, Any]:
    """Imports a line, or with `dry_run` only checks it. Returns the counts to add, by field of `ImportResult`.

    `may_delete`: whether the caller may move memories to the trash.

    Raises:
        InvalidInput: the line refers to a memory that this persona doesn't have.
    """
    if isinstance(other, Context):
        return _import_context(persona, other, dry=dry_run is not None)
    if isinstance(other, Version):
        return _import_version(persona, other, dry_run)
    stem, pieces = other
    with persona.database.read() as connection:
        stored = memories.by_keys(connection, leftovers(connection, stem, pieces)).values()
    origins = {memory.key: memory.metadata.get(ORIGIN) for memory in stored if memory.deleted_at is None}
    removed = [key for key, origin in origins.items() if isinstance(origin, dict) and origin.get("format") == NOTES]
    if removed and not may_delete:
        why = "moving them to the trash requires the scope delete"
        raise InvalidInput("{} pieces are no longer in the note", why, "Use a token with that scope, or forget them", len(removed))
    if removed and not dry_run:
        _drop(persona, removed, now, SHORTENED)
    return {"dropped": len(removed)}


def _import_context(persona: Persona, context: Context, dry: bool) -> dict[str, int]:
    """Fills only the empty fields of the stored context: its values are newer, or those of another persona. A character that is to take the place
    of another one does, with all of its fields."""
    if context.on_known == "keep" and persona.context.says_otherwise(context.fields):
        return {"context_kept": 1}
    changes = persona.context.replacing(context.fields) if context.on_known == "replace" else persona.context.missing(context.fields)
    if changes and not dry:
        persona.context.update(changes)
    return {"context": 1} if changes else {"already_known": 1}


def _import_version(persona: Persona, version: Version, dry_run: Foreseen | None) -> dict[str, int]:
    if dry_run and dry_run.would_store(version.key):
        return {"versions": 1}

    def add(connection: apsw.Connection) -> bool:
        memory = memories.by_keys(connection, [version.key]).get(version.key)
        if memory is None or memory.revision <= version.revision:
            why = sentence("the memory has revision {}", memory.revision) if memory else "this persona has no memory with that key"
            raise InvalidInput(
                "revision {} of {} can't be stored", why, "Import the memory with its versions", version.revision, version.key
            )
        if any(earlier.revision == version.revision for earlier in versions.for_export(connection, version.key)):
            return False
        return dry_run is not None or versions.add_imported(connection, version)

    if dry_run:
        with persona.database.read() as connection:
            added = add(connection)
    else:
        added = persona.database.write(add)
    return {"versions": 1} if added else {"already_known": 1}


def _drop(persona: Persona, keys: Sequence[str], now: datetime, reason: str) -> None:
    _, done = persona.database.write(lambda connection: forget_stored(connection, keys, reason, now))
    persona.log.append(persona.name, *done)
