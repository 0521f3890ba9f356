"""Writes an export of notes over an earlier one: notes that were moved or renamed stay where they are, notes of others are left alone."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.store.files.durable_files import open_private
from memory_mcp.transfer.formats.import_rows import ImportItem
from memory_mcp.transfer.formats.obsidian import SUFFIX, exported_note
from memory_mcp.transfer.formats.obsidian_notes import INDEX, Note, parse_note
from memory_mcp.transfer.formats.readers import json_lines
from memory_mcp.transfer.formats.sources import Archive, Folder, Source, leads_out, refused_link, whole
from memory_mcp.transfer.formats.text_files import decoded
from memory_mcp.transfer.non_memory_lines import VERSION

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection

_LINK_NAME = re.compile(r"\[\[([^\]|]+)")
_LINKS = re.compile(r"^links: .*$", re.MULTILINE)

Identity = tuple[str, ...]


def has_exported_notes(vault: Path) -> bool:
    """Whether a directory is the vault of an earlier export."""
    return any(True for _ in _exported_notes(Folder(vault)))


def refresh(server: "Connection", vault: Path, notes: Path) -> str:
    """Brings a vault to the state of the zip `notes`. Returns what was done, in words.

    Raises:
        InvalidInput: the vault has edits that were not imported, or notes of another persona.
        MemoryMCPError: a note can't be written.
    """
    exported = list(_exported_notes(Folder(vault)))
    _check_imported(server, vault, [(name, note) for name, note in exported if note.mark != INDEX])
    ours = {name for name, _ in exported}
    there: dict[Identity, list[str]] = {}
    for name, note in exported:
        there.setdefault(_identity(name, note), []).append(name)
    archive = Archive(notes)
    new = {_identity(name, note): name for name, note in _exported_notes(archive)}
    moved = {_stem(name): _stem(there[identity][0]) for identity, name in new.items() if identity in there}
    moved = {name: now for name, now in moved.items() if name != now}
    written = unchanged = removed = 0
    try:
        for identity, name in new.items():
            text = _relinked(whole(archive, name).decode(), moved, is_list=identity[0] == INDEX)
            for target in there.pop(identity, [name]):
                is_new = _write(vault, target, text.encode(), is_ours=target in ours)
                written, unchanged = written + is_new, unchanged + (not is_new)
        for target in (name for names in there.values() for name in names):
            (vault / target).unlink()
            removed += 1
    except OSError as error:
        raise MemoryMCPError("{} can't be written", "{}", "Export again once it can", vault, error.strerror or str(error)) from error
    return f"{vault}: {written} written, {unchanged} unchanged, {removed} removed"


def _exported_notes(source: Source) -> Iterator[tuple[str, Note]]:
    for name in source.names():
        if PurePosixPath(name).suffix.lower() != SUFFIX:
            continue
        try:
            note = parse_note(decoded(whole(source, name), name))
        except InvalidInput:
            continue  # an exported note is readable
        if note.mark is not None:
            yield name, note


def _identity(name: str, note: Note) -> Identity:
    """The identity of a note's subject, independent of the note's path."""
    fields = note.fields or {}
    if note.mark == INDEX:
        return INDEX, name
    if VERSION in fields:
        return VERSION, str(fields[VERSION]), str(fields.get("revision"))
    return ("key", str(fields["key"])) if "key" in fields else ("persona",)


def _check_imported(server: "Connection", vault: Path, notes: list[tuple[str, Note]]) -> None:
    """Asks the server what an import of these notes would change: what it doesn't know would be lost."""
    items = (exported_note(name, note) for name, note in notes if (note.fields or {}).keys() & {"key"})
    refused: list[ImportItem] = []
    lines = json_lines(items, refused.append, lambda _: None, lambda _: None)
    result = server.import_rows(lines, on_known="revise", dry_run=True)
    if result["stored"]:
        raise InvalidInput(
            "{} has notes of memories that {} doesn't have ({})",
            "it may be another persona's",
            "Name the persona with -p, or a new directory",
            vault,
            result["persona"],
            result["stored"],
        )
    if result.get("revised") or refused:
        raise InvalidInput(
            "notes of {} were edited ({})",
            "their edits would be lost",
            "Import it first, then export again",
            vault,
            result.get("revised", 0) + len(refused),
        )


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def _relinked(text: str, moved: Mapping[str, str], *, is_list: bool) -> str:
    """The text of a note with links to notes by the names that they have now; its memory is not changed."""

    def renamed(links: str) -> str:
        return _LINK_NAME.sub(lambda match: f"[[{moved.get(match[1], match[1])}", links)

    if not moved:
        return text
    return renamed(text) if is_list else _LINKS.sub(lambda match: renamed(match[0]), text, count=1)


def _write(vault: Path, name: str, content: bytes, *, is_ours: bool) -> bool:
    """Writes a note unless it is so already; a foreign note at this path is refused."""
    path = vault / name
    if leads_out(vault, path):
        raise refused_link(name)
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return False
        if not (is_ours and path.is_file()):
            raise InvalidInput("{} is no exported note", "an export would write one there", "Move it, and export again", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:100]}.part")
    with open(unfinished, "wb", opener=open_private) as file:
        file.write(content)
    unfinished.replace(path)
    return True
