"""POST /api/import and GET /api/export: many memories at once, streamed in both directions, a bounded part of them in memory."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from memory_mcp.domain import CLASHES, Clash
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.server.refusals import http_refusal
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.store import memories
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, ImportResult, Refusal, export_lines, import_lines
from memory_mcp.transfer.obsidian_export import archive
from memory_mcp.upkeep import fts_segments

IMPORT_BATCH_LINES = 200
EXPORT_BLOCK_LINES = 200
LINE_LIMIT_BYTES = 2 * 1024 * 1024
TOO_LONG = "the line has more than 2 MiB. Split its memory into several."
JSON_LINES, ZIP = "application/x-ndjson", "application/zip"
FORMATS = ("jsonl", "markdown")
LEFT_OUT_HEADER = "X-Secret-Left-Out"
# Told in every answer; the others only where there is something to count.
ALWAYS_COUNTED = frozenset({"stored", "already_known", "refused", "errors"})

NumberedLine = tuple[int, bytes]


async def import_memories(request: Request) -> Response:
    """Stores the memories of a body of JSON lines while it streams in. Each batch is on the disk before the next is read.

    `dry_run=true`: only says what would become of them. `on_known`: what becomes of a line whose key is there with other content.
    """
    call = call_of(request)
    how = _arriving(request, call)
    name = await run_in_threadpool(call.persona_name)
    result = ImportResult()
    try:
        async for batch in _batches(request.stream()):
            result += await run_in_threadpool(_store, call, batch, how)
    except MemoryMCPError as error:
        return http_refusal(
            error, {"persona": name, **_counted(result)}, rules=call.settings.privacy
        )  # what was stored before stays: the caller must know
    finally:
        _merge_segments(call, name, result, how)
    return JSONResponse({"persona": name, **({"dry_run": True} if how.dry_run else {}), **_counted(result)})


async def export_memories(request: Request) -> Response:
    """All memories of one persona, as JSON lines or as a zip of Markdown notes; `include_…` says what else is wanted."""
    call = call_of(request)
    leaving = ExportOptions(**{name: _flag(request, f"include_{name}") for name in ("deleted", "secret", "versions", "vectors", "context")})
    form = request.query_params.get("format", "jsonl")
    if form not in FORMATS:
        raise InvalidInput(f"format is {form[:80]!r}", f"it is one of {', '.join(FORMATS)}", "Leave it out for JSON lines")
    as_notes = form == "markdown"
    if as_notes and leaving.vectors:
        raise InvalidInput("notes hold no vectors", "", "Leave include_vectors out, or export JSON lines")
    blocks = _notes(call, leaving) if as_notes else _lines(call, leaving)
    # A persona that can't be read is refused while there is a status to say so.
    first = await run_in_threadpool(next, blocks, b"")
    left_out = 0 if leaving.secret else await run_in_threadpool(_secret_count, call, leaving.deleted)
    disposition = f'attachment; filename="memories.{"zip" if as_notes else "jsonl"}"'
    headers = {"Content-Disposition": disposition, LEFT_OUT_HEADER: str(left_out)}
    return StreamingResponse(itertools.chain([first], blocks), media_type=ZIP if as_notes else JSON_LINES, headers=headers)


def _merge_segments(call: Call, name: str, result: ImportResult, how: ImportOptions) -> None:
    """Has the index of words put together at once where many batches have left a segment each."""
    written = 0 if how.dry_run else result.stored + result.revised + result.dropped
    if written > IMPORT_BATCH_LINES and call.runtime.chores:
        call.runtime.chores.request(fts_segments.CHORE, name)


def _arriving(request: Request, call: Call) -> ImportOptions:
    told = request.query_params.get("on_known", "refuse")
    clash: Clash | None = next((known for known in CLASHES if known == told), None)
    if clash is None:
        raise InvalidInput(f"on_known is {told[:80]!r}", f"it is one of {', '.join(CLASHES)}", "Leave it out for refuse")
    loaded = [known for known in (call.models.embedder, call.models.earlier) if known]
    generations = {known.generation: known.dimension for known in loaded}
    foreseen = Foreseen() if _flag(request, "dry_run") else None
    return ImportOptions(
        call.now, call.settings.zone, call.settings.privacy, clash, generations, foreseen, may_delete="delete" in call.admission.scopes
    )


def _flag(request: Request, name: str) -> bool:
    wanted = request.query_params.get(name, "false").casefold()
    if wanted not in ("true", "false"):
        raise InvalidInput(f"{name} is {wanted[:80]!r}", "it is true or false", "Leave it out for false")
    return wanted == "true"


def _store(call: Call, batch: list[NumberedLine], how: ImportOptions) -> ImportResult:
    too_long = tuple(Refusal(number, TOO_LONG) for number, line in batch if len(line) > LINE_LIMIT_BYTES)
    fitting = [(number, line) for number, line in batch if len(line) <= LINE_LIMIT_BYTES]
    opened: Callable[[], AbstractContextManager[Persona]] = call.reading if how.dry_run else call.writing
    return import_lines(opened, fitting, how) + ImportResult(refused=len(too_long), errors=too_long)


def _counted(result: ImportResult) -> dict[str, Any]:
    in_order = sorted(result.errors, key=lambda refusal: refusal.line)
    counts = asdict(replace(result, errors=tuple(in_order)))
    return {name: count for name, count in counts.items() if count or name in ALWAYS_COUNTED}


def _secret_count(call: Call, include_deleted: bool) -> int:
    with call.reading() as persona, persona.database.read() as connection:
        return memories.secret_count(connection, include_deleted)


def _lines(call: Call, leaving: ExportOptions) -> Iterator[bytes]:
    with call.reading() as persona:
        lines = export_lines(persona, leaving)
        # Some hundred lines at a time: each piece is a trip to a worker thread and a write to the socket.
        while block := list(itertools.islice(lines, EXPORT_BLOCK_LINES)):
            yield "".join(line + "\n" for line in block).encode()


def _notes(call: Call, leaving: ExportOptions) -> Iterator[bytes]:
    with call.reading() as persona:
        yield from archive(persona, leaving, call.settings.zone)


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
