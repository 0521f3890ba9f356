"""`memory-mcp import` and `memory-mcp export`: files to and from a running server.

Other programs' exports are read here, on the caller's side, and sent as JSON lines: the server knows one form only.
"""

import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from memory_mcp.cli.options import PersonaName, Url, connection
from memory_mcp.cli.progress import progress
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.transfer.formats import Format

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection
    from memory_mcp.transfer.formats.import_rows import ImportItem

STANDARD_STREAM = Path("-")
COUNTING_BLOCK_BYTES = 1024 * 1024
ZIP_SUFFIX = ".zip"


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    GRAPHML = "graphml"
    GRAPH_JSON = "graph-json"


# What the server calls them.
GRAPH_FORMS = {ExportFormat.GRAPHML: "graphml", ExportFormat.GRAPH_JSON: "json"}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("import")(import_memories)
    app.command("export")(export_memories)


def import_memories(
    path: Annotated[Path, typer.Argument(help="A file, a directory, a zip, or - for JSON lines on stdin.", metavar="FILE|DIR")],
    format_: Annotated[Format, typer.Option("--format", help="auto looks at the name and at what is in it.")] = Format.AUTO,
    me: Annotated[str | None, typer.Option("--me", help="What you are called in a chat, instead of 'user'.", metavar="NAME")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be stored, known or refused.")] = False,
    persona: PersonaName = None,
    url: Url = None,
) -> None:
    """Store what a file or a directory holds. Importing the same again stores nothing new. Exit status 1: something was refused."""
    there = connection(url, persona)
    if path == STANDARD_STREAM:
        if format_ not in (Format.AUTO, Format.JSON_LINES):
            raise InvalidInput("stdin is read as JSON lines only", "", "Give a file")
        _import_lines(there, path, dry_run)
        return
    # What reads the formats, which other commands do without.
    from memory_mcp.transfer.formats.readers import detect_format  # noqa: PLC0415

    kind = detect_format(path, format_)
    if kind is Format.JSON_LINES:
        _import_lines(there, path, dry_run)
    else:
        _import_found(there, path, kind, me, dry_run)


def export_memories(
    path: Annotated[Path, typer.Argument(help="Where to; - for stdout. Notes: a new directory, or a .zip.")] = STANDARD_STREAM,
    format_: Annotated[
        ExportFormat, typer.Option("--format", help="markdown: an Obsidian vault. graphml, graph-json: the graph.")
    ] = ExportFormat.JSONL,
    include_deleted: Annotated[bool, typer.Option("--include-deleted", help="The trash too.")] = False,
    include_secret: Annotated[bool, typer.Option("--include-secret", help="Memories whose privacy_level is secret too.")] = False,
    include_versions: Annotated[bool, typer.Option("--include-versions", help="Every earlier state of each memory.")] = False,
    include_vectors: Annotated[bool, typer.Option("--include-vectors", help="What the embedding model made of each memory.")] = False,
    include_context: Annotated[bool, typer.Option("--include-context", help="persona_context.json.")] = False,
    persona: PersonaName = None,
    url: Url = None,
) -> None:
    """Write a persona's memories as JSON lines or as an Obsidian vault, or its graph."""
    there = connection(url, persona)
    stats = there.get_json("/api/stats")
    if stats.get("new_persona"):
        near = ", ".join(stats.get("did_you_mean", []))
        raise MemoryMCPError(
            f"there is no persona {stats['persona']!r}", "", f"Perhaps you mean {near}" if near else "See `memory-mcp personas`"
        )
    wanted = {"deleted": include_deleted, "secret": include_secret, "versions": include_versions}
    wanted |= {"vectors": include_vectors, "context": include_context}
    include = [name for name, is_wanted in wanted.items() if is_wanted]
    if format_ in GRAPH_FORMS:
        _export_graph(there, path, format_, include)
        return
    if format_ is ExportFormat.MARKDOWN:
        _export_notes(there, path, include)
        return
    # Earlier states are lines, too, and nobody has counted them.
    total = None if include_versions else stats["memories"] + stats["superseded"] + (stats["in_trash"] if include_deleted else 0)
    quiet = path == STANDARD_STREAM and sys.stdout.isatty()
    with _destination(path) as file, progress("exporting", total, quiet=quiet) as advance:
        for line in there.export_lines(include, left_out=_tell_left_out):
            file.write(line)
            advance(1)


def _tell_left_out(count: int) -> None:
    if count:
        typer.echo(f"memory-mcp: {count} secret left out; --include-secret takes them along", err=True)


def _import_lines(there: "Connection", path: Path, dry_run: bool) -> None:
    with _opened(path) as file, progress("importing", _line_count(path)) as advance:
        counts = there.import_rows((line.rstrip(b"\r\n") for line in file), advance, dry_run=dry_run)
    _report(counts, [f"line {error['line']}" for error in counts["errors"]])
    if counts["refused"]:
        raise typer.Exit(1)


def _import_found(there: "Connection", path: Path, kind: Format, me: str | None, dry_run: bool) -> None:
    from memory_mcp.transfer.formats.readers import READERS, json_lines  # noqa: PLC0415  as above

    refused: list[ImportItem] = []
    places: list[str] = []
    found = READERS[kind].read(path, me, lambda sentence: typer.echo(f"memory-mcp: {sentence}", err=True))
    with progress(f"importing {kind}", None) as advance:
        lines = json_lines(found, refused.append, places.append)
        counts = there.import_rows(lines, advance, on_known=READERS[kind].clash, dry_run=dry_run)
    if not places and not refused:
        raise InvalidInput(f"{path} holds nothing to import", f"no text was found as {kind}", "Check the path, or say --format")
    counts["refused"] += len(refused)
    _report(counts, [places[error["line"] - 1] for error in counts["errors"]])
    for one in refused:
        typer.echo(one.refused if one.refused.startswith(one.where) else f"{one.where}: {one.refused}", err=True)
    if counts["refused"]:
        raise typer.Exit(1)


def _report(counts: dict[str, Any], places: Iterable[str]) -> None:
    would = "would be " if counts.get("dry_run") else ""
    said = f"{counts['persona']}: {counts['stored']} {would}stored, {counts['already_known']} known already, {counts['refused']} {would}refused"
    further = {
        "revised": "revised",
        "dropped": "put in the trash",
        "versions": "earlier states",
        "context": "context",
        "vectors": "with vectors",
        "vectors_left": "to be embedded anew",
        "graph": "of the graph",
    }
    typer.echo(", ".join([said, *(f"{counts[name]} {words}" for name, words in further.items() if counts.get(name))]))
    for what in ("redacted", "flagged"):
        if found := counts.get(what):
            typer.echo(f"{what}: {', '.join(f'{count} {kind}' for kind, count in found.items())}")
    for place, error in zip(places, counts["errors"], strict=True):
        typer.echo(f"{place}: {error['reason']}", err=True)


def _export_notes(there: "Connection", path: Path, include: list[str]) -> None:
    """To a zip as it comes, or to a directory that takes its name once it is complete."""
    if path == STANDARD_STREAM or path.suffix.lower() == ZIP_SUFFIX:
        with _destination(path) as file:
            _receive(there, file, include)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} is not empty", "an export writes a vault of its own", "Name a new directory, and move its notes")
    with tempfile.TemporaryFile() as file, _written_aside(path) as unfinished:
        _receive(there, file, include)
        with zipfile.ZipFile(file) as notes:
            notes.extractall(unfinished)  # drops what would lead out of the directory
        if path.exists():
            path.rmdir()
        unfinished.rename(path)


