"""The stdio bridge: a host that only speaks stdio starts this, and reaches the running server through it."""

import logging
import sys

import fastmcp
from fastmcp.server import create_proxy

from memory_mcp import __version__
from memory_mcp.client.connection import Connection

NAME = "memory"


def run(connection: Connection) -> None:
    """Passes MCP messages between stdin/stdout and the server until stdin ends. Logs go to stderr: stdout is the protocol's.

    Raises:
        ServerUnreachable: no server is there. A bridge to nowhere would look like a server without tools.
    """
    connection.check()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="memory-mcp stdio: %(message)s")
    fastmcp.settings.check_for_updates = "off"
    # A transport, not a client: each message then travels in the protocol era that the host speaks.
    proxy = create_proxy(connection.transport(), name=NAME, version=__version__)
    proxy.run(transport="stdio", show_banner=False, log_level="WARNING")
