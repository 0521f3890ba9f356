"""Reads a file of any format in a process of its own: it parses, and sends the lines to store; it opens no store.

A file is read to count what it has, and, if that is too much to be kept meanwhile, again to send it. Whatever a file does to the process that reads it, the server goes on.
"""

import io
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import apsw

from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.documents import SCANS
from memory_mcp.transfer.formats.import_rows import NO_OPTIONS, ImportItem, KindCount, LeftOut, ReadOptions
from memory_mcp.transfer.formats.readers import FormatPart, by_persona, forgetting, json_line, parts_of, without_deep_row
from memory_mcp.transfer.line_fields import LINE_LIMIT_BYTES
from memory_mcp.wording import clauses, sentence, shortened
from memory_mcp.worker_processes import answer_server

# Nothing of a file takes so long to read, up to the next entry, on a machine that has much else to do.
LIMIT_SECONDS = 300
# The largest JSON that is read as a whole has 128 million characters.
MEMORY_LIMIT_BYTES = 1536 * 1024 * 1024
SQLITE_LIMIT_BYTES = 256 * 1024 * 1024
PART_LINES, PART_BYTES, PART_SECONDS = 200, 2 * 1024 * 1024, 1.0
PLACE_LIMIT, REASON_LIMIT = 300, 1_000
# So much of what was counted is kept.
KEPT_BYTES = 32 * 1024 * 1024
_GRACE_SECONDS = 5

