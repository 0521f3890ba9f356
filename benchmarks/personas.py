"""What many personas cost a server: its start, their list, making and opening one of them, a round of all chores, and a server that nobody calls.

    python -m benchmarks.personas [--personas 100000] [--starts 5] [--starts-alone] [--idle 120] [--data DIR] [--out results.jsonl]

Starts with these personas and with none take turns, so that the difference is what the personas cost; the first start makes their index and stands
alone. 100,000 take 11 GB; with `--data` the filled directory is kept, and a later run uses it as it is: there the chores find all done, and have
their round in a fifth of the time. Processor time, so other load matters little.
"""

import argparse
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import httpx2

from benchmarks.dashboard import processor_seconds
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, Server, running
from benchmarks.soak import look
from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.personas.directories import IDENTITY_NAME, identity_text
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.persona_index import DIRECTORY_NAME, FILE_NAME
from memory_mcp.personas.registry import Personas
from memory_mcp.store.sqlite.database import DATABASE_NAME

MODULES = "import memory_mcp.app, memory_mcp.features.chat.web, memory_mcp.server.application, uvicorn"
SMALL_PAGE = 1_024  # a third of the disk, and no matter for a start, which opens none of them
TOUCHED = 50


def name_of(number: int) -> str:
    """The name of a persona of this benchmark."""
    return f"利用者{number:06}" if number % 2 else f"user-{number:06}"


def fill(directory: Path, count: int) -> None:
    """Makes this many personas, copies of one that a server has made."""
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as temporary:
        with running(NO_MODELS, data=Path(temporary)) as server, httpx2.Client(base_url=server.url, trust_env=False) as http:
            save(http, "first")
        database = Path(temporary, "first", DATABASE_NAME)
        connection = apsw.Connection(str(database))
        for statement in ("PRAGMA journal_mode = DELETE", f"PRAGMA page_size = {SMALL_PAGE}", "VACUUM", "PRAGMA journal_mode = WAL"):
            connection.execute(statement).fetchall()
        connection.close()
        content = database.read_bytes()
    for number in range(count):
        made = directory / directory_name(name_of(number))
        made.mkdir(mode=0o700, parents=True)
        (made / DATABASE_NAME).write_bytes(content)
        (made / IDENTITY_NAME).write_text(identity_text(name_of(number)), encoding="utf-8")


def save(http: httpx2.Client, persona: str) -> None:
    (http.post("/api/memories", json={"content": "紅茶が好き。"}, headers={"X-Persona": quote(persona)})).raise_for_status()


def recall(http: httpx2.Client, persona: str) -> None:
    (http.get("/api/recall", params={"query": "紅茶"}, headers={"X-Persona": quote(persona)})).raise_for_status()


def started(data: Path, *, until_seen: bool = False) -> dict[str, float]:
    """One start: until it listens, and what it has used until then and until it is ready. `until_seen`: it runs on until it has looked for files of
    older servers everywhere, which it does once."""
    with running(NO_MODELS, data=data) as server:
        listening = processor_seconds(server.pid)
        httpx2.get(f"{server.url}/ready", trust_env=False, timeout=60).raise_for_status()
        figures = {
            "wall_s": round(server.started_in, 2),
            "cpu_s": listening,
            "ready_cpu_s": processor_seconds(server.pid),
            "resident_mb": round(server.resident_mb(), 1),
        }
        while until_seen and not_seen(data):
            time.sleep(1)
        return figures


def not_seen(data: Path) -> int:
    """How many personas may have files of an older server, as far as is known."""
    with closing(sqlite3.connect(f"file:{data / DIRECTORY_NAME / FILE_NAME}?mode=ro", uri=True)) as index:
        return int(index.execute("SELECT count(*) FROM personas WHERE NOT adopted").fetchone()[0])


def mark_as_seen(data: Path) -> None:
    """Has the next start believe that an earlier one has looked for files of older servers everywhere, which takes hours."""
    with closing(sqlite3.connect(data / DIRECTORY_NAME / FILE_NAME)) as index, index:
        index.execute("UPDATE personas SET adopted = 1")


