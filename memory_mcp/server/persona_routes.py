"""The routes that are about a persona as a whole: its figures, and renaming, copying, merging and erasing it.

Whom it is about is chosen as everywhere; the other name is in the body. A token must be for both.
"""

import logging
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory_mcp.errors import InvalidInput, MemoryMCPError, PersonaUnknown
from memory_mcp.personas import lifecycle
from memory_mcp.personas.lifecycle import merge
from memory_mcp.personas.names import canonical_name
from memory_mcp.server.api_route import ApiRoute, object_of
from memory_mcp.server.persona_views import figures, tokens_of
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.server.upkeep_views import backups_of, remains_of_persona, shelf
from memory_mcp.server.views import told
from memory_mcp.upkeep import adopted_originals
from memory_mcp.upkeep.backup import Backups

logger = logging.getLogger(__name__)

Work = Callable[[Call, str, dict[str, Any]], dict[str, Any]]


async def stats(request: Request) -> Response:
    """What a persona takes and holds, down to earlier states, the trash, and who may call as it."""
    call = call_of(request)
    return JSONResponse(await run_in_threadpool(lambda: figures(call, _existing(call))))


async def rename(request: Request) -> Response:
    """Another name for a persona."""
    return await _done(request, _renamed, to=str)


async def copy(request: Request) -> Response:
    """A second persona with everything that one has."""
    return await _done(request, _copied, to=str)


async def merge_into(request: Request) -> Response:
    """The memories of a persona into another one's."""
    return await _done(request, _merged, into=str)


async def erase(request: Request) -> Response:
    """Lists what a persona has, or, with its name typed as confirmation, erases it."""
    return await _done(request, _erased, confirm=str, remove_kept=bool, remove_backups=bool)


async def _done(request: Request, work: Work, **expected: type) -> Response:
    asked = await object_of(request, **expected)
    call = call_of(request)
    return JSONResponse(await run_in_threadpool(lambda: work(call, _existing(call), asked)))


def _renamed(call: Call, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    to = _other(call, asked.get("to", ""), "to")
    personas = call.runtime.personas
    before = personas.path_of(name).parent.name
    new = lifecycle.rename(personas, name, to, shelf(call), call.now)
    _follow(call, gone=name, new=new)
    left = _backups_follow(call, before, personas.path_of(new).parent.name)
    note = f"they are still for {name!r}, and let nobody in as {new!r}: make others" if (held := tokens_of(call, name)) else None
    return {"persona": new, "renamed_from": name, **told(tokens=held, note=note, backups_left=left)}


def _backups_follow(call: Call, folder: str, to: str) -> str | None:
    """Moves the backups to where the next ones will lie. Why that could not be done; the persona has its new name all the same."""
    try:
        Backups(call.runtime.personas.directory, call.runtime.personas.keys).follow_rename(folder, to, call.settings)
    except MemoryMCPError as error:
        logger.warning("%s", error)
        return str(error)
    return None


def _copied(call: Call, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    new = lifecycle.copy(call.runtime.personas, name, _other(call, asked.get("to", ""), "to"), call.now)
    _follow(call, new=new)
    return {"persona": new, "copied_from": name}


def _merged(call: Call, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    into = canonical_name(_other(call, asked.get("into", ""), "into"))
    personas = call.runtime.personas
    if into == name:
        raise InvalidInput("a persona can't be merged into itself", "", "Name another one in `into`")
    if not personas.exists(into):
        raise PersonaUnknown(f"there is no persona {into!r}", "", "Rename or copy the one that there is")
    with personas.reading(name) as source, personas.writing(into) as target:
        merged = merge(source, target, call.now)
    _follow(call, new=into)
    counts = {"taken": merged.taken, "known": merged.known, "erased_before": merged.erased_before}
    return {"persona": into, "merged_from": name, **counts, **told(renamed_keys=merged.renamed)}


def _erased(call: Call, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    confirm = asked.get("confirm", "")
    if not confirm:
        return {
            **figures(call, name),
            "dry_run": True,
            "confirm": name,
            "backups": len(backups_of(call)),
            "remains": remains_of_persona(call),
        }
    if canonical_name(confirm) != name:
        raise InvalidInput("confirm does not fit", f"it is not the name of the persona, which is {name!r}", "Type the name to erase it")
    personas, settings = call.runtime.personas, call.settings
    directory = personas.path_of(name).parent
    kept = adopted_originals.of_persona(directory)
    there = len(backups_of(call)) if asked.get("remove_backups") else 0

    def remove_backups() -> None:
        """First: if it fails, or the server dies, the persona is still there to be erased again."""
        if there:
            Backups(personas.directory, personas.keys).remove_all(directory.name, settings)

    lifecycle.erase(personas, name, shelf(call), call.now, first=remove_backups)
    call.runtime.forget_cached()
    _follow(call, gone=name)
    removed = adopted_originals.remove(personas.directory, kept) if asked.get("remove_kept") else []
    left = [path for path in kept if path not in removed]
    gone = told(removed=removed, removed_backups=there or None, kept_in=left, tokens=tokens_of(call, name))
    return {"persona": name, "erased": True, **gone, "remains": remains_of_persona(call)}


def _existing(call: Call) -> str:
    """The persona of the request, which there must be. One that is not the token's is none."""
    name = call.persona_name()
    if not call.admission.reaches(name):
        call.admission.note("persona", persona=name)
    elif call.runtime.personas.exists(name):
        return name
    near = ", ".join(call.near(name))
    raise PersonaUnknown(f"there is no persona {name!r}", "", f"Perhaps you mean {near}" if near else "Send its name as X-Persona")


def _other(call: Call, name: str, field: str) -> str:
    if not name:
        raise InvalidInput(f"{field} is missing", "", "Send the name of the other persona")
    canonical = canonical_name(name)
    if not call.admission.reaches(canonical):
        call.admission.note("persona", persona=canonical)
        raise call.admission.foreign(canonical)
    return canonical


def _follow(call: Call, gone: str | None = None, new: str | None = None) -> None:
    """The workers hear who is no more, and whose memories are to be looked at."""
    if call.runtime.chores and gone:
        call.runtime.chores.forget(gone)
    if new and call.runtime.chores:
        call.runtime.chores.wake(new)
    if new and call.runtime.index:
        call.runtime.index.wake(new)


ROUTES = (
    ApiRoute("/api/persona", "GET", stats, frozenset({"admin"})),
    ApiRoute("/api/persona/rename", "POST", rename, frozenset({"admin"})),
    ApiRoute("/api/persona/copy", "POST", copy, frozenset({"admin", "export"})),
    ApiRoute("/api/persona/merge", "POST", merge_into, frozenset({"admin", "write"})),
    ApiRoute("/api/persona/erase", "POST", erase, frozenset({"admin", "delete"})),
)
