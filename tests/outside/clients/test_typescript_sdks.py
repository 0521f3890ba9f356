"""Both generations of the official TypeScript SDK against a server process: what they list, call, read, and are refused."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from processes import ROOT, SPAWNED, RunningServer, clean_environment, serving

NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'
CORE = ["get_context", "remember", "recall", "revise", "forget", "update_context"]
LIBRARY_WORDS = ("Traceback", "pydantic", "http://", "https://", "validation error")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# sdk, era as the SDK is told, and the version that both sides then speak. The first SDK speaks the earlier era for both when there is no time.
CLIENTS = [
    ("v1", "legacy", LEGACY),
    pytest.param("v2", "legacy", LEGACY, marks=pytest.mark.thorough),
    ("v2", "auto", MODERN),
]

pytestmark = [pytest.mark.slow, pytest.mark.parametrize(("sdk", "era", "version"), CLIENTS, ids=lambda value: value)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("server"), NO_MODELS) as server:
        yield server


def persona_of(sdk: str, era: str, who: str) -> str:
    """A name that only one client of one test has."""
    return f"{who}-{sdk}-{era}"


def as_persona(name: str) -> dict[str, str]:
    return {"X-Persona": quote(name)}


@pytest.fixture
def sakura(drive: Callable[..., Any], server: RunningServer, sdk: str, era: str) -> Any:
    """A connected client whose persona is named in Japanese."""
    client = drive(sdk, f"{server.url}/mcp", headers=as_persona(persona_of(sdk, era, "さくら")), era=era)
    client("connect")
    return client


def test_a_client_agrees_on_a_version_and_lists_what_there_is(drive, server, sdk, era, version):
    client = drive(sdk, f"{server.url}/mcp", headers=as_persona("nilou"), era=era)
    met = client("connect")
    assert met["version"] == version
    assert met["server"]["name"] == "memory"
    tools = client("tools")
    assert [tool["name"] for tool in tools] == CORE
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" and tool["annotations"] for tool in tools)
    assert {resource["uri"] for resource in client("resources")} == {"memory://info", "memory://stats", "memory://status"}
    assert {prompt["name"] for prompt in client("prompts")} == {"session_start", "memory_protocol"}


def test_a_client_that_starts_the_server_gets_the_same(drive, tmp_path, sdk, era, version):
    (tmp_path / "config.json").write_text(NO_MODELS)
    name, *module = SPAWNED
    arguments = [*module, "stdio", "--data", str(tmp_path / "memory"), "--persona", "さくら"]
    client = drive(sdk, "stdio", stdio={"command": name, "args": arguments, "env": clean_environment(), "cwd": str(ROOT)}, era=era)
    met = client("connect")
    assert met["server"]["name"] == "memory"
    assert met["version"] in (version, None)  # the first SDK knows it only over HTTP
    assert [tool["name"] for tool in client("tools")] == CORE
    assert client.call("remember", content="舞台で踊った")["persona"] == "さくら"
    assert [hit["content"] for hit in client.call("recall", query="舞台")["hits"]] == ["舞台で踊った"]
    assert "query is empty" in client.refusal("recall", query="")


def test_japanese_is_remembered_and_found_as_it_was_said(sakura, sdk, era, version):
    said = "昨日は京都で抹茶パフェを食べた🍵 “美味しい”と言っていた"
    stored = sakura.call("remember", content=said, tags=["旅", "甘味"], state={"emotion": "嬉しい"})
    assert stored["persona"] == persona_of(sdk, era, "さくら")
    found = sakura.call("recall", query="抹茶パフェ")
    assert [(hit["key"], hit["content"], hit["tags"]) for hit in found["hits"]] == [(stored["key"], said, ["旅", "甘味"])]
    assert sakura.call("get_context")["memories"] == 1


def test_resources_and_prompts_arrive(sakura, sdk, era, version):
    (contents,) = sakura("read", uri="memory://info")["contents"]
    assert json.loads(contents["text"])["persona"] == persona_of(sdk, era, "さくら")
    messages = sakura("prompt", name="session_start", arguments={"topic": "京都"})["messages"]
    assert "京都" in messages[0]["content"]["text"]


def test_the_persona_may_stand_in_the_path(drive, server, sdk, era, version):
    name = persona_of(sdk, era, "道/みち")
    client = drive(sdk, f"{server.url}/p/{quote(name, safe='')}/mcp", era=era)
    client("connect")
    assert client.call("remember", content="道の話")["persona"] == name
    same = drive(sdk, f"{server.url}/mcp", headers=as_persona(name), era=era)
    same("connect")
    assert [hit["content"] for hit in same.call("recall", query="道の話")["hits"]] == ["道の話"]


def test_a_call_that_does_not_fit_is_an_answer_in_words(sakura, sdk, era, version):
    for words, refusal in {
        "'content' is missing": sakura.refusal("remember"),
        "top_k": sakura.refusal("recall", query="x", top_k="many"),
        "did you mean content?": sakura.refusal("remember", contents="x"),
        "There is no tool 'remembr'": sakura.refusal("remembr", content="x"),
        "no date that can be understood": sakura.refusal("recall", query="x", date_range="someday"),
    }.items():
        assert words in refusal
        assert not [said for said in LIBRARY_WORDS if said in refusal], refusal
    assert sakura.call("remember", content="そのあとも使える")["stored"]


def test_what_is_not_there_is_an_error_of_the_protocol(sakura, sdk, era, version):
    for told in (sakura.told("read", uri="memory://nothing"), sakura.told("prompt", name="nothing", arguments={})):
        assert told["error"]["code"] in (-32602, -32002), told
        assert not [said for said in LIBRARY_WORDS if said in told["error"]["message"]], told


def test_two_clients_of_two_personas_never_see_each_other(drive, server, sdk, era, version):
    names = [persona_of(sdk, era, who) for who in ("胡桃", "甘雨")]
    clients = [drive(sdk, f"{server.url}/mcp", headers=as_persona(name), era=era) for name in names]
    for client in clients:
        client("connect")
    for number in range(5):
        for client, name in zip(clients, names, strict=True):
            client.call("remember", content=f"{name}の秘密その{number}")
    for client, name in zip(clients, names, strict=True):
        contents = {hit["content"] for hit in client.call("recall", query="秘密", top_k=50)["hits"]}
        assert contents == {f"{name}の秘密その{number}" for number in range(5)}


def test_a_client_outlives_a_restart_of_the_server(drive, tmp_path, sdk, era, version):
    with serving(tmp_path, NO_MODELS) as first:
        port = int(first.url.rpartition(":")[2])
        client = drive(sdk, f"{first.url}/mcp", headers=as_persona("nilou"), era=era)
        client("connect")
        key = client.call("remember", content="再起動の前")["key"]
    assert "error" in client.told("call", name="recall", arguments={"query": "再起動"})
    with serving(tmp_path, NO_MODELS, port=port):
        assert [hit["key"] for hit in client.call("recall", query="再起動")["hits"]] == [key]
        assert client.call("remember", content="再起動の後")["stored"]


def test_a_session_that_the_server_never_gave_changes_nothing(drive, server, sdk, era, version):
    name = persona_of(sdk, era, "stale")
    client = drive(sdk, f"{server.url}/mcp", headers=as_persona(name), era=era, sessionId="of-an-earlier-server")
    client("connect")
    assert client.call("remember", content="古いセッション")["persona"] == name
    assert client.call("recall", query="セッション")["persona"] == name
