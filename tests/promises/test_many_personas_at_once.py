"""Callers of each of eight personas, everything at once: no answer, no file and no log holds a byte of another persona's memories."""

import asyncio
import functools
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from figures import Figure
from overhearing import Overheard, mark_of, marks_in, overhearing_client
from persona_days import ROUTES, SHARED, Caller, a_day
from plain_mcp import EARLIER, LATER, PlainMcp
from processes import RunningServer, serving

from memory_mcp.config.settings import Settings
from memory_mcp.personas.names import directory_name
from memory_mcp.server.application import mcp_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

PERSONAS = ("a/b", "a_b", "a-b", "A-B", "..", "さくら", "がく", "con")
NOBODY = "nobody-yet"
CALLERS_EACH, THOROUGH_CALLERS_EACH = 1, 8  # half of them in either era, and half of those by header and half by path
REAL_CLIENTS_EACH = 2  # the others send what they would send
TOOLSETS = ["core", "upkeep", "compat", "graph", "experience"]
SETTLE_SECONDS = 90


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, embedder_directory: Path, reranker_directory: Path) -> Iterator[RunningServer]:
    """With both models, rebuilding whenever nobody calls."""
    config = {
        "embeddings_model": str(embedder_directory),
        "inference_backend": "torch",
        "reranker_model": str(reranker_directory),
        "embeddings_languages": ["ja", "en"],
        "reranker_languages": ["ja", "en"],
        "rerank_deadline_ms": 0,
        "toolsets": TOOLSETS,
        "vector_rebuild": {"mode": "auto", "idle_seconds": 0, "min_interval": 0},
        "upkeep": {"idle_seconds": 0},
        "summaries": {"quiet_minutes": 0, "interval_minutes": 0.01, "min_memories": 2},
    }
    with serving(tmp_path_factory.mktemp("crowd"), json.dumps(config)) as server:
        settled(server)
        yield server


def settled(server: RunningServer) -> dict[str, Any]:
    """/ready, once both models are there and every memory has its vector."""
    pause = threading.Event()
    told: dict[str, Any] = {}
    for _ in range(SETTLE_SECONDS * 4):
        told = httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()
        if {model["state"] for model in told["models"].values()} == {"loaded"} and not told["index_lag"]:
            return told
        pause.wait(0.25)
    pytest.fail(f"not settled: {told}\n{server.log.read_text(encoding='utf-8')}")


@pytest.fixture(scope="module")
def callers_each(request: pytest.FixtureRequest) -> int:
    return THOROUGH_CALLERS_EACH if request.config.getoption("--thorough") else CALLERS_EACH


@pytest.fixture(scope="module")
def day(server: RunningServer, callers_each: int) -> tuple[Overheard, set[str]]:
    """What was heard, and what was done, in the days of all callers."""
    overheard = Overheard()
    return overheard, asyncio.run(all_at_once(server, overheard, callers_each))


async def all_at_once(server: RunningServer, overheard: Overheard, callers_each: int) -> set[str]:
    keys: dict[str, list[str]] = {persona: [] for persona in (*PERSONAS, NOBODY)}
    async with AsyncExitStack() as stack:
        callers = [await joined(stack, server, overheard, persona, number, keys) for number in range(callers_each) for persona in PERSONAS]
        callers += [await joined(stack, server, overheard, NOBODY, number, keys) for number in range(2)]
        done = await asyncio.gather(*(a_day(caller) for caller in callers))
    return set().union(*done)


async def joined(
    stack: AsyncExitStack, server: RunningServer, overheard: Overheard, persona: str, number: int, keys: dict[str, list[str]]
) -> Caller:
    """A caller: every other one in the earlier era of the protocol; by the path instead of the header in an order that differs by persona."""
    place = (*PERSONAS, NOBODY).index(persona)
    turn, earlier = number // 2 + place // (1 + number % 2), (number + place // 2) % 2
    by_path = turn % 2 and persona != ".."  # which clients take out of a URL
    headers = {} if by_path else {"X-Persona": quote(persona)}
    prefix = f"/p/{quote(persona, safe='')}" if by_path else ""

    def http(headers: dict[str, str] | None = None, **options: Any) -> httpx2.AsyncClient:
        return overhearing_client(overheard, persona, headers=headers, **options)

    plain = await stack.enter_async_context(http(headers, base_url=server.url, timeout=120))
    mcp: Client | PlainMcp = PlainMcp(plain, f"{prefix}/mcp", EARLIER if earlier else LATER)
    if number < REAL_CLIENTS_EACH:
        transport = StreamableHttpTransport(f"{server.url}{prefix}/mcp", headers=headers, httpx_client_factory=http)
        mcp = await stack.enter_async_context(Client(transport, mode="legacy" if earlier else "auto", timeout=120))
    chance = random.Random(f"{persona} {number}")

    def stolen() -> list[str]:
        return [key for other, theirs in keys.items() if other != persona for key in theirs[-3:]]

    return Caller(persona, mcp, plain, prefix, chance, keys[persona], stolen, exists=persona != NOBODY)


