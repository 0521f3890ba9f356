"""Detects the format of a file, directory or zip from its content, and reads it with the reader that the table of formats has for it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from memory_mcp.errors import InvalidInput
from memory_mcp.store.legacy import lines
from memory_mcp.store.legacy.foreign_schemas import OWNERS_LISTED
from memory_mcp.transfer.formats import (
    ZIP_SUFFIX,
    Format,
    characters,
    claude,
    discord,
    documents,
    gemini,
    mem0,
    obsidian,
    slack,
    tables,
    text_files,
)
from memory_mcp.transfer.formats.import_rows import TOO_DEEP, ImportItem, ReadOptions, Report, Row
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, is_zip, source_of
from memory_mcp.transfer.formats.table import ROWS, TABLE, database
from memory_mcp.transfer.line_fields import is_too_deep

# Of a folder or a zip, so many files are looked at.
FILES_LOOKED_AT = 20
FILES_NAMED = 5


def by_persona(
    path: Path, kind: Format, options: ReadOptions, report: Report, persona: str | None
) -> list[tuple[str | None, Iterator[ImportItem]]]:
    """The rows of a path, with the persona to import them into: the given one, or the owners that a database names.

    Raises:
        InvalidInput: a database has several owners, and the persona is none of them.
    """
    owners = lines.owners(path) if kind is Format.DATABASE else ()
    if not owners:
        return [(persona, ROWS[kind].read(path, options, report))]
    if persona is None:
        return [(owner, database(path, owner)) for owner in owners]
    if len(owners) > 1 and persona not in owners:
        raise InvalidInput(
            "{} contains the memories of several, such as {}",
            "{} is none of them",
            "Name one of them with --persona, or none to import each into the persona of its name",
            path.name,
            ", ".join(owners[:OWNERS_LISTED]),
            repr(persona),
        )
    return [(persona, database(path, persona if persona in owners else owners[0]))]


_LOOKED_AT = frozenset({".json", ".jsonl", ".ndjson", ".csv", *gemini.PAGES, *text_files.TEXT_SUFFIXES})
_PICTURES = frozenset(".jpg .jpeg .webp .gif .bmp .heic .avif .tif .tiff".split())
# As what else programs save what is in files of other kinds.
_SAVED_OTHERWISE = {
    ".xls .xlsb .ods .numbers": ".xlsx or .csv",
    ".doc .odt .rtf .pages .wps .jtd": ".docx or .pdf",
    ".ppt .odp .key": ".pptx or .pdf",
    ".mobi .azw .azw3 .kfx": ".epub",
    ".7z .rar .tar .gz .tgz .xz .lzh": ".zip",
}
_DIRECTORY_FORMATS = (Format.OBSIDIAN, Format.SLACK)


def detect_format(path: Path, requested: Format = Format.AUTO) -> Format:
    """The requested format, or with `AUTO` the format detected from the names and first bytes at a path.

    Raises:
        InvalidInput: the path does not exist, can't have the requested format, or has none that is recognized.
    """
    if not path.exists():
        raise InvalidInput("{} does not exist", "", "Check the path", path)
    if not (path.is_file() or path.is_dir()):
        raise InvalidInput("{} is no file", "an import reads it twice", "Write what it holds into a file", path)
    if requested is not Format.AUTO:
        needs_file = requested in (Format.JSON_LINES, Format.DATABASE, Format.MCP_MEMORY)
        if path.is_dir() and needs_file:
            raise InvalidInput("{} can't be read as {}", "it is a directory", "Choose another --format", path.name, requested)
        if path.is_file() and requested in _DIRECTORY_FORMATS and path.suffix.lower() not in {ZIP_SUFFIX, obsidian.SUFFIX}:
            raise InvalidInput(
                "{} can't be read as {}", "it is a file", "Name a directory or a zip, or choose another --format", path.name, requested
            )
        return requested
    many = source_of(path) if path.is_dir() or is_zip(path) else None
    detected = _of_many(many, path) if many else _of_file(path)
    if detected is None and many:
        _refuse_files(many.names(), path)
    if detected is None:
        _refuse_kind(path)
        raise InvalidInput(
            "the format of {} is not recognized",
            "it is none of {}",
            "Name its format with --format, or save what is in it as a text",
            path.name,
            ", ".join(row.format for row in TABLE),
        )
    return detected


def _refuse_files(names: list[str], path: Path) -> None:
    """Raises InvalidInput, which names the first of the files in a folder or a zip."""
    if not names:
        raise InvalidInput("{} holds nothing to import", "it is empty", "Check the path", path.name)
    raise InvalidInput(
        "the format of {} is not recognized",
        "it holds {}",
        "Import its files one by one, or name their format with --format",
        path.name,
        ", ".join([*names[:FILES_NAMED], *(["…"] if len(names) > FILES_NAMED else [])]),
    )


def _refuse_kind(path: Path) -> None:
    """Raises InvalidInput if it is clear of which kind a file is that is not read, and in which form it would be."""
    suffix = path.suffix.lower()
    if suffix in _PICTURES:
        raise InvalidInput(
            "{} is not read",
            "of pictures only PNG and WebP files with a character card are read",
            "Save the card as PNG or JSON with the program that it is from",
            path.name,
        )
    if others := next((others for suffixes, others in _SAVED_OTHERWISE.items() if suffix in suffixes.split()), ""):
        raise InvalidInput("{} is not read", "files of the kind {} are not", "Save what is in it as {}", path.name, suffix, others)


def _of_many(source: Source, path: Path) -> Format | None:
    names = source.names()
    base_names = {PurePosixPath(name).name for name in names}
    conversations = [name for name in names if CONVERSATIONS.fullmatch(name)]
    for name in (*conversations[:1], *(name for name in names if conversations and claude.FILES.fullmatch(name))):
        if format_ := _of_head(Head(source, name)):
            return format_
    by_names = {
        Format.SLACK: "users.json" in base_names and any(map(slack.DAY_FILE.fullmatch, names)),
        Format.DISCORD: any(map(discord.PACKAGE_FILE.search, names)),
        Format.MEM0: mem0.PACKED in base_names,
        Format.CHARACTER: characters.ZIP_ENTRY in names,
    }
    if told := next((kind for kind, is_told in by_names.items() if is_told), None):
        return told
    suffixes = {PurePosixPath(name).suffix.lower() for name in names}
    if obsidian.SUFFIX in suffixes:
        return Format.OBSIDIAN
    plain = _plain(suffixes, is_folder=path.is_dir())
    return _of_most(source, names, plain) or plain


def _plain(suffixes: set[str], *, is_folder: bool) -> Format | None:
    """How files without a format of their own are read. The zip of a program that isn't known may hold a README: only one of documents and tables, with
    nothing else in it that isn't read, is read without the name of its format."""
    if not is_folder and suffixes - documents.SUFFIXES - tables.SUFFIXES - _PICTURES - {".png"}:
        return None
    if is_folder and suffixes & text_files.TEXT_SUFFIXES:
        return Format.TEXT
    if suffixes & documents.OWN_SUFFIXES or (suffixes & text_files.TEXT_SUFFIXES and suffixes & tables.SUFFIXES):
        return Format.DOCUMENT
    return Format.CSV if suffixes & tables.SUFFIXES else None


def _of_most(source: Source, names: list[str], plain: Format | None) -> Format | None:
    """The format that most of the files have, of those with a format of their own; `plain` is that of the texts without one."""
    found: Counter[Format] = Counter()
    for name in [name for name in names if PurePosixPath(name).suffix.lower() in _LOOKED_AT][:FILES_LOOKED_AT]:
        try:
            kind = _of_head(Head(source, name))
        except InvalidInput:
            continue
        if kind and (kind is plain is Format.TEXT or not ROWS[kind].is_general):
            found[kind] += 1
    return max(found, key=found.__getitem__, default=None)


def _of_file(path: Path) -> Format | None:
    try:
        return _of_head(Head(source_of(path), path.name))
    except OSError as error:
        raise InvalidInput("{} can't be read", "{}", "Check the path and its permissions", path, error.strerror or str(error)) from error


def _of_head(head: Head) -> Format | None:
    """The format of a file; raises InvalidInput if it is called .json and is none."""
    return next((row.format for row in TABLE if row.recognizes(head)), None)


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
