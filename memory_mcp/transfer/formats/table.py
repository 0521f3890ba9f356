"""The table of formats: what each is recognized by, how it is read, and what an import does with a key that is already stored.

The first row that recognizes a file reads it, so what has fields of its own stands before what only has an ending.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from memory_mcp.domain import Clash
from memory_mcp.errors import InvalidInput
from memory_mcp.store.legacy import lines
from memory_mcp.transfer.formats import (
    Format,
    assistants,
    character_chats,
    characters,
    chat_tables,
    chatgpt,
    claude,
    discord,
    documents,
    fact_lists,
    knowledge_graph,
    lessons,
    line,
    lorebooks,
    mem0,
    memory_service,
    obsidian,
    playbook,
    sillytavern,
    slack,
    tables,
    telegram,
    text_files,
    transcripts,
    whatsapp,
)
from memory_mcp.transfer.formats.import_rows import TOO_DEEP, ImportItem, ReadOptions, Report
from memory_mcp.transfer.formats.obsidian_notes import has_front_matter
from memory_mcp.transfer.formats.picture_text import is_picture
from memory_mcp.transfer.formats.recognition import JSON_LINES_SUFFIXES, JSON_SUFFIXES, Head
from memory_mcp.transfer.formats.sources import Source, source_of
from memory_mcp.transfer.formats.turns import files_read

SQLITE_MAGIC = b"SQLite format 3\x00"
_GRAPH = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*+\{\s*+"(?:type"\s*+:\s*+"(?:entity|relation)"|entities"\s*+:)')

Read = Callable[[Path | Source, ReadOptions, Report], Iterator[ImportItem]]


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One format. `has_files`: the program saves the files that were sent in a chat beside it."""

    format: Format
    recognizes: Callable[[Head], bool]
    read: Read
    clash: Clash
    has_files: bool = False


def _of_source(read: Callable[[Source, ReadOptions], Iterator[ImportItem]]) -> Read:
    return _reporting(lambda source, options, report: read(source, options))


def _of_author(read: Callable[[Source, str | None], Iterator[ImportItem]]) -> Read:
    return _reporting(lambda source, options, report: read(source, options.me))


def _reporting(read: Callable[[Source, ReadOptions, Report], Iterator[ImportItem]]) -> Read:
    def items_of(at: Path | Source, options: ReadOptions, report: Report) -> Iterator[ImportItem]:
        source = source_of(at) if isinstance(at, Path) else at
        try:
            yield from read(source, options, report)
        except RecursionError:
            yield ImportItem(at.name if isinstance(at, Path) else source.label, refused=TOO_DEEP)
        yield from (ImportItem(name, refused=reason) for name, reason in source.refused.items())
        for kind, names in source.ignored().items():
            yield from (ImportItem(name, left_out=kind) for name in names)

    return items_of


def _chat(
    kind: Format,
    recognizes: Callable[[Head], bool],
    read_file: Callable[[Source, str, ReadOptions], Iterator[ImportItem]],
    *,
    has_files: bool = False,
) -> FormatRow:
    """The row of a program whose files are read one by one. It may also save chats as tables."""

    def either(head: Head) -> bool:
        return recognizes(head) or chat_tables.is_table(kind, head)

    def of_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
        is_csv = kind in chat_tables.TABLES and PurePosixPath(name).suffix.lower() in tables.SUFFIXES
        return chat_tables.read_file(kind, source, name, options) if is_csv else read_file(source, name, options)

    def read(source: Source, options: ReadOptions) -> Iterator[ImportItem]:
        return files_read(source, either, lambda name: of_file(source, name, options))

    return FormatRow(kind, either, _of_source(read), "keep", has_files)


def _assistant(kind: Format, *, has_files: bool = False) -> FormatRow:
    return _chat(kind, partial(assistants.recognizes, kind), partial(assistants.read_file, kind), has_files=has_files)


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


def _unread(path: Path | Source, _options: ReadOptions, _report: Report) -> Iterator[ImportItem]:
    """JSON lines are sent unchanged."""
    raise InvalidInput("{} is not read", "JSON lines are sent as they are", "Choose another format", path)


def _has_text_ending(head: Head) -> bool:
    return head.suffix in text_files.TEXT_SUFFIXES


def _is_transcript(head: Head) -> bool:
    return head.suffix in JSON_SUFFIXES and transcripts.is_transcript(head.data)


def _is_graph(head: Head) -> bool:
    return _GRAPH.match(head.data) is not None or knowledge_graph.is_answer(head.first) or knowledge_graph.is_in_fence(head)


def _is_memory(fields: dict[str, Any]) -> bool:
    return any(isinstance(fields.get(name), str) for name in ("memory", "content")) and "id" in fields


