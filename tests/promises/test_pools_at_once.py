"""Members and strangers of pools call at once, some where they may not: nobody hears of a store that isn't theirs, and who leaves hears no more."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from figures import Figure
from overhearing import Overheard, mark_of, marks_in, overhearing_client
from plain_mcp import EARLIER, LATER, PlainMcp
from processes import RunningServer, serving

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.personas.names import directory_name, pool_store
from memory_mcp.store.files.access_tokens import create_token

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

CALLS, THOROUGH_CALLS = 720, 100_000
WRITERS = {"team-a": {"alice"}, "案内": {"carol"}}
READERS = {"team-a": {"alice", "ベス", "a/b"}, "案内": {"carol", "a/b"}}
# One has the name of a pool, and is no member of it.
PERSONAS = ("alice", "ベス", "carol", "a/b", "stranger", "team-a")
LEAVING = "ベス"
SHARED = ("配布は金曜日の夜にしない。", "祇園は夕方が美しい。", "Deploy on Tuesday mornings.")
QUESTIONS = ("配布はいつ？", "夕方の祇園", "When do we deploy?")


def roles(leaving: str = "") -> dict[str, Any]:
    return {pool: {"readers": sorted(READERS[pool] - {leaving}), "writers": sorted(WRITERS[pool])} for pool in READERS}


def stores_of(persona: str, left: str = "") -> set[str]:
    """The stores that this persona may hear of."""
    return {persona} | {f"@{pool}" for pool, readers in READERS.items() if persona in readers and persona != left}


@dataclass
class Member:
    """One client of a persona with its token."""

    persona: str
    mcp: PlainMcp
    http: httpx2.AsyncClient
    chance: random.Random
    keys: dict[str, list[str]]
    left: str
    refused: int = 0
    done: int = 0

    async def call(self) -> None:
        """One call of chance, as often as not one that it may not make."""
        pool = self.chance.choice(sorted(READERS))
        may_write, may_read = self.persona in WRITERS[pool], f"@{pool}" in stores_of(self.persona, self.left)
        kind = self.chance.randrange(8)
        if kind == 0:
            await self.remember(self.persona)
        elif kind == 1:
            await self.remember(f"@{pool}", pool=pool)
        elif kind <= 3:
            await self.ask()
        elif kind == 4:
            await self.mcp.call_tool("get_context", {"query": self.chance.choice(QUESTIONS)})
        elif kind == 5:
            await self.touch()
        else:
            await self.route(pool, may_read=may_read, may_write=may_write)
        self.done += 1

    async def remember(self, store: str, **where: str) -> None:
        content = f"{self.chance.choice(SHARED)} {mark_of(store)} {self.chance.getrandbits(40):x}"
        marked = {"tags": [mark_of(store)], "source": mark_of(store), "session_id": "s", "relations": [f"{mark_of(store)} > likes > 苺"]}
        told = await self.mcp.call_tool("remember", {"content": content, **marked, **where})
        allowed = not where or self.persona in WRITERS[where["pool"]]
        assert told.is_error is not allowed, (self.persona, store)
        if not told.is_error:
            self.keys.setdefault(store, []).append(told.structured_content["key"])
        self.refused += told.is_error

    async def ask(self) -> None:
        ask = self.chance.choice(QUESTIONS)
        some = [key for keys in self.keys.values() for key in keys[-2:]]
        arguments = self.chance.choice(
            [{"query": ask}, {"query": ask, "top_k": 50, "max_tokens": 20_000}, {"mode": "recent", "top_k": 50}, {"query": "苺", "mode": "graph"},
             {"query": ask, "detail": "why"}, {"keys": some or ["x"]}]
        )  # fmt: skip
        told = await self.mcp.call_tool("recall", arguments)
        assert not told.is_error
        for hit in told.structured_content["hits"]:
            assert marks_in(hit["content"].encode()) == {mark_of(f"@{hit['pool']}" if "pool" in hit else self.persona)}

    async def touch(self) -> None:
        """Correct or forget a memory of any store."""
        store = self.chance.choice([*self.keys] or [self.persona])
        key = self.chance.choice(self.keys.get(store, ["x"]))
        mine = store == self.persona or (store.startswith("@") and self.persona in WRITERS[store[1:]])
        if self.chance.random() < 0.5:
            told = await self.mcp.call_tool("revise", {"key": key, "content": f"改 {mark_of(store if mine else self.persona)} {key}"})
            self.refused += told.is_error
            assert mine or told.is_error, (self.persona, store)
        else:
            told = await self.mcp.call_tool("forget", {"keys": [key]})
            assert mine or told.is_error or told.structured_content["outcomes"][0]["outcome"] == "not_found"

    async def route(self, pool: str, *, may_read: bool, may_write: bool) -> None:
        addressed = {"X-Pool": quote(pool)}
        method, path, sent, allowed = self.chance.choice(
            [
                ("GET", "/api/export", {}, may_read),
                ("GET", "/api/stats", {}, may_read),
                ("GET", "/api/recall", {"params": {"query": QUESTIONS[0]}}, may_read),
                ("GET", "/api/memories", {}, may_read),
                ("GET", "/api/graph/snapshot", {"params": {"format": "json"}}, may_read),
                ("GET", "/api/operations", {}, may_read),
                ("GET", "/api/personas", {}, True),
                ("POST", "/api/import", {"content": json.dumps({"content": f"持ち込み {mark_of('@' + pool)} {self.done}"})}, may_write),
                ("POST", "/api/purge", {"json": {}}, may_write),
                ("POST", "/api/persona/rename", {"json": {"to": "x"}}, False),
                ("PATCH", "/api/context", {"json": {"emotion": mark_of(f"@{pool}")}}, may_write),
            ]
        )
        answer = await self.http.request(method, path, headers=addressed, **sent)
        assert (answer.status_code == 200) is allowed, (self.persona, pool, method, path, answer.status_code, answer.text)
        self.refused += not allowed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """By words alone: with models a call takes five times as long. What they share is heard in `test_many_personas_at_once`."""
    models = {"embeddings_model": None, "reranker_model": None}
    with serving(tmp_path_factory.mktemp("pools"), json.dumps({**models, "pools": roles(), "toolsets": ["core", "graph"]})) as server:
        yield server


@pytest.fixture(scope="module")
def owner(server: RunningServer) -> dict[str, str]:
    """The headers of the owner. Making its token is what makes tokens required."""
    secret = create_token(server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=datetime.now(UTC))[1]
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def days(server: RunningServer, owner: dict[str, str], request: pytest.FixtureRequest) -> tuple[Overheard, Overheard, int]:
    """What was heard before and after one has left a pool, and how often somebody was refused."""
    calls = THOROUGH_CALLS if request.config.getoption("--thorough") else CALLS
    before, after = Overheard(), Overheard()
    keys: dict[str, list[str]] = {}
    refused = asyncio.run(all_at_once(server, before, calls // 2, keys, ""))
    changed = httpx2.patch(f"{server.url}/api/config", json={"values": {"pools": roles(LEAVING)}}, headers=owner, trust_env=False)
    assert changed.status_code == 200, changed.text
    refused += asyncio.run(all_at_once(server, after, calls // 2, keys, LEAVING))
    return before, after, refused


async def all_at_once(server: RunningServer, overheard: Overheard, calls: int, keys: dict[str, list[str]], left: str) -> int:
    async with AsyncExitStack() as stack:
        members = []
        for number in range(2):
            for persona in PERSONAS:
                secret = create_token(server.data, name="", personas=[persona], scopes=TOKEN_SCOPES, now=datetime.now(UTC))[1]
                headers = {"Authorization": f"Bearer {secret}", **({"X-Persona": quote(persona)} if number else {})}
                http = await stack.enter_async_context(
                    overhearing_client(overheard, persona, headers=headers, base_url=server.url, timeout=120)
                )
                mcp = PlainMcp(http, "/mcp", EARLIER if number else LATER)
                members.append(Member(persona, mcp, http, random.Random(f"{persona} {number} {left}"), keys, left))

        async def day(member: Member) -> None:
            for _ in range(-(-calls // len(members))):
                await member.call()

        await asyncio.gather(*map(day, members))
        return sum(member.refused for member in members)


def exported(server: RunningServer, owner: dict[str, str], store: str) -> bytes:
    named = {"X-Pool": quote(store[1:])} if store.startswith("@") else {"X-Persona": quote(store)}
    url = f"{server.url}/api/export?include_deleted=true"
    return bytes(httpx2.get(url, headers=owner | named, timeout=120, trust_env=False).raise_for_status().content)


def test_no_answer_holds_a_byte_of_a_store_that_its_caller_may_not_read(
    server: RunningServer, owner: dict[str, str], days: tuple[Overheard, Overheard, int], figure: Figure
) -> None:
    before, after, refused = days
    stores = [*PERSONAS, *(f"@{pool}" for pool in READERS)]
    rows = {store: [json.loads(line) for line in exported(server, owner, store).splitlines()] for store in stores}
    owners = {row["key"]: store for store in stores for row in rows[store] if "key" in row}
    foreign = []
    for overheard, left in ((before, ""), (after, LEAVING)):
        for persona in PERSONAS:
            allowed = stores_of(persona, left)
            foreign += [(persona, mark) for mark in overheard.marks[persona] if mark not in set(map(mark_of, allowed))]
            foreign += [(persona, key) for key in overheard.keys[persona] if owners.get(key, persona) not in allowed]
    figure("calls across personas and pools", f"{before.calls + after.calls:,} ({refused:,} refused, {len(owners):,} memories)")
    figure("foreign rows of personas and pools", len(foreign))
    assert foreign == []
    assert refused > 50
    for pool, readers in READERS.items():
        assert all(before.marks[reader][mark_of(f"@{pool}")] for reader in readers)
        assert rows[f"@{pool}"]


def test_no_store_holds_a_byte_of_another(server: RunningServer, owner: dict[str, str], days: tuple[Overheard, Overheard, int]) -> None:
    stores = {
        store: directory_name(pool_store(store[1:]) if store.startswith("@") else store)
        for store in (*PERSONAS, *(f"@{pool}" for pool in READERS))
    }
    for store in stores:
        assert marks_in(exported(server, owner, store)) <= {mark_of(store)}
    assert server.stop() == 0
    there = {entry.name for entry in server.data.iterdir() if entry.is_dir() and not entry.name.startswith(".")}
    assert there == set(stores.values())
    for store, directory in stores.items():
        files = [file for file in (Path(server.data) / directory).rglob("*") if file.is_file()]
        assert set().union(*(marks_in(file.read_bytes()) for file in files)) == {mark_of(store)}
    for log in (server.log, *server.data.glob("memory_operations.log*")):
        said = log.read_text(encoding="utf-8")
        assert marks_in(said.encode()) == set()
        assert "Traceback" not in said
