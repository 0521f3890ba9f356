"""`memory-mcp import` and `memory-mcp export`: transfer files to and from a running server.

The formats of other programs are read here, on the client side, and sent as JSON lines, the only format the server accepts.
"""

import dataclasses
import functools
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from memory_mcp.cli.japanese import named_counts, tell, terms, worded
from memory_mcp.cli.options import PersonaName, PoolName, Url, connection
from memory_mcp.cli.progress import progress
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.store.files.durable_files import open_private
from memory_mcp.transfer.formats import ZIP_SUFFIX, Format
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection
    from memory_mcp.transfer.formats.import_rows import ImportItem, LeftOut

STANDARD_STREAM = Path("-")
COUNTING_BLOCK_BYTES = 1024 * 1024


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    GRAPHML = "graphml"
    GRAPH_JSON = "graph-json"
    PLAYBOOK = "playbook"
    CARD = "card"


# The values of `format` in the HTTP API.
GRAPH_FORMS = {ExportFormat.GRAPHML: "graphml", ExportFormat.GRAPH_JSON: "json"}


def import_memories(
    path: Annotated[Path, typer.Argument(help="A file, a directory, a zip, or - for JSON lines on stdin.", metavar="FILE|DIR")],
    format_: Annotated[Format, typer.Option("--format", help="auto detects it from the name and the content.")] = Format.AUTO,
    me: Annotated[
        str | None, typer.Option("--me", "--user", help="Your name in imported chats and cards, instead of 'user'.", metavar="NAME")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", help="The zone of times without an offset, such as Asia/Tokyo; default: the server's.", metavar="ZONE"),
    ] = None,
    forget_deleted: Annotated[
        bool, typer.Option("--forget-deleted", help="Move memories of notes that are no longer in the vault to the trash.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let the character of a card take the place of who the persona is already.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be stored, already known or refused.")] = False,
    persona: PersonaName = None,
    pool: PoolName = None,
    url: Url = None,
) -> None:
    """Import a file or a directory. Importing it again stores nothing new. Exit status 1: something was refused.

    A database that says whose memories it has is imported into the personas of these names.
    """
    if path == STANDARD_STREAM:
        if format_ not in (Format.AUTO, Format.JSON_LINES):
            raise InvalidInput("stdin is read as JSON lines only", "", "Name a file")
        _import_lines(connection(url, persona, pool=pool), path, dry_run)
        return
    # Imported here: the other commands don't need the readers.
    from memory_mcp.transfer.formats.import_rows import ReadOptions  # noqa: PLC0415
    from memory_mcp.transfer.formats.processes import read_apart  # noqa: PLC0415
    from memory_mcp.transfer.formats.readers import by_persona, forgetting, parts_of  # noqa: PLC0415
    from memory_mcp.transfer.formats.worker import Asked  # noqa: PLC0415

    def note(text: str) -> None:
        tell("memory-mcp: {}", text, err=True)

    parts = parts_of(path, format_)
    formats = [part.format for part in parts]
    if formats == [Format.JSON_LINES]:
        _import_lines(connection(url, persona, pool=pool), path, dry_run)
        return
    if forget_deleted and Format.OBSIDIAN not in formats:
        raise InvalidInput("{} has no notes that could be deleted", "", "Remove --forget-deleted", formats[0])
    if replace and Format.CHARACTER not in formats:
        raise InvalidInput("{} has no character", "", "Remove --replace", formats[0])
    server_of = functools.cache(lambda name: connection(url, name, pool=pool))
    character = "" if {Format.CHARACTER, Format.LOREBOOK}.isdisjoint(formats) else _character(server_of(persona))
    options = dataclasses.replace(ReadOptions.of(me, timezone, replace=replace), character=character)
    if _needs_limits(path, formats):
        asked = Asked(path, format_, persona or "", options, forget_deleted)
        with read_apart(asked, note) as (total, by_format):
            refused = [_import_parts(server_of(persona), path, formats, by_format, dry_run, total)]
    else:
        by_name: dict[str | None, list[tuple[Format, Iterator[ImportItem]]]] = {}
        for kind, (name, rows) in ((part.format, each) for part in parts for each in by_persona(part, options, note, persona)):
            by_name.setdefault(name, []).append((kind, forgetting(rows) if forget_deleted else rows))
        refused = [_import_parts(server_of(name), path, formats, of_name, dry_run) for name, of_name in by_name.items()]
    if any(refused):
        raise typer.Exit(1)