def _is_mem0(head: Head) -> bool:
    fields = dict(head.fields)
    return head.name.endswith(mem0.PACKED) or any(isinstance(fields.get(name), list) for name in mem0.LISTS) or _is_memory(fields)


def _is_claude(head: Head) -> bool:
    return head.has("chat_messages") or bool(claude.MEMORY_FIELDS & head.fields.keys()) or claude.is_project(head.first)


def _is_card(head: Head) -> bool:
    return is_picture(head.data) or characters.is_card(head.fields)


TABLE: tuple[FormatRow, ...] = (
    FormatRow(Format.DATABASE, lambda head: head.data.startswith(SQLITE_MAGIC), lambda path, *_: database(path), "refuse"),
    # Texts
    FormatRow(
        Format.PLAYBOOK,
        lambda head: _has_text_ending(head) and playbook.is_playbook(head.data),
        _of_author(playbook.read_file),
        "revise",
    ),
    FormatRow(
        Format.OBSIDIAN,
        lambda head: head.suffix == obsidian.SUFFIX and has_front_matter(head.data),
        _reporting(lambda source, _, report: obsidian.read(source, report)),
        "revise",
    ),
    _assistant(Format.GEMINI, has_files=True),
    FormatRow(
        Format.DOCUMENT, lambda head: head.suffix in documents.OWN_SUFFIXES, _of_source(lambda source, _: documents.read(source)), "keep"
    ),
    _chat(Format.LINE, line.recognizes, line.read_file),
    _chat(Format.WHATSAPP, whatsapp.recognizes, whatsapp.read_file, has_files=True),
    _chat(Format.DISCORD, discord.recognizes, discord.read_file, has_files=True),
    _chat(Format.FACTS, fact_lists.recognizes, fact_lists.read_file),
    # JSON and JSON lines
    FormatRow(Format.MCP_MEMORY, _is_graph, _of_author(knowledge_graph.read), "keep"),
    FormatRow(Format.TRANSCRIPT, _is_transcript, _of_author(transcripts.read), "keep"),
    FormatRow(
        Format.SILLYTAVERN,
        lambda head: head.suffix in JSON_LINES_SUFFIXES and sillytavern.is_chat(head.data),
        _of_source(sillytavern.read),
        "keep",
    ),
    _assistant(Format.VSCODE_CHAT),
    FormatRow(Format.JSON_LINES, lambda head: head.suffix in JSON_LINES_SUFFIXES, _unread, "refuse"),
    # Characters: a chat has fields of its character, too
    FormatRow(Format.CHARACTER_CHAT, lambda head: character_chats.is_chat(head.fields), _of_source(character_chats.read), "keep"),
    FormatRow(Format.CHARACTER, _is_card, _reporting(characters.read), "revise"),
    FormatRow(Format.LOREBOOK, lambda head: lorebooks.is_lorebook(head.fields), _reporting(characters.read), "revise"),
    FormatRow(Format.CLAUDE, _is_claude, _of_author(claude.read), "keep"),
    FormatRow(Format.SKILLBOOK, lambda head: lessons.is_skillbook(dict(head.fields)), _of_author(lessons.read), "keep"),
    FormatRow(Format.CLAUDE_MEM, lambda head: lessons.is_claude_mem(dict(head.fields)), _of_author(lessons.read), "keep"),
    FormatRow(Format.MEMORY_SERVICE, lambda head: memory_service.is_export(dict(head.fields)), _of_author(memory_service.read), "keep"),
    _chat(Format.TELEGRAM, telegram.recognizes, telegram.read_file, has_files=True),
    *map(_assistant, (Format.DEEPSEEK, Format.LIBRECHAT, Format.OPEN_WEBUI, Format.LM_STUDIO)),
    _assistant(Format.GROK, has_files=True),
    _assistant(Format.CHARACTER_AI),
    FormatRow(Format.CHATGPT, lambda head: chatgpt.is_export(head.fields), _of_author(chatgpt.read), "keep", has_files=True),
    FormatRow(Format.MEM0, _is_mem0, _of_author(mem0.read), "revise"),
    FormatRow(Format.SLACK, lambda head: False, _of_author(slack.read), "keep"),  # recognized by the names in its folder
    # Tables
    _chat(Format.COPILOT, lambda head: False, partial(chat_tables.read_file, Format.COPILOT)),
    FormatRow(Format.CSV, lambda head: head.suffix in tables.SUFFIXES, _of_source(tables.read), "keep"),
    # Texts that are none of the above, such as a card that was saved as one
    FormatRow(Format.TEXT, _has_text_ending, _of_author(text_files.read), "keep"),
)
ROWS = {row.format: row for row in TABLE}
