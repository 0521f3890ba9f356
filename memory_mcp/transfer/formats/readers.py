"""The reader of each import format, and the detection of a format from the content of a file, directory or zip."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from memory_mcp.domain import Clash
from memory_mcp.errors import InvalidInput
from memory_mcp.store.legacy import lines
from memory_mcp.store.legacy.schemas import OWNERS_LISTED
from memory_mcp.transfer.formats import (
    ZIP_SUFFIX,
    Format,
    chatgpt,
    claude,
    knowledge_graph,
    lessons,
    mem0,
    memory_service,
    obsidian,
    playbook,
    slack,
    tables,
    text_files,
    transcripts,
)
from memory_mcp.transfer.formats.import_rows import TOO_DEEP, ImportItem, Report, Row
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS, items
from memory_mcp.transfer.formats.obsidian_notes import has_front_matter
from memory_mcp.transfer.formats.sources import Source, blocks, source_of
from memory_mcp.transfer.line_fields import is_too_deep

JSON_LINES_SUFFIXES = frozenset({".jsonl", ".ndjson"})
SQLITE_MAGIC = b"SQLite format 3\x00"
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Reader:
    """How a format is read, and what an import does with a key that is already stored."""

    read: Callable[[Path, str | None, Report], Iterator[ImportItem]]
    clash: Clash


def _of_source(read: Callable[[Source, str | None], Iterator[ImportItem]]) -> Callable[[Path, str | None, Report], Iterator[ImportItem]]:
    return _all_of(lambda source, me, report: read(source, me))


def _all_of(
    read: Callable[[Source, str | None, Report], Iterator[ImportItem]],
) -> Callable[[Path, str | None, Report], Iterator[ImportItem]]:
    def items_of(path: Path, me: str | None, report: Report) -> Iterator[ImportItem]:
        source = source_of(path)
        try:
            yield from read(source, me, report)
        except RecursionError:
            yield ImportItem(path.name, refused=TOO_DEEP)
        for kind, names in source.ignored().items():
            yield from (ImportItem(name, left_out=kind) for name in names)

    return items_of


def database(path: Path, owner: str | None = None) -> Iterator[ImportItem]:
    """The memories of a database and what belongs to them; of one `owner` if it is given."""
    last = ""
    try:
        for name, line in lines.read(path, owner):
            last = name
            where = f"{path.name}, {name}"
            if isinstance(line, int):
                yield from [ImportItem(where, left_out="rows of other tables")] * line
            else:
                yield ImportItem(where, refused=line) if isinstance(line, str) else ImportItem(where, line)
    except (InvalidInput, OSError, RecursionError) as error:
        reason = TOO_DEEP if isinstance(error, RecursionError) else str(error)
        yield ImportItem(f"{path.name}, after {last}" if last else path.name, refused=reason)


def by_persona(
    path: Path, kind: Format, me: str | None, report: Report, persona: str | None
) -> list[tuple[str | None, Iterator[ImportItem]]]:
    """The rows of a path, with the persona to import them into: the given one, or the owners that a database names.

    Raises:
        InvalidInput: a database has several owners, and the persona is none of them.
    """
    owners = lines.owners(path) if kind is Format.DATABASE else ()
    if not owners:
        return [(persona, READERS[kind].read(path, me, report))]
    if persona is None:
        return [(owner, database(path, owner)) for owner in owners]
    if len(owners) > 1 and persona not in owners:
        raise InvalidInput(
            f"{path.name} contains the memories of several, such as {', '.join(owners[:OWNERS_LISTED])}",
            f"{persona!r} is none of them",
            "Name one of them with --persona, or none to import each into the persona of its name",
        )
    return [(persona, database(path, persona if persona in owners else owners[0]))]


# JSON lines need no reader: they are sent unchanged.
READERS = {
    Format.TEXT: Reader(_of_source(text_files.read), "refuse"),
    Format.CSV: Reader(_of_source(tables.read), "keep"),
    Format.OBSIDIAN: Reader(_all_of(lambda source, me, report: obsidian.read(source, report)), "revise"),
    Format.CHATGPT: Reader(_of_source(chatgpt.read), "keep"),
    Format.CLAUDE: Reader(_of_source(claude.read), "keep"),
    Format.SLACK: Reader(_of_source(slack.read), "keep"),
    Format.MEM0: Reader(_of_source(mem0.read), "revise"),
    Format.MCP_MEMORY: Reader(_of_source(knowledge_graph.read), "keep"),
    Format.MEMORY_SERVICE: Reader(_of_source(memory_service.read), "keep"),
    Format.TRANSCRIPT: Reader(_of_source(transcripts.read), "keep"),
    Format.PLAYBOOK: Reader(_of_source(playbook.read_file), "revise"),
    Format.SKILLBOOK: Reader(_of_source(lessons.read), "keep"),
    Format.CLAUDE_MEM: Reader(_of_source(lessons.read), "keep"),
    Format.DATABASE: Reader(lambda path, me, report: database(path), "refuse"),
}


_BY_SUFFIX = {**dict.fromkeys(JSON_LINES_SUFFIXES, Format.JSON_LINES), **dict.fromkeys(tables.SUFFIXES, Format.CSV)}
_DIRECTORY_FORMATS = (Format.OBSIDIAN, Format.SLACK)


def detect_format(path: Path, requested: Format = Format.AUTO) -> Format:
    """The requested format, or with `AUTO` the format detected from the names and first bytes at a path.

    Raises:
        InvalidInput: the path does not exist, can't have the requested format, or has none that is recognized.
    """
    if not path.exists():
        raise InvalidInput(f"{path} does not exist", "", "Check the path")
    if not (path.is_file() or path.is_dir()):
        raise InvalidInput(f"{path} is no file", "an import reads it twice", "Write what it holds into a file")
    if requested is not Format.AUTO:
        needs_file = requested in (Format.JSON_LINES, Format.DATABASE, Format.MCP_MEMORY)
        if path.is_dir() and needs_file:
            raise InvalidInput(f"{path} can't be read as {requested}", "it is a directory", "Choose another --format")
        if path.is_file() and requested in _DIRECTORY_FORMATS and path.suffix.lower() not in {ZIP_SUFFIX, obsidian.SUFFIX}:
            raise InvalidInput(
                f"{path} can't be read as {requested}", "it is a file", "Name a directory or a zip, or choose another --format"
            )
        return requested
    detected = _of_many(source_of(path), path) if path.is_dir() or path.suffix.lower() == ZIP_SUFFIX else _of_file(path)
    if detected is None and path.is_dir() and not any(path.iterdir()):
        raise InvalidInput(f"{path} holds nothing to import", "it is empty", "Check the path")
    if detected is None:
        raise InvalidInput(
            f"the format of {path.name} is not recognized",
            f"it is none of {', '.join(READERS)}",
            "Name the format, such as --format jsonl or --format text",
        )
    return detected


def _of_many(source: Source, path: Path) -> Format | None:
    names = source.names()
    base_names = {PurePosixPath(name).name for name in names}
    conversations = [name for name in names if CONVERSATIONS.fullmatch(name)]
    for name in (*conversations[:1], *(name for name in names if conversations and claude.FILES.fullmatch(name))):
        if format_ := _of_json(source, name):
            return format_
    if "users.json" in base_names and any(slack.DAY_FILE.fullmatch(name) for name in names):
        return Format.SLACK
    if mem0.PACKED in base_names:
        return Format.MEM0
    suffixes = {PurePosixPath(name).suffix.lower() for name in names}
    if obsidian.SUFFIX in suffixes:
        return Format.OBSIDIAN
    for name in names:
        if (PurePosixPath(name).name == mem0.PLAIN or claude.FILES.fullmatch(name)) and (format_ := _of_json(source, name)):
            return format_
    # The zip of a program that isn't known may hold a README: its texts are read only if the format is named.
    return Format.TEXT if suffixes & text_files.TEXT_SUFFIXES and path.is_dir() else None


def _of_file(path: Path) -> Format | None:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read", error.strerror or str(error), "Check the path and its permissions") from error
    if head.startswith(SQLITE_MAGIC):
        return Format.DATABASE
    suffix = path.suffix.lower()
    if suffix in text_files.TEXT_SUFFIXES:
        is_note = suffix == obsidian.SUFFIX and has_front_matter(head)
        return Format.PLAYBOOK if playbook.is_playbook(head) else Format.OBSIDIAN if is_note else Format.TEXT
    if _is_graph(head):
        return Format.MCP_MEMORY
    if suffix in {*JSON_LINES_SUFFIXES, ".json"} and transcripts.is_transcript(head):
        return Format.TRANSCRIPT
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return _of_json(source_of(path), path.name) if suffix == ".json" else Format.MEM0 if path.name.endswith(mem0.PACKED) else None


def _is_graph(head: bytes) -> bool:
    """Whether the first line is an entity or a relation of the MCP reference server."""
    return re.match(rb'\A(?:\xef\xbb\xbf)?\s*+\{\s*+"(?:type"\s*+:\s*+"(?:entity|relation)"|entities"\s*+:)', head) is not None


def _of_json(source: Source, name: str) -> Format | None:
    """The format of the first entry; raises InvalidInput if the file is not JSON."""
    first = next(items(blocks(source, name), name), None)
    return next((kind for kind, matches in _JSON_FORMATS if matches(first)), None) if isinstance(first, dict) else None


def _is_memory(first: dict[str, Any]) -> bool:
    return any(isinstance(first.get(name), str) for name in ("memory", "content")) and "id" in first


# The first that fits.
_JSON_FORMATS: tuple[tuple[Format, Callable[[dict[str, Any]], bool]], ...] = (
    (Format.CLAUDE, lambda first: "chat_messages" in first or bool(claude.MEMORY_FIELDS & first.keys()) or claude.is_project(first)),
    (Format.SKILLBOOK, lessons.is_skillbook),
    (Format.CLAUDE_MEM, lessons.is_claude_mem),
    (Format.MEMORY_SERVICE, memory_service.is_export),
    (Format.CHATGPT, lambda first: "mapping" in first or ("messages" in first and "title" in first)),
    (Format.MEM0, lambda first: any(isinstance(first.get(name), list) for name in mem0.LISTS) or _is_memory(first)),
)


def forgetting(items_read: Iterator[ImportItem]) -> Iterator[ImportItem]:
    """The items, with the wish to move memories of notes that are no longer in their vault to the trash."""
    for item in items_read:
        yield replace(item, row={**item.row, "forget": True}) if item.row and "notes_of" in item.row else item


def json_lines(
    items_read: Iterator[ImportItem],
    on_refused: Callable[[ImportItem], None],
    on_line: Callable[[str], None],
    on_left_out: Callable[[ImportItem], None],
) -> Iterator[bytes]:
    """Yields the rows as JSON lines. Calls `on_refused` and `on_left_out` for items without one, and `on_line` with the origin of each line
    before yielding it."""
    for item in items_read:
        checked = without_deep_row(item)
        if checked.row is None:
            (on_left_out if checked.left_out else on_refused)(checked)
        else:
            on_line(checked.where)
            yield json_line(checked.row)


def without_deep_row(item: ImportItem) -> ImportItem:
    """The item, or its refusal if its row is nested too deeply to be written."""
    return replace(item, row=None, refused=TOO_DEEP) if item.row and is_too_deep(item.row) else item


def json_line(row: Row) -> bytes:
    """A row as a line, without its line feed."""
    return json.dumps(row, ensure_ascii=False).encode(errors="replace")  # a file's name may not be valid text
