"""Reads text files: each paragraph becomes a memory, split where it exceeds the size of one chunk.

Rows are dated by the modification time of the file. A paragraph is recognized again by its content and its file, and its number among equal ones.
"""

import codecs
import csv
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath

from memory_mcp.characters import not_utf8
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LABEL_LIMIT
from memory_mcp.language.privacy.secrets import PRIVATE_KEY, private_keys
from memory_mcp.language.sentences import CHUNK_CHARACTERS, split
from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.transfer.formats.import_rows import ImportItem, Row, key_of, storable
from memory_mcp.transfer.formats.json_stream import each_file, ends_in
from memory_mcp.transfer.formats.sources import Source, check_kind, whole
from memory_mcp.transfer.formats.written_times import day_in_title

FORM = "text"
PIECE_CHARACTERS = CHUNK_CHARACTERS
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown"})
# Of a cell of a table; without an end, an open quotation mark makes one of the rest of the file.
CELL_CHARACTERS = 1_000_000
# What a text seems to be in, which is read only if it has kana: Chinese and Korean texts seem to be in EUC-JP, too.
_SEEMING = {"ISO-2022-JP": "iso2022_jp_ext", "EUC-JP": "euc_jp"}
_KANA = re.compile("[ぁ-ヺ]")
_LEAST_KANA = 0.3
# How many characters beyond ASCII tell it, so that a text is read as its beginning was.
_TELLING = 10_000
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

# A code fence that is closed is one block, whatever blank lines it has.
_FENCE_OR_BLANK_LINES = re.compile(
    r"(?P<fence>^[ \t]{0,3}(?P<marks>```++|~~~++).*+(?:\n(?![ \t]{0,3}(?P=marks)).*+)*+\n[ \t]{0,3}(?P=marks)[`~]*+[ \t]*+$)|\n\s*\n",
    re.MULTILINE,
)
_HEADING = re.compile(r"#{1,6} ")
_ID_OF_NOTION = re.compile(r"(?<=\S) [0-9a-f]{32}\Z")


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  a text has no authors
    """Yields a row for each paragraph of the text files. A single file is always taken for one."""
    yield from each_file(source, lambda name: _read_file(source, name), ends_in(*TEXT_SUFFIXES))


def table_rows(lines: Iterable[str], name: str, separator: str = ",") -> Iterator[list[str]]:
    """The rows of a table in CSV.

    Raises:
        InvalidInput: a line is no row, or a cell is longer than `CELL_CHARACTERS`.
    """
    csv.field_size_limit(CELL_CHARACTERS)
    reader, begun = csv.reader(lines, delimiter=separator), 1
    try:
        for row in reader:
            yield row
            begun = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInput(
            "{} can't be read", "its line {} is no row of a table", "Save it again, with every quotation mark closed", name, begun
        ) from error


def title_of(name: str) -> str:
    """The name of a file without its folders, its ending and the id that Notion writes behind the title of a page."""
    return _ID_OF_NOTION.sub("", PurePosixPath(name).stem)


def file_fields(name: str, changed: datetime) -> Row:
    """The fields that a file's name and time give. All pieces share a session, so that search sees each with its neighbors."""
    title = title_of(name)
    day = day_in_title(unicodedata.normalize("NFC", title)) or _day_of_folders(name)
    changed_at = changed.astimezone(UTC).isoformat(timespec="seconds")
    row = {"source": title[:LABEL_LIMIT], "session_id": name[-LABEL_LIMIT:], "kind": "fact", "created_at": changed_at}
    return {**row, **({"occurred_at": day} if day else {})}


def _day_of_folders(name: str) -> str | None:
    """The day of a note that its folders and its name give together: 日記/2019/10/07.md."""
    *_, year, month, day = ("", "", "", *name.rpartition(".")[0].split("/"))
    numbers = [re.findall(r"\d+", part)[-1:] for part in (year, month, day)]
    return day_in_title("-".join(number for found in numbers for number in found)) if re.fullmatch(r"\d{4}年?", year) else None


def pieces(text: str) -> Iterator[str]:
    """The whole text if it fits into one piece, otherwise pieces of as many whole paragraphs as fit."""
    gathered = ""
    for paragraph in paragraphs(text):
        for part in _cut(paragraph):
            if gathered and len(gathered) + len(part) + 2 > PIECE_CHARACTERS:
                yield gathered
                gathered = ""
            gathered = f"{gathered}\n\n{part}" if gathered else part
    if gathered:
        yield gathered


