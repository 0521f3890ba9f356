"""Importing a file of any format that is known: the server reads it in the background, and reports the progress."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from memory_mcp.domain import CLASHES, Clash
from memory_mcp.errors import InvalidInput, NotAllowed
from memory_mcp.server.actions import transfer
from memory_mcp.server.actions.transfer import IMPORT_BATCH_LINES, ImportArguments, NumberedLine
from memory_mcp.server.answers import turn_of
from memory_mcp.server.arguments import Arguments, Flag, NoArguments, OneOf, Text, http
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.errors import wording
from memory_mcp.server.import_jobs import REFUSED_LISTED, Canceled, ImportJob
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Count, PersonaAnswer, omit_empty
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.files.oauth_grants import owner_of_grant
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ImportItem, LeftOut
from memory_mcp.transfer.formats.readers import READERS, by_persona, detect_format, forgetting, json_lines
from memory_mcp.transfer.jsonlines import ImportOptions

UPLOAD_LIMIT = 2 * 1024**3
BYTES = "application/octet-stream"
FORMATS = tuple(Format)


class FileImport(Arguments):
    file: Annotated[Text, http("The file's name: its ending tells the format, and notes are known by their vault's name.")] = ""
    format: Annotated[str, OneOf(FORMATS, exact=True), http("How to read it.")] = "auto"
    me: Annotated[Text, http("Your name in imported chats, instead of `user`.")] = ""
    on_known: Annotated[
        str,
        OneOf((*CLASHES, "auto"), exact=True),
        http("What becomes of an entry whose key exists with other content; auto: what suits the format."),
    ] = "auto"
    dry_run: Annotated[Flag, http("Only say what would become of it.")] = False
    forget_deleted: Annotated[Flag, http("Move memories of notes that are no longer in the vault to the trash.")] = False


class RefusedEntry(TypedDict):
    where: str
    reason: str


class ImportJobView(PersonaAnswer):
    """An import: how far it is, and what became of the entries so far. `total` comes once they are counted."""

    id: str
    file: str
    state: Literal["waiting", "reading", "storing", "done", "failed", "canceled"]
    done: Count
    stored: Count
    already_known: Count
    refused: Count
    errors: list[RefusedEntry]
    total: NotRequired[Count]
    format: NotRequired[str]
    dry_run: NotRequired[Literal[True]]
    error: NotRequired[str]
    left_out: NotRequired[str]
    notes: NotRequired[list[str]]
    further: NotRequired[dict[str, Any]]


class ImportJobList(PersonaAnswer):
    imports: list[ImportJobView]


@operation(
    needs=["write"],
    route=Route("POST", "/api/import/file", body={BYTES: {"schema": {"type": "string", "format": "binary"}}}),
    answer=ImportJobView,
)
async def import_file(request: Request, arguments: FileImport) -> Response:
    """Import a file in any of the formats that `memory-mcp import FILE` reads, in the background.

    The answer comes when the file has arrived.
    """
    call, jobs = call_of(request), call_of(request).runtime.imports
    name = await run_in_threadpool(call.writable_name)
    with jobs.staged(call.runtime.personas.directory, arguments.file) as path:
        size = 0
        with path.open("xb") as file:
            async for block in request.stream():
                size += len(block)
                if size > UPLOAD_LIMIT:
                    raise InvalidInput(
                        "the file is too large", f"{UPLOAD_LIMIT // 1024**3} GiB are the limit here", "Use `memory-mcp import FILE`"
                    )
                async with turn_of(request.scope):
                    await run_in_threadpool(file.write, block)
        if not size:
            raise InvalidInput("the file is empty", "", "Send the bytes of one as the body")
        options = await run_in_threadpool(transfer.import_options, call, ImportArguments(dry_run=arguments.dry_run))
        job = jobs.start(path, name, lambda job, path: _import(call, job, path, arguments, options), dry_run=arguments.dry_run)
    return JSONResponse(_view(call, job))


class JobId(Arguments):
    id: Annotated[Text, http("The id of the import.", minLength=1)]


@operation(needs=["write"], route=Route("GET", "/api/import/file"), answer=ImportJobList)
def list_imports(call: Call, _arguments: NoArguments) -> Json:
    """List the imports of files into a persona since the server's start, the latest first, with how far each is."""
    name = call.persona_name()
    jobs = call.runtime.imports.of_persona(name) if call.reaches(name) else []
    return {"persona": name.strip(), "imports": [_view(call, job) for job in jobs]}


@operation(needs=["write"], route=Route("DELETE", "/api/import/file"), answer=ImportJobView)
def cancel_import(call: Call, arguments: JobId) -> Json:
    """End an import. What it has stored stays; the next import of the same file stores the rest."""
    name = call.writable_name()
    job = next((job for job in call.runtime.imports.of_persona(name) if job.id == arguments.id.strip()), None)
    if job is None:
        raise InvalidInput(f"there is no import {arguments.id[:40]!r}", "", "Take its id from GET /api/import/file")
    job.cancel.set()
    return _view(call, job)


