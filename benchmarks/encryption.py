"""What encryption at rest costs: two servers, one encrypting and one not, asked in turns in the same run; and backups of both.

python -m benchmarks.encryption [--memories 10000] [--rounds 10] [--calls 100]
"""

import argparse
import asyncio
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.calls import Tools
from benchmarks.rebuilds import lines
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, Server, running
from benchmarks.texts import question, sentence

PERSONA = "persona-0"
# An import is sent in so many parts, so that the two take turns in it too.
PARTS = 4
KINDS = ("plain", "encrypted")
Waits = dict[tuple[str, str], list[float]]


def made_key(directory: str) -> str:
    """The path of a new key file."""
    path = Path(directory, "master.key")
    path.touch(0o600)
    path.write_text(secrets.token_hex(32), encoding="ascii")
    return str(path)


async def filled(server: Server, first: int, memories: int) -> float:
    """How long an import of so many memories takes, in seconds."""
    begun = time.perf_counter()
    async with httpx2.AsyncClient(base_url=server.url, timeout=600) as http:
        (await http.post("/api/import", content=lines(first, memories), headers={"X-Persona": PERSONA})).raise_for_status()
    return time.perf_counter() - begun


async def block(kind: str, server: Server, first: int, calls: int, waits: Waits) -> None:
    """As many saves, and then as many recalls."""
    async with Tools(server.url, PERSONA) as tools:
        for number in range(first, first + calls):
            begun = time.perf_counter()
            await tools.call("remember", {"content": f"{sentence(number)} {number}", "source": "user"})
            waits.setdefault(("save", kind), []).append(time.perf_counter() - begun)
        for number in range(first, first + calls):
            begun = time.perf_counter()
            await tools.call("recall", {"query": f"{question(number)} {number}", "top_k": 5})
            waits.setdefault(("recall", kind), []).append(time.perf_counter() - begun)


async def backed_up(server: Server) -> tuple[float, int]:
    """Seconds that a backup takes, and its size in bytes."""
    begun = time.perf_counter()
    async with httpx2.AsyncClient(base_url=server.url, timeout=600) as http:
        answer = (await http.post("/api/backups", headers={"X-Persona": PERSONA})).raise_for_status().json()
    return time.perf_counter() - begun, answer["bytes"]


def summary(what: str, waits: Waits) -> list[dict[str, Any]]:
    """Median and 95th percentile of both kinds in milliseconds, and their ratios."""
    found = {}
    for kind in KINDS:
        ordered = sorted(waits[what, kind])
        found[kind] = {name: ordered[int(len(ordered) * share)] * 1e3 for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95))}
    ratios = {name: round(found["encrypted"][name] / found["plain"][name], 2) for name in ("p50_ms", "p95_ms")}
    rows = [
        {"what": what, "data": kind, "calls": len(waits[what, kind]), **{name: round(ms, 2) for name, ms in found[kind].items()}}
        for kind in KINDS
    ]
    return [*rows, {"what": what, "data": "ratio", **ratios}]


async def measure(arguments: argparse.Namespace) -> None:
    """In turns, so that what else the machine does falls on both."""
    report = Report(arguments.out)
    report.add([machine("encryption", memories=arguments.memories)])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
        settings = {**NO_MODELS, "encryption": {"enabled": True, "key_file": made_key(directory)}}
        with running(NO_MODELS) as plain, running(settings) as encrypted:
            servers, waits = dict(zip(KINDS, (plain, encrypted), strict=True)), Waits()
            took = dict.fromkeys(KINDS, 0.0)
            part = arguments.memories // PARTS
            for number in range(PARTS):
                for kind in KINDS if number % 2 else reversed(KINDS):
                    took[kind] += await filled(servers[kind], number * part, part)
            for number in range(arguments.rounds):
                for kind in KINDS if number % 2 else reversed(KINDS):
                    await block(kind, servers[kind], arguments.memories + number * arguments.calls, arguments.calls, waits)
            report.add([*summary("save", waits), *summary("recall", waits)])
            report.add(
                [
                    {
                        "what": "import",
                        **{kind: round(seconds, 2) for kind, seconds in took.items()},
                        "ratio": round(took["encrypted"] / took["plain"], 2),
                    }
                ]
            )
            report.add(await backups(servers))


async def backups(servers: dict[str, Server]) -> list[dict[str, Any]]:
    """The median of some backups of both, made in turns, and their ratio."""
    made: dict[str, list[tuple[float, int]]] = {kind: [] for kind in KINDS}
    for number in range(PARTS + 1):
        for kind in KINDS if number % 2 else reversed(KINDS):
            made[kind].append(await backed_up(servers[kind]))
    median = {kind: sorted(found)[len(found) // 2] for kind, found in made.items()}
    rows = [
        {"what": "backup", "data": kind, "seconds": round(took, 2), "mib": round(size / 1024**2, 1)}
        for kind, (took, size) in median.items()
    ]
    return [*rows, {"what": "backup", "data": "ratio", "seconds": round(median["encrypted"][0] / median["plain"][0], 2)}]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asyncio.run(measure(parser.parse_args()))
