"""Text files and Obsidian vaults as rows for an import: each row is what one line of JSON would say.

A text becomes one memory per paragraph, a note of a vault one memory as long as it is no longer than `PIECE_CHARACTERS`:
what one vector and one answer hold. Rows are dated by the file's last change, so that the same file read twice is known.
"""

import logging
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.drafts import LABEL_LIMIT, LIST_LIMIT
from memory_mcp.text.chunk import CHUNK_CHARACTERS, split

PIECE_CHARACTERS = CHUNK_CHARACTERS
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown"})

Row = dict[str, Any]
Report = Callable[[str], None]

_BLANK_LINES = re.compile(r"\n\s*\n")
_OF_EVERY_NOTE = frozenset({"source", "path", "created", "last_modified", "last_accessed"})
_HEADINGS_ONLY = re.compile(r"(?:#{1,6} [^\n]*\n?)+")
_DAY_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_.年]?(\d{2})[-_.月]?(\d{2})(?!\d)")
# Obsidian allows letters of every script in a tag and wants one that is no digit; the loader knows ASCII only.
_TAG = re.compile(r"(?:(?<=\s)|^)#([\w/-]*[^\W\d][\w/-]*)", re.MULTILINE)


def rows_of_text(path: Path, session: str | None = None) -> Iterator[Row]:
    """One row per paragraph; a heading stays with what follows it. `session` is the file's name unless told.

    Raises:
        InvalidInput: the file can't be read as text.
    """
    text, told = _read_text(path), _told_by_file(path, session or path.name)
    for paragraph in _paragraphs(text):
        for piece in split(paragraph, PIECE_CHARACTERS, overlap=0):
            yield from _row(paragraph[piece.start : piece.end], told)


def rows_of_texts(directory: Path, report: Report) -> Iterator[Row]:
    """The rows of every text file below a directory. One that can't be read is reported and left out."""
    for path in _files(directory, TEXT_SUFFIXES):
        try:
            yield from rows_of_text(path, path.relative_to(directory).as_posix())
        except InvalidInput as error:
            report(str(error))


def rows_of_vault(directory: Path, report: Report) -> Iterator[Row]:
    """The rows of an Obsidian vault, with its tags. A note that can't be read is reported and left out."""
    for path in _files(directory, frozenset({".md"})):
        try:
            text, metadata = _load_note(path)
        except (OSError, UnicodeDecodeError) as error:
            report(f"{path} can't be read: {error}")
            continue
        if metadata is None:
            report(f"{path}: its front matter can't be read and stays in the text")
        told = {**_told_by_file(path, path.relative_to(directory).as_posix()), **_told_by_note(metadata or {})}
        for piece in _pieces(text):
            yield from _row(piece, told)


def _row(content: str, told: Row) -> Iterator[Row]:
    if content.strip():
        yield {"content": content.strip(), **told}


def _told_by_file(path: Path, session: str) -> Row:
    """What a file's name and date say. Its pieces share a session, so that a search sees each beside its neighbours."""
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    named = _DAY_IN_NAME.search(path.stem)
    happened = _happened("-".join(named.groups())) if named else {}
    return {"source": path.stem[:LABEL_LIMIT], "session_id": session[-LABEL_LIMIT:], "kind": "fact", "created_at": changed, **happened}


def _told_by_note(metadata: Row) -> Row:
    named = {tag.strip(" #")[:LABEL_LIMIT] for tag in str(metadata.get("tags", "")).split(",")}
    tags = sorted(named - {""})[:LIST_LIMIT]
    written = next((day for day in (metadata.get("date"), metadata.get("created")) if isinstance(day, str)), "")
    return {**({"tags": tags} if tags else {}), **_happened(written)}


def _happened(text: str) -> Row:
    """`occurred_at` if the text is a day or a time in ISO form; a title such as 「20259999」 is none."""
    try:
        datetime.fromisoformat(text) if len(text) > 10 else date.fromisoformat(text)
    except ValueError:
        return {}
    return {"occurred_at": text}


