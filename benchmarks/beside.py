"""How long calls take in this tree beside another one, such as an earlier commit, turn by turn.

    git worktree add ../earlier 9285136
    python -m benchmarks.beside ../earlier [--memories 10000] [--tools recall get_context remember] [--clients 1 8 50] [--turns 40] [--out results.jsonl]

Each tree's server imports the same memories and waits until the graph is ready. Then blocks of calls by words take turns, so that what else the machine
does falls on both. Prints one JSON line for each tool and number of clients: this tree ÷ the other one, of the median answer, of the time of the whole
turn and of the server's processor time for a call, each with the bounds of 95 % of the medians of resampled turns. Linux only.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from benchmarks.calls import Tools
from benchmarks.dashboard import processor_seconds
from benchmarks.report import Report, machine
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, Server, running
from benchmarks.texts import question, sentence

TOOLS = ("recall", "get_context", "remember")
CALLS_OF_CLIENT = 20  # in a turn; of a single client three times as many
RESAMPLED = 500
LOOK_SECONDS = 1.5  # the graph waits for a second without calls
# Counted on, so that no question and no memory is an earlier one.
_numbers = itertools.count()


class Turn(NamedTuple):
    """Seconds: the median of an answer, and for one call of the whole turn and of the server's processor."""

    answer: float
    call: float
    processor: float


def arguments_of(tool: str, number: int) -> dict[str, Any]:
    """What a call says that nobody has said before."""
    if tool == "remember":
        return {"content": f"単独の保存。{sentence(10_000_000 + number)}", "source": "user"}
    return {"query": f"{question(number)} {number}"}


def fill(server: Server, memories: int) -> None:
    """Imports the memories."""
    lines = (json.dumps({"content": sentence(number), "source": "user", "session_id": f"s{number // 40}"}) for number in range(memories))
    with httpx2.Client(base_url=server.url, headers={"X-Persona": "bench"}, trust_env=False, timeout=IMPORT_TIMEOUT_SECONDS) as http:
        http.post("/api/import", content="\n".join(lines).encode()).raise_for_status()


def wait_until_idle(server: Server) -> None:
    """Waits until what the graph makes of the memories is made."""
    spent = -1.0
    while (now := processor_seconds(server.pid)) - spent > LOOK_SECONDS / 20:
        spent = now
        time.sleep(LOOK_SECONDS)


async def turn(server: Server, clients: Sequence[Tools], tool: str, calls: Iterator[dict[str, Any]], count: int) -> Turn:
    """One block of calls, by clients that each wait for an answer before the next call."""
    waits: list[float] = []

    async def caller(tools: Tools) -> None:
        for arguments in calls:
            begun = time.perf_counter()
            await tools.call(tool, arguments)
            waits.append(time.perf_counter() - begun)

    spent, begun = processor_seconds(server.pid), time.perf_counter()
    await asyncio.gather(*map(caller, clients))
    took = time.perf_counter() - begun
    return Turn(statistics.median(waits), took / count, (processor_seconds(server.pid) - spent) / count)


async def measure(servers: Sequence[Server], tool: str, clients: int, turns: int) -> list[tuple[Turn, ...]]:
    """The turns of both servers, after one of each that fills caches."""
    count = clients * CALLS_OF_CLIENT * (3 if clients == 1 else 1)
    async with AsyncExitStack() as stack:
        callers = [[await stack.enter_async_context(Tools(server.url, "bench")) for _ in range(clients)] for server in servers]

        async def both(order: Sequence[int]) -> tuple[Turn, ...]:
            wanted = [arguments_of(tool, next(_numbers)) for _ in range(count)]
            done = {side: await turn(servers[side], callers[side], tool, iter(wanted), count) for side in order}
            return tuple(done[side] for side in sorted(done))

        await both((0, 1))
        return [await both((0, 1) if number % 2 else (1, 0)) for number in range(turns)]


def ratio(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """The median of first ÷ second, and the bounds of 95 % of the medians of resampled pairs."""
    ratios, chance = [first / second for first, second in pairs], random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLED))
    return [round(each, 3) for each in (statistics.median(ratios), medians[RESAMPLED // 40], medians[-RESAMPLED // 40])]


def main() -> None:
    """Measures, and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the other tree")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 50])
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    report.add([machine("beside", other=str(options.other), memories=options.memories, turns=options.turns)])
    with running() as here, running(tree=options.other.resolve()) as other:
        for server in (here, other):
            fill(server, options.memories)
        for server in (here, other):
            wait_until_idle(server)
        for tool, clients in itertools.product(options.tools, options.clients):
            pairs = asyncio.run(measure((here, other), tool, clients, options.turns))
            ratios = {
                f"{field}_ratio": ratio([(getattr(mine, field), getattr(its, field)) for mine, its in pairs]) for field in Turn._fields
            }
            milliseconds = {
                f"{field}_ms": round(statistics.median(getattr(mine, field) for mine, _ in pairs) * 1e3, 2) for field in Turn._fields
            }
            report.add([{"what": tool, "clients": clients, **ratios, **milliseconds}])


if __name__ == "__main__":
    main()
