"""How long the graph's tools and analyses take over real HTTP at a chosen size, and how analyses slow down recalls.

    python -m benchmarks.graph [--entities 10000] [--relations 50000] [--memories 5000] [--clients 1 8] [--calls 800] [--seconds 20]

The relations are imported through `/api/import` as statements of memories. A few entities have thousands of them, most have a few. `floor` is
an empty call (`/health`) with as many clients, to be subtracted from a figure. `analysis` is computed from the database; `kept` is
the same from the cache while the graph is unchanged. `recall beside analyses`: one more client changes the graph, requests an analysis,
waits for `--pause` seconds, and so on.
"""

import argparse
import asyncio
import itertools
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from benchmarks.calls import Caller, Tools
from benchmarks.dashboard import processor_seconds
from benchmarks.report import Report, machine
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, Server, running
from benchmarks.texts import question, sentence

PERSONA = "graph"
SETTINGS: dict[str, object] = {
    "embeddings_model": None,
    "reranker_model": None,
    "toolsets": ["core", "graph"],
    "upkeep": {"idle_seconds": 0},
    # All callers use one persona here, which must not be limited.
    "calls": {"at_once_per_persona": 16},
}
KINDS = ("人物", "計画", "会議", "資料", "拠点")
RELATION_TYPES = ("works_on", "knows", "located_at", "participates_in", "dependency", "relates_to")
RELATIONS_OF_A_MEMORY = 50
# Of the entities that a relation leads to, the one in place n is as likely as 1/n to this power: the first has a few thousand.
UNEVENNESS = 0.7
UPLOAD_LINES = 200
LIMIT_SECONDS = 600
ANALYSES = (
    "analytics?measure=pagerank",
    "analytics?measure=degree",
    "analytics?measure=eigenvector",
    "analytics?measure=betweenness",
    "communities",
    "statistics",
    "growth",
)
BESIDE = ("analytics?measure=pagerank", "communities", "statistics")


def name_of(number: int) -> str:
    """What the `number`-th entity is called."""
    return f"{KINDS[number % len(KINDS)]}{number:05}"


def pairs(entities: int, relations: int) -> list[tuple[int, int]]:
    """`relations` different pairs of entities, so that every entity is in one."""
    pick = random.Random(1)
    likely = list(itertools.accumulate(1 / (rank + 1) ** UNEVENNESS for rank in range(entities)))
    chosen: dict[tuple[int, int], None] = {(number, number - 1): None for number in range(1, entities)}
    while len(chosen) < relations:
        source, target = pick.randrange(entities), pick.choices(range(entities), cum_weights=likely)[0]
        if source != target and (target, source) not in chosen:
            chosen[source, target] = None
    return list(chosen)[:relations]


def lines(arguments: argparse.Namespace) -> Iterator[bytes]:
    """The memories to import: sentences, and records that state relations."""
    pick = random.Random(2)
    for number in range(arguments.memories):
        yield json.dumps({"content": sentence(number), "source": "user"}).encode() + b"\n"
    relations = [
        f"{name_of(source)} > {pick.choice(RELATION_TYPES)} > {name_of(target)}"
        for source, target in pairs(arguments.entities, arguments.relations)
    ]
    for begin in range(0, len(relations), RELATIONS_OF_A_MEMORY):
        month, day = 1 + begin // RELATIONS_OF_A_MEMORY % 12, 1 + begin // RELATIONS_OF_A_MEMORY % 28
        content = {"content": f"記録 {begin}", "occurred_at": f"2025-{month:02}-{day:02}"}
        yield json.dumps({**content, "relations": relations[begin : begin + RELATIONS_OF_A_MEMORY]}).encode() + b"\n"