# A line to store, or the reason why there is none, with its place in the file.
Placed = tuple[str, bytes]
Refused = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to read, and for whom."""

    path: Path
    format: Format
    persona: str
    options: ReadOptions = NO_OPTIONS
    forget_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Recognized:
    """How the file is read, or the files in it that come next."""

    format: Format


@dataclass(frozen=True, slots=True)
class Counted:
    """How many lines it has."""

    lines: int


@dataclass(slots=True)
class Part:
    """What was read meanwhile; nothing while the lines are counted. `notes` are sentences about defects that don't prevent an import."""

    lines: list[Placed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class End:
    """All was read; `left_out` says what of it was left out, as `left_out_kinds` does by kind."""

    left_out: str = ""
    left_out_kinds: tuple[KindCount, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be read: the `refusal`, or a failure in a few words with its `trace` for the log."""

    refusal: MemoryMCPError | None = None
    failure: str = ""
    trace: str = ""


Answer = Recognized | Counted | Part | End | Failed


def answers(asked: Asked, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> Iterator[Answer]:
    """What there is to tell of a file, in order; the last one is `End` or `Failed`."""
    try:
        of_formats = parts_of(asked.path, asked.format)
        yield Recognized(of_formats[0].format)
        count = unreadable = size = 0
        kept, left_out = list[Recognized | Part](), LeftOut()
        for part in _parts(asked, of_formats, left_out):
            if isinstance(part, Part):
                count, unreadable = count + len(part.lines), unreadable + len(part.refused)
                size += sum(len(place) + len(read) for place, read in (*part.lines, *part.refused))
                yield Part()
            if size > KEPT_BYTES:
                kept.clear()
            else:
                kept.append(part)
        if not count and not unreadable:
            yield Failed(_nothing_in(left_out))
            return
        yield Counted(count)
        if size > KEPT_BYTES:
            left_out = LeftOut()
            yield from _parts(asked, of_formats, left_out)
        else:
            yield from kept
        yield End(left_out.sentence(), tuple(left_out.kinds()))
    except MemoryMCPError as error:
        yield Failed(error)
    except (MemoryError, apsw.NoMemError):
        limit = memory_limit_bytes // 1024**2
        yield Failed(InvalidInput("the file can't be read", "that takes more than {} MiB of memory", "Split it", f"{limit:,}"))
    except RecursionError:
        yield Failed(InvalidInput("the file can't be read", "something in it is nested too deeply", "Take it out"))
    except Exception as error:  # noqa: BLE001  whatever it is, the server says that it was not foreseen
        yield Failed(None, "".join(traceback.format_exception_only(error)).strip(), traceback.format_exc())


def _nothing_in(left_out: LeftOut) -> InvalidInput:
    if kinds := [sentence("{}: {}", sentence(counted.kind), counted.count) for counted in left_out.kinds()]:
        if all(counted.kind != SCANS for counted in left_out.kinds()):
            return InvalidInput("the file has nothing to import", "all of it is left out: {}", "", clauses(kinds))
        return InvalidInput(
            "the file has nothing to import", "all of it is left out: {}", "Of scans, make texts first (OCR)", clauses(kinds)
        )
    return InvalidInput("the file has nothing to import", "read in its format, it has no text", "Choose another format")


def _parts(asked: Asked, of_formats: list[FormatPart], left_out: LeftOut) -> Iterator[Recognized | Part]:
    """What is read of a file, in parts, after the format of those that have it."""
    for of_format in of_formats:
        yield Recognized(of_format.format)
        yield from _parts_of_format(asked, of_format, left_out)


def _parts_of_format(asked: Asked, of_format: FormatPart, left_out: LeftOut) -> Iterator[Part]:
    """The parts: often enough that the server sees that it goes on, and no more at once than it stores at once."""
    part, size, begun = Part(), 0, time.monotonic()
    is_sent_as_it_is = of_format.format is Format.JSON_LINES
    for entry in _json_lines(asked.path) if is_sent_as_it_is else _items(asked, of_format, part.notes):
        if isinstance(entry, tuple):
            part.lines.append(entry)
            size += len(entry[1])
        elif entry.left_out:
            left_out.add(entry)
        else:
            part.refused.append((shortened(entry.where, PLACE_LIMIT), shortened(entry.refused, REASON_LIMIT)))
        if len(part.lines) + len(part.refused) >= PART_LINES or size >= PART_BYTES or time.monotonic() - begun > PART_SECONDS:
            yield Part(part.lines, part.refused, part.notes[:])
            part.lines, part.refused, size, begun = [], [], 0, time.monotonic()
            part.notes.clear()
    yield part


def _items(asked: Asked, of_format: FormatPart, notes: list[str]) -> Iterator[Placed | ImportItem]:
    """The lines of the rows of a file, and its other items."""
    (_, items), *_ = by_persona(of_format, asked.options, notes.append, asked.persona)
    for item in map(without_deep_row, forgetting(items) if asked.forget_deleted else items):
        yield item if item.row is None else (shortened(item.where, PLACE_LIMIT), json_line(item.row)[: LINE_LIMIT_BYTES + 1])


def _json_lines(path: Path) -> Iterator[Placed]:
    """The lines that are not blank. Of a line beyond the limit one byte too many is kept, so that it is refused."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_LIMIT_BYTES + 2):
            number += 1
            if line.isspace() and (line.endswith(b"\n") or not file.peek(1)):
                number += _skip_blank_lines(file)
                continue
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(LINE_LIMIT_BYTES)
            yield sentence("line {}", number), line.rstrip(b"\r\n")[: LINE_LIMIT_BYTES + 1]


def _skip_blank_lines(file: io.BufferedReader) -> int:
    """Skips the blank lines that come next, as far as they are in the buffer: a file may hold many millions. Returns how many."""
    buffered = file.peek()
    blank = buffered[: len(buffered) - len(buffered.lstrip())]
    return file.read(blank.rfind(b"\n") + 1).count(b"\n")


def _limit_memory(limit_bytes: int) -> None:
    apsw.hard_heap_limit(SQLITE_LIMIT_BYTES)
    if sys.platform == "linux":  # macOS has the limit and ignores it
        import resource  # noqa: PLC0415  Windows has none

        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main(memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
    """Answers until the server has gone."""
    _limit_memory(memory_limit_bytes)
    answer_server(partial(answers, memory_limit_bytes=memory_limit_bytes), LIMIT_SECONDS + _GRACE_SECONDS)
