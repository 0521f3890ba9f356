"""Exports a persona's memories as an Obsidian vault: a note for each memory, and list notes for days, sessions and speakers.

Links are in the front matter, so that the body of a note is exactly the content of its memory.
"""

import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.domain import Memory, Version
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, versions
from memory_mcp.transfer.formats.obsidian_notes import INDEX, MARK, MEMORY, digest, format_note
from memory_mcp.transfer.jsonlines import ExportOptions, row_of_version, rows_by_page
from memory_mcp.transfer.non_memory_lines import CONTEXT

TITLE_CHARACTERS = 32
LABEL_CHARACTERS = 48
SHORT_NAME = 5  # shorter names get a suffix: Windows reserves names such as CON and COM1
BLOCK_BYTES = 256 * 1024
EARLIEST_IN_ZIP = datetime(1980, 1, 1, tzinfo=UTC)

_UNSAFE = re.compile(r'[\\/:*?"<>|#^\[\]%\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]+')


@dataclass(frozen=True, slots=True)
class File:
    """A note in a vault: its path, text and modification time."""

    path: str
    text: str
    changed: datetime


Entry = tuple[datetime, str, str]  # time of the memory, name of its note, and title


class _Lists:
    """Collects the list notes; it keeps a few hundred bytes per memory until the end of the export."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._titles: dict[str, str] = {}

    def add(self, path: str, title: str, entry: Entry) -> str:
        self._titles[path] = title
        self._entries.setdefault(path, []).append(entry)
        return f"[[{path}]]"

    def files(self, zone: ZoneInfo) -> Iterator[File]:
        for path, entries in sorted(self._entries.items()):
            by_day = path.startswith("days/")
            lines = [
                f"- {moment.astimezone(zone):{'%H:%M' if by_day else '%Y-%m-%d %H:%M'}} [[{name}|{title}]]"
                for moment, name, title in sorted(entries)
            ]
            yield File(f"{path}.md", format_note({MARK: INDEX, "title": self._titles[path]}, "\n".join(lines)), max(entries)[0])


class _Sink(io.RawIOBase):
    """The write end of a zip; the written bytes are taken away in blocks."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        self._written += block
        return len(block)

    def take(self, least: int = 0) -> bytes:
        if len(self._written) < least:
            return b""
        block, self._written = bytes(self._written), bytearray()
        return block


def archive(persona: Persona, options: ExportOptions, zone: ZoneInfo) -> Iterator[bytes]:
    """Yields the vault as blocks of a zip file."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for file in files(persona, options, zone):
            stamp = max(file.changed, EARLIEST_IN_ZIP).astimezone(zone).timetuple()[:6]
            info = zipfile.ZipInfo(file.path, stamp)
            info.compress_type = zipfile.ZIP_DEFLATED
            zip_file.writestr(info, file.text.encode())
            if block := sink.take(BLOCK_BYTES):
                yield block
    yield sink.take()


def files(persona: Persona, options: ExportOptions, zone: ZoneInfo) -> Iterator[File]:
    """Yields the notes of a vault. Dates are in `zone`."""
    lists = _Lists()
    if options.context and persona.exists:
        yield File("persona.md", format_note({MARK: MEMORY, CONTEXT: persona.context.read()}, ""), EARLIEST_IN_ZIP)

    def read_earlier(connection: apsw.Connection, page: Sequence[Memory]) -> tuple[Mapping[str, Memory], Mapping[str, list[Version]]]:
        former = memories.by_keys(connection, [memory.supersedes for memory in page if memory.supersedes])
        changed = [memory.key for memory in page if options.versions and memory.revision > 1]
        return former, {key: versions.for_export(connection, key, options.secret) for key in changed}

    for rows, (former, earlier) in rows_by_page(persona, options, read_earlier):
        # The name of a note contains its first words: a note must not link to a memory that is not exported.
        replaced = {key: memory for key, memory in former.items() if options.includes(memory)}
        for memory, row in rows:
            name = _name(memory, zone)
            path = f"trash/{name}.md" if memory.deleted_at else f"memories/{name[:7]}/{name}.md"
            yield File(path, _text(memory, row, replaced, lists, zone), memory.updated_at)
            for version in earlier.get(memory.key, []):
                fields = row_of_version(version)
                body = fields.pop("content")
                text = format_note({MARK: MEMORY, **fields, "links": [f"[[{name}]]"]}, body)
                yield File(f"versions/{name} r{version.revision}.md", text, version.updated_at)
    yield from lists.files(zone)


def _text(memory: Memory, row: dict[str, Any], replaced: Mapping[str, Memory], lists: _Lists, zone: ZoneInfo) -> str:
    name = _name(memory, zone)
    body = row.pop("content")
    day = memory.event_time.astimezone(zone).date()
    entry = (memory.event_time, name, _title(memory.content))
    links = [] if memory.deleted_at else [lists.add(f"days/{day}", str(day), entry)]
    for folder, label in (("sessions", memory.session_id), ("sources", memory.source)):
        if label and not memory.deleted_at:
            links.append(lists.add(f"{folder}/{_safe_label(label)}", label, entry))
    former = replaced.get(memory.supersedes or "")
    if former:
        links.append(f"[[{_name(former, zone)}]]")
    return format_note({MARK: MEMORY, "date": day, **row, "links": links}, body)


def _name(memory: Memory, zone: ZoneInfo) -> str:
    """A unique name: the date, the first words, and a digest of the key, such as `2025-10-30 its first words 0a1b2c3d4e`."""
    return f"{memory.event_time.astimezone(zone):%Y-%m-%d} {_title(memory.content)} {digest(memory.key)}"


def _title(content: str) -> str:
    return _safe(content[: TITLE_CHARACTERS * 4], TITLE_CHARACTERS) or "…"


def _safe_label(label: str) -> str:
    """A file name that is unique for the label, also on file systems that ignore case."""
    safe = _safe(label, LABEL_CHARACTERS)
    is_plain = safe == label == label.casefold() and (len(label) >= SHORT_NAME or not label.isascii())
    return safe if is_plain else f"{safe} {digest(label)}".strip()


def _safe(text: str, characters: int) -> str:
    return _UNSAFE.sub(" ", unicodedata.normalize("NFC", text)).strip(". ")[:characters].strip(". ")
