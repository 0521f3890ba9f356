"""A persona's memories as an Obsidian vault: a note for each, and a note for each day, session and speaker that lists them.

What links a memory stands in its front matter, so that the text of a note is what the memory says and nothing else.
"""

import hashlib
import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.domain import Memory, Stated
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, versions
from memory_mcp.store.graph import relations, visibility
from memory_mcp.transfer.formats.obsidian_notes import INDEX, MARK, MEMORY, written
from memory_mcp.transfer.jsonlines import EXPORT_PAGE, ExportOptions, row_of, row_of_version
from memory_mcp.transfer.other_lines import CONTEXT

TITLE_CHARACTERS = 32
LABEL_CHARACTERS = 48
SHORT_NAME = 5  # no shorter name is taken as it is: Windows has devices such as CON and COM1
BLOCK_BYTES = 256 * 1024
EARLIEST_IN_ZIP = datetime(1980, 1, 1, tzinfo=UTC)

_UNSAFE = re.compile(r'[\\/:*?"<>|#^\[\]%\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]+')


@dataclass(frozen=True, slots=True)
class File:
    """A note in a vault: its path, its text, and when it was changed."""

    path: str
    text: str
    changed: datetime


Entry = tuple[datetime, str, str]  # when it happened, the name of its note, and its first words


class _Lists:
    """The notes that list others. Of each memory they keep some hundred bytes until the end."""

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
            yield File(f"{path}.md", written({MARK: INDEX, "title": self._titles[path]}, "\n".join(lines)), max(entries)[0])


class _Sink(io.RawIOBase):
    """What a zip is written to; taken away block by block."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        self._written += block
        return len(block)

    def taken(self, least: int = 0) -> bytes:
        if len(self._written) < least:
            return b""
        block, self._written = bytes(self._written), bytearray()
        return block


def archive(persona: Persona, leaving: ExportOptions, zone: ZoneInfo) -> Iterator[bytes]:
    """The vault as a zip, block by block."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for file in files(persona, leaving, zone):
            stamp = max(file.changed, EARLIEST_IN_ZIP).astimezone(zone).timetuple()[:6]
            info = zipfile.ZipInfo(file.path, stamp)
            info.compress_type = zipfile.ZIP_DEFLATED
            zip_file.writestr(info, file.text.encode())
            if block := sink.taken(BLOCK_BYTES):
                yield block
    yield sink.taken()


def files(persona: Persona, leaving: ExportOptions, zone: ZoneInfo) -> Iterator[File]:
    """The notes of a vault. Days are those of `zone`."""
    lists = _Lists()
    last = 0
    if leaving.context and persona.exists:
        yield File("persona.md", written({MARK: MEMORY, CONTEXT: persona.context.read()}, ""), EARLIEST_IN_ZIP)
    with persona.database.read() as connection:
        called = visibility.export_names(connection, leaving.deleted, leaving.secret)
    while True:
        with persona.database.read() as connection:
            page = memories.page_for_export(connection, last, EXPORT_PAGE, leaving.deleted, leaving.secret)
            former = memories.by_keys(connection, [memory.supersedes for memory in page if memory.supersedes])
            earlier = {
                memory.key: versions.for_export(connection, memory.key, leaving.secret)
                for memory in page
                if leaving.versions and memory.revision > 1
            }
            stated = relations.stated_in(connection, [memory.id for memory in page], called)
        if not page:
            break
        # The name of a note has its first words in it: one that stays here must not be named by another.
        replaced = {key: memory for key, memory in former.items() if leaving.takes(memory)}
        for memory in page:
            name = _name(memory, zone)
            yield File(_path(memory, name), _text(memory, stated.get(memory.id, ()), replaced, lists, zone), memory.updated_at)
            for version in earlier.get(memory.key, []):
                row = row_of_version(version)
                body = row.pop("content")
                text = written({MARK: MEMORY, **row, "links": [f"[[{name}]]"]}, body)
                yield File(f"versions/{name} r{version.revision}.md", text, version.updated_at)
        last = page[-1].id
    yield from lists.files(zone)


def _text(memory: Memory, stated: Sequence[Stated], replaced: Mapping[str, Memory], lists: _Lists, zone: ZoneInfo) -> str:
    name, row = _name(memory, zone), row_of(memory, stated)
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
    return written({MARK: MEMORY, "date": day, **row, "links": links}, body)


def _path(memory: Memory, name: str) -> str:
    return f"trash/{name}.md" if memory.deleted_at else f"memories/{name[:7]}/{name}.md"


def _name(memory: Memory, zone: ZoneInfo) -> str:
    """`2025-10-30 its first words 0a1b2c3d4e`: the day, and what no other memory has."""
    return f"{memory.event_time.astimezone(zone):%Y-%m-%d} {_title(memory.content)} {_digest(memory.key)}"


def _title(content: str) -> str:
    return _safe(content[: TITLE_CHARACTERS * 4], TITLE_CHARACTERS) or "…"


def _safe_label(label: str) -> str:
    """A file name that no other label has, on a disk that doesn't tell capitals either."""
    safe = _safe(label, LABEL_CHARACTERS)
    is_plain = safe == label == label.casefold() and (len(label) >= SHORT_NAME or not label.isascii())
    return safe if is_plain else f"{safe} {_digest(label)}".strip()


def _safe(text: str, characters: int) -> str:
    return _UNSAFE.sub(" ", unicodedata.normalize("NFC", text)).strip(". ")[:characters].strip(". ")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
