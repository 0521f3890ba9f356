"""Where a call's time goes: which package holds the interpreter while several clients call, and the processor time of a call.

    pip install -r requirements-bench.txt
    python -m benchmarks.profile [--call recall] [--memories 10000] [--clients 8] [--embedder DIR --reranker DIR] [--seconds 20]

py-spy samples the server 200 times a second. It needs permission to: on most Linux machines as root, or with `kernel.yama.ptrace_scope` 0.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.latency import Call, benched
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, running

RATE = 200
PROTOCOL = frozenset({"fastmcp", "mcp", "pydantic", "starlette", "uvicorn", "h11", "anyio", "sse_starlette", "asyncio"})
_OWN = re.compile(r"memory_mcp/([a-z_]+)")
_LIBRARY = re.compile(r"site-packages/([A-Za-z0-9_]+)|/(asyncio)/")


def part_of(stack: Iterable[str]) -> str:
    """Whose work a stack is, from its innermost frame outwards: a package of this project, the protocol's libraries, or another library's name.

    Python's standard library counts for its caller, except for asyncio, which counts as protocol.
    """
    for frame in reversed(list(stack)):
        if own := _OWN.search(frame):
            return own[1]
        if library := _LIBRARY.search(frame):
            name = library[1] or library[2]
            return "protocol" if name in PROTOCOL else name
    return "python"


def shares(raw: str) -> dict[str, float]:
    """From py-spy's raw lines (`frame;frame;… count`): the share of each part, the largest first."""
    counts: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        counts[part_of(stack.split(";"))] += int(count)
    whole = sum(counts.values())
    return {part: round(count / whole, 3) for part, count in counts.most_common() if count / whole >= 0.005}


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(arguments: argparse.Namespace, report: Report) -> None:
    wanted = bool(arguments.embedder or arguments.reranker)
    with running(with_models(arguments) if wanted else NO_MODELS) as server:
        async with benched(server, report) as (bench, http):
            if wanted:
                await settled(http)
            await bench.fill(arguments.memories)
            await settled(http)
            call = {"recall": bench.recall, "get_context": bench.begin, "remember": bench.save, "health": bench.health}[arguments.call]
            await bench.timed("warm", call, 50 * arguments.clients, arguments.clients)
            await recorded(server.pid, call, arguments, report)


async def recorded(pid: int, call: Call, arguments: argparse.Namespace, report: Report) -> None:
    """Calls without pause for so many seconds, sampled by py-spy."""
    before, calls, ends = processor_seconds(pid), 0, time.perf_counter() + arguments.seconds

    async def caller(number: int) -> None:
        nonlocal calls
        while time.perf_counter() < ends:
            await call(number + calls * arguments.clients)
            calls += 1

    looking = asyncio.create_task(asyncio.to_thread(stacks, pid, arguments.seconds))
    await asyncio.gather(*(caller(number) for number in range(arguments.clients)))
    spent = processor_seconds(pid) - before
    raw = await looking
    samples = sum(int(line.rpartition(" ")[2]) for line in raw.splitlines())
    report.add(
        [
            {
                "what": "profile",
                "call": arguments.call,
                "memories": arguments.memories,
                "clients": arguments.clients,
                "calls": calls,
                "processor_ms": round(spent / calls * 1e3, 2),
                "interpreter_ms": round(samples / RATE / calls * 1e3, 2),
                "shares": shares(raw),
            }
        ]
    )


def stacks(pid: int, seconds: int) -> str:
    """py-spy's raw lines of what held the interpreter in that time.

    Raises:
        SystemExit: it is not installed, or may not look at the server.
    """
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise SystemExit("py-spy is not installed: pip install -r requirements-bench.txt")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "raw.txt")
        how = [
            "--gil",
            "--nonblocking",
            "--full-filenames",
            "--format",
            "raw",
            "--rate",
            str(RATE),
            "--duration",
            str(seconds),
            "--output",
            str(out),
        ]
        ran = subprocess.run(
            [program, "record", "--pid", str(pid), *how], capture_output=True, text=True, timeout=seconds + 60, check=False
        )
        if ran.returncode or not out.exists():
            raise SystemExit(f"py-spy could not look at the server: {ran.stderr.strip()[-300:]}")
        return out.read_text(encoding="utf-8")


if __name__ == "__main__":
    parser = arguments_of(__doc__, required=False)
    parser.add_argument("--call", choices=("recall", "get_context", "remember", "health"), default="recall")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args()
    lines = Report(given.out)
    lines.add([machine("profile")])
    asyncio.run(measure(given, lines))
