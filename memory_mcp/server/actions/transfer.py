"""POST /api/import and GET /api/export: any number of memories, streamed in both directions, with a bounded part of them in memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Annotated, Any, ClassVar, Literal, NotRequired

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from memory_mcp.domain import CLASHES, Clash
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.server.answers import Blocks, joined, streamed, turn_of
from memory_mcp.server.arguments import Arguments, Flag, OneOf, http
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.errors import http_refusal
from memory_mcp.server.operation import Route, note_unnamed, operation
from memory_mcp.server.sentences import Answer
from memory_mcp.server.views import Count, PersonaAnswer
from memory_mcp.store import memories
from memory_mcp.store.operations import called_by
from memory_mcp.transfer import graph_lines
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, ImportResult, Refusal, export_lines, import_lines
from memory_mcp.transfer.line_fields import LINE_LIMIT_BYTES
from memory_mcp.transfer.obsidian_export import archive
from memory_mcp.upkeep import fts_segments

IMPORT_BATCH_LINES = 200
TOO_LONG = "the line has more than 2 MiB. Split its memory into several."
JSON_LINES, ZIP = "application/x-ndjson", "application/zip"
FORMATS = ("jsonl", "markdown")
LEFT_OUT_HEADER, GRAPH_LEFT_OUT_HEADER = "X-Secret-Left-Out", "X-Graph-Left-Out"
# In every answer; the other counts only where there is something to count.
ALWAYS_COUNTED = frozenset({"stored", "already_known", "refused", "errors"})

NumberedLine = tuple[int, bytes]


class TransferArguments(Arguments):
    blank_means_absent: ClassVar[bool] = False


class ImportArguments(TransferArguments):
    dry_run: Annotated[Flag, http("Only say what would become of the lines.")] = False
    on_known: Annotated[Clash, OneOf(CLASHES, exact=True), http("What becomes of a line whose key exists with other content.")] = "refuse"
    adds_only: Annotated[
        Flag, http("Only add: no line replaces or changes anything that is stored. For lines of a stranger, as those of a pack.")
    ] = False


class RefusedLine(TypedDict):
    line: Annotated[int, Field(ge=1)]
    reason: str


class DeletedNoteView(TypedDict):
    note: str
    keys: list[str]


class Imported(PersonaAnswer):
    """What became of the lines of an import."""

    stored: Count
    already_known: Count
    refused: Count
    errors: list[RefusedLine]
    dry_run: NotRequired[Literal[True]]
    revised: NotRequired[Count]
    dropped: NotRequired[Count]
    versions: NotRequired[Count]
    context: NotRequired[Count]
    vectors: NotRequired[Count]
    vectors_left: NotRequired[Count]
    graph: NotRequired[Count]
    redacted: NotRequired[dict[str, Count]]
    flagged: NotRequired[dict[str, Count]]
    deleted_notes: NotRequired[list[DeletedNoteView]]
    expired: NotRequired[Count]
    conversations: NotRequired[Count]
    context_kept: NotRequired[Count]


@operation(needs=["write"], route=Route("POST", "/api/import", body={JSON_LINES: {"schema": {"type": "string"}}}), answer=Imported)
async def import_memories(request: Request, arguments: ImportArguments) -> Response:
    """Store JSON lines, one memory each, while they stream in.

    Each batch is on the disk before the next is read.
    """
    call = call_of(request)
    name = await run_in_threadpool(call.persona_name)
    options = await run_in_threadpool(import_options, call, arguments)
    result = ImportResult()
    try:
        async for batch in _batches(request.stream()):
            async with turn_of(request.scope):
                result += await run_in_threadpool(store, call, batch, options)
    except MemoryMCPError as error:
        await run_in_threadpool(call.note_failure, import_memories.name, error)
        # What was stored before stays, and the caller must know.
        return http_refusal(error, {"persona": name.strip(), **counted(result)}, rules=call.settings.privacy)
    finally:
        merge_segments(call, name, result, options)
    note = await run_in_threadpool(note_unnamed, call)
    return Answer({"persona": name.strip(), **note, **({"dry_run": True} if options.dry_run else {}), **counted(result)})


class ExportArguments(TransferArguments):
    include_deleted: Annotated[Flag, http("Memories in the trash, too.")] = False
    include_secret: Annotated[
        Flag, http("Memories whose privacy_level is secret, too. Without it, the header X-Secret-Left-Out says how many there are.")
    ] = False
    include_versions: Annotated[Flag, http("Every earlier version of each memory.")] = False
    include_vectors: Annotated[Flag, http("The vectors of the embedding model; only as JSON lines.")] = False
    include_context: Annotated[Flag, http("The content of persona_context.json.")] = False
    include_conversations: Annotated[Flag, http("The conversations of the chat; only as JSON lines.")] = False
    format: Annotated[
        Literal["jsonl", "markdown"], OneOf(FORMATS, exact=True), http("JSON lines, or a zip of Markdown notes: an Obsidian vault.")
    ] = "jsonl"


_EXPORTED = {JSON_LINES: {"schema": {"type": "string"}}, ZIP: {"schema": {"type": "string", "format": "binary"}}}


@operation(needs=["export"], route=Route("GET", "/api/export", content=_EXPORTED))
async def export_memories(request: Request, arguments: ExportArguments) -> Response:
    """Return all memories of one persona, as JSON lines or as Markdown notes."""
    call = call_of(request)
    options = ExportOptions(
        **{name: getattr(arguments, f"include_{name}") for name in ("deleted", "secret", "versions", "vectors", "context", "conversations")}
    )
    as_notes = arguments.format == "markdown"
    if as_notes and (options.vectors or options.conversations):
        left_out = "vectors" if options.vectors else "conversations"
        raise InvalidInput("notes hold no {}", "", "Leave include_{} out, or export JSON lines", left_out, left_out)
    async with turn_of(request.scope):
        secret, graph = await run_in_threadpool(_left_out, call, options, as_notes)
    disposition = f'attachment; filename="memories.{"zip" if as_notes else "jsonl"}"'
    headers = {"Content-Disposition": disposition, LEFT_OUT_HEADER: str(secret), GRAPH_LEFT_OUT_HEADER: str(graph)}
    blocks = _notes(call, options) if as_notes else _lines(call, options)
    return await streamed(request, blocks, ZIP if as_notes else JSON_LINES, headers)


def merge_segments(call: Call, name: str, result: ImportResult, options: ImportOptions) -> None:
    """Request merging the segments of the word index, of which every batch leaves one."""
    written = 0 if options.dry_run else result.stored + result.revised + result.dropped
    if written > IMPORT_BATCH_LINES and call.runtime.chores:
        call.runtime.chores.request(fts_segments.CHORE, name)


def import_options(call: Call, arguments: ImportArguments) -> ImportOptions:
    """The options of an import that a caller may have. From now on its persona is not created again if it is erased."""
    name = call.persona_name()
    call.is_persona_there = call.reaches(name) and call.runtime.personas.exists(name)
    return ImportOptions(
        call.now,
        call.settings.zone,
        call.settings.privacy,
        arguments.on_known,
        {embedder.generation: embedder.dimension for embedder in call.models.loaded},
        Foreseen() if arguments.dry_run else None,
        may_delete="delete" in call.admission.scopes,
        may_read="read" in call.admission.scopes,
        adds_only=arguments.adds_only,
    )


def store(call: Call, batch: list[NumberedLine], options: ImportOptions) -> ImportResult:
    """Store a batch of lines, or report what storing them would do."""
    too_long = tuple(Refusal(number, TOO_LONG) for number, line in batch if len(line) > LINE_LIMIT_BYTES)
    fitting = [(number, line) for number, line in batch if len(line) <= LINE_LIMIT_BYTES]
    opened: Callable[[], AbstractContextManager[Persona]] = call.reading if options.dry_run else call.writing_on
    with called_by(call.caller):
        return import_lines(opened, fitting, options) + ImportResult(refused=len(too_long), errors=too_long)


def counted(result: ImportResult) -> dict[str, Any]:
    """The counts of an import as an answer has them."""
    in_order = sorted(result.errors, key=lambda refusal: refusal.line)
    counts = asdict(replace(result, errors=tuple(in_order)))
    return {name: count for name, count in counts.items() if count or name in ALWAYS_COUNTED}


def left_out_unless_asked(call: Call) -> dict[str, int]:
    """How many memories an export has only if its caller asks: argument → memories in the trash, and secret ones outside of it."""
    with call.reading() as persona, persona.database.read() as connection:
        return {"include_deleted": memories.counts(connection)["in_trash"], "include_secret": memories.secret_count(connection, False)}


def _left_out(call: Call, options: ExportOptions, as_notes: bool) -> tuple[int, int]:
    """How many secret memories, and how many lines of the graph, the export leaves out."""
    with call.reading() as persona:
        with persona.database.read() as connection:
            secret = 0 if options.secret else memories.secret_count(connection, options.deleted)
        is_whole = as_notes or (options.secret and options.deleted)
        return secret, 0 if is_whole else graph_lines.left_out(persona, deleted=options.deleted, secret=options.secret)


def _lines(call: Call, options: ExportOptions) -> Blocks:
    with call.reading() as persona:
        yield from joined(f"{line}\n" for line in export_lines(persona, options))


def _notes(call: Call, options: ExportOptions) -> Blocks:
    with call.reading() as persona:
        yield from archive(persona, options, call.settings.zone)


async def _batches(stream: AsyncIterator[bytes]) -> AsyncIterator[list[NumberedLine]]:
    """Yield the body's lines with their numbers in batches. Of a line beyond the limit one byte too many is kept, so that it is refused."""
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
