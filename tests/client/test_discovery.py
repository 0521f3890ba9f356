"""Finding the server of a data directory."""

import socket

import pytest

from memory_mcp.client import discovery
from memory_mcp.client.connection import Connection
from memory_mcp.errors import ServerUnreachable


@pytest.fixture
def ended():
    """A connection to a server that has ended: nothing listens at its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Connection(f"http://127.0.0.1:{taken.getsockname()[1]}")


def test_a_server_that_ends_just_after_it_is_found_is_looked_for_once_more(server, ended):
    found = iter([ended, Connection(server.url)])
    assert discovery.usable(lambda: next(found)).url == server.url


def test_a_server_that_does_not_answer_is_given_up(ended):
    with pytest.raises(ServerUnreachable):
        discovery.usable(lambda: ended)
