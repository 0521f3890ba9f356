"""One conversation over the wires of all four vendors, spoken by aimock, with our real server."""

import asyncio
import gc
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from node_packages import PACKAGES, Node
from processes import SPAWNED, RunningServer, clean_environment, command, serving

from memory_mcp.chat import ApprovalNeeded, Connection, Conversation, CutOff, Failed, Retrying, TextPiece, ToolResult, TurnEnded, Usage
from memory_mcp.features.chat import turn as turns

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    # Of aimock's answers as Gemini, and of google-genai on its way to an error.
    pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason:UserWarning"),
    pytest.mark.filterwarnings("ignore:coroutine 'ClientResponse.json' was never awaited"),
]

MODELS = ["openai:gpt-x", "anthropic:claude-x", "google:gemini-x", "ollama:llama-x"]
KEY = "sk-proj-Nw0tAr3alK3yButL00ksLik3One4242"
TOLD = "健太は苺が好き"
FIXTURES = [
    {"match": {"userMessage": TOLD, "hasToolResult": False}, "response": {"toolCalls": [{"name": "remember", "arguments": json.dumps({"content": f"{TOLD}。"})}]}},
    {"match": {"userMessage": TOLD, "toolResultContains": "stored: yes"}, "response": {"content": "覚えたよ。いつでも聞いてね、ちゃんと覚えているから。"}},
    {"match": {"userMessage": TOLD, "toolResultContains": "does not allow"}, "response": {"content": "わかった、覚えないでおくね。"}},
    {"match": {"userMessage": "好物は", "toolResultContains": TOLD}, "response": {"content": "苺だよ。"}},
    {
        "match": {"userMessage": "好物は"},
        "response": {"toolCalls": [{"name": "recall", "arguments": '{"query": "健太の好物"}'}, {"name": "get_context", "arguments": "{}"}]},
    },
    {"match": {"userMessage": "続きは"}, "response": {"content": "その続きはね、", "finishReason": "length"}},
    {"match": {"userMessage": "おやすみ"}, "response": {"content": "おやすみなさい。"}},
    {"match": {"userMessage": "夜更かし", "hasToolResult": False}, "response": {"toolCalls": [{"name": "remember", "arguments": '{"content": "健太は夜更かしした。"}'}]}},
    {"match": {"userMessage": "夜更かし", "hasToolResult": True}, "response": {"content": "それは大変だったね。" * 20}, "latency": 20_000},
]  # fmt: skip


@dataclass(frozen=True)
class Vendors:
    """aimock: all four vendors at one address."""

    url: str

    def fail(self, **rates: float) -> None:
        """From now on calls fail so, or, without rates, no longer."""
        if rates:
            assert httpx2.post(f"{self.url}/__aimock/chaos", json=rates).is_success
        else:
            httpx2.delete(f"{self.url}/__aimock/chaos")

    def bodies(self) -> list[Any]:
        """What was sent to the vendors."""
        return httpx2.get(f"{self.url}/__aimock/journal").json()


@pytest.fixture(scope="module")
def vendors(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendors]:
    fixtures: Path = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}), encoding="utf-8")
    process = node.started(PACKAGES / "@copilotkit" / "aimock" / "dist" / "cli.js", "-p", "0", "-f", str(fixtures), "--strict")
    try:
        while not (found := re.search(r"listening on (\S+)", process.stdout.readline())):
            assert process.poll() is None
        yield Vendors(found[1])
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("server"), '{"embeddings_model": null, "reranker_model": null}') as server:
        yield server


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """One event loop for all conversations: the vendors' classes keep their connections open, and share them."""

    async def close_connections() -> None:
        for kept in gc.get_objects():
            if isinstance(kept, httpx.AsyncClient | httpx2.AsyncClient):
                await kept.aclose()
            elif isinstance(kept, aiohttp.ClientSession):
                await kept.close()
        await asyncio.sleep(0)  # aiohttp's sockets close in the next round of the loop

    with start_blocking_portal() as portal:
        yield portal
        portal.call(close_connections)


