"""What an import can read: each format by its name, and how one is told from another by what a file, directory or zip holds."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memory_mcp.domain import Clash
from memory_mcp.errors import InvalidInput
from memory_mcp.store.legacy import table_adoption
from memory_mcp.transfer.formats import ZIP_SUFFIX, Format, chatgpt, claude, knowledge_graph, mem0, obsidian, slack, text_files
from memory_mcp.transfer.formats.import_rows import ImportItem, Report
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS, items
from memory_mcp.transfer.formats.sources import Source, blocks, source_of

JSON_LINES_SUFFIXES = frozenset({".jsonl", ".ndjson"})
SQLITE_MAGIC = b"SQLite format 3\x00"
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Reading:
    """How a format is read, and what an import does with a memory whose key is there already."""

    read: Callable[[Path, str | None, Report], Iterator[ImportItem]]
    clash: Clash


def _of_source(read: Callable[[Source, str | None], Iterator[ImportItem]]) -> Callable[[Path, str | None, Report], Iterator[ImportItem]]:
    return lambda path, me, report: read(source_of(path), me)


def _database(path: Path) -> Iterator[ImportItem]:
    number = 0
    try:
        for number, row in enumerate(table_adoption.read_memories(path), start=1):
            yield ImportItem(f"{path.name}, row {number}", row)
    except (InvalidInput, OSError) as error:
        yield ImportItem(f"{path.name}, after row {number}" if number else path.name, refused=str(error))


# JSON lines are sent as they are: the server reads them itself.
READINGS = {
    Format.TEXT: Reading(lambda path, me, report: text_files.read(path), "refuse"),
    Format.OBSIDIAN: Reading(lambda path, me, report: obsidian.read(source_of(path), report), "revise"),
    Format.CHATGPT: Reading(_of_source(chatgpt.read), "keep"),
    Format.CLAUDE: Reading(_of_source(claude.read), "keep"),
    Format.SLACK: Reading(_of_source(slack.read), "keep"),
    Format.MEM0: Reading(_of_source(mem0.read), "revise"),
    Format.MCP_MEMORY: Reading(_of_source(knowledge_graph.read), "keep"),
    Format.DATABASE: Reading(lambda path, me, report: _database(path), "refuse"),
}


_OF_DIRECTORIES = (Format.OBSIDIAN, Format.SLACK)


def format_of(path: Path, told: Format = Format.AUTO) -> Format:
    """The format of what is at a path, by its name and its first bytes, unless it was told.

    Raises:
        InvalidInput: it is not there, or can't be what was told, or nothing says what it is.
    """
    if not path.exists():
        raise InvalidInput(f"{path} does not exist", "", "Check the path")
    if told is not Format.AUTO:
        needs_file = told in (Format.JSON_LINES, Format.DATABASE, Format.MCP_MEMORY)
        if path.is_dir() and needs_file:
            raise InvalidInput(f"{path} can't be read as {told}", "it is a directory", "Choose another --format")
        if path.is_file() and told in _OF_DIRECTORIES and path.suffix.lower() not in {ZIP_SUFFIX, obsidian.SUFFIX}:
            raise InvalidInput(f"{path} can't be read as {told}", "it is a file", "Name a directory or a zip, or choose another --format")
        return told
    found = _of_many(source_of(path), path) if path.is_dir() or path.suffix.lower() == ZIP_SUFFIX else _of_file(path)
    if found is None and path.is_dir() and not any(path.iterdir()):
        raise InvalidInput(f"{path} holds nothing to import", "it is empty", "Check the path")
    if found is None:
        raise InvalidInput(
            f"nothing says what {path.name} is",
            f"it is like none of {', '.join(READINGS)}",
            "Say what it is, such as --format jsonl or --format text",
        )
    return found


def _of_many(source: Source, path: Path) -> Format | None:
    names = source.names()
    last = {PurePosixPath(name).name for name in names}
    conversations = [name for name in names if CONVERSATIONS.fullmatch(name)]
    if conversations:
        return _of_json(source, conversations[0])
    if "users.json" in last and any(slack.DAY_FILE.fullmatch(name) for name in names):
        return Format.SLACK
    if mem0.PACKED in last:
        return Format.MEM0
    suffixes = {PurePosixPath(name).suffix.lower() for name in names}
    if obsidian.SUFFIX in suffixes:
        return Format.OBSIDIAN
    if mem0.PLAIN in last:
        return _of_json(source, next(name for name in names if PurePosixPath(name).name == mem0.PLAIN))
    # Texts are read from the disk only, where their dates are.
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
        return Format.TEXT
    if _is_graph(head):
        return Format.MCP_MEMORY
    if suffix in JSON_LINES_SUFFIXES:
        return Format.JSON_LINES
    return _of_json(source_of(path), path.name) if suffix == ".json" else Format.MEM0 if path.name.endswith(mem0.PACKED) else None


def _is_graph(head: bytes) -> bool:
    """Whether the first line is an entity or a relation of the reference server."""
    return re.match(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:type"\s*:\s*"(?:entity|relation)"|entities"\s*:)', head) is not None


def _of_json(source: Source, name: str) -> Format | None:
    """Raises InvalidInput where it is no JSON."""
    first = next(items(blocks(source, name), name), None)
    if not isinstance(first, dict):
        return None
    if "chat_messages" in first:
        return Format.CLAUDE
    if "mapping" in first or ("messages" in first and "title" in first):
        return Format.CHATGPT
    if any(isinstance(first.get(listed), list) for listed in mem0.LISTS) or _is_memory(first):
        return Format.MEM0
    return None


def _is_memory(first: dict[str, Any]) -> bool:
    return any(isinstance(first.get(name), str) for name in ("memory", "content")) and "id" in first


def lines_of(found: Iterator[ImportItem], refused: Callable[[ImportItem], None], place: Callable[[str], None]) -> Iterator[bytes]:
    """The rows as JSON lines. What is refused here goes to `refused`; where each line came from to `place`, before it is sent."""
    for one in found:
        if one.row is None:
            refused(one)
        else:
            place(one.where)
            yield json.dumps(one.row, ensure_ascii=False).encode(errors="replace")  # a file's name may be no text
