"""Which store a command works on, by one rule for all of them; docs/clients.md has it as a table.

An address or a data directory that somebody names comes first, then the user's own directory. A server at the configured address counts
for a directory only if it is the one that serves it. Where nobody names anything and the user's directory is empty, it counts as it is.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory_mcp.client.connection import Connection
from memory_mcp.client.discovery import PROBE_SECONDS, Connect, serving
from memory_mcp.config.reading import default_server_url, named_data_directory, personal_data_directory, user_data_directory
from memory_mcp.errors import InvalidInput, MemoryMCPError, ServerUnreachable
from memory_mcp.personas.directories import personas_among
from memory_mcp.personas.names import canonical_name, directory_name
from memory_mcp.personas.server_lock import LOCK_OWNER_NAME, read_note
from memory_mcp.wording import sentence

UNNAMED = "default"  # whom a server takes a caller for that names no persona


@dataclass(frozen=True, slots=True)
class Store:
    """What a command works on: its data directory, as far as it is known here, and the server that answers for it, if one does.

    `address` is the configured one, and `is_taken` if the server of another store answers there.
    """

    directory: Path | None
    server: Connection | None
    address: str
    is_taken: bool = False

    def served(self) -> Connection:
        """Its server.

        Raises:
            ServerUnreachable: there is none.
        """
        if self.server is None:
            directory = Path(self.directory or "").absolute()
            raise ServerUnreachable(
                "no server serves the data directory {}",
                sentence("the one at {} serves another", self.address) if self.is_taken else sentence("none answers at {}", self.address),
                "Start one with `memory-mcp serve --data {}`, or name the address of another with --url",
                directory,
                shlex.quote(str(directory)),
            )
        return self.server


def place(url: str | None, data: Path | None) -> str | Path:
    """The address or the data directory that these two options, the environment or the working directory name, else the user's directory."""
    return url or data or default_server_url() or personal_data_directory()


def find(url: str | None, data: Path | None, address: str, connect: Connect) -> Store:
    """The store of these two options, with its server.

    Raises:
        InvalidInput: the two name different ones.
    """
    found = place(url, data)
    if isinstance(found, str):
        server = connect(found, None)
        if url and data and not _serves(server, data):
            raise InvalidInput("--url and --data name two stores", "{} does not serve {}", "Leave one of them out", url, data)
        return Store(data, server, address)
    if own := serving(found, connect, address):
        return Store(found, own, address)
    is_taken = connect(address, None).instance(PROBE_SECONDS) is not None
    is_named = bool(data or named_data_directory())
    if is_taken and (_is_closed(found) or not (is_named or holds_memories(found))):
        return Store(None, connect(address, None), address)
    return Store(found, None, address, is_taken)


def overruled_address(data: Path | None) -> str | None:
    """The address in the environment that `--data` goes before, unless it is where that directory's server answers."""
    address = default_server_url() if data else None
    note = read_note(data) if data else None
    return address if address and (note is None or Connection(address).url != note.url) else None


def holds_memories(directory: Path) -> bool:
    """Whether a data directory has a persona or a pool."""
    with suppress(OSError):
        return bool(personas_among(directory.iterdir())[0])
    return False


def has_persona(directory: Path, persona: str) -> bool:
    """Whether a data directory has this persona."""
    with suppress(OSError):
        return bool(personas_among([directory / directory_name(canonical_name(persona))])[0])
    return False


def elsewhere(store: Store, persona: str) -> Iterator[str]:
    """The options that name the other stores of this machine that have the persona; none if this one has it itself. Sends no token."""
    if store.directory is None or has_persona(store.directory, persona):
        return
    others = [path for path in known_directories() if not _is_same(path, store.directory)]
    yield from (f"--data {shlex.quote(str(path.absolute()))}" for path in others if has_persona(path, persona))
    server = Connection(store.address, persona=persona)
    instance = server.instance(PROBE_SECONDS)
    notes = [note.instance for path in (*others, store.directory) if (note := read_note(path))]
    if instance is not None and instance not in notes:
        with suppress(MemoryMCPError):
            server.get_json("/api/persona")
            yield f"--url {store.address}"


def known_directories() -> list[Path]:
    """The data directories that this machine is known to have: the one named here, and the user's."""
    known = [named_data_directory(), user_data_directory()]
    return [path for path in known if path and path.is_dir()]


def _serves(server: Connection, directory: Path) -> bool:
    note = read_note(directory)
    return note is not None and server.instance(PROBE_SECONDS) == note.instance


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _is_closed(directory: Path) -> bool:
    """Whether another user's server may serve a directory, such as one in a container: what it says of itself can't be read."""
    note = directory / LOCK_OWNER_NAME
    return (directory.exists() and not os.access(directory, os.X_OK)) or (note.exists() and not os.access(note, os.R_OK))
