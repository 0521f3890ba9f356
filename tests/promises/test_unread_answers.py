"""Answers that nobody reads and bodies that hardly come, from many connections at once: others are answered, and the memory stays small."""

import socket
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from crashing import BY_WORDS, crashing
from figures import Figure
from floods import Tally, call_until, needs_proc, running, status_of
from processes import RunningServer

from memory_mcp.domain import Conversation, Turn
from memory_mcp.personas.registry import Personas
from memory_mcp.store import conversations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TURNS, TURN_CHARACTERS = 40, 700_000
CONNECTIONS, THOROUGH_CONNECTIONS = 20, 60
MEMORY_LIMIT_BYTES = 200 * 1024 * 1024  # more than before
LOADED_SECONDS = 4
EXPORT, PAGE = "/api/conversation/export?id=c&format=json", "/api/conversation?id=c&limit=200"
UNREAD = (EXPORT, PAGE, "/api/export?include_conversations=true", "/p/greedy/ui/chat/export?id=c")
TRICKLED = ("/mcp", "/api/purge", "/api/import", "/api/import/file", "/p/greedy/ui/house/import")


def store_conversation(data: Path) -> None:
    """28 MB of one persona, as if they had been said."""

    def store(connection: object) -> None:
        conversations.insert(connection, Conversation("c", "", NOON, NOON))
        for number in range(1, TURNS + 1):
            conversations.insert_turn(
                connection, "c", Turn(number, NOON, "a:b", ({"role": "user", "text": "x" * TURN_CHARACTERS},), (), ())
            )

    personas = Personas(data)
    with personas.writing("greedy") as persona:
        persona.database.write(store)
    personas.close()


def open_all(server: RunningServer, stack: ExitStack, count: int) -> list[socket.socket]:
    """So many connections of each kind: of answers that are not read, and of calls of which nothing more than a byte comes."""
    opened = []
    port = int(server.url.rpartition(":")[2])
    for head in [
        *(f"GET {path} HTTP/1.1\r\n" for path in UNREAD),
        *(f"POST {path} HTTP/1.1\r\nContent-Length: 5000000\r\nContent-Type: multipart/form-data; boundary=x\r\n" for path in TRICKLED),
    ]:
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"{head}Host: 127.0.0.1\r\nX-Persona: greedy\r\n\r\n".encode() + (b"-" if "POST" in head else b""))
            opened.append(connection)
    return opened


@needs_proc
def test_clients_that_read_nothing_and_send_nothing_keep_no_turn_and_little_memory(tmp_path: Path, figure: Figure, thorough: bool) -> None:
    count = THOROUGH_CONNECTIONS if thorough else CONNECTIONS
    store_conversation(tmp_path / "memory")
    tally, stop, pause = Tally(), threading.Event(), threading.Event()
    with crashing(tmp_path, BY_WORDS) as server, ExitStack() as stack:
        before = status_of(server, "VmRSS") * 1024
        recalling = [lambda: call_until(stop, server, "victim", "recall", lambda _: {"query": "海辺"}, tally, kind="recall")]
        with running(recalling, stop):
            connections = open_all(server, stack, count)
            pause.wait(LOADED_SECONDS)
            p95 = tally.p95("recall")
        assert tally.errors == []
        assert not tally.refused
        most = status_of(server, "VmHWM") * 1024
        assert most < before + MEMORY_LIMIT_BYTES
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    figure("answers nobody reads and bodies that don't come: connections", len(connections))
    figure("answers nobody reads: calls of another persona refused or not answered", tally.refused.total() + len(tally.errors))
    figure("answers nobody reads: memory of the server before and at most (MiB)", f"{before // 2**20}, {most // 2**20}")
    figure("answers nobody reads: p95 of another persona's recall (s)", f"{p95:.2f}")
