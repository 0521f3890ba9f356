"""How long saving, recalling and starting a conversation take over real HTTP, at chosen sizes and with several clients at once.

    python -m benchmarks.latency [--memories 1000 10000 100000] [--saves 1000] [--recalls 200] [--clients 1 8 50] [--out results.jsonl]
                                 [--embedder multilingual-e5-small]

    python -m benchmarks.latency --turns 3000 --embedder multilingual-e5-small

Prints one JSON line for each measurement, for each size with a server of its own. `floor` is an empty call of the same server
(`/health`) in the same run: read a figure as its ratio to that, since machines differ. With `--embedder` recalls are by meaning, too, once all memories
have their vectors; every question is new, because the vector of a repeated one costs nothing. `--turns` imports long turns of chats with an assistant
instead, and says how long it takes until all are found by words, and by meaning with that model, until the graph is ready, and the
server's processor time, also for 1,000 turns.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Self

import httpx2

from benchmarks.calls import Tools
from benchmarks.dashboard import processor_seconds
from benchmarks.models import settled
from benchmarks.report import Report, machine
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, NO_MODELS, Server, running
from benchmarks.texts import question, sentence, turn

LOOK_SECONDS = 2.0  # a look is a call, too, and the graph waits for a second without

Call = Callable[[int], Awaitable[None]]


class Bench:
    """One server under measurement, and where the results go."""

    def __init__(self, server: Server, http: httpx2.AsyncClient, report: Report) -> None:
        self._server, self._http, self._report = server, http, report
        self._idle: list[Tools] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hang_up()

    async def hang_up(self) -> None:
        """Close the idle connections, before the server gives them up."""
        while self._idle:
            await self._idle.pop().__aexit__()

    def report(self, **result: Any) -> None:
        """One line."""
        self._report.add([result])

    async def timed(self, what: str, call: Call, count: int, clients: int, **facts: Any) -> tuple[float, float, float]:
        """p50 and p95 in ms and calls per second of `count` calls by `clients` callers who each wait for an answer before the next."""
        waits: list[float] = []
        numbers = iter(range(count))

        async def caller() -> None:
            for number in numbers:
                begun = time.perf_counter()
                await call(number)
                waits.append(time.perf_counter() - begun)

        begun = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(clients)))
        took = time.perf_counter() - begun
        waits.sort()
        p50, p95 = statistics.median(waits) * 1e3, waits[int(len(waits) * 0.95)] * 1e3
        self.report(
            what=what, clients=clients, count=count, p50_ms=round(p50, 2), p95_ms=round(p95, 2), per_second=round(count / took, 1), **facts
        )
        return p50, p95, count / took

    async def health(self, _number: int) -> None:
        (await self._http.get("/health")).raise_for_status()

    @contextlib.asynccontextmanager
    async def _tools(self) -> AsyncIterator[Tools]:
        """A connection that is not in use."""
        tools = self._idle.pop() if self._idle else await Tools(self._server.url, "bench").__aenter__()
        yield tools
        self._idle.append(tools)

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """One tool call."""
        async with self._tools() as tools:
            return await tools.call(name, arguments)

    async def save(self, number: int) -> None:
        await self.tool("remember", {"content": f"単独の保存。{sentence(10_000_000 + number)}", "source": "user"})

    async def recall(self, number: int) -> None:
        await self.tool("recall", {"query": question(number)})

    async def begin(self, number: int) -> None:
        await self.tool("get_context", {"query": question(number)})

    def _anew(self, tool: str, asked: Iterator[int]) -> Call:
        """A call with a question that nobody asked before."""

        async def call(number: int) -> None:
            await self.tool(tool, {"query": f"{question(number)} {next(asked)}"})

        return call

    async def fill(self, memories: int) -> None:
        """Imports `memories` sentences, and reports the rate."""

        def lines() -> Iterator[bytes]:
            for number in range(memories):
                yield json.dumps({"content": sentence(number), "source": "user", "session_id": f"s{number // 40}"}).encode() + b"\n"

        async def body() -> Any:
            for batch in _batched(lines(), 500):
                yield b"".join(batch)

        took, counts = await self._imported(body())
        self.report(what="import", memories=memories, **counts, seconds=round(took, 1), per_second=round(memories / took, 1))

    async def _imported(self, content: Any) -> tuple[float, dict[str, int]]:
        """The seconds that an import takes, and what became of its lines."""
        await self.hang_up()  # a server closes connections that stay idle during a long import
        begun = time.perf_counter()
        answer = (await self._http.post("/api/import", content=content, timeout=IMPORT_TIMEOUT_SECONDS)).raise_for_status().json()
        return time.perf_counter() - begun, {name: answer[name] for name in ("stored", "refused")}

    async def chats(self, turns: int) -> None:
        """Imports so many long turns, 20 to a chat; reports how long it takes until all of it is found."""
        await settled(self._http)
        lines = (
            json.dumps({"content": turn(number), "source": ("user", "assistant")[number % 2], "session_id": f"c{number // 20}"})
            for number in range(turns)
        )
        before, begun = processor_seconds(self._server.pid), time.perf_counter()

        def reached(what: str, **counts: int) -> None:
            took, used = time.perf_counter() - begun, processor_seconds(self._server.pid) - before
            per_thousand = {"s_per_1000": round(took / turns * 1e3, 1), "cpu_s_per_1000": round(used / turns * 1e3, 1)}
            self.report(what=what, turns=turns, **counts, after_s=round(took, 1), cpu_s=round(used, 1), **per_thousand)

        _, counts = await self._imported("\n".join(lines).encode())
        reached("all found by words", **counts)
        await settled(self._http)
        reached("all found by meaning")
        while (await self._http.get("/ready")).json()["chores"]["graph"]["due"]:  # noqa: ASYNC110  of another process
            await asyncio.sleep(LOOK_SECONDS)
        reached("the graph ready")

    async def run(self, arguments: argparse.Namespace, memories: int) -> None:
        """Every measurement once, at one size."""
        facts = {"memories": memories}
        self.report(what="start", announced_after_s=round(self._server.started_in, 2), **facts)
        first = time.perf_counter()
        await self.recall(0)
        self.report(what="first recall", after_announcement_ms=round((time.perf_counter() - first) * 1e3, 1), **facts)
        await self.timed("floor", self.health, 500, 1, **facts)
        await self.fill(memories)
        await self.timed("save", self.save, arguments.saves, 1, **facts)
        if arguments.embedder:
            await settled(self._http)
        asked = itertools.count(1)
        for what, call in (("recall", self.recall), ("get_context", self.begin)):
            for clients in arguments.clients:
                asking = self._anew(what, asked) if arguments.embedder else call
                await self.timed(what, asking, max(arguments.recalls, clients * 4), clients, **facts)
        self.report(what="memory", resident_mb=round(self._server.resident_mb(), 1), **facts)


@contextlib.asynccontextmanager
async def benched(server: Server, report: Report) -> AsyncIterator[tuple[Bench, httpx2.AsyncClient]]:
    """The server with a client for many callers, and where the figures go."""
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    async with (
        httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": "bench"}, timeout=120, limits=limits) as http,
        Bench(server, http, report) as bench,
    ):
        yield bench, http


def _batched(items: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    while batch := list(itertools.islice(items, size)):
        yield batch


async def _main(arguments: argparse.Namespace) -> None:
    report = Report(arguments.out)
    report.add([machine("latency")])
    settings = {**NO_MODELS, "embeddings_model": arguments.embedder}
    if arguments.turns:
        with running({**settings, "upkeep": {"idle_seconds": 1}}) as server:
            async with benched(server, report) as (bench, _):
                await bench.chats(arguments.turns)
        return
    for memories in arguments.memories:
        with running(settings) as server:
            async with benched(server, report) as (bench, _):
                await bench.run(arguments, memories)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000], help="one size or several, each with a server of its own")
    parser.add_argument("--saves", type=int, default=1_000)
    parser.add_argument("--recalls", type=int, default=200, help="so many of get_context, too")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 50])
    parser.add_argument("--turns", type=int, default=0, help="import so many long turns of chats instead")
    parser.add_argument("--embedder", help="an embedding model: a directory, or multilingual-e5-small")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asyncio.run(_main(parser.parse_args()))