def _needs_limits(path: Path, formats: list[Format]) -> bool:
    """Whether libraries read what is in it: documents and workbooks, or a directory or zip with tables, which may be workbooks."""
    from memory_mcp.transfer.formats.tables import SUFFIXES, WORKBOOK  # noqa: PLC0415  as above

    return not {Format.DOCUMENT, Format.CSV}.isdisjoint(formats) and path.suffix.lower() not in SUFFIXES - {WORKBOOK}


def _character(server: "Connection") -> str:
    """What the persona is called, as far as the caller may read it."""
    from memory_mcp.transfer.formats.characters import name_in  # noqa: PLC0415  as above

    with suppress(MemoryMCPError):
        return name_in(server.get_json("/api/context").get("persona_info", {}))
    return ""


def export_memories(
    path: Annotated[
        Path, typer.Argument(help="The file to write; - for stdout. For markdown: a new directory or a .zip.")
    ] = STANDARD_STREAM,
    format_: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="markdown: an Obsidian vault. graphml, graph-json: the graph. playbook: experiences in one Markdown file. card: a character card (V3) with a lorebook.",
        ),
    ] = ExportFormat.JSONL,
    include_deleted: Annotated[bool, typer.Option("--include-deleted", help="Include the trash.")] = False,
    include_secret: Annotated[bool, typer.Option("--include-secret", help="Include memories whose privacy_level is secret.")] = False,
    include_versions: Annotated[bool, typer.Option("--include-versions", help="Include the earlier versions of each memory.")] = False,
    include_vectors: Annotated[bool, typer.Option("--include-vectors", help="Include the vectors of the embedding model.")] = False,
    include_context: Annotated[bool, typer.Option("--include-context", help="Include persona_context.json.")] = False,
    include_conversations: Annotated[bool, typer.Option("--include-conversations", help="Include the conversations of the chat.")] = False,
    persona: PersonaName = None,
    pool: PoolName = None,
    url: Url = None,
) -> None:
    """Export a persona's memories as JSON lines or as an Obsidian vault, or its graph."""
    server = connection(url, persona, pool=pool)
    stats = server.get_json("/api/stats")
    if stats.get("new_persona"):
        suggestions = ", ".join(stats.get("did_you_mean", []))
        raise MemoryMCPError(
            "there is no persona {}",
            "",
            sentence("Similar names: {}", suggestions) if suggestions else "See `memory-mcp personas`",
            repr(stats["persona"]),
        )
    requested = {"deleted": include_deleted, "secret": include_secret, "versions": include_versions}
    requested |= {"vectors": include_vectors, "context": include_context, "conversations": include_conversations}
    include = [name for name, is_requested in requested.items() if is_requested]
    if format_ in GRAPH_FORMS:
        _export_graph(server, path, format_, include)
        return
    if format_ is ExportFormat.MARKDOWN:
        _export_notes(server, path, include)
        return
    if format_ is ExportFormat.PLAYBOOK:
        _export_playbook(server, path, include, stats["persona"])
        return
    if format_ is ExportFormat.CARD:
        _export_card(server, path, include, stats["persona"])
        return
    # Earlier versions are lines too, and their number is unknown.
    total = (
        None
        if include_versions or include_conversations
        else stats["memories"] + stats["superseded"] + (stats["in_trash"] if include_deleted else 0)
    )
    quiet = path == STANDARD_STREAM and sys.stdout.isatty()
    with written_to(path) as file, progress("exporting", total, quiet=quiet) as advance:
        for line in server.export_lines(include, left_out=_report_left_out):
            file.write(line)
            advance(1)


def _export_playbook(server: "Connection", path: Path, include: list[str], persona: str) -> None:
    from memory_mcp.transfer.formats import playbook  # noqa: PLC0415  as the readers

    with written_to(path) as file:
        for part in playbook.write(server.export_lines(include, left_out=_report_left_out), persona):
            file.write(part.encode())


def _export_card(server: "Connection", path: Path, include: list[str], persona: str) -> None:
    from memory_mcp.transfer.card_export import card  # noqa: PLC0415  as the readers

    if unsupported := [name for name in include if name != "secret"]:
        raise InvalidInput("a card has no {}", "", "Remove --include-{}", unsupported[0], unsupported[0])
    made = card(server.export_lines(["context", *include], left_out=_report_left_out), persona)
    with written_to(path) as file:
        file.write(made.text.encode())
    tell("memory-mcp: {} entries in the lorebook of the card", made.entries, err=True)
    if made.uncalled:
        tell("memory-mcp: {} facts left out, which have neither tags nor [[names]] that call them", made.uncalled, err=True)


