"""The personas themselves: listing them, their figures, and renaming, copying, merging and erasing one.

The request names the persona as everywhere; a second name is in the body. A token must be for both.
"""

import logging
from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from memory_mcp.errors import InvalidInput, MemoryMCPError, PersonaUnknown
from memory_mcp.personas import lifecycle
from memory_mcp.personas.lifecycle import merge
from memory_mcp.personas.names import canonical_name
from memory_mcp.server.actions.upkeep import backups_of, index_cache, remains_of_persona
from memory_mcp.server.arguments import Arguments, Between, Flag, NoArguments, Text, Words, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.status import Statistics, StoredCounts, statistics
from memory_mcp.server.views import Count, PersonaAnswer, omit_empty
from memory_mcp.store import erasure, memories, tombstones
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.sqlite import reading
from memory_mcp.store.vectors import index_files
from memory_mcp.upkeep import adopted_originals
from memory_mcp.upkeep.backup import Backups
from memory_mcp.wording import sentence

logger = logging.getLogger(__name__)

LISTED = 1_000

_COUNTED_TABLES = {"versions": "memory_versions", "operations": "operations", "vectors": "vectors"}


class Persona(TypedDict):
    """A persona with its counts, or with the reason why it can't be opened."""

    name: str
    error: NotRequired[str]
    memories: NotRequired[Count]
    superseded: NotRequired[Count]
    in_trash: NotRequired[Count]


class CellNumber(TypedDict):
    index: int
    of: int


class Personas(TypedDict):
    personas: list[Persona]
    cell: NotRequired[CellNumber]
    next: NotRequired[str]


class PersonasArguments(Arguments):
    after: Annotated[Text, http("`next` of the page before: the personas after this name.")] = ""
    limit: Annotated[int, Between(1, LISTED), http("How many at most.")] = LISTED


@operation(route=Route("GET", "/api/personas", of_persona=False), answer=Personas)
def list_personas(call: Call, arguments: PersonasArguments) -> Json:
    """List the personas that the caller may see, with their counts, sorted by name; of very many page by page. One of many cells lists
    its own.
    """
    names = call.visible_personas(arguments.after, arguments.limit + 1)
    listed: list[Json] = []
    for name in names[: arguments.limit]:
        try:
            with call.reading_of(name) as persona, persona.database.read() as connection:
                listed.append({"name": name, **memories.counts(connection)})
        except MemoryMCPError as error:
            listed.append({"name": name, "error": str(error)})
    cell = call.runtime.personas.cell
    return {
        "personas": listed,
        **({} if cell.is_whole else {"cell": {"index": cell.index, "of": cell.of}}),
        **omit_empty(next=names[arguments.limit - 1] if len(names) > arguments.limit else None),
    }


@operation(route=Route("GET", "/api/stats"), answer=Statistics)
def stats(call: Call, _arguments: NoArguments) -> Json:
    """Return the statistics of one persona."""
    with call.reading() as persona:
        return statistics(call, persona)


class Figures(PersonaAnswer, StoredCounts):
    versions: Count
    tokens: list[str]
    operations: NotRequired[Count]
    vectors: NotRequired[Count]
    erased: NotRequired[Count]


@operation(needs=["admin"], route=Route("GET", "/api/persona"), answer=Figures)
def persona_figures(call: Call, _arguments: NoArguments) -> Json:
    """Return what a persona holds, down to earlier versions and the trash, the disk space that it takes, and who may call as it."""
    return _figures(call, _existing(call, or_pool=True))


def _figures(call: Call, name: str) -> Json:
    """Count everything that a persona has. It must exist."""
    personas = call.runtime.personas
    with call.reading_of(name) as persona:
        counts = statistics(call, persona)
        with persona.database.read() as connection:
            further = {
                **{field: reading.row_count(connection, table) for field, table in _COUNTED_TABLES.items()},
                "erased": len(tombstones.read_all(connection)),
                "sweep_due": erasure.sweep_due(connection) is not None,
            }
        index_bytes = index_files.size_bytes(persona.database)
    directory = personas.path_of(name).parent
    return {
        **counts,
        **further,
        "index_bytes": index_bytes,
        "directory": directory.name,
        "tokens": _tokens_of(call, name),
        "kept_copies": adopted_originals.of_persona(directory),
    }


def _tokens_of(call: Call, name: str) -> list[str]:
    """Return the ids of the tokens in force that name this persona; a token for all personas names none."""
    tokens = read_tokens(call.runtime.personas.directory) or {}
    return [token.id for token in tokens.values() if name in (token.personas or ()) and token.state(call.now) == "in force"]


# Whether the persona exists is checked before the other name.
class NewName(Arguments):
    to: Annotated[Text, http(required=True)] = ""


class Renamed(PersonaAnswer):
    renamed_from: str
    tokens: NotRequired[list[str]]
    note: NotRequired[str]
    backups_left: NotRequired[str]


@operation(needs=["admin"], route=Route("POST", "/api/persona/rename"), answer=Renamed)
def rename(call: Call, arguments: NewName) -> Json:
    """Rename a persona."""
    name, personas = _existing(call), call.runtime.personas
    to = _other(call, arguments.to, "to")
    directory = personas.path_of(name).parent.name
    new = lifecycle.rename(personas, name, to, index_cache(call), call.now, call.admission.personas)
    _notify_workers(call, gone=name, new=new)
    left = _move_backups(call, directory, personas.path_of(new).parent.name)
    tokens = _tokens_of(call, name)
    note = sentence("they are still for {}, and let nobody in as {}: make others", repr(name), repr(new)) if tokens else None
    return {"persona": new, "renamed_from": name, **omit_empty(tokens=tokens, note=note, backups_left=left)}


