"""Reads an Obsidian vault: notes that an export wrote, with all their fields, and any other notes.

An exported note is identified by the key in its front matter, even if it was moved or renamed; any other note by its path.
An edited note becomes a revision of its memory. A note of up to `PIECE_CHARACTERS` is one memory, a longer one is split
into pieces. The last line names the vault: by it, the server finds the memories of notes that are no longer there.
Of exported notes it knows those that a list names and that are nowhere in the vault.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.deduplication import NOTES, ORIGIN
from memory_mcp.transfer.formats import import_rows, playbook
from memory_mcp.transfer.formats.import_rows import ImportItem, Report, Row, storable
from memory_mcp.transfer.formats.obsidian_notes import (
    INDEX,
    MARK,
    READER_FIELDS,
    Note,
    digest,
    digests_in,
    is_template,
    links_in,
    parse_note,
    tags_in,
    with_short_links,
    without_comments,
)
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.formats.text_files import decoded, file_fields, pieces
from memory_mcp.transfer.formats.written_times import day_in_title, written_time
from memory_mcp.transfer.line_fields import FIELDS, VERSION_FIELDS
from memory_mcp.transfer.non_memory_lines import CONTEXT, PIECES, VAULT, VERSION
from memory_mcp.wording import sentence

SUFFIX = ".md"
LINKS_KEPT = 100
# Front matter that says of which day a note is; the first that can be read counts. What can't stays in the text.
DAYS = ("date", "day", "日付", "日時", "created", "作成日", "作成日時")
# Front matter with a place of its own, or about the file: no part of the text.
TAGS = ("tags", "tag", "タグ", "Tags")
NOT_SAID = frozenset("tags tag updated modified publish permalink id uid uuid".split()) | READER_FIELDS - {"aliases", "date"}
SAID_LIMIT = 500
# The properties of a page of Notion stand in lines below its title.
_PROPERTIES = re.compile(r"\A\s*# [^\n]*\n\s*((?:[^\s:：][^\n:：]{0,49}[:：][^\n]+(?:\n|\Z))+)")
DELETED_NAMED = 1_000


def read(source: Source, report: Report) -> Iterator[ImportItem]:
    """Yields the rows of all notes in the order of their paths. Calls `report` for defects that don't prevent an import."""
    unread: list[str] = []
    listed: dict[str, str] = {}
    present: set[str] = set()
    names = source.names()
    for name in names:
        if PurePosixPath(name).suffix.lower() != SUFFIX:
            yield ImportItem(name, left_out="attachments")
            continue
        try:
            text = decoded(whole(source, name), name)
            note = parse_note(text)
        except InvalidInput as error:
            unread.append(_stem(source, name))
            yield ImportItem(name, refused=str(error))
            continue
        if note.mark is None and is_template(name, text):
            yield ImportItem(name, left_out="templates")
            continue
        if note.fields is None:
            report(sentence("{}: its front matter can't be read and stays in the text", name))
        if note.mark is None:
            yield from _other_note(source, name, note)
        elif note.mark == playbook.FORM:
            yield from playbook.sections(text, name)
        elif note.mark == INDEX:
            listed |= digests_in(note.body)
        else:
            present.add(digest(str((note.fields or {}).get("key"))))
            yield exported_note(name, note)
    # A note that can't be read may be any of them.
    deleted = {} if unread else {key: listed[key] for key in list(listed.keys() - present)[:DELETED_NAMED]}
    # Nor is a note missing where a zip can't be read.
    if not source.refused and any(PurePosixPath(name).suffix.lower() == SUFFIX for name in names):
        yield ImportItem(source.label, {VAULT: source.label, "unread": unread, "deleted": deleted})


