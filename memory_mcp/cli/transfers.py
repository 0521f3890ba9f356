"""`memory-mcp import` and `memory-mcp export`: files to and from a running server."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from memory_mcp.cli.options import PersonaName, Url, connection
from memory_mcp.errors import InvalidInput, MemoryMCPError

JSON_LINES_SUFFIXES = frozenset({".jsonl", ".ndjson"})
STANDARD_STREAM = Path("-")
COUNTING_BLOCK_BYTES = 1024 * 1024

Advance = Callable[[int], None]


class Format(StrEnum):
    AUTO = "auto"
    JSON_LINES = "jsonl"
    TEXT = "text"
    OBSIDIAN = "obsidian"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("import")(import_memories)
    app.command("export")(export_memories)


def import_memories(
    path: Annotated[Path, typer.Argument(help="A file, a directory, or - for JSON lines on stdin.", metavar="FILE|DIR")],
    format_: Annotated[Format, typer.Option("--format", help="auto goes by the name; a directory is an Obsidian vault.")] = Format.AUTO,
    persona: PersonaName = None,
    url: Url = None,
) -> None:
    """Store what a file or a directory holds. Importing the same again stores nothing new."""
    there = connection(url, persona)
    kind = _format_of(path, format_)
    if kind is Format.JSON_LINES:
        with _opened(path) as file, _progress("importing", _line_count(path)) as advance:
            counts = there.import_rows((line.rstrip(b"\r\n") for line in file), advance)
        places = None
    else:
        rows = list(_document_rows(path, kind))
        if not rows:
            raise InvalidInput(f"{path} holds nothing to import", f"no text was found as {kind}", "Check the path, or say --format")
        with _progress("importing", len(rows)) as advance:
            counts = there.import_rows((json.dumps(row, ensure_ascii=False).encode() for row in rows), advance)
        places = [str(row["session_id"]) for row in rows]
    _report(counts, places)


def export_memories(
    path: Annotated[Path, typer.Argument(help="Where to; - for stdout.", metavar="[FILE]")] = STANDARD_STREAM,
    include_deleted: Annotated[bool, typer.Option("--include-deleted", help="The trash too.")] = False,
    include_secret: Annotated[bool, typer.Option("--include-secret", help="Memories whose privacy_level is secret too.")] = False,
    persona: PersonaName = None,
    url: Url = None,
) -> None:
    """Write a persona's memories as JSON lines."""
    there = connection(url, persona)
    stats = there.get_json("/api/stats")
    if stats.get("new_persona"):
        near = ", ".join(stats.get("did_you_mean", []))
        raise MemoryMCPError(
            f"there is no persona {stats['persona']!r}", "", f"Perhaps you mean {near}" if near else "See `memory-mcp personas`"
        )
    total = stats["memories"] + stats["superseded"] + (stats["in_trash"] if include_deleted else 0)
    with _destination(path) as file, _progress("exporting", total, quiet=path == STANDARD_STREAM and sys.stdout.isatty()) as advance:
        for line in there.export_lines(include_deleted, include_secret, left_out=_tell_left_out):
            file.write(line)
            advance(1)


def _tell_left_out(count: int) -> None:
    if count:
        typer.echo(f"memory-mcp: {count} secret left out; --include-secret takes them along", err=True)


def _format_of(path: Path, told: Format) -> Format:
    if path == STANDARD_STREAM:
        if told in (Format.AUTO, Format.JSON_LINES):
            return Format.JSON_LINES
        raise InvalidInput("stdin is read as JSON lines only", "", "Give a file")
    if not path.exists():
        raise InvalidInput(f"{path} does not exist", "", "Check the path")
    if told is not Format.AUTO:
        if path.is_dir() == (told is Format.JSON_LINES) and told is not Format.TEXT:
            raise InvalidInput(
                f"{path} can't be read as {told}", f"it is a {'directory' if path.is_dir() else 'file'}", "Choose another --format"
            )
        return told
    if path.is_dir():
        return Format.OBSIDIAN
    # The loaders behind it are only for documents.
    from memory_mcp.transfer.documents import TEXT_SUFFIXES  # noqa: PLC0415

    suffix = path.suffix.lower()
    if suffix not in JSON_LINES_SUFFIXES | TEXT_SUFFIXES:
        raise InvalidInput(f"the name {path.name} does not say what it holds", "", "Say --format jsonl or --format text")
    return Format.TEXT if suffix in TEXT_SUFFIXES else Format.JSON_LINES


def _document_rows(path: Path, kind: Format) -> Iterator[dict[str, Any]]:
    from memory_mcp.transfer import documents  # noqa: PLC0415  as above

    def report(sentence: str) -> None:
        typer.echo(f"memory-mcp: {sentence}", err=True)

    if kind is Format.OBSIDIAN:
        return documents.rows_of_vault(path, report)
    return documents.rows_of_texts(path, report) if path.is_dir() else documents.rows_of_text(path)


def _report(counts: dict[str, Any], places: list[str] | None) -> None:
    typer.echo(f"{counts['persona']}: {counts['stored']} stored, {counts['already_known']} known already, {counts['refused']} refused")
    for what in ("redacted", "flagged"):
        if found := counts.get(what):
            typer.echo(f"{what}: {', '.join(f'{count} {kind}' for kind, count in found.items())}")
    for error in counts["errors"]:
        where = places[error["line"] - 1] if places else f"line {error['line']}"
        typer.echo(f"{where}: {error['reason']}", err=True)
    if counts["refused"]:
        raise typer.Exit(1)


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


@contextmanager
def _progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """A bar on stderr, where somebody is looking at it."""
    # Only these two commands need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