def _export_graph(there: "Connection", path: Path, format_: ExportFormat, include: list[str]) -> None:
    if beside := [name for name in include if name != "secret"]:
        raise InvalidInput(f"a graph has no {beside[0]}", "", f"Leave --include-{beside[0]} out")
    quiet = path == STANDARD_STREAM and sys.stdout.isatty()
    with _destination(path) as file, progress("exporting, bytes", None, quiet=quiet) as advance:
        for block in there.graph_blocks(GRAPH_FORMS[format_], include_secret=bool(include)):
            file.write(block)
            advance(len(block))


@contextmanager
def _written_aside(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".part", dir=path.parent) as place:
            yield Path(place, "vault")
    except OSError as error:
        raise MemoryMCPError(f"{path} can't be written", error.strerror or str(error), "Choose another place") from error


def _receive(there: "Connection", file: Any, include: list[str]) -> None:
    with progress("exporting, bytes", None, quiet=file is sys.stdout.buffer) as advance:
        for block in there.export_blocks(ExportFormat.MARKDOWN, include, _tell_left_out):
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
        raise InvalidInput(f"{path} can't be read", error.strerror or str(error), "Check the path and its permissions") from error
    with file:
        yield file


def _line_count(path: Path) -> int | None:
    if path == STANDARD_STREAM:
        return None
    with _opened(path) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(COUNTING_BLOCK_BYTES), b""))


@contextmanager
def _destination(path: Path) -> Iterator[BinaryIO]:
    """stdout, or a file that takes its name once it is complete."""
    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise MemoryMCPError(f"{path} can't be written", error.strerror or str(error), "Choose another place") from error
    finally:
        unfinished.unlink(missing_ok=True)