def exported_note(name: str, note: Note) -> ImportItem:
    """The row of a note that an export wrote, and that is no list."""
    fields = dict(note.fields or {})
    if CONTEXT in fields:
        return ImportItem(name, {CONTEXT: fields[CONTEXT]})
    allowed = VERSION_FIELDS if VERSION in fields else FIELDS
    kept = {field: value for field, value in fields.items() if field in allowed}
    if not kept.keys() & {"key", VERSION}:
        return ImportItem(
            name, refused=sentence("Its front matter has {} but no key. Remove that line to store the note as a new memory.", MARK)
        )
    if isinstance(kept.get("tags"), list | str):
        kept["tags"] = kept["tags"] if isinstance(kept["tags"], list) else [kept["tags"]]
        kept["tags"] = [str(tag) for tag in kept["tags"]]  # an editor writes 2025 without quotes, which YAML reads as a number
    return ImportItem(name, {**kept, "content": note.body.removesuffix("\n")})


def _other_note(source: Source, name: str, note: Note) -> Iterator[ImportItem]:
    fields = note.fields or {}
    body, comments = without_comments(storable(note.body))
    for _ in range(comments):
        yield ImportItem(name, left_out="comments")
    days = _days(fields)
    told = days or _days(_properties(body))
    occurred_at = next((told[name] for name in DAYS if name in told), None)
    row_fields = {
        **file_fields(name, source.changed(name)),
        **_tags(fields, body),
        **({"occurred_at": occurred_at} if occurred_at else {}),
    }
    fields = {name: value for name, value in fields.items() if name.casefold() not in days}
    stem = _stem(source, name)
    links = links_in(body)[:LINKS_KEPT]
    origin = {"format": NOTES, "vault": source.label, "note": name, **({"links": links} if links else {})}
    index = 0
    for piece in pieces(with_short_links("\n\n".join(part for part in (body.strip("\n"), _front_matter_text(fields)) if part))):
        if piece.strip():
            row: Row = {
                "key": f"{stem}_{index}",
                "content": piece.strip(),
                **row_fields,
                "metadata": {**_other_metadata(fields), ORIGIN: origin},
            }
            yield ImportItem(name, row)
            index += 1
    if not index:
        yield ImportItem(name, left_out="notes without text")
    yield ImportItem(name, {PIECES: stem, "pieces": index})


def _stem(source: Source, name: str) -> str:
    return import_rows.key_of(NOTES, source.label, name)


def _front_matter_text(fields: Mapping[str, Any]) -> str:
    """The statements of the front matter as text, to be found like those of the note."""
    lines = []
    for name, value in fields.items():
        values = value if isinstance(value, list) else [value]
        words = [str(word) for word in values if isinstance(word, str | int | float) and not isinstance(word, bool) and str(word).strip()]
        if words and name not in NOT_SAID:
            lines.append(storable(f"{name}: {', '.join(words)}"))
    return "\n".join(line for line in lines if len(line) <= SAID_LIMIT)


def _tags(fields: Mapping[str, Any], body: str) -> Row:
    value: Any = next((told[name] for told in (fields, _properties(body)) for name in TAGS if name in told), [])
    listed = value if isinstance(value, list) else str(value).replace("、", ",").split(",")
    tags = sorted(import_rows.tags([*listed, *tags_in(body)]))
    return {"tags": tags} if tags else {}


def _days(fields: Mapping[str, Any]) -> dict[str, str]:
    """The days in a front matter that can be read, by the names of their fields: 2019-10-17, 2019/10/17, 2019年10月17日, [[2019-10-17]]."""
    read = {name.casefold(): written_time(_unlinked(value)) for name, value in fields.items() if name.casefold() in DAYS}
    return {name: day for name, day in read.items() if day}


def _properties(body: str) -> dict[str, str]:
    """What the lines below the title of a note say: 日付: 2025年11月18日."""
    below = _PROPERTIES.match(body)
    lines = (re.split("[:：] ?", line, maxsplit=1) for line in below[1].splitlines()) if below else ()
    return {name.strip(): value for name, value in lines}


def _unlinked(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:  # [[2019-10-17]] without quotes is a list in a list
        value = value[0]
    if isinstance(value, int) and len(str(value)) == len("20191017"):
        return day_in_title(str(value))
    return value.strip().removeprefix("[[").removesuffix("]]") if isinstance(value, str) else None


def _other_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of the front matter, unchanged, as metadata."""
    rest = {name: value for name, value in fields.items() if name not in {"tags", "tag"} | READER_FIELDS - {"aliases", "date"}}
    return {"front_matter": rest} if rest else {}
