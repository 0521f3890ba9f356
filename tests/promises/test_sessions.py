"""There is nothing to hijack: each call stands alone, and only what it says itself tells whose it is."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from overhearing import TLS
from plain_mcp import EARLIER, LATER
from processes import RunningServer, serving

pytestmark = pytest.mark.slow

NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'
META = {
    "io.modelcontextprotocol/protocolVersion": LATER,
    "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS = pytest.mark.parametrize("era", [EARLIER, LATER])
Headers = list[tuple[str, str]]


def call(url: str, era: str, name: str, headers: Headers, path: str = "/mcp", **arguments: Any) -> httpx2.Response:
    """A tool call of an era, with further headers as they are."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    sent = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", era), *headers]
    if era == LATER:
        params["_meta"] = META
        sent += [("mcp-method", "tools/call"), ("mcp-name", name)]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(url + path, json=body, headers=sent, timeout=60, trust_env=False, verify=TLS)


def initialized(url: str, headers: Headers) -> httpx2.Response:
    params = {"protocolVersion": EARLIER, "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    sent = [("accept", "application/json, text/event-stream"), *headers]
    return httpx2.post(f"{url}/mcp", json=body, headers=sent, timeout=60, trust_env=False, verify=TLS)


def told(answer: httpx2.Response) -> dict[str, Any]:
    """What a tool answered; of a refusal its words."""
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return {"refused": result["content"][0]["text"]} if result.get("isError") else dict(result["structuredContent"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("sessions"), NO_MODELS) as server:
        for persona in ("nilou", "dehya"):
            told(call(server.url, EARLIER, "remember", [("x-persona", persona)], content=f"ひみつは{persona}"))
        yield server


def test_no_session_is_given_and_none_is_kept(server: RunningServer) -> None:
    answer = initialized(server.url, [("x-persona", "nilou"), ("mcp-session-id", "chosen-by-the-client")])
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
    for method in ("GET", "DELETE"):
        headers = {"accept": "text/event-stream", "mcp-session-id": "chosen-by-the-client", "x-persona": "nilou"}
        answer = httpx2.request(method, f"{server.url}/mcp", headers=headers, timeout=60, trust_env=False, verify=TLS)
        assert answer.status_code == 405
        assert "ひみつ" not in answer.text


@ERAS
def test_a_persona_that_changes_within_a_session_is_followed_at_every_call(server: RunningServer, era: str) -> None:
    """One connection and one session id throughout."""
    initialized(server.url, [("x-persona", "nilou"), ("mcp-session-id", "one")])
    for persona in ("nilou", "dehya", "nilou", "dehya"):
        answer = told(call(server.url, era, "recall", [("x-persona", persona), ("mcp-session-id", "one")], query="ひみつ"))
        assert answer["persona"] == persona
        assert [hit["content"] for hit in answer["hits"]] == [f"ひみつは{persona}"]


@ERAS
def test_a_session_lends_no_persona_to_a_call_that_names_none(server: RunningServer, era: str) -> None:
    initialized(server.url, [("x-persona", "nilou"), ("mcp-session-id", "one")])
    told(call(server.url, era, "recall", [("x-persona", "nilou"), ("mcp-session-id", "one")], query="ひみつ"))
    answer = told(call(server.url, era, "recall", [("mcp-session-id", "one")], query="ひみつ"))
    assert (answer["persona"], answer["hits"]) == ("default", [])


@ERAS
@pytest.mark.parametrize("order", [("nilou", "dehya"), ("dehya", "nilou")])
def test_whatever_contradicts_itself_is_refused_and_reads_nothing(server: RunningServer, era: str, order: tuple[str, str]) -> None:
    first, second = order
    contradictions: list[tuple[str, Headers]] = [
        ("/mcp", [("x-persona", first), ("X-Persona", second)]),
        ("/mcp", [("x-persona", first), ("x-persona", ""), ("x-persona", second)]),
        (f"/p/{first}/mcp", [("x-persona", second)]),
        (f"/p/{first}/mcp", [("x-persona", first), ("x-persona", second)]),
        (f"/p/{first}/mcp", [("x-persona", "")]),
        ("/mcp", [("x-persona", f"{first}, {second}")]),
    ]
    for (path, headers), tool in itertools.product(contradictions, ("recall", "get_context", "remember")):
        arguments = {"content": "乗っ取り"} if tool == "remember" else {"query": "ひみつ"}
        answer = call(server.url, era, tool, headers, path, **arguments)
        assert "ひみつは" not in answer.text
        told_of = told(answer)
        # A comma does not part names: it is one name that nobody has.
        assert "refused" in told_of or (told_of["persona"], told_of.get("new_persona", True)) == (f"{first}, {second}", True)
    for persona in order:
        assert told(call(server.url, era, "recall", [("x-persona", persona)], mode="recent"))["hits"][0]["content"] == f"ひみつは{persona}"


@ERAS
def test_a_header_that_only_resembles_x_persona_names_nobody(server: RunningServer, era: str) -> None:
    for header in ("x-persona-id", "x-persona-name"):
        assert told(call(server.url, era, "recall", [(header, "nilou")], query="ひみつ"))["persona"] == "default"
    for header in ("persona", "x_persona", "x-persona2", "x-personna"):
        assert "refused" in told(call(server.url, era, "recall", [(header, "nilou")], query="ひみつ"))


@ERAS
def test_a_persona_in_the_arguments_or_the_meta_of_a_call_names_nobody(server: RunningServer, era: str) -> None:
    for name in ("persona", "x-persona", "X-Persona", "_persona", "call", "scope"):
        refused = told(call(server.url, era, "recall", [("x-persona", "dehya")], query="ひみつ", **{name: "nilou"}))["refused"]
        assert "has no argument" in refused
        assert "ひみつは" not in refused


@ERAS
def test_a_session_id_from_before_a_restart_opens_nothing_and_hinders_nobody(tmp_path: Path, era: str) -> None:
    old = [("mcp-session-id", "0123456789abcdef0123456789abcdef")]
    with serving(tmp_path, NO_MODELS) as first:
        initialized(first.url, [("x-persona", "nilou"), *old])
        told(call(first.url, era, "remember", [("x-persona", "nilou"), *old], content="ひみつはnilou"))
        assert first.stop() == 0
    with serving(tmp_path, NO_MODELS) as second:
        mine = told(call(second.url, era, "recall", [("x-persona", "nilou"), *old], query="ひみつ"))
        assert [hit["content"] for hit in mine["hits"]] == ["ひみつはnilou"]
        for headers, persona in (([("x-persona", "dehya")], "dehya"), ([], "default")):
            answer = call(second.url, era, "recall", [*headers, *old], query="ひみつ")
            assert "ひみつは" not in answer.text
            assert told(answer)["persona"] == persona


@ERAS
def test_an_answer_does_not_say_how_long_it_took_or_where_it_came_from(server: RunningServer, era: str) -> None:
    answers = [call(server.url, era, "recall", [("x-persona", "nilou")], query="ひみつ") for _ in range(2)]
    for answer in answers:
        assert set(answer.headers) <= {"date", "content-type", "content-length"}
        assert set(told(answer)) == {"persona", "confidence", "mode", "reranked", "degraded", "index_lag", "more", "hits"}
    first, second = ([{**hit, "ago": ""} for hit in told(answer)["hits"]] for answer in answers)
    assert first == second != []
