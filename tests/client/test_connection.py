"""The client's side of a conversation with something that may not be a Memory MCP server at all."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from memory_mcp.client.connection import Connection
from memory_mcp.errors import InvalidPersonaName, MemoryMCPError, ServerUnreachable

Answer = tuple[int, bytes]


class Service(ThreadingHTTPServer):
    """Answers everything with one answer, and keeps what it was sent."""

    answer: Answer = (200, b"{}")
    location: str | None = None
    promised_bytes: int | None = None
    seen: list[tuple[str, dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    server: Service

    def respond(self) -> None:
        body = self.chunked_body() if self.headers.get("Transfer-Encoding") == "chunked" else b""
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        status, answer = self.server.answer
        self.send_response(status)
        if self.server.location:
            self.send_header("Location", self.server.location + self.path)
        self.send_header("Content-Length", str(self.server.promised_bytes or len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def chunked_body(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = respond  # noqa: N815  the names are the library's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the library's
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    with _serving() as service:
        yield service


@pytest.fixture
def other() -> Iterator[Service]:
    with _serving() as service:
        yield service


@contextmanager
def _serving() -> Iterator[Service]:
    service = Service(("127.0.0.1", 0), Handler)
    service.seen = []
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield service
    service.shutdown()
    thread.join()
    service.server_close()


@pytest.fixture
def connection(service: Service) -> Connection:
    return Connection(f"http://127.0.0.1:{service.server_address[1]}", token="t0k", persona="さくら")


def test_persona_and_token_travel_in_headers(service: Service, connection: Connection) -> None:
    connection.get_json("/api/stats")
    ((path, headers, _),) = service.seen
    assert (path, headers["authorization"], unquote(headers["x-persona"])) == ("/api/stats", "Bearer t0k", "さくら")
    assert headers["x-persona"].isascii()


def test_without_a_persona_no_header_is_sent(service: Service) -> None:
    Connection(f"http://127.0.0.1:{service.server_address[1]}/mcp/").get_json("/ready")
    ((path, headers, _),) = service.seen
    assert path == "/ready"
    assert "x-persona" not in headers
    assert "authorization" not in headers


@pytest.mark.parametrize("answer", [(200, b"<html>"), (404, b"no"), (200, b"[]"), (200, b'{"status": "ok"}'), (500, b'{"detail": 1}')])
def test_another_service_is_recognised(service: Service, connection: Connection, answer: Answer) -> None:
    service.answer = answer
    for call in (connection.check, lambda: connection.call_tool("recall", {"query": "x"})):
        with pytest.raises(ServerUnreachable, match=r"is not a Memory MCP server.*Start one with `memory-mcp serve`"):
            call()


def test_a_refusal_arrives_in_the_words_of_the_server(service: Service, connection: Connection) -> None:
    service.answer = 400, json.dumps({"error": "no persona is named. Send an X-Persona header."}).encode()
    for call in (
        lambda: connection.get_json("/api/stats"),
        lambda: connection.import_rows([b"{}"]),
        lambda: list(connection.export_lines()),
    ):
        with pytest.raises(MemoryMCPError, match=r"^no persona is named\. Send an X-Persona header\.$"):
            call()


def test_rows_are_streamed_in_blocks_and_counted(service: Service, connection: Connection) -> None:
    rows = [json.dumps({"content": f"{number} " + "あ" * 100}).encode() for number in range(1_000)]
    counted: list[int] = []
    connection.import_rows(iter(rows), counted.append)
    *_, (_, headers, body) = service.seen
    assert body.split(b"\n") == [*rows, b""]
    assert headers["content-type"] == "application/x-ndjson"
    assert sum(counted) == 1_000
    assert len(counted) > 1


def test_exported_lines_are_split_at_line_feeds_alone(service: Service, connection: Connection) -> None:
    lines = ['{"content": "a\u2028b\u0085c"}\n'.encode(), '{"content": "二"}\n'.encode()]
    service.answer = 200, b"".join(lines)
    assert list(connection.export_lines()) == lines


def test_an_export_that_breaks_off_is_no_export(service: Service, connection: Connection) -> None:
    service.answer, service.promised_bytes = (200, b'{"content": "a"}\n'), 100
    with pytest.raises(ServerUnreachable, match="failed"):
        list(connection.export_lines())
    service.answer, service.promised_bytes = (200, b'{"content": "a"}\n{"con'), None
    with pytest.raises(ServerUnreachable, match="last line is incomplete"):
        list(connection.export_lines())


def test_nobody_there_is_said_with_what_to_do() -> None:
    with pytest.raises(ServerUnreachable, match=r"no server answers at http://127.0.0.1:9: .* Start one with `memory-mcp serve`"):
        Connection("http://127.0.0.1:9").call_tool("recall", {"query": "x"})


def test_a_name_that_no_persona_can_have_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidPersonaName):
        Connection("http://127.0.0.1:9", persona=" nilou")


def _address(service: Service) -> str:
    return f"http://127.0.0.1:{service.server_address[1]}"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_is_not_asked_for_a_server_on_this_machine(service, other, monkeypatch, variable):
    """It could not reach it, and would see the token."""
    monkeypatch.setenv(variable, _address(other))
    with contextlib.suppress(MemoryMCPError):
        Connection(_address(service), token="the-token", persona="nilou").check()
    assert (len(service.seen) > 0, other.seen) == (True, [])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed_with_the_token(service, other, status):
    service.answer, service.location = (status, b""), _address(other)
    with pytest.raises(MemoryMCPError):
        Connection(_address(service), token="the-token", persona="nilou").check()
    assert not any("the-token" in str(request) for request in other.seen)


def test_the_mcp_client_gives_no_other_server_the_token(service, other):
    service.answer, service.location = (307, b""), _address(other)
    connection = Connection(_address(service), token="the-token", persona="nilou")
    with pytest.raises(MemoryMCPError):
        asyncio.run(connection._call_tool("recall", {"query": "x"}))
    assert service.seen
    assert not any("the-token" in str(request) for request in other.seen)
