"""Importing a file of any format that is known: the server reads it in the background, and reports the progress."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from memory_mcp.domain import CLASHES, Clash
from memory_mcp.errors import InvalidInput, NotAllowed, StoreError
from memory_mcp.server.actions import transfer
from memory_mcp.server.actions.transfer import ImportArguments
from memory_mcp.server.answers import turn_of
from memory_mcp.server.arguments import Arguments, Flag, NoArguments, OneOf, Text, http
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.errors import wording
from memory_mcp.server.import_jobs import REFUSED_LISTED, ImportJob
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.sentences import Answer
from memory_mcp.server.views import Count, PersonaAnswer, omit_empty
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.files.oauth_grants import owner_of_grant
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ReadOptions, examples
from memory_mcp.transfer.jsonlines import ImportOptions, ImportResult

if TYPE_CHECKING:
    from memory_mcp.transfer.formats.worker import Part

UPLOAD_LIMIT = 2 * 1024**3
BYTES = "application/octet-stream"
FORMATS = tuple(Format)


class FileImport(Arguments):
    file: Annotated[Text, http("The file's name: its ending tells the format, and notes are known by their vault's name.")] = ""
    format: Annotated[str, OneOf(FORMATS, exact=True), http("How to read it.")] = "auto"
    me: Annotated[Text, http("Your name in imported chats and cards, instead of `user`.")] = ""
    timezone: Annotated[Text, http("The zone of times without an offset, such as Asia/Tokyo; default: the server's.")] = ""
    on_known: Annotated[
        str,
        OneOf((*CLASHES, "auto"), exact=True),
        http("What becomes of an entry whose key exists with other content; auto: what suits the format."),
    ] = "auto"
    dry_run: Annotated[Flag, http("Only say what would become of it.")] = False
    forget_deleted: Annotated[Flag, http("Move memories of notes that are no longer in the vault to the trash.")] = False
    replace: Annotated[Flag, http("Let the character of a card take the place of who the persona is already.")] = False


class RefusedEntry(TypedDict):
    where: str
    reason: str


class RefusalExample(RefusedEntry):
    """One of the entries that were refused for this reason, and how many others were."""

    others: Count


class LeftOutKind(TypedDict):
    """What is left out on purpose of one kind, such as photos, and the first places."""

    kind: str
    count: Count
    where: list[str]


class FormatCounts(TypedDict):
    """What became of the files of one format in a folder."""

    format: str
    stored: Count
    already_known: Count


class ImportJobView(PersonaAnswer):
    """An import: how far it is, and what became of the entries so far. `total` comes once they are counted, `formats` where its files have several."""

    id: str
    file: str
    state: Literal["waiting", "reading", "storing", "done", "failed", "canceled"]
    done: Count
    stored: Count
    already_known: Count
    refused: Count
    errors: list[RefusedEntry]
    examples: NotRequired[list[RefusalExample]]
    total: NotRequired[Count]
    format: NotRequired[str]
    formats: NotRequired[list[FormatCounts]]
    dry_run: NotRequired[Literal[True]]
    error: NotRequired[str]
    left_out: NotRequired[str]
    left_out_kinds: NotRequired[list[LeftOutKind]]
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
    reading = ReadOptions.of(arguments.me, arguments.timezone, replace=arguments.replace)
    token = call.admission.token
    with jobs.staged(call.runtime.personas.directory, arguments.file, name, token) as path:
        size = 0
        with path.open("xb") as file:
            async for block in request.stream():
                size += len(block)
                if size > UPLOAD_LIMIT:
                    raise InvalidInput(
                        "the file is too large", "{} GiB are the limit here", "Use `memory-mcp import FILE`", UPLOAD_LIMIT // 1024**3
                    )
                jobs.add_bytes(path, len(block))
                async with turn_of(request.scope):
                    await run_in_threadpool(file.write, block)
        if not size:
            raise InvalidInput("the file is empty", "", "Send the bytes of one as the body")
        options = await run_in_threadpool(transfer.import_options, call, ImportArguments(dry_run=arguments.dry_run))

        def work(job: ImportJob, path: Path) -> None:
            _import(call, job, path, arguments, reading, options)

        job = jobs.start(path, name, work, dry_run=arguments.dry_run, token=token)
    return Answer(_view(call, job))


class JobId(Arguments):
    id: Annotated[Text, http("The id of the import.", minLength=1)]


@operation(needs=["write"], route=Route("GET", "/api/import/file"), answer=ImportJobList)
def list_imports(call: Call, _arguments: NoArguments) -> Json:
    """List the imports of files into a persona since the server's start, the latest first, with how far each is."""
    name = call.persona_name()
    return {"persona": name.strip(), "imports": [_view(call, job) for job in _visible(call, name)] if call.reaches(name) else []}


