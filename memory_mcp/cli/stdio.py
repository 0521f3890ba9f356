"""`memory-mcp stdio` is the server for clients that start their servers: it serves a data directory, or bridges to the server that does."""

import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.options import ConfigFile, PersonaName, Url, configured_address, say_what_counts, say_where_else
from memory_mcp.config.reading import config_beside, default_persona, default_token, personal_data_directory
from memory_mcp.errors import DirectoryInUse

if TYPE_CHECKING:
    from memory_mcp.app import InnerServer

# For how long a process that has yielded the lock to another server doesn't take it again.
YIELD_SECONDS = 10.0

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The data directory. Default: MEMORY_MCP_DATA, or ./memory beside ./config.json, or your directory for data.",
        metavar="DIR",
    ),
]


def stdio(persona: PersonaName = None, data: Data = None, config: ConfigFile = None, url: Url = None) -> None:
    """Run an MCP server on stdin and stdout, for clients that start their servers. No other server has to run.

    Several may share a data directory: one of them serves it, or `memory-mcp serve` does, and the others forward all messages. With
    `--url` or MEMORY_MCP_URL all messages go to that server.
    """
    # Imported here: `--help` needs none of it.
    from memory_mcp.client import discovery, stores  # noqa: PLC0415
    from memory_mcp.client.bridge import Bridge  # noqa: PLC0415
    from memory_mcp.client.connection import Connection  # noqa: PLC0415
    from memory_mcp.client.wire import claimed  # noqa: PLC0415

    def connect(address: str, secret: str | None = None) -> Connection:
        return Connection(address, default_token(), default_persona() if persona is None else persona, secret)

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="memory-mcp stdio: %(message)s")
    say_what_counts(url, data)
    address, place = configured_address(config), stores.place(url, data)
    given = stores.find(url, data, address, connect).server if isinstance(place, str) else None
    here = Here(place if isinstance(place, Path) else personal_data_directory(), config)
    if given is None:
        say_where_else(stores.Store(here.directory, None, address), persona or default_persona())

    def find() -> Connection:
        return discovery.restarted(given) if given else discovery.running_or_started(here.directory, connect, here.start, address)

    with claimed() as wire:
        try:
            # At once: the host would otherwise see a server without tools instead of the reason.
            given.check() if given else discovery.usable(find)
            asyncio.run(Bridge(wire, find).run())
        finally:
            here.stop()


class Here:
    """The servers of a data directory that this process has started: one, unless that one has failed."""

    def __init__(self, directory: Path, config: Path | None) -> None:
        self.directory, self._config = directory, config or config_beside(directory)
        self._servers: list[InnerServer] = []

    def start(self) -> None:
        """Starts one.

        Raises:
            DirectoryInUse: another server has the directory, or takes it over.
        """
        from memory_mcp.app import InnerServer  # noqa: PLC0415  it takes a second to import

        if any(server.yielded_at and time.monotonic() < server.yielded_at + YIELD_SECONDS for server in self._servers):
            raise DirectoryInUse("another server takes over {}", "it has asked for it", "Try again", self.directory)
        self._servers.append(InnerServer(self._config, self.directory))

    def stop(self) -> None:
        """Stops those that this process has started."""
        for server in self._servers:
            server.stop()