@pytest.fixture(autouse=True)
def environment(vendors: Vendors, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name, path in {"OPENAI_BASE_URL": "/v1", "ANTHROPIC_BASE_URL": "", "GOOGLE_GEMINI_BASE_URL": "", "OLLAMA_HOST": ""}.items():
        monkeypatch.setenv(name, f"{vendors.url}{path}")
    monkeypatch.setattr(turns, "RETRY_SECONDS", 0.01)
    vendors.fail()


@pytest.fixture
def run(portal):
    """run(conversation, *lines): the events of each turn. A line `/model …` changes the model."""
    return lambda conversation, *lines: portal.call(_run, conversation, *lines)


async def _run(conversation, *lines):
    async def said(line):
        found = []
        async for event in conversation.say(line):
            found.append(event)
            if isinstance(event, ApprovalNeeded):
                conversation.answer(event.call.id, allowed=True)
        return found

    async def all_of_them():
        async with conversation:
            turns = []
            for line in lines:
                if line.startswith("/model "):
                    conversation.switch(line.removeprefix("/model "))
                else:
                    turns.append(await said(line))
            return turns

    return await all_of_them()


def text(events):
    return "".join(event.text for event in events if isinstance(event, TextPiece))


@pytest.mark.parametrize("model", MODELS)
def test_with_every_vendor_the_model_remembers_streams_and_recalls(memory, run, model):
    conversation = Conversation(model, Connection(memory.url, persona=f"whole {model[:6]}"))
    told, asked = run(conversation, TOLD, "健太の好物は？")
    assert text(told).startswith("覚えたよ。")
    assert len([event for event in told if isinstance(event, TextPiece)]) > 1
    assert [event.stored.text for event in told if isinstance(event, ToolResult)] == [f"{TOLD}。"]
    results = [event for event in asked if isinstance(event, ToolResult)]
    assert {event.call.name for event in results} == {"recall", "get_context"}
    assert all(event.recalled for event in results)
    assert all(event.recalled[0].why for event in results if event.call.name == "recall")
    assert text(asked) == "苺だよ。"
    assert asked[-1].outcome == "done"
    assert any(isinstance(event, Usage) for event in asked)


@pytest.mark.parametrize("model", MODELS)
def test_with_every_vendor_half_an_answer_says_that_it_is_one_and_a_whole_one_says_why_it_ended(memory, run, model):
    half, whole = run(Conversation(model, Connection(memory.url, persona=f"half {model[:6]}")), "続きは？", "おやすみ")
    if not model.startswith("ollama:"):  # as which aimock ends each answer alike
        assert [event.why for event in half if isinstance(event, CutOff)] == ["limit"]
        assert half[-1].reason in {"length", "max_tokens"}
    assert not [event for event in whole if isinstance(event, CutOff)]
    assert whole[-1].reason in {"stop", "end_turn"}


def test_the_vendor_changes_in_mid_conversation_and_the_memories_are_the_same(memory, run):
    persona = "traveller"
    lines = [TOLD, *(part for model in MODELS[1:] for part in (f"/model {model}", "健太の好物は？"))]
    told, *answers = run(Conversation(MODELS[0], Connection(memory.url, persona=persona)), *lines)
    assert told[-1].outcome == "done"
    assert [text(events) for events in answers] == ["苺だよ。"] * 3
    hits = Connection(memory.url, persona=persona).get_json("/api/recall", query="", mode="recent")["hits"]
    assert [hit["content"] for hit in hits] == [f"{TOLD}。"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"dropRate": 1}, "its vendor has a problem (500)"),
        ({"malformedRate": 1}, "its answer can't be read"),
        ({"disconnectRate": 1}, "the connection broke off"),
        ({"rateLimitRate": 1}, "too many calls"),
    ],
)
def test_every_failure_of_a_vendor_is_told_in_the_same_words_after_two_attempts(memory, run, vendors, model, rates, words, monkeypatch):
    monkeypatch.setattr(turns, "RETRIES", 1)
    vendors.fail(**rates)
    conversation = Conversation(model, Connection(memory.url, persona="failing"))
    (events,) = run(conversation, "おやすみ")
    assert [type(event) for event in events] == [Retrying, Failed, TurnEnded]
    assert words in events[1].why
    assert events[1].do
    assert conversation.messages == []
    if "rateLimitRate" in rates:
        assert events[0].seconds >= 1  # as Retry-After says


@pytest.mark.parametrize("model", MODELS)
def test_nobody_listening_and_a_key_that_is_missing_are_told_so(memory, run, model, monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (events,) = run(Conversation(model, Connection(memory.url, persona="nobody")), "おやすみ")
    assert events[2].why == "nobody answers at its address"


def test_no_key_is_in_a_log_in_a_memory_or_in_what_models_are_told(memory, run, vendors):
    for model in MODELS:
        run(Conversation(model, Connection(memory.url, persona="keys"), keep_transcript=True), TOLD)
    assert KEY not in memory.log.read_text(encoding="utf-8")
    assert KEY not in json.dumps([entry.get("body") for entry in vendors.bodies()])
    files = [path for path in memory.data.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def said_once(memory, *arguments, stdin=None):
    keys = {name: os.environ[name] for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")}
    return command("chat", "--model", "anthropic:claude-x", *arguments, environment={"MEMORY_MCP_URL": memory.url, **keys}, stdin=stdin)


def test_a_script_gets_the_answer_alone_on_stdout_and_writes_only_with_yes(memory):
    refused = said_once(memory, "-p", "script", "--once", TOLD)
    assert (refused.returncode, refused.stdout) == (0, "わかった、覚えないでおくね。\n")
    assert "memory-mcp: remember was not allowed: --yes allows it" in refused.stderr
    piped = said_once(memory, "-p", "script", "--json", "--yes", stdin=TOLD.encode())
    answer = json.loads(piped.stdout)
    assert answer["answer"].startswith("覚えたよ。")
    assert [tool["stored"]["text"] for tool in answer["tools"]] == [f"{TOLD}。"]


def test_a_conversation_that_is_killed_leaves_no_half_of_a_turn(memory, eventually):
    line = [*SPAWNED, "chat", "-p", "killed", "-m", "openai:gpt-x", "--once", "昨日は夜更かしした", "--yes", "--transcript"]
    process = subprocess.Popen(line, env=clean_environment({"MEMORY_MCP_URL": memory.url}), stdout=subprocess.PIPE)

    def texts():
        hits = Connection(memory.url, persona="killed").get_json("/api/recall", query="", mode="recent")["hits"]
        return [hit["content"] for hit in hits]

    eventually(lambda: texts() == ["健太は夜更かしした。"])
    process.kill()
    process.communicate()
    assert texts() == ["健太は夜更かしした。"]


def test_many_conversations_at_once_keep_their_memories_apart(memory, portal, thorough):
    count = 50 if thorough else 16

    async def one(number):
        async with Conversation(MODELS[number % 4], Connection(memory.url, persona=f"crowd {number}"), allowed=["*"]) as conversation:
            async for event in conversation.say(f"{TOLD} {number}"):
                if isinstance(event, TurnEnded):
                    return event.outcome
        return None

    async def all_of_them():
        return await asyncio.gather(*map(one, range(count)))

    assert portal.call(all_of_them) == ["done"] * count
    for number in (0, count - 1):
        answer = Connection(memory.url, persona=f"crowd {number}").get_json("/api/recall", query="", mode="recent")
        assert [hit["content"] for hit in answer["hits"]] == [f"{TOLD}。"]
