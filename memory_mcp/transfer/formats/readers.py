"""Detects the format of a file, and of each file of a directory or zip, from its content, and reads it with the reader that the table of formats has for it.

A directory or zip is the export of a program, known by the names in it, or holds files of any formats, each of which is read by its own.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS, ends_in
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Selected, Source, is_zip, source_of
from memory_mcp.transfer.formats.table import ROWS, TABLE, database
from memory_mcp.transfer.line_fields import is_too_deep
from memory_mcp.wording import sentence

FILES_NAMED = 5


@dataclass(frozen=True, slots=True)
class FormatPart:
    """What of a path has one format: all of it, or some of the files in a directory or zip."""

    format: Format
    at: Path | Source


def by_persona(
    part: FormatPart, options: ReadOptions, report: Report, persona: str | None
) -> list[tuple[str | None, Iterator[ImportItem]]]:
    """The rows of a part of a path, with the persona to import them into: the given one, or the owners that a database names.

    Raises:
        InvalidInput: a database has several owners, and the persona is none of them.
    """
    path = part.at
    owners = lines.owners(path) if part.format is Format.DATABASE and isinstance(path, Path) else ()
    if not owners or not isinstance(path, Path):
        return [(persona, ROWS[part.format].read(path, options, report))]
    if persona is None:
        return [(owner, database(path, owner)) for owner in owners]
    if len(owners) > 1 and persona not in owners:
        raise InvalidInput(
            "{} contains the memories of several, such as {}",
            "{} is none of them",
            "Import it into a persona of one of these names, or with memory-mcp import without --persona each into its own",
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
    ".mht .mhtml .enex .webarchive": ".html or .pdf",
    ".mobi .azw .azw3 .kfx": ".epub",
    ".7z .rar .tar .gz .tgz .xz .lzh": ".zip",
}
_DIRECTORY_FORMATS = (Format.OBSIDIAN, Format.SLACK)
# Formats of files that are no export of a program. Beside such an export, and beside the notes in a zip, such pages are parts of it.
_OF_NO_PROGRAM = frozenset({Format.OBSIDIAN, Format.DOCUMENT, Format.CSV, Format.TEXT, Format.FACTS, None})
_ABOUT_EXPORT = re.compile(r"(?<![^/])(?:readme\.\w{1,5}|index\.html?)\Z", re.IGNORECASE)


def detect_format(path: Path, requested: Format = Format.AUTO) -> Format:
    """The format of a path; of a directory or zip with several that of its first part. Raises InvalidInput as `parts_of`."""
    return parts_of(path, requested)[0].format


def parts_of(path: Path, requested: Format = Format.AUTO) -> list[FormatPart]:
    """The path in the requested format, or with `AUTO` in the formats detected from the names and first bytes at it: the notes first, then what there is most of.

    Raises:
        InvalidInput: the path does not exist, can't have the requested format, or has none that is recognized.
    """
    if not path.exists():
        raise InvalidInput("{} does not exist", "", "Check the path", path)
    if not (path.is_file() or path.is_dir()):
        raise InvalidInput("{} is no file", "an import reads it twice", "Write what it holds into a file", path)
    if requested is not Format.AUTO:
        _check_requested(path, requested)
        return [FormatPart(requested, path)]
    if path.is_dir() or is_zip(path):
        source = source_of(path)
        if parts := _of_many(source, path):
            return parts
        _refuse_files(source.names(), path)
    if detected := _of_file(path):
        return [FormatPart(detected, path)]
    _refuse_kind(path)
    raise InvalidInput(
        "the format of {} is not recognized",
        "",
        "Choose its format (on the command line: --format), or save what is in it as a text",
        path.name,
    )


def _check_requested(path: Path, requested: Format) -> None:
    """Raises InvalidInput if the path can't have the format."""
    needs_file = requested in (Format.JSON_LINES, Format.DATABASE, Format.MCP_MEMORY)
    if path.is_dir() and needs_file:
        raise InvalidInput("{} can't be read in this format", "it is a directory", "Choose another format", path.name)
    if path.is_file() and requested in _DIRECTORY_FORMATS and path.suffix.lower() not in {ZIP_SUFFIX, obsidian.SUFFIX}:
        raise InvalidInput(
            "{} can't be read in this format", "it is a file", "Import a directory or a zip, or choose another format", path.name
        )


