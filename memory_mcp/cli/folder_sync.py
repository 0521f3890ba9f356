"""`memory-mcp sync`: one persona on several machines, by files in a folder that something else keeps the same on all of them.

Each machine writes one file, its whole export, and reads those of the others, so that no two write the same file. What a machine doesn't
have is never taken for deleted. A text that another machine changed replaces the one it was made from; if both were changed, the later one
is shown, and the other is kept as an earlier version.
"""

import json
import platform
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import platformdirs
import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import PersonaName, Url, connection
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.personas.names import directory_name
from memory_mcp.store.files.durable_files import open_private
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection

SUFFIX = ".jsonl"
FORGOTTEN_AT_ONCE = 100
SHOWN = 60
_MACHINE = re.compile(r"[\w-]{1,60}")


def sync(
    folder: Annotated[Path, typer.Argument(help="A folder that Dropbox, Syncthing, a network drive or git shares.", metavar="DIR")],
    persona: PersonaName = None,
    machine: Annotated[str | None, typer.Option(help="The name of this machine's file. Default: one of its own.", metavar="NAME")] = None,
    include_secret: Annotated[bool, typer.Option("--include-secret", help="Also memories whose privacy_level is secret.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would change.")] = False,
    url: Url = None,
) -> None:
    """Exchange a persona's memories with your other machines through a shared folder."""
    name = machine or _this_machine()
    if not _MACHINE.fullmatch(name):
        raise InvalidInput("{} can't be the name of a file", "", "Use letters, digits, - and _", repr(name))
    server = connection(url, persona)
    persona_name = str(server.get_json("/api/stats")["persona"])
    shared = folder / directory_name(persona_name)
    included = ["deleted", "versions", *(["secret"] if include_secret else [])]
    try:
        for path in sorted(shared.glob(f"*{SUFFIX}")):
            if path.stem != name and path.is_file():  # a pipe would be waited for
                _take_over(server, path, Store.of(server.export_lines(included)), dry_run=dry_run)
        if not dry_run:
            _write(shared / f"{name}{SUFFIX}", server.export_lines(included))
    except OSError as error:
        raise MemoryMCPError(
            "{} can't be used", "{}", "Check the folder", error.filename or shared, error.strerror or str(error)
        ) from error
    tell("{}: {}shared as {}{}", persona_name, "would be " if dry_run else "", shared / name, SUFFIX)


@dataclass(slots=True)
class Memory:
    """A memory as a machine has it: its line, those of its earlier versions, and all the states that it was in."""

    row: dict[str, Any]
    versions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def state(self) -> tuple[Any, ...]:
        return _state(self.row)

    @property
    def states(self) -> set[tuple[Any, ...]]:
        return {self.state, *map(_state, self.versions)}

    def deleted_after(self, other: "Memory") -> bool:
        """Whether this machine forgot it, and the other has neither forgotten nor changed it since."""
        gone = self.row.get("deleted_at")
        return bool(gone) and not other.row.get("deleted_at") and str(gone) >= str(other.row.get("updated_at", ""))


@dataclass(slots=True)
class Store:
    """The memories of a machine, by key, and how many lines could not be read."""

    memories: dict[str, Memory] = field(default_factory=dict)
    unreadable: int = 0

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> "Store":
        store = cls()
        for line in lines:
            try:
                row = json.loads(line)
                if "version_of" in row:
                    store.memories[row["version_of"]].versions.append(row)
                elif "key" in row and "content" in row:
                    store.memories[row["key"]] = Memory(row)
            except (ValueError, KeyError, TypeError, RecursionError):
                store.unreadable += 1
        return store


@dataclass(slots=True)
class Differences:
    """The changes of another machine that this one lacks."""

    new: list[Memory] = field(default_factory=list)
    changed: list[Memory] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    conflicts: list[tuple[Memory, Memory]] = field(default_factory=list)

    @classmethod
    def between(cls, ours: Store, theirs: Store) -> "Differences":
        differences = cls()
        for key, their in theirs.memories.items():
            our = ours.memories.get(key)
            if our is None:
                if not their.row.get("deleted_at"):
                    differences.new.append(their)
            elif their.deleted_after(our):
                differences.forgotten.append(key)
            elif not (our.row.get("deleted_at") or their.row.get("deleted_at") or their.state in our.states):
                is_conflict = our.state not in their.states
                if is_conflict:
                    differences.conflicts.append((our, their))
                if not is_conflict or str(their.row["updated_at"]) > str(our.row["updated_at"]):
                    differences.changed.append(their)
        return differences

    def lines(self) -> Iterator[bytes]:
        for memory in self.new:
            yield from (json.dumps(row, ensure_ascii=False).encode() for row in (memory.row, *memory.versions))
        yield from (json.dumps(memory.row, ensure_ascii=False).encode() for memory in self.changed)


def _take_over(server: "Connection", path: Path, ours: Store, *, dry_run: bool) -> None:
    theirs = Store.of(path.read_bytes().splitlines())
    differences = Differences.between(ours, theirs)
    counts: dict[str, Any] = {"refused": 0, "errors": []}
    if differences.new or differences.changed:
        counts = server.import_rows(differences.lines(), on_known="revise", dry_run=dry_run)
    for begin in range(0, 0 if dry_run else len(differences.forgotten), FORGOTTEN_AT_ONCE):
        server.delete_json("/api/memories", keys=differences.forgotten[begin : begin + FORGOTTEN_AT_ONCE])
    summary = sentence(
        "{}: {} new, {} changed, {} forgotten, {} changed on both",
        path.stem,
        len(differences.new),
        len(differences.changed),
        len(differences.forgotten),
        len(differences.conflicts),
    )
    tell(summary)
    for our, their in differences.conflicts:
        is_theirs = their in differences.changed
        shown, kept = (their, our) if is_theirs else (our, their)
        of = "" if is_theirs else sentence(", of {}", path.stem)
        tell("  {}: {}, not {}{}", our.row["key"], _short(shown), _short(kept), of)
    for error in counts["errors"]:
        typer.echo(f"  {worded(error['reason'])}", err=True)
    if theirs.unreadable:
        tell("  {} lines of {} can't be read; is it still being copied?", theirs.unreadable, path.name, err=True)


def _write(path: Path, lines: Iterable[bytes]) -> None:
    """One's own file, readable by its owner alone, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with open(unfinished, "wb", opener=open_private) as file:
        for line in lines:
            row = json.loads(line)
            if "content" in row:
                file.write(line)
    unfinished.replace(path)


def _state(row: dict[str, Any]) -> tuple[Any, ...]:
    """The fields that a revision can change, in the form in which the server compares them."""
    return row.get("content"), tuple(row.get("tags") or ()), row.get("importance")


def _short(memory: Memory) -> str:
    text = " ".join(str(memory.row["content"]).split())
    return f"「{text[:SHOWN]}{'…' if len(text) > SHOWN else ''}」"


def _this_machine() -> str:
    """A name for this machine and user, made once."""
    path = platformdirs.user_state_path("memory-mcp", appauthor=False) / "machine"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            host = re.sub(r"[^\w-]", "-", platform.node())[:40] or "machine"
            path.write_text(f"{host}-{secrets.token_hex(3)}", encoding="utf-8")
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise MemoryMCPError("{} can't be used", "{}", "Name this machine with --machine", path, error.strerror or str(error)) from error
