"""Finding a server: the one of a data directory, by the note that the holder of its lock writes, or one at a URL that starts again."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from memory_mcp.client.connection import Connection
from memory_mcp.errors import DirectoryInUse, ServerUnreachable
from memory_mcp.personas.server_lock import read_note

# A server that starts has its lock at once and answers when it has imported everything, after 2 to 20 seconds; one that stops finishes
# its calls first.
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.05
PROBE_SECONDS = 10.0

Taken = TypeVar("Taken")

# From the URL, and the secret of a note.
Connect = Callable[[str, str | None], Connection]


def restarted(server: Connection) -> Connection:
    """The same server, as soon as it answers again.

    Raises:
        ServerUnreachable: it has not within a minute.
        MemoryMCPError: it refuses the token.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            server.check()
        except ServerUnreachable:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return server


def yielded(directory: Path, error: DirectoryInUse) -> None:
    """Return when the lock of a data directory may be free. Asks the server of a `memory-mcp stdio` that holds it to stop; that one's process
    then uses the server that takes the lock.

    Raises:
        DirectoryInUse: `error`, because another server holds it.
    """
    note = read_note(directory)
    if note and not note.yields:
        raise error
    if note:
        Connection(note.url, secret=note.secret).ask_to_yield()
    time.sleep(PAUSE_SECONDS)


def once_free(directory: Path, take: Callable[[], Taken]) -> Taken:
    """Calls `take`, which takes the lock of a data directory, until it succeeds. A server that holds the lock is asked to yield.

    Raises:
        DirectoryInUse: the server that holds the lock does not yield, or the lock is still held after a minute.
        MemoryMCPError: what `take` raises.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return take()
        except DirectoryInUse as error:
            if time.monotonic() > until:
                raise
            yielded(directory, error)


def if_free(directory: Path, take: Callable[[], Taken]) -> Taken:
    """As `once_free`, but waits only for the server of a `memory-mcp stdio`, which it asks to yield.

    Raises:
        DirectoryInUse, MemoryMCPError: as `once_free`.
    """
    try:
        return take()
    except DirectoryInUse:
        note = read_note(directory)
        if note is None or not note.yields:
            raise
    return once_free(directory, take)


def usable(find: Callable[[], Connection]) -> Connection:
    """What `find` finds, if it answers. A server that ended just after it was found is looked for once more.

    Raises:
        ServerUnreachable, MemoryMCPError: as `find` and `Connection.check`.
    """
    server = find()
    try:
        server.check()
    except ServerUnreachable:
        server = find()
        server.check()
    return server


def serving(directory: Path, connect: Connect, *addresses: str) -> Connection | None:
    """A connection to the server that holds the lock of a data directory; None if none answers. It is looked for at the address of its
    note, and at these, as a container has others than it knows of.

    The note of a server that was killed remains, and another server may listen at its address by now: that one has another name.
    """
    note = read_note(directory)
    if note is None:
        return None
    servers = (connect(address, note.secret) for address in dict.fromkeys([note.url, *addresses]))
    return next((server for server in servers if server.instance(PROBE_SECONDS) == note.instance), None)


def running_or_started(directory: Path, connect: Connect, start: Callable[[], None], *addresses: str) -> Connection:
    """As `serving`, but if there is no server, `start` starts one. Of several processes that start one at once, one succeeds.

    Raises:
        ServerUnreachable: a process holds the lock of the directory, and doesn't answer.
        MemoryMCPError: what `start` raises, except DirectoryInUse.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        if server := serving(directory, connect, *addresses):
            return server
        try:
            start()
        except DirectoryInUse as error:
            if time.monotonic() > until:
                raise ServerUnreachable(
                    "the server of {} doesn't answer",
                    error.why,
                    "Stop that process, or name the address of the server with --url",
                    directory,
                ) from error
            time.sleep(PAUSE_SECONDS)