def paragraphs(text: str) -> list[str]:
    """The blocks that blank lines separate; a heading stays with the block after it.

    A private key is one block, whatever it holds: the server redacts it whole, and couldn't recognize its parts.
    """
    keys = list(private_keys(text)) if PRIVATE_KEY in text else []
    if keys:
        ends = [0, *(end for _, end in keys)]
        between = [text[end:start] for end, (start, _) in zip(ends, keys, strict=False)]
        blocks_so_far = [
            block for before, (start, end) in zip(between, keys, strict=True) for block in [*paragraphs(before), text[start:end]]
        ]
        return [*blocks_so_far, *paragraphs(text[keys[-1][1] :])]
    blocks: list[str] = []
    headings: list[str] = []
    for block in _blocks(text):
        lines = block.strip("\n")
        if all(map(_HEADING.match, lines.split("\n"))):
            headings.append(lines)
        elif lines.strip() or headings:
            blocks.append("\n".join([*headings, lines]))
            headings = []
    return [*blocks, "\n".join([*headings, ""])] if headings else blocks


def _blocks(text: str) -> Iterator[str]:
    begun = 0
    for found in _FENCE_OR_BLANK_LINES.finditer(text):
        if not found["fence"]:
            yield text[begun : found.start()]
            begun = found.end()
    yield text[begun:]


def _cut(paragraph: str) -> list[str]:
    if PRIVATE_KEY in paragraph:
        return [paragraph]
    return [paragraph[piece.start : piece.end] for piece in split(paragraph, PIECE_CHARACTERS, overlap=0)]


def decoded(data: bytes, name: str) -> str:
    """Decodes UTF-8, UTF-16 with a byte order mark, or a Japanese encoding.

    Raises:
        InvalidInput: the data is in none of these encodings.
    """
    check_kind(data, name)
    if read := _read_as(data, is_whole=True):
        return read[1]
    raise not_text(name)


def not_text(name: str) -> InvalidInput:
    return InvalidInput("{} is not text in UTF-8, UTF-16 or a Japanese encoding", "", "Save it as UTF-8", name)


def encoding_of(head: bytes) -> str | None:
    """The encoding of a text that begins with these bytes, the last character of which may be cut off; None if it is no text."""
    read = _read_as(head)
    return read[0] if read else None


def decoded_head(head: bytes) -> str:
    """The text that a file begins with; empty if it is no text."""
    read = _read_as(head)
    return read[1] if read else ""


def _read_as(data: bytes, *, is_whole: bool = False) -> tuple[str, str] | None:
    """The encoding and the text. Japanese files that are not UTF-8 nearly always come from older Windows programs."""
    seeming = _SEEMING.get((not_utf8(data) or (0, ""))[1], "")
    order = ("utf-16",) if data[:2] in UTF_16_MARKS else (*filter(None, (seeming,)), "utf-8-sig", "cp932")
    for encoding in order:
        with suppress(UnicodeDecodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(data, final=is_whole)
            telling = "".join(islice((one for one in text if one > "\x7f"), _TELLING)) if encoding == "euc_jp" else ""
            if len(_KANA.findall(telling)) >= _LEAST_KANA * len(telling):
                return encoding, text
    return None


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    for whole_or_line in (text, text.lstrip().partition("\n")[0]):
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(whole_or_line), dict | list)
    return False


def _read_file(source: Source, name: str) -> Iterator[ImportItem]:
    if PurePosixPath(name).suffix.lower() == ".json":
        yield ImportItem(name, refused=str(InvalidInput("{} is not read as a text", "it is JSON", "Choose another format", name)))
        return
    text = storable(decoded(whole(source, name), name).replace("\r\n", "\n").replace("\r", "\n"))
    fields = file_fields(name, source.changed(name))
    if _is_json(text):
        yield ImportItem(name, refused="It is JSON, no text. Name its format, or leave it out.")
        return
    numbers = Counter[str]()
    for paragraph in paragraphs(text):
        for part in _cut(paragraph):
            if content := part.strip():
                numbers[content] += any(map(str.isalnum, content))
                # Those that are said again; what has no word, such as a line of stars, is stored once.
                key = {"key": key_of(FORM, name, content, str(numbers[content]))} if numbers[content] > 1 else {}
                yield ImportItem(name, {**key, "content": content, **fields, "metadata": {ORIGIN: {"format": FORM, "file": name}}})