def _refuse_files(names: list[str], path: Path) -> None:
    """Raises InvalidInput, which names the first of the files in a folder or a zip."""
    if not names:
        raise InvalidInput("{} holds nothing to import", "it is empty", "Choose another one", path.name)
    raise InvalidInput(
        "the format of {} is not recognized",
        "it holds {}",
        "Import its files one by one, or choose their format (on the command line: --format)",
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
        raise InvalidInput(
            "{} is not read", "files of the kind {} are not", "Save what is in it as {}", path.name, suffix, sentence(others)
        )


def _of_many(source: Source, path: Path) -> list[FormatPart]:
    """The parts of a directory or zip. What is in no format is counted by the first of them, or by that of which other files end like it."""
    names = source.names()
    groups = _of_program(source, names) or _of_each(source, names, is_folder=path.is_dir())
    rest = [*(groups.pop(None, None) or ())]
    order = sorted((kind for kind in groups if kind), key=lambda kind: (kind is not Format.OBSIDIAN, -len(groups[kind])))
    if not order:
        return []
    if len(order) == 1:
        return [FormatPart(order[0], source)]
    endings = {PurePosixPath(groups[kind][0]).suffix.lower(): kind for kind in order if kind is not Format.CSV}
    for name in rest:
        groups[endings.get(PurePosixPath(name).suffix.lower(), order[0])].append(name)
    return [FormatPart(kind, Selected(source, groups[kind], is_first=kind is order[0])) for kind in order]


def _of_program(source: Source, names: list[str]) -> dict[Format | None, list[str]]:
    """The files of the export of a program that is known by the names in it, and the notes beside them; none if it is no such export."""
    base_names = {PurePosixPath(name).name for name in names}
    conversations = [name for name in names if CONVERSATIONS.fullmatch(name)]
    files = (*conversations[:1], *(name for name in names if conversations and claude.FILES.fullmatch(name)))
    kind = next(filter(None, (_of_head(Head(source, name)) for name in files)), None)
    by_names = {
        Format.SLACK: "users.json" in base_names and any(map(slack.DAY_FILE.fullmatch, names)),
        Format.DISCORD: any(map(discord.PACKAGE_FILE.search, names)),
        Format.MEM0: mem0.PACKED in base_names,
        Format.CHARACTER: characters.ZIP_ENTRY in names,
    }
    kind = kind or next((kind for kind, is_told in by_names.items() if is_told), None)
    is_note = ends_in(obsidian.SUFFIX)
    groups = {kind: [name for name in names if not is_note(name)], Format.OBSIDIAN: list(filter(is_note, names))} if kind else {}
    return {kind: found for kind, found in groups.items() if found}


def _of_each(source: Source, names: list[str], *, is_folder: bool) -> dict[Format | None, list[str]]:
    """The files by their own formats, those of none under None.

    What is beside a chat of a program that saves the files with it was sent there, and pages beside it show it again: they are no documents of their own.
    The zip of a program that isn't known may hold a README: documents and tables alone, with anything in it that isn't read, are read only by the name of
    their format.
    """
    groups = defaultdict[Format | None, list[str]](list)
    for name in names:
        groups[_in_folder(source, name, is_folder=is_folder)].append(name)
    if Format.OBSIDIAN in groups:  # tables of numbers are attachments of notes
        of_texts = {
            name: ends_in(tables.WORKBOOK)(name) or tables.header_at(Head(source, name).rows) is not None for name in groups[Format.CSV]
        }
        groups[None] += [name for name in of_texts if not of_texts[name]]
        groups[Format.CSV] = [name for name in of_texts if of_texts[name]]
    chats = [kind for kind in groups if kind and ROWS[kind].has_files]
    folders = {PurePosixPath(name).parent for kind in chats for name in groups[kind]} if is_folder else {PurePosixPath(".")}
    is_export = bool(groups.keys() - _OF_NO_PROGRAM) or (Format.OBSIDIAN in groups and not is_folder)
    is_page = ends_in(*documents.HTML_SUFFIXES)
    for kind in [kind for kind in (Format.DOCUMENT, Format.CSV, Format.TEXT) if kind in groups]:
        was_sent = {
            name: (is_export and _ABOUT_EXPORT.search(name))
            or (chats and (is_page(name) or not folders.isdisjoint(PurePosixPath(name).parents)))
            for name in groups[kind]
        }
        groups[chats[0] if chats else None] += [name for name in was_sent if was_sent[name]]
        groups[kind] = [name for name in was_sent if not was_sent[name]]
    if Format.CHARACTER in groups:
        groups[Format.CHARACTER] += groups.pop(Format.LOREBOOK, [])  # the entries of a book name the character
    found = {kind: sorted(names) for kind, names in groups.items() if names}
    if not is_folder and found.keys() <= {Format.DOCUMENT, Format.CSV, None}:
        is_read = ends_in(".png", *_PICTURES, *tables.SUFFIXES)
        has_texts_alone = Format.CSV not in found and all(map(ends_in(*text_files.TEXT_SUFFIXES), found.get(Format.DOCUMENT, ())))
        return {} if has_texts_alone or not all(map(is_read, found.get(None, ()))) else found
    return found


def _in_folder(source: Source, name: str, *, is_folder: bool) -> Format | None:
    """The format of a file among others. Markdown is a note; other texts are documents in a zip."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _LOOKED_AT:
        return Format.DOCUMENT if suffix in documents.SUFFIXES else Format.CSV if suffix in tables.SUFFIXES else None
    if suffix == obsidian.SUFFIX:
        return Format.OBSIDIAN
    try:
        head = Head(source, name)
        kind = _of_head(head)
    except InvalidInput:
        return None
    if kind is Format.TEXT and not is_folder:
        return Format.DOCUMENT
    return None if kind in (Format.JSON_LINES, Format.DATABASE) else kind


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