def _report_left_out(secret: int, graph: int) -> None:
    if secret:
        tell("memory-mcp: {} secret left out; use --include-secret to include them", secret, err=True)
    if graph:
        tell("memory-mcp: {} of the graph left out, which only memories in the trash or secret ones support", graph, err=True)


def _import_lines(server: "Connection", path: Path, dry_run: bool) -> None:
    with _opened(path) as file, progress("importing", _line_count(path)) as advance:
        counts = server.import_rows((line.rstrip(b"\r\n") for line in file), advance, dry_run=dry_run)
    report(counts, [sentence("line {}", error["line"]) for error in counts["errors"]])
    if counts["refused"]:
        raise typer.Exit(1)


def _import_parts(
    server: "Connection",
    path: Path,
    formats: list[Format],
    parts: Iterable[tuple[Format, Iterator["ImportItem"]]],
    dry_run: bool,
    total: int | None = None,
) -> int:
    """Imports the rows of each format into one persona. Returns how many were refused."""
    from memory_mcp.transfer.formats.import_rows import LeftOut  # noqa: PLC0415  as above
    from memory_mcp.transfer.formats.readers import json_lines  # noqa: PLC0415
    from memory_mcp.transfer.formats.table import ROWS  # noqa: PLC0415

    refused: list[ImportItem] = []
    left_out = LeftOut()
    origins: list[str] = []
    counts_of: dict[Format, dict[str, Any]] = {}
    errors: list[dict[str, Any]] = []
    with progress(sentence("importing {}", ", ".join(formats)), total) as advance:
        for kind, rows in parts:
            sent = len(origins)
            lines = json_lines(rows, refused.append, origins.append, left_out.add)
            counts_of[kind] = server.import_rows(lines, advance, on_known=ROWS[kind].clash, dry_run=dry_run)
            errors += [{**error, "line": sent + error["line"]} for error in counts_of[kind].pop("errors")]
    counts = functools.reduce(_added, counts_of.values())
    for gone in counts.get("deleted_notes", []):
        tell("{} is no longer in the vault: {}", gone["note"], ", ".join(gone["keys"]))
    if counts.get("deleted_notes"):
        tell("To move these memories to the trash, import the vault again with --forget-deleted")
    if not origins and not refused:
        raise InvalidInput(
            "{} has nothing to import", "no text was found in the format {}", "Check the path, or set --format", path, formats[0]
        )
    counts["refused"] += len(refused)
    errors += [{"line": len(origins) + number, "reason": item.refused} for number, item in enumerate(refused, start=1)]
    _print_table(counts_of, counts["refused"], left_out)
    origins += [item.where for item in refused]
    report({**counts, "errors": errors}, [origins[error["line"] - 1] for error in errors])
    return int(counts["refused"])