def _import(call: Call, job: ImportJob, path: Path, arguments: FileImport, options: ImportOptions) -> None:
    """Count the entries of a file, and store them batch by batch."""
    job.state = "reading"
    kind = detect_format(path, Format(arguments.format))
    job.format = kind.value
    job.total = sum(1 for _ in _lines(job, path, kind, arguments, None))
    if not job.total and not job.unreadable:
        raise InvalidInput("the file has nothing to import", f"no text was found in the format {kind}", "Choose its format")
    clash: Clash = next((clash for clash in CLASHES if clash == arguments.on_known), READERS[kind].clash if kind in READERS else CLASHES[0])
    options = replace(options, clash=clash)
    job.state, job.refused, job.unreadable = "storing", [], 0
    left_out = LeftOut()
    origins: list[str] = []
    batch: list[NumberedLine] = []
    for where, line in _lines(job, path, kind, arguments, left_out):
        origins.append(where)
        batch.append((len(origins), line))
        if len(batch) == IMPORT_BATCH_LINES:
            _store(call, job, batch, options, origins)
            batch = []
    _store(call, job, batch, options, origins)
    job.left_out = left_out.sentence()
    transfer.merge_segments(call, job.persona, job.result, options)


def _lines(job: ImportJob, path: Path, kind: Format, arguments: FileImport, left_out: LeftOut | None) -> Iterator[tuple[str, bytes]]:
    """The lines to store, each with its place in the file. Entries that can't be read are added to the job's refused ones."""
    origins = [""]
    if kind is Format.JSON_LINES:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                _check(job)
                yield f"line {number}", line.rstrip(b"\r\n")
        return

    def refuse(item: ImportItem) -> None:
        job.unreadable += 1
        _refuse(job, item.where, item.refused)

    def note(sentence: str) -> None:
        if left_out and len(job.notes) < REFUSED_LISTED:
            job.notes.append(sentence)

    (_, rows), *_ = by_persona(path, kind, arguments.me.strip() or None, note, job.persona)
    ignored = LeftOut()
    wanted = forgetting(rows) if arguments.forget_deleted else rows
    for line in json_lines(wanted, refuse, lambda where: origins.__setitem__(0, where), (left_out or ignored).add):
        _check(job)
        yield origins[0], line


def _store(call: Call, job: ImportJob, batch: list[NumberedLine], options: ImportOptions, origins: list[str]) -> None:
    _check(job)
    _check_token(call)
    if not batch:
        return
    stored = transfer.store(call, batch, options)
    for refusal in stored.errors:
        _refuse(job, origins[refusal.line - 1], refusal.reason)
    job.result += stored
    job.done += len(batch)


def _refuse(job: ImportJob, where: str, reason: str) -> None:
    if len(job.refused) < REFUSED_LISTED:
        job.refused.append((where, reason))


def _check(job: ImportJob) -> None:
    if job.cancel.is_set():
        raise Canceled


def _check_token(call: Call) -> None:
    """Raises NotAllowed if the token of the import, or its grant, was revoked or has expired meanwhile. Tokens of another authorization
    server are not checked: they last only minutes."""
    identity, directory, now = call.admission.token, call.runtime.personas.directory, call.runtime.clock()
    if call.admission.is_oauth and call.settings.oauth.authorization_server == "built_in":
        identity = owner_of_grant(directory, (identity or "").removeprefix("oauth:"), now)
    elif identity is None or call.admission.is_oauth:
        return
    token = (read_tokens(directory) or {}).get(identity or "")
    if token is None or token.state(now) != "in force":
        raise NotAllowed(
            "the import ended", "its token is not good any more", "What was stored stays; import the file again with another token"
        )


def _view(call: Call, job: ImportJob) -> Json:
    state = job.state  # first: what is counted when an import is over is all of it
    counted = transfer.counted(job.result)
    counts = {name: counted.pop(name) for name in ("stored", "already_known")}
    del counted["errors"]
    refused = counted.pop("refused") + job.unreadable
    error = wording(str(job.error), call.settings.privacy) if job.error else None
    return {
        "persona": job.persona.strip(),
        "id": job.id,
        "file": job.file,
        "state": state,
        "done": job.done,
        **counts,
        "refused": refused,
        "errors": [{"where": where, "reason": reason} for where, reason in job.refused],
        **({"total": job.total} if job.total is not None else {}),
        **omit_empty(
            format=job.format, dry_run=job.dry_run or None, error=error, left_out=job.left_out, notes=list(job.notes), further=counted
        ),
    }
