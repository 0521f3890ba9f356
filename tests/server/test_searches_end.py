"""A search is ended when its caller has closed the connection, and when it takes longer than any may."""

import json
import socket
import threading

import pytest

from memory_mcp.errors import SearchUnfinished
from memory_mcp.server import call
from memory_mcp.server.actions import context, memories

pytestmark = pytest.mark.slow  # a server for each test

ENDLESS = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT max(n) FROM number"
PERSONA = {"X-Persona": "nilou"}


class Endless:
    """A search that only its limit ends."""

    def __init__(self):
        self.begun, self.ended, self.said = threading.Event(), threading.Event(), ""

    def __call__(self, persona, *_args, **_options):
        self.begun.set()
        try:
            with persona.database.read() as connection:
                return connection.execute(ENDLESS).fetchall()
        except SearchUnfinished as error:
            self.said = str(error)
            raise
        finally:
            self.ended.set()


@pytest.fixture
def endless(own_http, monkeypatch):
    """Every recall, and every context, is one now; there is a memory to read."""
    assert own_http.post("/api/memories", json={"content": "京都へ行った"}, headers=PERSONA).json()["stored"]
    endless = Endless()
    monkeypatch.setattr(memories, "recall_memories", endless)
    monkeypatch.setattr(context, "context", endless)
    return endless


def request(method, path, body=b""):
    told = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "X-Persona: nilou",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*told, "Accept: application/json, text/event-stream", "", ""]).encode() + body


def tool_call(name, **arguments):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}).encode()


@pytest.mark.parametrize(
    "sent",
    [
        request("GET", "/api/recall?query=x"),
        request("GET", "/api/context"),
        request("POST", "/mcp", tool_call("recall", query="x")),
        request("POST", "/mcp", tool_call("get_context")),
    ],
    ids=["recall over HTTP", "context over HTTP", "recall", "get_context"],
)
def test_nothing_is_searched_for_a_caller_who_has_gone(own_server, own_http, endless, sent):
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=60) as connection:
        connection.sendall(sent)
        assert endless.begun.wait(60)
        # What the persona does meanwhile is not its search's concern.
        assert own_http.post("/api/memories", json={"content": "奈良へ行った"}, headers=PERSONA).json()["stored"]
        assert not endless.ended.is_set()
    assert endless.ended.wait(60)
    assert "its caller has closed the connection" in endless.said
    assert own_http.get("/api/stats", headers=PERSONA).json()["memories"] == 2


def test_a_search_beyond_its_time_is_refused_with_the_reason_and_the_next_one_answered(own_http, endless, monkeypatch):
    monkeypatch.setattr(call, "SEARCH_SECONDS", 0.3)
    refused = own_http.get("/api/recall", params={"query": "京都"}, headers=PERSONA)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["error"].startswith("the search was not done within 0.3 s: the question or the memories are very long")
    monkeypatch.undo()
    found = own_http.get("/api/recall", params={"query": "京都"}, headers=PERSONA).json()
    assert [hit["content"] for hit in found["hits"]] == ["京都へ行った"]