def _added(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The counts of two imports into one persona together: numbers and lists are added, also those by kind."""

    def both(one: Any, other: Any) -> Any:
        if isinstance(one, dict):
            return _added(one, other)
        return one if isinstance(one, str | bool) else one + other

    return {**second, **{name: both(value, second[name]) if name in second else value for name, value in first.items()}}


def _print_table(counts_of: dict[Format, dict[str, Any]], refused: int, left_out: "LeftOut") -> None:
    """Prints which programs the files are of, and what became of each entry."""
    names = {kind: terms().term("import_format", kind) for kind in counts_of}
    typer.echo(f"{', '.join(names.values())}:")
    rows = []
    for kind, counts in counts_of.items():
        of_kind = f": {names[kind]}" if len(names) > 1 else ""
        told = {"stored": "stored", "already_known": "known already", "revised": "revised"}
        rows += [
            (counts[name], worded(words) + of_kind) for name, words in told.items() if name in counts and (counts[name] or not of_kind)
        ]
    rows += [
        (counted.count, f"{worded('left out')}: {terms().left_out(counted.kind)} ({'; '.join(map(worded, counted.named))})")
        for counted in left_out.kinds()
    ]
    for count, words in [*rows, (refused, worded("refused"))]:
        typer.echo(f"{count:>8,}  {words}")


def report(counts: dict[str, Any], origins: Iterable[str]) -> None:
    """Prints the outcome of an import, with examples of what was refused; `origins` has the origin of each refused line."""
    from memory_mcp.transfer.formats.import_rows import examples  # noqa: PLC0415  as the readers

    would = "would be " if counts.get("dry_run") else ""
    summary = sentence(
        "{}: {} {}stored, {} known already, {} {}refused",
        counts["persona"],
        counts["stored"],
        would,
        counts["already_known"],
        counts["refused"],
        would,
    )
    further = {
        "revised": "{} revised",
        "dropped": "{} moved to the trash",
        "versions": "{} earlier versions",
        "context": "{} context",
        "context_kept": "{} character left out, as the persona is another one already; --replace takes it",
        "vectors": "{} with vectors",
        "vectors_left": "{} to be embedded again",
        "graph": "{} of the graph",
        "expired": "{} of them expired, for the trash",
    }
    typer.echo(", ".join(map(worded, [summary, *(sentence(words, counts[name]) for name, words in further.items() if counts.get(name))])))
    for action in ("redacted", "flagged"):
        if found := counts.get(action):
            tell("{}: {}", sentence(action), named_counts("data", found))
    shown = examples(zip(origins, (error["reason"] for error in counts["errors"]), strict=True))
    for where, reason, others in shown:
        refused_at = "" if reason.startswith(where) else f"{worded(where)}: "
        alike = f" {worded('({} others like it)', others)}" if others else ""
        typer.echo(f"{refused_at}{worded(reason)}{alike}", err=True)
    if unshown := counts["refused"] - sum(1 + others for _, _, others in shown):
        tell("{} more refused", unshown, err=True)


def _export_notes(server: "Connection", path: Path, include: list[str]) -> None:
    """Writes a zip directly, a directory that gets its name when it is complete, or over the notes of an earlier export."""
    if path == STANDARD_STREAM or path.suffix.lower() == ZIP_SUFFIX:
        with written_to(path) as file:
            _receive(server, file, include)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        _refresh_notes(server, path, include)
        return
    with tempfile.TemporaryFile() as file, _temporary_directory(path) as unfinished:
        _receive(server, file, include)
        with zipfile.ZipFile(file) as notes:
            notes.extractall(unfinished)  # extractall drops paths that lead out of the directory
        if path.exists():
            path.rmdir()
        unfinished.rename(path)


def _refresh_notes(server: "Connection", path: Path, include: list[str]) -> None:
    from memory_mcp.cli.vault_refresh import has_exported_notes, refresh  # noqa: PLC0415  as the readers above

    if not (path.is_dir() and has_exported_notes(path)):
        raise InvalidInput("{} is not empty", "it is no vault of an earlier export", "Name a new directory, and move the notes", path)
    with tempfile.NamedTemporaryFile(suffix=ZIP_SUFFIX) as file:
        _receive(server, file, include)
        typer.echo(refresh(server, path, Path(file.name)))


def _export_graph(server: "Connection", path: Path, format_: ExportFormat, include: list[str]) -> None:
    if unsupported := [name for name in include if name != "secret"]:
        raise InvalidInput("a graph has no {}", "", "Remove --include-{}", unsupported[0], unsupported[0])
    quiet = path == STANDARD_STREAM and sys.stdout.isatty()
    with written_to(path) as file, progress("exporting, bytes", None, quiet=quiet) as advance:
        for block in server.graph_blocks(GRAPH_FORMS[format_], include_secret=bool(include)):
            file.write(block)
            advance(len(block))


@contextmanager
def _temporary_directory(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".part", dir=path.parent) as directory:
            yield Path(directory, "vault")
    except OSError as error:
        raise MemoryMCPError("{} can't be written", "{}", "Choose another path", path, error.strerror or str(error)) from error


def _receive(server: "Connection", file: Any, include: list[str]) -> None:
    with progress("exporting, bytes", None, quiet=file is sys.stdout.buffer) as advance:
        for block in server.export_blocks(ExportFormat.MARKDOWN, include, _report_left_out):
            file.write(block)
            advance(len(block))
    file.flush()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_STREAM:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInput("{} can't be read", "{}", "Check the path and its permissions", path, error.strerror or str(error)) from error
    with file:
        yield file


def _line_count(path: Path) -> int | None:
    if path == STANDARD_STREAM:
        return None
    with _opened(path) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(COUNTING_BLOCK_BYTES), b""))


@contextmanager
def written_to(path: Path) -> Iterator[BinaryIO]:
    """stdout, or a file that gets its name when it is complete."""
    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with open(unfinished, "wb", opener=open_private) as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise MemoryMCPError("{} can't be written", "{}", "Choose another path", path, error.strerror or str(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)
