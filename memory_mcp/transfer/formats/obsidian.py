"""An Obsidian vault as rows for an import: our own notes with every field that an export wrote, anybody else's with what they say.

A note of ours is known by the key in its front matter, wherever it was moved and however it was renamed; another one by its
path. What was edited becomes a revision of the same memory. A note is one memory as long as it is no longer than
`PIECE_CHARACTERS`, otherwise one for each piece.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.deduplication import NOTES, ORIGIN
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, Report, Row, storable
from memory_mcp.transfer.formats.obsidian_notes import FOR_READERS, INDEX, MARK, Note, links_in, note_of, tags_in
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.formats.text_files import decoded, happened_at, pieces, told_by_file
from memory_mcp.transfer.line_fields import FIELDS, VERSION_FIELDS
from memory_mcp.transfer.other_lines import CONTEXT, PIECES, VERSION

SUFFIX = ".md"
LINKS_KEPT = 100


def read(source: Source, report: Report) -> Iterator[ImportItem]:
    """The notes in the order of their paths. What an import can do without, such as a front matter that is none, is reported."""
    for name in source.names():
        if PurePosixPath(name).suffix.lower() != SUFFIX:
            continue
        try:
            note = note_of(decoded(whole(source, name), name))
        except InvalidInput as error:
            yield ImportItem(name, refused=str(error))
            continue
        if note.fields is None:
            report(f"{name}: its front matter can't be read and stays in the text")
        if note.mark is None:
            yield from _foreign(source, name, note)
        elif note.mark != INDEX:
            yield _own(name, note)


def _own(name: str, note: Note) -> ImportItem:
    fields = dict(note.fields or {})
    if CONTEXT in fields:
        return ImportItem(name, {CONTEXT: fields[CONTEXT]})
    known = VERSION_FIELDS if VERSION in fields else FIELDS
    kept = {field: value for field, value in fields.items() if field in known}
    if not kept.keys() & {"key", VERSION}:
        return ImportItem(
            name, refused=f"Its front matter says {MARK} and has no key. Take that line out, and the note is stored as a new one."
        )
    if isinstance(kept.get("tags"), list | str):
        kept["tags"] = kept["tags"] if isinstance(kept["tags"], list) else [kept["tags"]]
        kept["tags"] = [str(tag) for tag in kept["tags"]]  # an editor writes 2025 without quotes
    return ImportItem(name, {**kept, "content": note.body.removesuffix("\n")})


def _foreign(source: Source, name: str, note: Note) -> Iterator[ImportItem]:
    fields, body = note.fields or {}, storable(note.body)
    told = {**told_by_file(PurePosixPath(name).stem, source.changed(name), name), **_told_by_note(fields, body)}
    stem = import_rows.key_of(NOTES, source.label, name)
    links = links_in(body)[:LINKS_KEPT]
    about = {"format": NOTES, "vault": source.label, "note": name, **({"links": links} if links else {})}
    place = 0
    for piece in pieces(body):
        if piece.strip():
            row: Row = {"key": f"{stem}_{place}", "content": piece.strip(), **told, "metadata": {**_further(fields), ORIGIN: about}}
            yield ImportItem(name, row)
            place += 1
    yield ImportItem(name, {PIECES: stem, "pieces": place})


def _told_by_note(fields: Mapping[str, Any], body: str) -> Row:
    said = fields.get("tags", fields.get("tag", []))
    listed = said if isinstance(said, list) else str(said).replace("、", ",").split(",")
    tags = sorted(import_rows.tags([*listed, *tags_in(body)]))
    written = next((day for day in (fields.get("date"), fields.get("created")) if isinstance(day, str)), "")
    return {**({"tags": tags} if tags else {}), **happened_at(written.strip())}


def _further(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What else the front matter says, kept as it is."""
    rest = {name: value for name, value in fields.items() if name not in {"tags", "tag", "date", "created"} | FOR_READERS - {"aliases"}}
    return {"front_matter": rest} if rest else {}