@operation(needs=["write"], route=Route("DELETE", "/api/import/file"), answer=ImportJobView)
def cancel_import(call: Call, arguments: JobId) -> Json:
    """End an import. What it has stored stays; the next import of the same file stores the rest."""
    name = call.writable_name()
    job = next((job for job in _visible(call, name) if job.id == arguments.id.strip()), None)
    if job is None:
        raise InvalidInput("there is no import {}", "", "Take its id from GET /api/import/file", repr(arguments.id[:40]))
    job.cancel()
    return _view(call, job)


def _visible(call: Call, name: str) -> list[ImportJob]:
    """The imports into a persona that the caller may see: what others send may be as private as what is kept of it."""
    sees_all = "admin" in call.admission.scopes
    return [job for job in call.runtime.imports.of_persona(name) if sees_all or job.token == call.admission.token]


def _import(call: Call, job: ImportJob, path: Path, arguments: FileImport, reading: ReadOptions, options: ImportOptions) -> None:
    """Store the lines that are read of a file, batch by batch."""
    # Imported here: the readers take 3 MB, and most servers never import a file.
    from memory_mcp.transfer.formats.worker import Asked, Counted, End, Part, Recognized  # noqa: PLC0415

    job.state = "reading"
    asked = Asked(path, Format(arguments.format), job.persona, replace(reading, character=_character(call)), arguments.forget_deleted)
    number = 0
    with call.runtime.imports.reading(job, asked) as answers:
        for answer in answers:
            job.check()
            match answer:
                case Recognized(format=kind):
                    job.format, options = job.format or kind.value, replace(options, clash=_clash(arguments.on_known, kind))
                    of_format = job.of_formats.setdefault(kind.value, {"stored": 0, "already_known": 0})
                case Counted(lines=total):
                    job.total, job.state = total, "storing"
                case Part():
                    _note_part(job, answer)
                    stored = _store(call, job, answer.lines, options, number)
                    of_format.update({name: count + getattr(stored, name) for name, count in of_format.items()})
                    number += len(answer.lines)
                case End():
                    job.left_out, job.left_out_kinds = answer.left_out, answer.left_out_kinds
    transfer.merge_segments(call, job.persona, job.result, options)


def _character(call: Call) -> str:
    """What the persona is called, as far as it can be read."""
    from memory_mcp.transfer.formats.characters import name_in  # noqa: PLC0415  as above

    with suppress(StoreError), call.reading() as persona:
        return name_in(persona.context.read().get("persona_info") or {})
    return ""


def _clash(on_known: str, kind: Format) -> Clash:
    from memory_mcp.transfer.formats.table import ROWS  # noqa: PLC0415  as above

    return next((clash for clash in CLASHES if clash == on_known), ROWS[kind].clash)


def _note_part(job: ImportJob, part: "Part") -> None:
    job.unreadable += len(part.refused)
    for where, reason in part.refused:
        _refuse(job, where, reason)
    job.notes += part.notes[: REFUSED_LISTED - len(job.notes)]


def _store(call: Call, job: ImportJob, lines: list[tuple[str, bytes]], options: ImportOptions, number: int) -> ImportResult:
    """Store lines, of which so many were before."""
    if not lines:
        return ImportResult()
    with call.runtime.imports.storing():
        job.check()
        _check_token(call)
        stored = transfer.store(call, [(number + index, line) for index, (_, line) in enumerate(lines, start=1)], options)
    for refusal in stored.errors:
        _refuse(job, lines[refusal.line - number - 1][0], refusal.reason)
    job.result += stored
    job.done += len(lines)
    return stored


def _refuse(job: ImportJob, where: str, reason: str) -> None:
    if len(job.refused) < REFUSED_LISTED:
        job.refused.append((where, reason))


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
            format=job.format,
            formats=[{"format": name, **counts} for name, counts in job.of_formats.items()] if len(job.of_formats) > 1 else None,
            dry_run=job.dry_run or None,
            error=error,
            examples=[{"where": where, "reason": reason, "others": others} for where, reason, others in examples(job.refused)],
            left_out=job.left_out,
            left_out_kinds=[{"kind": one.kind, "count": one.count, "where": list(one.places)} for one in job.left_out_kinds],
            notes=list(job.notes),
            further=counted,
        ),
    }
