"""OpenAI's SDKs for Python and JavaScript, and SillyTavern's and LibreChat's ways to call, over the gateway, before aimock: streams, tools, images, errors, cancel and retry."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from node_packages import PACKAGES, Node
from processes import RunningServer, serving

pytestmark = pytest.mark.slow

KEY = "sk-proj-Nw0tAr3alK3yButL00ksLik3One4242"
LONG = "それは大変だったね。" * 30
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
FIXTURES = [
    {"match": {"userMessage": "好物は"}, "response": {"content": "苺だよ。"}},
    {"match": {"userMessage": "天気", "hasToolResult": False}, "response": {"toolCalls": [{"name": "weather", "arguments": "{}"}]}},
    {"match": {"userMessage": "天気", "hasToolResult": True}, "response": {"content": "晴れだよ。"}},
    {"match": {"userMessage": "何が見える"}, "response": {"content": "猫だね。"}},
    {"match": {"userMessage": "長い話"}, "response": {"content": LONG}, "latency": 200},
    {"match": {"userMessage": "断って"}, "response": {"error": {"message": "not that", "type": "invalid_request_error", "code": "no"}, "status": 400}},
    {"match": {"userMessage": "おはよう"}, "response": {"content": "おはようございます。"}},
]  # fmt: skip


@pytest.fixture(scope="module")
def aimock(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    fixtures: Path = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}), encoding="utf-8")
    process = node.started(PACKAGES / "@copilotkit" / "aimock" / "dist" / "cli.js", "-p", "0", "-f", str(fixtures), "--strict")
    try:
        while not (found := re.search(r"listening on (\S+)", process.stdout.readline())):
            assert process.poll() is None
        yield found[1]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def server(aimock: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    vendors = {"mock": {"url": f"{aimock}/v1", "key": "env:MOCK_KEY"}}
    config = json.dumps({"embeddings_model": None, "reranker_model": None, "llm": {"vendors": vendors}})
    with serving(tmp_path_factory.mktemp("server"), config, environment={"MOCK_KEY": KEY}) as server:
        yield server


def of_python(base_url: str, deed: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
    retries = 2 if deed == "retry" else 0
    with openai.OpenAI(base_url=base_url, api_key="anything", default_headers=headers, max_retries=retries) as client:
        try:
            if deed == "models":
                return [model.id for model in client.models.list()]
            if deed in ("create", "retry"):
                return client.chat.completions.create(**body).choices[0].model_dump()
            text, finish = "", None
            with client.chat.completions.create(**body, stream=True) as chunks:
                for chunk in chunks:
                    if deed == "cancel":
                        return "canceled"
                    text += chunk.choices[0].delta.content or ""
                    finish = chunk.choices[0].finish_reason or finish
        except openai.APIStatusError as error:
            return {"error": {"status": error.status_code, "code": error.code, "message": error.message}}
        return {"text": text, "finish": finish}


@pytest.fixture(params=["python", "openai", "sillytavern", "librechat"])
def ask(request: pytest.FixtureRequest, node: Node, server: RunningServer) -> Callable[..., Any]:
    """ask(deed, persona, *messages, **body): what an SDK got. A text is a message of the user."""

    def ask(deed: str, persona: str, *messages: Any, **body: Any) -> Any:
        said = [message if isinstance(message, dict) else {"role": "user", "content": message} for message in messages]
        headers = {"X-Persona": f"{persona}-{request.param}"}
        given = {"model": "mock/gpt-x", "messages": said, **body}
        if request.param == "python":
            return of_python(f"{server.url}/v1", deed, headers, given)
        done = node.run(
            PACKAGES.parent / "gateway.mjs", request.param, f"{server.url}/v1", deed, json.dumps({"headers": headers, "body": given})
        )
        return json.loads(done.stdout)

    ask.stored = lambda persona: stored(server, f"{persona}-{request.param}")
    return ask


def stored(server: RunningServer, persona: str) -> list[str]:
    found = httpx2.get(f"{server.url}/api/memories", headers={"X-Persona": persona}).json()["memories"]
    return sorted(memory["content"] for memory in found)


def test_streams_answers_at_once_images_and_tools_pass_and_are_kept(ask):
    assert ask("stream", "all", "健太の好物は？") == {"text": "苺だよ。", "finish": "stop"}
    assert ask("create", "all", "おはよう")["message"]["content"] == "おはようございます。"
    picture = [{"type": "text", "text": "何が見える？"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    assert ask("create", "all", {"role": "user", "content": picture})["message"]["content"] == "猫だね。"
    called = ask("create", "all", "天気は？", tools=[WEATHER])
    assert called["finish_reason"] == "tool_calls"
    call = {key: called["message"]["tool_calls"][0][key] for key in ("id", "type", "function")}
    history = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call["id"], "content": "晴れ"}]
    assert ask("create", "all", "天気は？", *history, tools=[WEATHER])["message"]["content"] == "晴れだよ。"
    kept = ["健太の好物は？", "苺だよ。", "おはよう", "おはようございます。", "何が見える？ [image]", "猫だね。", "天気は？", "晴れだよ。"]
    assert ask.stored("all") == sorted(kept)


@pytest.mark.parametrize(
    "body", [{"stream": True, "stream_options": {"include_usage": True}}, {"stream": False}, {"tools": [WEATHER], "stream": True}]
)
def test_the_bytes_that_pass_are_the_vendors_but_for_what_it_makes_anew_at_each_call(server, aimock, body):
    said = [{"role": "user", "content": "天気は？" if "tools" in body else "健太の好物は？"}]
    call = {"messages": said, "model": "gpt-x", **body}
    direct = httpx2.post(f"{aimock}/v1/chat/completions", json=call)
    passed = httpx2.post(f"{server.url}/v1/chat/completions", json={**call, "model": "mock/gpt-x"}, headers={"X-Persona": "bytes"})
    assert (passed.status_code, passed.headers["content-type"]) == (200, direct.headers["content-type"])
    anew = rb'"(id|created|system_fingerprint)":("[^"]*"|\d+)'
    assert re.sub(anew, b"", passed.content) == re.sub(anew, b"", direct.content)
    assert len(direct.content) > 100


def test_errors_of_the_vendor_and_of_the_server_are_understood_and_nothing_is_kept(ask, server, aimock):
    refused = ask("create", "wrong", "断って")["error"]
    assert (refused["status"], refused["code"]) == (400, "no")
    unknown = ask("create", "wrong", "おはよう", model="nobody/m")["error"]
    assert (unknown["status"], unknown["code"]) == (404, "model_not_found")
    assert ask.stored("wrong") == []
    assert KEY not in server.log.read_text(encoding="utf-8")


def test_a_call_that_is_tried_again_and_one_that_is_canceled_are_stored_as_often_as_they_were_answered(ask, aimock):
    httpx2.post(f"{aimock}/__aimock/chaos", json={"dropRate": 0.5}).raise_for_status()
    try:
        results = [ask("retry", "again", "おはよう") for _ in range(3)]
    finally:
        httpx2.delete(f"{aimock}/__aimock/chaos")
    answered = [result for result in results if "message" in result]
    assert ask.stored("again") == (sorted(["おはよう", "おはようございます。"]) if answered else [])
    assert ask("cancel", "stop", "長い話をして") == "canceled"
    assert ask.stored("stop") == []