def exported(server: RunningServer, persona: str) -> list[dict[str, Any]]:
    """The lines of an export: memories, which have a key, and what was said of the graph."""
    answer = httpx2.get(
        f"{server.url}/api/export", params={"include_deleted": "true"}, headers={"X-Persona": quote(persona)}, timeout=60, trust_env=False
    )
    return [json.loads(line) for line in answer.raise_for_status().content.splitlines()]


def test_no_answer_holds_a_byte_of_somebody_elses(
    server: RunningServer, day: tuple[Overheard, set[str]], callers_each: int, figure: Figure
) -> None:
    overheard, _ = day
    owners = {row["key"]: persona for persona in PERSONAS for row in exported(server, persona) if "key" in row}
    foreign = overheard.foreign(owners)
    figure("calls across personas", f"{overheard.calls:,} ({len(owners):,} memories, {overheard.size:,} bytes of answers)")
    figure("foreign rows", len(foreign))
    assert foreign == []
    assert set(overheard.statuses) <= {200, 202, 404}  # of a link to what is somebody else's
    for persona in PERSONAS:
        assert overheard.marks[persona][mark_of(persona)] > 50 * callers_each
        assert len([owner for owner in owners.values() if owner == persona]) > 10 * callers_each
    assert not overheard.marks[NOBODY]
    assert not overheard.keys[NOBODY]


def test_every_tool_and_every_route_took_part(day: tuple[Overheard, set[str]]) -> None:
    _, done = day
    mcp = mcp_server(Settings(toolsets=TOOLSETS))
    tools = asyncio.run(mcp.list_tools(run_middleware=False))
    resources = asyncio.run(mcp.list_resources(run_middleware=False))
    prompts = asyncio.run(mcp.list_prompts(run_middleware=False))
    offered = {tool.name for tool in tools} | {str(resource.uri) for resource in resources} | {prompt.name for prompt in prompts}
    assert offered - done == set()
    assert {route.path for route in mcp._get_additional_http_routes()} - set(ROUTES) == set()


def test_summaries_were_made_for_everybody_meanwhile(
    server: RunningServer, day: tuple[Overheard, set[str]], eventually: Callable[[Callable[[], bool]], None]
) -> None:
    def summarized(persona: str) -> bool:
        return any(row.get("kind") == "summary" for row in exported(server, persona))

    for persona in PERSONAS:
        eventually(functools.partial(summarized, persona))


def test_nothing_of_anybody_was_changed_by_somebody_else(server: RunningServer, day: tuple[Overheard, set[str]]) -> None:
    for persona in PERSONAS:
        rows = exported(server, persona)
        assert marks_in(json.dumps(rows).encode()) == {mark_of(persona)}
        told = [row for row in rows if "key" in row]
        assert all(marks_in(json.dumps(row).encode()) for row in told)
        assert not [row for row in told if "乗っ取り" in row["content"] or "書き換える" in row["content"]]


def test_the_models_and_the_worker_took_part_and_what_was_cached_for_one_is_right_for_the_other(
    server: RunningServer, day: tuple[Overheard, set[str]], eventually: Callable[[Callable[[], bool]], None]
) -> None:
    eventually(lambda: settled(server)["index"]["last_rebuild"])
    for persona in PERSONAS:
        for text in SHARED:
            call = {"name": "recall", "arguments": {"query": text}}
            answer = httpx2.post(
                f"{server.url}/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                headers={"accept": "application/json, text/event-stream", "X-Persona": quote(persona)},
                timeout=60,
                trust_env=False,
            )
            told = answer.json()["result"]["structuredContent"]
            assert (told["persona"], told["mode"], told["reranked"], told["degraded"]) == (persona, "hybrid", True, [])
            assert told["hits"]
            assert marks_in(answer.content) == {mark_of(persona)}


def test_the_files_of_a_persona_and_the_logs_hold_nothing_of_another(server: RunningServer, day: tuple[Overheard, set[str]]) -> None:
    assert server.stop() == 0
    directories = {directory_name(persona): persona for persona in PERSONAS}
    assert {entry.name for entry in server.data.iterdir() if entry.is_dir()} == {*directories, ".unfinished", ".personas"}
    assert list((server.data / ".unfinished").iterdir()) == []
    for directory, persona in directories.items():
        files = [file for file in (server.data / directory).rglob("*") if file.is_file()]
        assert set().union(*(marks_in(file.read_bytes()) for file in files)) == {mark_of(persona)}
    for log in (server.log, *server.data.glob("memory_operations.log*")):
        said = log.read_text(encoding="utf-8")
        assert marks_in(said.encode()) == set()
        assert not [text for text in SHARED if text in said]
        assert "Traceback" not in said
