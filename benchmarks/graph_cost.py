"""How much time the graph adds to a write: `remember` on a server with it and on one without, alternating in one run.

    python -m benchmarks.graph_cost [--memories 2000 10000] [--entities 2000] [--writes 400]

Both have the same memories, each of which names two of `--entities` known people. The server with the graph has updated it before the writes.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.calls import Tools
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, Server, running

SETTINGS = {**NO_MODELS, "upkeep": {"idle_seconds": 1}, "summaries": {"enabled": False}, "toolsets": ["core", "graph"]}
PERSONA = "bench"
WAIT_SECONDS, STILL_SECONDS, LOOK_SECONDS = 300.0, 6.0, 2.0
KANA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモ"
PLACES = ("海辺", "山小屋", "舞台", "商店街", "川沿いの道", "図書館の前")


def name(number: int) -> str:
    """A name of five katakana, another for each number."""
    letters = []
    for _ in range(5):
        number, letter = divmod(number, len(KANA))
        letters.append(KANA[letter])
    return "".join(reversed(letters))


def contents(count: int, entities: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    people = [name(37 * number + 11) for number in range(entities)]
    sentences = [f"[[{person}|Person]]と知り合った" for person in people] if seed == 0 else []
    while len(sentences) < count:
        first, second = chance.sample(people, 2)
        sentences.append(f"{chance.choice(PLACES)}で{first}と{second}に会って、{chance.randrange(10**6)}回目の話をした。帰りに雨が降った。")
    return sentences


async def filled(server: Server, contents: list[str]) -> None:
    lines = "".join(json.dumps({"content": content}, ensure_ascii=False) + "\n" for content in contents)
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=600) as http:
        (await http.post("/api/import", content=lines.encode(), headers={"X-Persona": PERSONA})).raise_for_status()


async def woven(server: Server) -> None:
    """Waits until the graph has stopped growing."""
    began = still_since = time.monotonic()
    size = -1
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=60) as http:
        while time.monotonic() - still_since < STILL_SECONDS:
            chores = (await http.get("/ready")).json()["chores"]
            waiting = chores["graph"]["due"]
            if waiting != size or waiting:
                size, still_since = waiting, time.monotonic()
            if time.monotonic() - began > WAIT_SECONDS:
                raise SystemExit("the graph is not woven")
            await asyncio.sleep(LOOK_SECONDS)  # a look is a call, too, and weaving waits for a second without


async def measured(memories: int, entities: int, writes: int) -> dict[str, Any]:
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with running(SETTINGS) as with_graph, running(SETTINGS, program=("benchmarks.ungraphed",)) as without:
        for server in (with_graph, without):
            await filled(server, contents(memories, entities, 0))
        await woven(with_graph)
        async with Tools(with_graph.url, PERSONA) as tools_with, Tools(without.url, PERSONA) as tools_without:
            turns = [(True, tools_with), (False, tools_without)]
            for content in contents(writes, entities, 1):
                turns.reverse()  # the second call profits from the processor's caches
                for on, tools in turns:
                    began = time.perf_counter()
                    await tools.call("remember", {"content": content})
                    seconds[on].append(time.perf_counter() - began)
    on, off = (statistics.median(seconds[state]) * 1000 for state in (True, False))
    return {
        "memories": memories,
        "entities": entities,
        "p50_with_ms": round(on, 3),
        "p50_without_ms": round(off, 3),
        "ratio": round(on / off, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--entities", type=int, default=2_000)
    parser.add_argument("--writes", type=int, default=400)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    report = Report(args.out)
    report.add([machine("graph_cost")])
    for memories in args.memories:
        report.add([{"what": "graph_cost", **asyncio.run(measured(memories, args.entities, args.writes))}])


if __name__ == "__main__":
    main()