def _files(directory: Path, suffixes: frozenset[str]) -> list[Path]:
    """In a stable order, without what programs keep for themselves (.obsidian, .trash, .git)."""
    found = (path for path in directory.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(directory).parts))


def _paragraphs(text: str) -> list[str]:
    paragraphs: list[str] = []
    headings = ""
    for block in _BLANK_LINES.split(text):
        whole = headings + block.strip("\n")
        if _HEADINGS_ONLY.fullmatch(whole):
            headings = f"{whole}\n"
        elif whole.strip():
            paragraphs.append(whole)
            headings = ""
    return [*paragraphs, headings] if headings else paragraphs


def _pieces(text: str) -> Iterator[str]:
    """The whole text if it is short enough, otherwise as many whole paragraphs at a time as are."""
    gathered = ""
    for paragraph in _paragraphs(text):
        for piece in split(paragraph, PIECE_CHARACTERS, overlap=0):
            part = paragraph[piece.start : piece.end]
            if gathered and len(gathered) + len(part) + 2 > PIECE_CHARACTERS:
                yield gathered
                gathered = ""
            gathered = f"{gathered}\n\n{part}" if gathered else part
    if gathered:
        yield gathered


def _read_text(path: Path) -> str:
    """UTF-8, UTF-16 with its mark, or the Shift JIS of older Japanese Windows: the first one that fits."""
    TextLoader, _ = _loaders()  # noqa: N806  a class
    try:
        marked = path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read", error.strerror or str(error), "Check the path and its permissions") from error
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "cp932"):
        try:
            return "\n".join(document.page_content for document in TextLoader(path, encoding=encoding).load())
        except RuntimeError as error:  # what TextLoader makes of every error
            if not isinstance(error.__cause__, UnicodeDecodeError):
                raise InvalidInput(f"{path} can't be read", str(error.__cause__ or error), "Check the file") from error
    raise InvalidInput(f"{path} is not text in UTF-8, UTF-16 or Shift JIS", "", "Save it as UTF-8")


def _load_note(path: Path) -> tuple[str, Row | None]:
    """A note's text without its front matter, and what that says; None when it can't be parsed, and is left in the text.

    The loader takes a directory and gives up at the first note it can't parse: alone in a directory of its own, one bad
    note can't take the others with it.
    """
    _, ObsidianLoader = _loaders()  # noqa: N806  a class
    with tempfile.TemporaryDirectory(prefix="memory-mcp-") as alone:
        shutil.copy2(path, Path(alone, "note.md"))
        (whole,) = ObsidianLoader(alone, encoding="utf-8-sig", collect_metadata=False).load()
        loader = ObsidianLoader(alone, encoding="utf-8-sig")
        loader.TAG_REGEX = _TAG
        try:
            (note,) = loader.load()
        except Exception:  # noqa: BLE001  whatever YAML and the loader raise at a front matter that is none
            return whole.page_content, None
    # Of some errors the loader says nothing, and drops the front matter.
    dropped = note.page_content != whole.page_content and _says_nothing(note.metadata)
    return (whole.page_content, None) if dropped else (note.page_content, note.metadata)


def _says_nothing(metadata: Row) -> bool:
    """Whether all of it comes from the file itself; a front matter may replace `source` and `created`."""
    of_the_file = metadata["source"] == "note.md" and isinstance(metadata["created"], float)
    return of_the_file and set(metadata) <= _OF_EVERY_NOTE


def _loaders() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package says on import that it is no longer maintained: we know
        # Only an import of documents needs them, and they take 0.7 s to come.
        from langchain_community.document_loaders import ObsidianLoader, TextLoader  # noqa: PLC0415
    # What it has to say of a note names no file; ours does.
    logging.getLogger("langchain_community.document_loaders.obsidian").setLevel(logging.ERROR)
    return TextLoader, ObsidianLoader
