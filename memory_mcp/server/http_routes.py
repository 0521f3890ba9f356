"""The routes beside MCP: is it alive, is it ready, and what operators need (statistics, import, export)."""

import functools
import itertools
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from typing import Any

from fastmcp import FastMCP
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from memory_mcp import __version__
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.server import backup_routes, openapi, persona_routes, upkeep_routes
from memory_mcp.server.admission import ADMISSION, Admission
from memory_mcp.server.api_route import ApiRoute, Handler
from memory_mcp.server.refusals import http_refusal
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.server.status import readiness, statistics
from memory_mcp.store import memories
from memory_mcp.transfer.jsonlines import ImportResult, Refusal, export_lines, import_lines

IMPORT_BATCH_LINES = 200
EXPORT_BLOCK_LINES = 200
LINE_LIMIT_BYTES = 2 * 1024 * 1024
TOO_LONG = "the line has more than 2 MiB. Split its memory into several."
JSON_LINES = "application/x-ndjson"
LEFT_OUT_HEADER = "X-Secret-Left-Out"

logger = logging.getLogger(__name__)

NumberedLine = tuple[int, bytes]


def register(mcp: FastMCP) -> None:
    """Adds the routes to a server."""
    for route in ROUTES:
        mcp.custom_route(route.path, methods=[route.method])(_refusing(route))


async def health(_request: Request) -> Response:
    """Alive: the process answers. Touches no disk."""
    return JSONResponse({"status": "ok", "version": __version__})


async def ready(request: Request) -> Response:
    """What works now. 200 as soon as memories can be stored and recalled, if only by keyword. Strangers hear that, and no more."""
    admission: Admission = request.scope[ADMISSION]
    if admission.is_stranger:
        return JSONResponse({"ready": True})
    return JSONResponse(await run_in_threadpool(readiness, request.app.state.runtime, admission))


async def openapi_document(_request: Request) -> Response:
    """These routes, in the form that tools read."""
    return JSONResponse(openapi.document())


async def personas(request: Request) -> Response:
    """Every persona that the caller may hear of with its counts; one that can't be opened says why."""
    return JSONResponse({"personas": await run_in_threadpool(_listed, call_of(request))})


async def stats(request: Request) -> Response:
    """The statistics of one persona."""
    call = call_of(request)

    def told() -> dict[str, Any]:
        with call.reading() as persona:
            return statistics(call, persona)

    return JSONResponse(await run_in_threadpool(told))


async def import_memories(request: Request) -> Response:
    """Stores the memories of a body of JSON lines while it streams in. Each batch is on the disk before the next is read."""
    call = call_of(request)
    name = await run_in_threadpool(call.persona_name)
    result = ImportResult()
    try:
        async for batch in _batches(request.stream()):
            result += await run_in_threadpool(_store, call, batch)
    except MemoryMCPError as error:
        return http_refusal(
            error, {"persona": name, **_counted(result)}, rules=call.settings.privacy
        )  # what was stored before stays: the caller must know
    return JSONResponse({"persona": name, **_counted(result)})


async def export_memories(request: Request) -> Response:
    """All memories of one persona as JSON lines; the ones in the trash, and secret ones, where the request says so."""
    call = call_of(request)
    include_deleted, include_secret = _asked_for(request, "include_deleted"), _asked_for(request, "include_secret")
    left_out = 0 if include_secret else await run_in_threadpool(_secret_count, call, include_deleted)
    lines = _exported(call, include_deleted, include_secret)
    first = await run_in_threadpool(next, lines, "")  # a persona that can't be read is refused while there is a status to say so
    headers = {"Content-Disposition": 'attachment; filename="memories.jsonl"', LEFT_OUT_HEADER: str(left_out)}
    return StreamingResponse(itertools.chain([first], lines), media_type=JSON_LINES, headers=headers)


