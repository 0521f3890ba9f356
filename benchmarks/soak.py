"""Hours of mixed work on one server: whether its memory, files and threads stay flat, said as a slope.

    python -m benchmarks.soak [--hours 2] [--personas 300] [--callers 4] [--rate 0] [--out results.jsonl]

Callers save, search, read the context, correct, forget, export and visit the dashboard of many personas, more than stay open at once. A look each
minute (each 5 s in a run of minutes) is one JSON line; the last line has the slopes over the second half of the run, by least squares, per hour.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.dashboard import processor_seconds
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, Server, running
from benchmarks.texts import question, sentence

CALLS = ("save", "save", "save", "recall", "recall", "recall", "context", "revise", "forget", "graph", "list", "export", "page")


async def call(http: httpx2.AsyncClient, what: str, persona: str, number: int, keys: dict[str, str]) -> httpx2.Response:
    """One call of a kind. `keys`: the last memory of each persona."""
    headers = {"X-Persona": persona}
    if what == "save" or (what in ("revise", "forget") and persona not in keys):
        answer = await http.post("/api/memories", json={"content": sentence(number), "session_id": f"s{number // 40}"}, headers=headers)
        keys[persona] = answer.json().get("key", "")
    elif what == "revise":
        answer = await http.patch("/api/memory", json={"key": keys[persona], "content": f"{sentence(number)}訂正。"}, headers=headers)
    elif what == "forget":
        answer = await http.request("DELETE", "/api/memories", params={"keys": [keys.pop(persona)]}, headers=headers)
    elif what == "page":
        answer = await http.get(f"/p/{persona}/ui/today")
    else:
        paths = {
            "recall": "/api/recall",
            "context": "/api/context",
            "graph": "/api/graph/snapshot",
            "list": "/api/personas",
            "export": "/api/export",
        }
        query = {"query": question(number)} if what in ("recall", "context") else {"limit": 50} if what in ("graph", "list") else {}
        answer = await http.get(paths[what], params=query, headers=headers)
    return answer


def look(server: Server, began: float) -> dict[str, Any]:
    """What the server's process holds now."""
    process = Path(f"/proc/{server.pid}")
    kinds = kinds_of_files(process)
    return {
        "hours": round((time.monotonic() - began) / 3600, 4),
        "resident_mb": round(server.resident_mb(), 1),
        "files": kinds.total(),
        "threads": len(list((process / "task").iterdir())),
        "cpu_s": round(processor_seconds(server.pid), 1),
        "files_by_kind": dict(kinds.most_common()),
    }


def kinds_of_files(process: Path) -> Counter[str]:
    """How many files of each name a process has open; of what has no name of its own, how many of each kind: sockets, pipes."""
    kinds: Counter[str] = Counter()
    for file in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            kinds[file.readlink().name.partition(":")[0].removesuffix(" (deleted)")] += 1
    return kinds


async def soak(server: Server, arguments: argparse.Namespace, report: Report) -> None:
    began, seconds = time.monotonic(), arguments.hours * 3600
    looks: list[dict[str, Any]] = []
    counts = {"calls": 0, "refused": 0}
    keys: dict[str, str] = {}

    async def caller(http: httpx2.AsyncClient, seed: int) -> None:
        pick = random.Random(seed)
        while time.monotonic() - began < seconds:
            if arguments.rate:
                await asyncio.sleep(pick.uniform(0, 2 * arguments.callers / arguments.rate))
            number = counts["calls"] = counts["calls"] + 1
            answer = await call(http, pick.choice(CALLS), f"soak-{pick.randrange(arguments.personas)}", number, keys)
            counts["refused"] += answer.status_code >= 400

    async def watch() -> None:
        while time.monotonic() - began < seconds:
            looks.append(look(server, began))
            report.add([{"what": "look", **looks[-1], **counts}])
            await asyncio.sleep(60 if arguments.hours >= 0.5 else 5)

    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=120, follow_redirects=True) as http:
        await asyncio.gather(watch(), *(caller(http, seed) for seed in range(arguments.callers)))
    half = looks[len(looks) // 2 :]
    hours = [entry["hours"] for entry in half]
    slopes = {
        f"{name}_per_hour": round(float(np.polyfit(hours, [entry[name] for entry in half], 1)[0]), 2) if len(half) > 1 else None
        for name in ("resident_mb", "files", "threads")
    }
    report.add([{"what": "soak", "hours": arguments.hours, "personas": arguments.personas, **counts, **looks[-1], **slopes}])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--personas", type=int, default=300, help="more than stay open at once (128)")
    parser.add_argument("--callers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0, help="calls a second, at most; 0: as many as it answers")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = parser.parse_args()
    results = Report(asked.out)
    results.add([machine("soak")])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as temporary, running(NO_MODELS, data=Path(temporary)) as soaked:
        asyncio.run(soak(soaked, asked, results))
