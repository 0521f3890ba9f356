"""The stdio bridge: hosts that only support stdio start it to reach the running server."""

import logging
import sys

import fastmcp
from fastmcp.server import create_proxy

from memory_mcp import __version__
from memory_mcp.client.connection import Connection

NAME = "memory"


def run(connection: Connection) -> None:
    """Forwards MCP messages between stdin/stdout and the server until stdin ends. Logs go to stderr, since stdout carries the protocol.

    Raises:
        ServerUnreachable: there is no server. The host would otherwise see a server without tools.
    """
    connection.check()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="memory-mcp stdio: %(message)s")
    fastmcp.settings.check_for_updates = "off"
    # A transport instead of a client: each message is then forwarded in the protocol version of the host.
    proxy = create_proxy(connection.transport(), name=NAME, version=__version__)
    proxy.run(transport="stdio", show_banner=False, log_level="WARNING")
