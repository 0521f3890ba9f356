"""Clients that take nothing of their answers, or send their calls slower than anybody does: they hold no turn, and not for long."""

import json
import select
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime

import httpx2
import pytest

from memory_mcp.domain import Conversation, Turn
from memory_mcp.store import conversations

pytestmark = pytest.mark.slow  # a server for each of many tests

HANG_SECONDS = 60
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TURNS, TURN_CHARACTERS, MEMORIES = 12, 500_000, 210
# Of its answer the end lies in the connection, after the call is over.
SHORT_CHARACTERS = 180_000
needs_poll = pytest.mark.skipif(sys.platform == "win32", reason="Windows doesn't tell of a reset before something is read")


@contextmanager
def unread(port: int, count: int, path: str, persona: str = "nilou") -> Iterator[list[socket.socket]]:
    """Connections whose clients have read nothing of an answer but that it has begun."""
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.settimeout(HANG_SECONDS)
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Persona: {persona}\r\n\r\n".encode())
            opened.append(connection)
        for connection in opened:
            assert connection.recv(1, socket.MSG_PEEK)
        yield opened


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(12)[9:])


def answered(http: httpx2.Client, path: str) -> httpx2.Response:
    """The answer as soon as the server has noticed that the clients of a test before are gone."""
    pause = threading.Event()
    while (response := http.get(path)).status_code in (429, 503):
        pause.wait(0.05)
    return response


@pytest.fixture(scope="module")
def long_answers(serving, tmp_path_factory):
    """A server whose persona nilou has a conversation of 6 MB, one of 180 KB, and memories of 600 KB."""
    with serving(tmp_path_factory.mktemp("long")) as served:
        with served.runtime.personas.writing("nilou") as persona:
            persona.database.write(store_conversations)
        with httpx2.Client(
            base_url=served.url, headers={"X-Persona": "nilou"}, verify=ssl.create_default_context(), trust_env=False, timeout=60
        ) as http:
            lines = "".join(json.dumps({"content": f"{number} " + "It rains. " * 300}) + "\n" for number in range(MEMORIES))
            assert http.post("/api/import", content=lines).json()["stored"] == MEMORIES
            yield served, http


def store_conversations(connection):
    for identity, turns, characters in (("long", TURNS, TURN_CHARACTERS), ("short", 1, SHORT_CHARACTERS)):
        conversations.insert(connection, Conversation(identity, "", NOON, NOON))
        for number in range(1, turns + 1):
            said = ({"role": "user", "text": "x" * characters},)
            conversations.insert_turn(connection, identity, Turn(number, NOON, "a:b", said, (), ()))


@pytest.fixture
def served(long_answers):
    """The same server, with its own bounds and settings again afterwards."""
    server, http = long_answers
    before = replace(server.bounds)
    yield server
    server.configure(calls={"at_once": 1, "waiting": 0})
    answered(http, "/api/export")  # alone: the clients of this test are gone
    server.configure()
    for field in fields(before):
        setattr(server.bounds, field.name, getattr(before, field.name))


@pytest.fixture
def http(long_answers):
    """Its client, as nilou."""
    return long_answers[1]


@pytest.mark.parametrize(
    "path",
    [
        "/api/export",
        "/api/export?format=markdown&include_versions=true",
        "/api/conversation/export?id=long&format=json",
        "/api/conversation?id=long&limit=200",
        "/p/nilou/ui/chat/export?id=long",
        "/p/nilou/ui/house/export",
    ],
)
def test_answers_that_nobody_reads_hold_no_turn(served, http, path):
    served.configure(calls={"at_once": 2, "waiting": 0, "at_once_per_persona": 2, "waiting_per_persona": 0})
    with unread(served.port, 3, path) as connections:
        for persona in ("nilou", "dehya"):
            assert http.get("/api/stats", headers={"X-Persona": persona}).status_code == 200
        assert 200 in [status_of(connection) for connection in connections]


@needs_poll
@pytest.mark.parametrize("path", ["/api/export", "/api/conversation?id=long&limit=200", "/api/conversation?id=short"])
def test_a_connection_on_which_nothing_of_an_answer_is_taken_is_given_up(served, http, path):
    served.bounds.silence_seconds = 0.2
    with unread(served.port, 1, path) as [connection]:
        given_up = select.poll()
        given_up.register(connection, select.POLLHUP | select.POLLERR)
        assert given_up.poll(HANG_SECONDS * 1_000)
        assert answered(http, path).status_code == 200


def test_one_caller_has_no_more_answers_waiting_than_its_share(served, http):
    served.bounds.waiting_bytes_each = 1_500_000
    asked = {"url": "/api/conversation?id=long&limit=200"}
    with unread(served.port, 1, asked["url"]):
        refused = http.get(**asked)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"].startswith("too many answers wait to be read")
        assert http.get("/api/stats").status_code == 200
    answered(http, asked["url"])


def test_one_caller_has_no_more_exports_at_once_than_its_share(served, http):
    with unread(served.port, 20, "/api/export") as connections:
        statuses = list(map(status_of, connections))
        assert set(statuses) == {200, 429}
        assert statuses.count(200) <= 8
        assert http.get("/api/export", headers={"X-Persona": "dehya"}).status_code == 200


