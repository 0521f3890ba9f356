"""Recall while the indexes of many personas are updated and rebuilt, compared with recall at rest, in one run.

    python -m benchmarks.rebuilds --embedder DIR --reranker DIR [--personas 20] [--memories 200] [--new 50] [--clients 2]

Every persona gets `--new` memories at once and a request to rebuild its index, while another persona keeps recalling.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2

from benchmarks.calls import Tools
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import Server, running
from benchmarks.texts import question, sentence

REST_SECONDS = 15.0
LIMIT_SECONDS = 300.0


def lines(first: int, count: int) -> bytes:
    """Memories to import, as JSON lines."""
    return b"".join(json.dumps({"content": sentence(number), "source": "user"}).encode() + b"\n" for number in range(first, first + count))


async def imported(http: httpx2.AsyncClient, persona: str, content: bytes) -> None:
    (await http.post("/api/import", content=content, headers={"X-Persona": persona})).raise_for_status()


async def waits_until(server: Server, clients: int, is_over: Callable[[], bool]) -> list[float]:
    """How long each recall of `clients` callers took, in seconds, sorted."""
    waits: list[float] = []

    async def caller(first: int) -> None:
        async with Tools(server.url, "persona-0") as tools:
            number = first
            while not is_over():
                number += clients
                begun = time.perf_counter()
                await tools.call("recall", {"query": f"{question(number)} {number}", "top_k": 5})
                waits.append(time.perf_counter() - begun)

    await asyncio.gather(*(caller(first) for first in range(clients)))
    return sorted(waits)


def summary(waits: list[float]) -> dict[str, Any]:
    return {
        "recalls": len(waits),
        "p50_ms": round(waits[len(waits) // 2] * 1e3, 1),
        "p95_ms": round(waits[int(len(waits) * 0.95)] * 1e3, 1),
    }


async def measure(arguments: argparse.Namespace) -> None:
    """Measures at rest first, then under load."""
    personas = [f"persona-{number}" for number in range(arguments.personas)]
    settings = {**with_models(arguments), "toolsets": ["core", "compat"]}
    with running(settings) as server:
        async with httpx2.AsyncClient(base_url=server.url, timeout=120) as http:
            for number, persona in enumerate(personas):
                await imported(http, persona, lines(number * arguments.memories, arguments.memories))
            await settled(http)
            until = time.perf_counter() + REST_SECONDS
            rest = await waits_until(server, arguments.clients, lambda: time.perf_counter() > until)

            begun, done = time.perf_counter(), asyncio.Event()
            busy = asyncio.create_task(waits_until(server, arguments.clients, done.is_set))
            for number, persona in enumerate(personas):
                await imported(http, persona, lines(10_000_000 + number * arguments.new, arguments.new))
                async with Tools(server.url, persona) as tools:
                    await tools.call("rebuild_vector_store", {})
            await asyncio.wait_for(settled(http), LIMIT_SECONDS)
            took = time.perf_counter() - begun
            done.set()
            meanwhile = await busy
    ratio = round(summary(meanwhile)["p95_ms"] / summary(rest)["p95_ms"], 2)
    facts = {"personas": arguments.personas, "clients": arguments.clients}
    embedded = {"embedded": arguments.new * arguments.personas, "seconds": round(took, 1)}
    Report(arguments.out).add(
        [
            machine("rebuilds"),
            {"what": "at rest", **summary(rest), **facts},
            {"what": "meanwhile", **summary(meanwhile), **embedded, **facts},
            {"what": "ratio", "p95": ratio, **facts},
        ]
    )


if __name__ == "__main__":
    parser = arguments_of(__doc__)
    parser.add_argument("--personas", type=int, default=20)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--new", type=int, default=50)
    parser.add_argument("--clients", type=int, default=2)
    asyncio.run(measure(parser.parse_args()))