class Bench:
    """One server with one large graph."""

    def __init__(self, server: Server, arguments: argparse.Namespace) -> None:
        self._server, self._arguments, self._report = server, arguments, Report(arguments.out)
        self._changes = itertools.count()
        self._clients = 1

    async def run(self) -> None:
        """Every measurement once."""
        self._report.add([machine("graph")])
        await self._fill()
        for clients in self._arguments.clients:
            self._clients = clients
            await self._timed("floor", "/health")
            await self._tools()
        for analysis in ANALYSES:
            await self._analysis(analysis)
        await self._beside()

    async def _tools(self) -> None:
        """Every tool of the graph, and neighbours by their route."""
        pick, hubs = random.Random(3), 10
        somebody = [name_of(pick.randrange(self._arguments.entities)) for _ in range(self._arguments.calls)]
        await self._called("neighbors", ({"entity": name, "depth": 1} for name in somebody), depth=1)
        await self._timed("neighbors by route", *(f"/api/graph/neighbors?entity={quote(name)}&depth=2" for name in somebody))
        await self._called("neighbors", ({"entity": name, "depth": 2} for name in somebody), depth=2)
        await self._called("neighbors", ({"entity": name, "depth": 3} for name in somebody), depth=3)
        await self._called(
            "neighbors", ({"entity": name_of(number % hubs), "depth": 2} for number in range(len(somebody))), depth=2, of="hubs"
        )
        for algorithm in ("shortest", "strongest", "all"):
            ways = zip(somebody, reversed(somebody), strict=True)
            await self._called(
                "path", ({"source": one, "target": other, "algorithm": algorithm} for one, other in ways), algorithm=algorithm
            )
        await self._called("snapshot", ({"limit": 50} for _ in somebody), limit=50)
        await self._called("snapshot", ({"limit": 500} for _ in somebody), limit=500)

    async def _fill(self) -> None:
        begun, stored, all_lines = time.perf_counter(), 0, lines(self._arguments)
        before = processor_seconds(self._server.pid)
        async with httpx2.AsyncClient(base_url=self._server.url, headers={"X-Persona": PERSONA}, timeout=IMPORT_TIMEOUT_SECONDS) as http:
            while batch := list(itertools.islice(all_lines, UPLOAD_LINES)):
                stored += (await http.post("/api/import", content=b"".join(batch))).raise_for_status().json()["stored"]
            took = time.perf_counter() - begun
            while (await http.get("/ready")).json()["chores"]["graph"]["due"]:
                if time.perf_counter() - begun > LIMIT_SECONDS:
                    raise SystemExit("the graph is not woven in time")
                await asyncio.sleep(0.5)
            used = processor_seconds(self._server.pid) - before
            told = (await http.get("/api/graph/snapshot", params={"limit": 1})).raise_for_status().json()
        counts = {"entities": told["entities_in_all"], "relations": told["relations_in_all"]}
        self._report.add(
            [
                {
                    "what": "import",
                    "memories": stored,
                    "seconds": round(took, 1),
                    "relations_per_second": round(self._arguments.relations / took),
                    "cpu_s_until_ready": round(used, 1),
                    **counts,
                }
            ]
        )

    async def _called(self, what: str, asked: Iterator[dict[str, Any]], **facts: Any) -> None:
        """A tool of the graph, called by all clients."""
        tool = {"neighbors": "entity_neighbors", "path": "find_path", "snapshot": "graph_snapshot"}[what]

        async def calls(tools: Tools) -> float | None:
            arguments = next(asked, None)
            if arguments is None:
                return None
            begun = time.perf_counter()
            await tools.call(tool, arguments)
            return time.perf_counter() - begun

        self._report.add(
            [{"what": what, "clients": self._clients, **facts, **summary(await self._all(lambda: Tools(self._server.url, PERSONA), calls))}]
        )

    async def _timed(self, what: str, *paths: str) -> None:
        """These addresses in turn, by all clients."""
        left = itertools.islice(itertools.cycle(paths), self._arguments.calls)

        async def calls(caller: Caller) -> float | None:
            path = next(left, None)
            if path is None:
                return None
            begun = time.perf_counter()
            await caller.get(path)
            return time.perf_counter() - begun

        self._report.add([{"what": what, "clients": self._clients, **summary(await self._all(self._caller, calls))}])

    async def _all(self, client: Callable[[], Any], call: Callable[[Any], Awaitable[float | None]]) -> list[float]:
        waits: list[float] = []

        async def one() -> None:
            async with client() as connection:
                while (wait := await call(connection)) is not None:
                    waits.append(wait)

        await asyncio.gather(*(one() for _ in range(self._clients)))
        return sorted(waits)

    async def _analysis(self, analysis: str) -> None:
        """From the rows on, a few times, each of a graph that has changed since; then what is kept, by all clients."""
        waits = []
        async with self._caller() as caller, Tools(self._server.url, PERSONA) as tools:
            for number in range(5):
                await self._change(tools, number)
                begun = time.perf_counter()
                await caller.get(f"/api/graph/{analysis}")
                waits.append(time.perf_counter() - begun)
        self._report.add([{"what": "analysis", "of": analysis, **summary(sorted(waits[1:])), "first_ms": round(waits[0] * 1e3, 1)}])
        await self._timed(f"kept {analysis}", f"/api/graph/{analysis}")

    async def _beside(self) -> None:
        """Recalls by words at rest, and while another client keeps requesting analyses."""
        at_rest = await self._recalls(asyncio.Event())
        done, counted = asyncio.Event(), 0

        async def analyse() -> None:
            nonlocal counted
            async with self._caller() as caller, Tools(self._server.url, PERSONA) as tools:
                for number in itertools.count():
                    if done.is_set():
                        return
                    await self._change(tools, number)
                    await caller.get(f"/api/graph/{BESIDE[number % len(BESIDE)]}")
                    counted += 1
                    await asyncio.sleep(self._arguments.pause)

        analysing = asyncio.create_task(analyse())
        beside = await self._recalls(done)
        await analysing
        self._report.add(
            [
                {"what": "recall at rest", **summary(at_rest)},
                {"what": "recall beside analyses", "analyses": counted, **summary(beside)},
                {"what": "ratio", "p50": round(middle(beside) / middle(at_rest), 2), "p95": round(late(beside) / late(at_rest), 2)},
            ]
        )

    async def _recalls(self, done: asyncio.Event) -> list[float]:
        until, numbers = time.perf_counter() + self._arguments.seconds, itertools.count()

        async def calls(tools: Tools) -> float | None:
            begun = time.perf_counter()
            if begun > until:
                return None
            await tools.call("recall", {"query": question(next(numbers))})
            return time.perf_counter() - begun

        waits = await self._all(lambda: Tools(self._server.url, PERSONA), calls)
        done.set()
        return waits

    async def _change(self, tools: Tools, number: int) -> None:
        """Two who are there already get one more relation: a new name would be looked for in older memories, too."""
        await tools.call("relate", {"relations": [f"{name_of(number)} > relation{next(self._changes)} > {name_of(number + 7)}"]})

    def _caller(self) -> Caller:
        return Caller(self._server.url, {"X-Persona": quote(PERSONA)})


def middle(waits: list[float]) -> float:
    return waits[len(waits) // 2]


def late(waits: list[float]) -> float:
    """Of a hundred, the 95th."""
    return waits[int(len(waits) * 0.95)]


def summary(waits: list[float]) -> dict[str, Any]:
    return {"calls": len(waits), "p50_ms": round(middle(waits) * 1e3, 1), "p95_ms": round(late(waits) * 1e3, 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--relations", type=int, default=50_000)
    parser.add_argument("--memories", type=int, default=5_000)
    parser.add_argument(
        "--clients", type=int, nargs="+", default=[1, 8], help="for the tools; the last is for what is kept and for recalls, too"
    )
    parser.add_argument("--calls", type=int, default=800)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long recalls are measured")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two analyses beside recalls")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    told = parser.parse_args()
    with running(SETTINGS) as served:
        asyncio.run(Bench(served, told).run())
