"""Text files as rows for an import: one memory for each paragraph, as long as one vector and one answer hold.

Rows are dated by the file's last change. A paragraph is known again by what it says and by its file.
"""

import re
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.text.chunk import CHUNK_CHARACTERS, split
from memory_mcp.text.labels import LABEL_LIMIT
from memory_mcp.transfer.formats.import_rows import ImportItem, Row, storable
from memory_mcp.transfer.formats.sources import TEXT_LIMIT_BYTES

FORM = "text"
PIECE_CHARACTERS = CHUNK_CHARACTERS
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown"})
# The first one that fits. Japanese files that are no UTF-8 are those of older Windows programs, nearly always.
ENCODINGS = ("utf-8-sig", "cp932")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

_BLANK_LINES = re.compile(r"\n\s*\n")
_HEADINGS_ONLY = re.compile(r"(?:#{1,6} [^\n]*\n?)+")
_DAY_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_.年]?(\d{2})[-_.月]?(\d{2})(?!\d)")


def read(path: Path) -> Iterator[ImportItem]:
    """The paragraphs of a text file, or of every one below a directory."""
    if path.is_dir():
        for file in _files(path):
            yield from _read_file(file, file.relative_to(path).as_posix())
    else:
        yield from _read_file(path, path.name)


def told_by_file(stem: str, changed: datetime, session: str) -> Row:
    """What a file's name and date say. Its pieces share a session, so that a search sees each beside its neighbours."""
    named = _DAY_IN_NAME.search(stem)
    happened = happened_at("-".join(named.groups())) if named else {}
    day = changed.astimezone(UTC).isoformat(timespec="seconds")
    return {"source": stem[:LABEL_LIMIT], "session_id": session[-LABEL_LIMIT:], "kind": "fact", "created_at": day, **happened}


def happened_at(text: str) -> Row:
    """`occurred_at` if the text is a day or a time in ISO form; a title such as 「20259999」 is none."""
    try:
        datetime.fromisoformat(text) if len(text) > 10 else date.fromisoformat(text)
    except ValueError:
        return {}
    return {"occurred_at": text}


def pieces(text: str) -> Iterator[str]:
    """The whole text if it is short enough, otherwise as many whole paragraphs at a time as are."""
    gathered = ""
    for paragraph in paragraphs(text):
        for piece in split(paragraph, PIECE_CHARACTERS, overlap=0):
            part = paragraph[piece.start : piece.end]
            if gathered and len(gathered) + len(part) + 2 > PIECE_CHARACTERS:
                yield gathered
                gathered = ""
            gathered = f"{gathered}\n\n{part}" if gathered else part
    if gathered:
        yield gathered


def paragraphs(text: str) -> list[str]:
    """What blank lines separate; a heading stays with what follows it."""
    found: list[str] = []
    headings = ""
    for block in _BLANK_LINES.split(text):
        whole = headings + block.strip("\n")
        if _HEADINGS_ONLY.fullmatch(whole):
            headings = f"{whole}\n"
        elif whole.strip():
            found.append(whole)
            headings = ""
    return [*found, headings] if headings else found


def decoded(data: bytes, name: str) -> str:
    """A text in UTF-8, in UTF-16 with its mark, or in the Shift JIS of older Japanese Windows.

    Raises:
        InvalidInput: it is none of these.
    """
    for encoding in ("utf-16",) if data[:2] in UTF_16_MARKS else ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise _no_text(name)


def _read_file(path: Path, session: str) -> Iterator[ImportItem]:
    try:
        text, told = storable(_text(path)), told_by_file(path.stem, datetime.fromtimestamp(path.stat().st_mtime, UTC), session)
    except (InvalidInput, OSError) as error:
        yield ImportItem(session, refused=str(error))
        return
    for paragraph in paragraphs(text):
        for piece in split(paragraph, PIECE_CHARACTERS, overlap=0):
            content = paragraph[piece.start : piece.end].strip()
            if content:
                yield ImportItem(session, {"content": content, **told, "metadata": {ORIGIN: {"format": FORM, "file": session}}})


def _files(directory: Path) -> list[Path]:
    """In a stable order, without what programs keep for themselves (.git)."""
    found = (path for path in directory.rglob("*") if path.suffix.lower() in TEXT_SUFFIXES and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(directory).parts))


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            marked = file.read(2) in UTF_16_MARKS
    except OSError as error:
        raise InvalidInput(f"{path} can't be read", error.strerror or str(error), "Check the path and its permissions") from error
    if size > TEXT_LIMIT_BYTES:
        raise InvalidInput(f"{path} is too long", f"{TEXT_LIMIT_BYTES:,} bytes are the limit", "Split it")
    loader = _loader()
    for encoding in ("utf-16",) if marked else ENCODINGS:
        try:
            return "\n".join(document.page_content for document in loader(path, encoding=encoding).load())
        except RuntimeError as error:  # what TextLoader makes of every error
            if not isinstance(error.__cause__, UnicodeDecodeError):
                raise InvalidInput(f"{path} can't be read", str(error.__cause__ or error), "Check the file") from error
    raise _no_text(str(path))


def _no_text(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is not text in UTF-8, UTF-16 or Shift JIS", "", "Save it as UTF-8")


def _loader() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package says on import that it is no longer maintained: we know
        # Only an import of texts needs it, and it takes 0.7 s to come.
        from langchain_community.document_loaders import TextLoader  # noqa: PLC0415
    return TextLoader
