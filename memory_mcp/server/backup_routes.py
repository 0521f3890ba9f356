"""The routes for backups: making one of a persona while it is served, and which there are. They stay on the server's disk."""

from datetime import UTC
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory_mcp.errors import PersonaUnknown
from memory_mcp.personas.names import directory_name
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.upkeep.backup import Backup, Backups


async def make(request: Request) -> Response:
    """Makes a backup of one persona. Takes seconds for a large one; others are served meanwhile."""
    call = call_of(request)

    def made() -> dict[str, Any]:
        with call.reading() as persona:
            if not persona.exists:
                near = ", ".join(call.near(persona.name))
                raise PersonaUnknown(f"there is no persona {persona.name!r}", "", f"Perhaps you mean {near}" if near else "")
            backup, _ = _backups(call).make(persona, call.now, call.settings)
        return _told(persona.name, backup)

    return JSONResponse(await run_in_threadpool(made))


async def listed(request: Request) -> Response:
    """The backups of one persona, the newest first."""
    call = call_of(request)

    def found() -> dict[str, Any]:
        with call.reading() as persona:
            name, exists = persona.name, persona.exists
        backups = _backups(call)
        made = backups.listed(call.settings, directory_name(name)) if exists else []
        directory = str(backups.directory(call.settings).absolute())
        return {"persona": name, "directory": directory, "backups": [_told(name, backup) for backup in made]}

    return JSONResponse(await run_in_threadpool(found))


def _backups(call: Call) -> Backups:
    personas = call.runtime.personas
    return Backups(personas.directory, personas.keys)


def _told(name: str, backup: Backup) -> dict[str, Any]:
    return {
        "persona": name,
        "file": backup.path.name,
        "made_at": backup.made_at.astimezone(UTC).isoformat(timespec="seconds"),
        "bytes": backup.size_bytes,
        "sealed": backup.sealed,
    }