def _move_backups(call: Call, directory: str, to: str) -> str | None:
    """Move the backups to the directory of the next ones. Return why that failed; the persona has its new name all the same."""
    try:
        Backups(call.runtime.personas.directory, call.runtime.personas.keys).follow_rename(directory, to, call.settings)
    except MemoryMCPError as error:
        logger.warning("%s", error)
        return str(error)
    return None


class Copied(PersonaAnswer):
    copied_from: str


@operation(needs=["admin", "export"], route=Route("POST", "/api/persona/copy"), answer=Copied)
def copy(call: Call, arguments: NewName) -> Json:
    """Copy a persona with everything that it has."""
    name = _existing(call)
    to = _other(call, arguments.to, "to")
    new = lifecycle.copy(call.runtime.personas, name, to, call.now, call.admission.personas)
    _notify_workers(call, new=new)
    return {"persona": new, "copied_from": name}


class MergeTarget(Arguments):
    into: Annotated[Text, http(required=True)] = ""


class Merged(PersonaAnswer):
    merged_from: str
    taken: Count
    known: Count
    erased_before: Count
    renamed_keys: NotRequired[dict[str, str]]


@operation(needs=["admin", "write"], route=Route("POST", "/api/persona/merge"), answer=Merged)
def merge_into(call: Call, arguments: MergeTarget) -> Json:
    """Copy the memories of a persona into another one."""
    name, personas = _existing(call), call.runtime.personas
    into = canonical_name(_other(call, arguments.into, "into"))
    if into == name:
        raise InvalidInput("a persona can't be merged into itself", "", "Name another one in `into`")
    with call.reading_of(name) as source, personas.reading(into) as target:
        if not target.exists:
            raise PersonaUnknown("there is no persona {}", "", "Rename or copy the one that there is", repr(into))
        merged = merge(source, target, call.now)
    _notify_workers(call, new=into)
    counts = {"taken": merged.taken, "known": merged.known, "erased_before": merged.erased_before}
    return {"persona": into, "merged_from": name, **counts, **omit_empty(renamed_keys=merged.renamed)}


class EraseArguments(Arguments):
    confirm: Words = ""
    remove_kept: Flag = False
    remove_backups: Flag = False


class ErasedPersona(PersonaAnswer):
    remains: list[str]
    # How many memories were erased before, in the list; that the persona is erased, afterwards.
    erased: NotRequired[Annotated[Any, WithJsonSchema({"type": ["boolean", "integer"]})]]
    dry_run: NotRequired[Literal[True]]
    backups: NotRequired[Count]
    removed_backups: NotRequired[Count]


@operation(needs=["admin", "delete"], route=Route("POST", "/api/persona/erase"), answer=ErasedPersona)
def erase(call: Call, arguments: EraseArguments) -> Json:
    """List what a persona has, or, with its name as confirmation, erase it."""
    name, personas, settings = _existing(call, or_pool=True), call.runtime.personas, call.settings
    if not arguments.confirm:
        plan = {"dry_run": True, "confirm": call.pool or name, "backups": len(backups_of(call)), "remains": remains_of_persona(call)}
        return {**_figures(call, name), **plan}
    if canonical_name(arguments.confirm) != (call.pool or name):
        raise InvalidInput(
            "confirm does not fit", "it is not the name of the persona, which is {}", "Type the name to erase it", repr(call.pool or name)
        )
    directory = personas.path_of(name).parent
    kept = adopted_originals.of_persona(directory)
    backups = len(backups_of(call)) if arguments.remove_backups else 0

    def remove_backups() -> None:
        """Run first: if it fails, or the server dies, the persona is still there to be erased again."""
        if backups:
            Backups(personas.directory, personas.keys).remove_all(directory.name, settings)

    lifecycle.erase(personas, name, index_cache(call), call.now, first=remove_backups)
    call.runtime.forget_cached()
    _notify_workers(call, gone=name)
    removed = adopted_originals.remove(personas.directory, kept) if arguments.remove_kept else []
    kept_in = [path for path in kept if path not in removed]
    details = omit_empty(removed=removed, removed_backups=backups or None, kept_in=kept_in, tokens=_tokens_of(call, name))
    return {"persona": name, "erased": True, **details, "remains": remains_of_persona(call)}


def _existing(call: Call, *, or_pool: bool = False) -> str:
    """Return the persona of the request, which must exist, or the store of its pool. To a token, personas of others don't exist."""
    if call.pool and not or_pool:
        raise InvalidInput(
            "a pool can't be renamed, copied or merged", "its name stands in config.json", "Export it, and import it elsewhere"
        )
    name = call.persona_name()
    if not call.reaches(name):
        call.admission.note("persona", persona=name)
    elif call.runtime.personas.exists(name):
        return name
    near = ", ".join(call.near(name))
    raise PersonaUnknown(
        "there is no persona {}", "", sentence("Perhaps you mean {}", near) if near else "Send its name as X-Persona", repr(name)
    )


def _other(call: Call, name: str, field: str) -> str:
    if not name:
        raise InvalidInput("{} is missing", "", "Send the name of the other persona", field)
    canonical = canonical_name(name)
    call.admission.require_persona(canonical)
    return canonical


def _notify_workers(call: Call, gone: str | None = None, new: str | None = None) -> None:
    """Tell the background workers which persona is gone, and which has memories that they should look at."""
    if call.runtime.chores and gone:
        call.runtime.chores.forget(gone)
    if new:
        call.runtime.wake(new)