def starts(data: Path, empty: Path, count: int, report: Report, *, are_alone: bool) -> None:
    """Starts with the personas and with none, in turns; the medians."""
    report.add([{"what": "first start", **started(data, until_seen=not are_alone)}])
    if are_alone:
        mark_as_seen(data)
    seen: dict[str, list[dict[str, float]]] = {"start": [], "start without personas": []}
    for _ in range(count):
        seen["start"].append(started(data))
        seen["start without personas"].append(started(empty))
    for what, all_of_it in seen.items():
        report.add(
            [{"what": what, "count": count, **{key: round(statistics.median(one[key] for one in all_of_it), 2) for key in all_of_it[0]}}]
        )


def parts(data: Path, report: Report) -> None:
    """What the parts of a start take of the processor."""

    def used(work: Callable[[], object]) -> float:
        before = time.process_time()
        work()
        return round(time.process_time() - before, 2)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", MODULES], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    opened: list[Personas] = []
    index = used(lambda: opened.append(Personas(data)))
    older = used(lambda: legacy_items(data, opened[0].index.adopted()))
    opened[0].close()
    modules = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report.add([{"what": "parts of a start", "modules_cpu_s": round(modules, 2), "index_cpu_s": index, "older_cpu_s": older}])


def calls(server: Server, report: Report) -> None:
    """The list of personas, and making, opening and asking one, each call with another."""

    def each(what: str, call: Callable[[int], Any], count: int) -> None:
        begun, used = time.perf_counter(), processor_seconds(server.pid)
        for number in range(count):
            call(number)
        used = processor_seconds(server.pid) - used
        took = (time.perf_counter() - begun) / count
        report.add([{"what": what, "count": count, "ms": round(took * 1e3, 1), "cpu_ms": round(used / count * 1e3, 1)}])

    with httpx2.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        recall(http, name_of(0))
        each("first page of /api/personas", lambda _: http.get("/api/personas", params={"limit": 50}), 1)
        each("another page", lambda number: http.get("/api/personas", params={"limit": 50, "after": name_of(number)}), 20)
        each("recall, a persona that is not open", lambda number: recall(http, name_of(number + 1)), TOUCHED)
        each("recall, an open one", lambda number: recall(http, name_of(number + 1)), TOUCHED)
        stamp = time.time_ns()
        each("save, a new persona", lambda number: save(http, f"new-{stamp}-{number}"), TOUCHED)
        each("save, the same", lambda number: save(http, f"new-{stamp}-{number}"), TOUCHED)


def due(server: Server) -> int:
    """How many chores have a persona to look at."""
    chores = httpx2.get(f"{server.url}/ready", trust_env=False, timeout=60).json()["chores"]
    return sum(bool(chore["due"]) for chore in chores.values())


def chores_done(server: Server, report: Report) -> None:
    """Until the chores have looked at every persona, while nobody calls."""
    began = time.monotonic()
    before = look(server, began)
    while due(server):
        time.sleep(15)
    after = look(server, began)
    report.add(
        [
            {
                "what": "a round of all chores",
                "seconds": round(time.monotonic() - began),
                **after,
                "cpu_s": round(after["cpu_s"] - before["cpu_s"], 1),
            }
        ]
    )


def idle(server: Server, seconds: int, report: Report) -> None:
    """A server that nobody calls: what it used in each tenth of the time, and what it holds."""
    began = time.monotonic()
    before = look(server, began)
    for _ in range(10):
        time.sleep(seconds / 10)
        now = look(server, began)
        report.add([{"what": "idle", **now, "cpu_s": round(now["cpu_s"] - before["cpu_s"], 2), "chores_due": due(server)}])
        before = now


def measure(arguments: argparse.Namespace, data: Path, report: Report) -> None:
    if not any(data.glob(f"*/{DATABASE_NAME}")):
        begun = time.perf_counter()
        fill(data, arguments.personas)
        report.add([{"what": "filled", "personas": arguments.personas, "seconds": round(time.perf_counter() - begun)}])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as empty:
        starts(data, Path(empty), arguments.starts, report, are_alone=arguments.starts_alone)
    parts(data, report)
    if arguments.starts_alone:
        return
    with running(NO_MODELS, data=data) as server:
        calls(server, report)
        chores_done(server, report)
        idle(server, arguments.idle, report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--personas", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--starts-alone", action="store_true", help="measure nothing that calls and chores cost, which takes an hour")
    parser.add_argument("--idle", type=int, default=120, help="seconds")
    parser.add_argument("--data", type=Path, help="keep the filled data directory here, and use it again")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = parser.parse_args()
    results = Report(asked.out)
    results.add([machine("personas", personas=asked.personas)])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as temporary:
        measure(asked, asked.data or Path(temporary), results)
