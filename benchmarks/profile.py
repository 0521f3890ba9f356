"""Where a call's time goes: which package holds the interpreter while several clients call, and the processor time of a call.

    pip install -r requirements-bench.txt
    python -m benchmarks.profile [--call recall] [--memories 10000] [--clients 8] [--embedder DIR --reranker DIR] [--seconds 20] [--steps]

With `--steps` it is not asked who holds the interpreter but what the thread of a call does, SQLite included: for each function of this project the
share of that thread's time that it takes with all that it calls.

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

from benchmarks.beside import wait_until_idle
from benchmarks.dashboard import processor_seconds
from benchmarks.latency import Call, benched
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, running
from benchmarks.texts import question

RATE = 200
ANSWERING = "_answered ("  # the function that a call's thread begins with
LEAST_SHARE = 0.02
PROTOCOL = frozenset({"fastmcp", "mcp", "pydantic", "starlette", "uvicorn", "h11", "anyio", "sse_starlette", "asyncio"})
_OWN = re.compile(r"memory_mcp/([a-z_]+)")
_FUNCTION = re.compile(r"(\S+) \(.*memory_mcp/(\S+)\.py:\d+\)")
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


def steps(raw: str) -> dict[str, float]:
    """From the same lines: the share of each function of this project in the time of the threads that answer, with all that it calls."""
    counts: Counter[str] = Counter()
    whole = 0
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        if ANSWERING in stack:
            whole += int(count)
            named = filter(None, map(_FUNCTION.match, stack.split(";")))
            counts.update(dict.fromkeys((f"{match[2]}:{match[1]}" for match in named), int(count)))
    return {name: round(count / whole, 3) for name, count in counts.most_common() if count / whole >= LEAST_SHARE}


async def measure(arguments: argparse.Namespace, report: Report) -> None:
    wanted = bool(arguments.embedder or arguments.reranker)
    with running(with_models(arguments) if wanted else NO_MODELS) as server:
        async with benched(server, report) as (bench, http):
            if wanted:
                await settled(http)
            await bench.fill(arguments.memories)
            await settled(http)
            await asyncio.to_thread(wait_until_idle, server)

            async def ask(number: int) -> None:
                await bench.tool(arguments.call, {"query": f"{question(number)} {number}"})  # nobody asked it before

            call = {"remember": bench.save, "health": bench.health}.get(arguments.call, ask)
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

    looking = asyncio.create_task(asyncio.to_thread(stacks, pid, arguments.seconds, is_lock=not arguments.steps))
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
                **({"steps": steps(raw)} if arguments.steps else {"shares": shares(raw)}),
            }
        ]
    )


def stacks(pid: int, seconds: int, *, is_lock: bool) -> str:
    """py-spy's raw lines of what held the interpreter in that time, or without `is_lock` of what ran.

    Raises:
        SystemExit: it is not installed, or may not look at the server.
    """
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise SystemExit("py-spy is not installed: pip install -r requirements-bench.txt")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "raw.txt")
        how = [
            *(["--gil"] if is_lock else []),
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
    parser.add_argument("--steps", action="store_true", help="what each step of a call takes, instead of who holds the interpreter")
    given = parser.parse_args()
    lines = Report(given.out)
    lines.add([machine("profile")])
    asyncio.run(measure(given, lines))