def test_a_long_conversation_is_exported_as_it_was_stored_and_read_in_pages_that_fit(served, http):
    exported = answered(http, "/api/conversation/export?id=long&format=json")
    assert exported.text == json.dumps(exported.json(), ensure_ascii=False, indent=2)
    after, turns = 0, []
    while after is not None:
        page = http.get(f"/api/conversation?id=long&limit=200&after={after}")
        assert len(page.content) < 1_500_000
        after, turns = page.json().get("next"), turns + page.json()["turns"]
    assert turns == exported.json()["turns"]
    last = http.get("/api/conversation?id=long&limit=200&before=9").json()
    assert ([turn["number"] for turn in last["turns"]], last["earlier"]) == ([7, 8], 7)


@contextmanager
def begun(port: int, path: str, length: int, *headers: str, method: str = "POST") -> Iterator[socket.socket]:
    """A connection on which a call has begun: nothing of its body is sent."""
    told = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *(headers or ("X-Persona: nilou",)))
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as connection:
        connection.sendall("\r\n".join([*told, "", ""]).encode())
        yield connection


def trickle(connection: socket.socket, until: bytes) -> bytes:
    """Sends a byte about twenty times a second, until the server has said so or closed the connection: what it said."""
    answer = b""
    with suppress(ConnectionError):
        while until not in answer or not until:
            connection.sendall(b" ")
            if select.select([connection], [], [], 0.05)[0]:
                answer += (part := connection.recv(4_096))
                if not part:
                    break
    return answer


@pytest.mark.parametrize("path", ["/mcp", "/api/purge", "/api/import", "/api/import/file", "/p/nilou/ui/house/import"])
def test_a_body_that_only_trickles_in_is_given_up(served, path):
    served.bounds.silence_seconds = 0.5
    form = ("X-Persona: nilou", "Content-Type: multipart/form-data; boundary=x") if "/ui/" in path else ()
    with begun(served.port, path, 4_000_000, *form) as connection:
        if form:
            connection.sendall(b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n')
        assert trickle(connection, b"the rest of the call did not come").startswith(b"HTTP/1.1 408 ")
        trickle(connection, b"")  # and once it is answered, nobody waits for its end


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/api/purge", b"400"), ("POST", "/mcp", b"413"), ("DELETE", "/mcp", b"413"), ("POST", "/p/nilou/ui/memories/new", b"413")],
)
def test_a_body_that_is_too_long_by_its_own_word_takes_no_turn(served, http, method, path, status):
    served.configure(calls={"at_once": 1, "waiting": 0})
    with ExitStack() as stack:
        for connection in [stack.enter_context(begun(served.port, path, 5_000_000, method=method)) for _ in range(3)]:
            assert connection.recv(12)[9:] == status
        assert http.get("/api/stats").status_code == 200


TINY_CHUNKS = b"1\r\n \r\n" * 20_000


def chunked(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Persona: nilou\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def answer_of(connection: socket.socket, until: bytes = b"") -> bytes:
    """All that comes until the server has said so or has closed the connection."""
    answer = b""
    with suppress(ConnectionError):
        while (not until or until not in answer) and (part := connection.recv(4_096)):
            answer += part
    return answer


@pytest.mark.parametrize("path", ["/mcp", "/ui/sign-in", "/api/purge", "/api/import", "/api/import/file", "/nowhere"])
def test_a_body_in_tiny_chunks_is_refused_as_soon_as_there_are_too_many(served, http, path, caplog):
    served.bounds.silence_seconds = 10 * HANG_SECONDS
    with socket.create_connection(("127.0.0.1", served.port), timeout=HANG_SECONDS) as connection, suppress(ConnectionError):
        connection.sendall(chunked(path) + TINY_CHUNKS)
        while True:
            connection.sendall(TINY_CHUNKS)
    assert http.get("/api/stats").status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_what_follows_an_answer_in_tiny_chunks_is_dropped_and_the_answer_can_be_read(served, http):
    served.bounds.silence_seconds = 10 * HANG_SECONDS
    with socket.create_connection(("127.0.0.1", served.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(chunked("/nowhere"))
        assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 404"
        for _ in range(20):
            connection.sendall(TINY_CHUNKS)
        assert answer_of(connection).startswith(b"HTTP/1.1 404")  # to its end: no further request is taken
        connection.sendall(TINY_CHUNKS)
        assert http.get("/api/stats").status_code == 200


def test_a_connection_is_kept_when_the_rest_of_an_answered_body_is_ordinary(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(chunked("/nowhere"))
        assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 404"
        connection.sendall(b"1000\r\n" + b"x" * 4_096 + b"\r\n" + b"1\r\n \r\n" * 300 + b"0\r\n\r\n")
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"HTTP/1.1 200" in answer_of(connection, b"HTTP/1.1 200")


def test_ordinary_chunked_uploads_arrive_whole(served, http):
    lines = [f'{{"content":"{number}"}}\r\n'.encode() for number in range(2_000)]
    for persona, chunks in (("dehya", lines), ("candace", [b"".join(lines)]), ("aya", [b"\r\n" * 50_000, *lines])):
        assert http.post("/api/import", content=iter(chunks), headers={"X-Persona": persona}).json()["stored"] == len(lines)