def _listed(call: Call) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in call.visible_personas():
        try:
            with call.runtime.personas.reading(name) as persona, persona.database.read() as connection:
                found.append({"name": name, **memories.counts(connection)})
        except MemoryMCPError as error:
            found.append({"name": name, "error": str(error)})
    return found


def _store(call: Call, batch: list[NumberedLine]) -> ImportResult:
    too_long = tuple(Refusal(number, TOO_LONG) for number, line in batch if len(line) > LINE_LIMIT_BYTES)
    fitting = [(number, line) for number, line in batch if len(line) <= LINE_LIMIT_BYTES]
    stored = import_lines(call.writing, fitting, now=call.now, zone=call.settings.zone, privacy=call.settings.privacy)
    return stored + ImportResult(refused=len(too_long), errors=too_long)


def _counted(result: ImportResult) -> dict[str, Any]:
    in_order = sorted(result.errors, key=lambda refusal: refusal.line)
    counted = asdict(replace(result, errors=tuple(in_order)))
    return {name: value for name, value in counted.items() if value or name not in ("redacted", "flagged")}


def _asked_for(request: Request, name: str) -> bool:
    said = request.query_params.get(name, "false").casefold()
    if said not in ("true", "false"):
        raise InvalidInput(f"{name} is {said[:80]!r}", "it is true or false", "Leave it out for false")
    return said == "true"


def _secret_count(call: Call, include_deleted: bool) -> int:
    with call.reading() as persona, persona.database.read() as connection:
        return memories.secret_count(connection, include_deleted)


def _exported(call: Call, include_deleted: bool, include_secret: bool) -> Iterator[str]:
    with call.reading() as persona:
        lines = export_lines(persona, include_deleted, include_secret)
        # Some hundred lines at a time: each piece is a trip to a worker thread and a write to the socket.
        while block := list(itertools.islice(lines, EXPORT_BLOCK_LINES)):
            yield "".join(line + "\n" for line in block)


async def _batches(stream: AsyncIterator[bytes]) -> AsyncIterator[list[NumberedLine]]:
    """The body's lines with their numbers, some hundred at a time. Of a line beyond the limit one byte too many is kept: it is refused."""
    number, size, batch, rest = 1, 0, list[NumberedLine](), b""
    async for part in stream:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            batch.append((number, line[: LINE_LIMIT_BYTES + 1]))
            number, size = number + 1, size + len(line)
            if len(batch) >= IMPORT_BATCH_LINES or size >= LINE_LIMIT_BYTES:
                yield batch
                size, batch = 0, []
        rest = rest[: LINE_LIMIT_BYTES + 1]
    if batch or rest:
        yield [*batch, (number, rest)]


ROUTES = (
    ApiRoute("/health", "GET", health),
    ApiRoute("/ready", "GET", ready),
    ApiRoute("/api/openapi.json", "GET", openapi_document),
    ApiRoute("/api/personas", "GET", personas),
    ApiRoute("/api/stats", "GET", stats),
    ApiRoute("/api/import", "POST", import_memories, frozenset({"write"})),
    ApiRoute("/api/export", "GET", export_memories, frozenset({"export"})),
    ApiRoute("/api/backups", "GET", backup_routes.listed, frozenset({"admin"})),
    ApiRoute("/api/backups", "POST", backup_routes.make, frozenset({"admin"})),
    *upkeep_routes.ROUTES,
    *persona_routes.ROUTES,
)


def _refusing(route: ApiRoute) -> Handler:
    @functools.wraps(route.handler)
    async def answer(request: Request) -> Response:
        admission: Admission = request.scope[ADMISSION]
        try:
            if not route.needs <= admission.scopes:
                await run_in_threadpool(admission.require, route.needs, route.name)  # it writes to a log
            return await route.handler(request)
        except MemoryMCPError as error:
            return http_refusal(error, rules=request.app.state.runtime.config.current().privacy)
        except ClientDisconnect:
            logger.info("%s: the client hung up before it had sent everything", request.url.path)
            return Response(status_code=400)  # nobody reads it

    return answer
