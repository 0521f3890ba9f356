"""The messages of MCP's stdio transport: one JSON object in each line of stdin and stdout, which nothing else in this process uses."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import BinaryIO


class Wire:
    """Messages from and to the host. `close` ends the messages as the end of stdin does; it may be called by a signal handler."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of stdin that aren't blank, until it ends."""
        self._loop = asyncio.get_running_loop()
        # A thread, because not every stdin can be waited for; a daemon, because nothing interrupts it while the host is silent.
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line

    def write(self, message: bytes) -> None:
        """Send a message, which must not contain a line feed. Waits for a host that doesn't read.

        Raises:
            BrokenPipeError: the host is gone.
        """
        self._outgoing.write(message + b"\n")
        self._outgoing.flush()

    def close(self) -> None:
        """End `lines`."""
        self._put(None)

    def _read(self) -> None:
        for line in self._incoming:
            self._put(line)
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


@contextmanager
def claimed() -> Iterator[Wire]:
    """A wire on stdin and stdout. Meanwhile whatever is printed goes to stderr, and child processes inherit neither end of the wire."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    try:
        # Neither is closed: a thread may be reading.
        yield Wire(open(incoming, "rb", closefd=False), open(outgoing, "wb", closefd=False))  # noqa: SIM115
    finally:
        sys.stdout.flush()
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
