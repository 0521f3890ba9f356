"""How long the pages of the dashboard take for a persona with many memories, asked as a browser that has signed in.

    python -m benchmarks.dashboard [--memories 100000] [--visits 40] [--data DIR] [--pages memories ask] [--out results.jsonl]

Prints one JSON line for each page: the time of an answer, the server's processor time for it, and how long an empty call (`/health`)
waited meanwhile, which says whether the page blocks the event loop. `floor` is the empty call alone. With `--data` the filled directory is
kept, and a later run uses it as it is.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2

from benchmarks.graph_cost import name
from benchmarks.report import Report, machine
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, NO_MODELS, Server, running
from benchmarks.texts import question, sentence
from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token

PERSONA = "bench"
FILLING = {**NO_MODELS, "upkeep": {"idle_seconds": 0}}
PEOPLE, BATCH, DAYS = 2_000, 500, 1_000
CHORE_SECONDS, LOOK_SECONDS, PING_SECONDS = 3_600.0, 5.0, 0.02
SHELVES = ("superseded", "trash", "all")
DEEP = (0.5, 0.99)  # how far down the list the deep pages are


def _person(number: int) -> str:
    return name(37 * number + 11)


def _is_replaced(number: int) -> bool:
    return number % 20 == 18


def _is_in_trash(number: int) -> bool:
    return number % 50 == 7


def lines(count: int, today: datetime) -> Iterator[bytes]:
    """Memories of the last `DAYS`, each of which names one of `PEOPLE`; some replace another, some are in the trash."""
    for number in range(count):
        pick = random.Random(f"memory {number}")
        people = min(PEOPLE, count)
        told = today - timedelta(days=DAYS * (1 - number / count), hours=1)
        named = _person(number if number < people else pick.randrange(people))
        row: dict[str, Any] = {
            "key": f"memory_{number}",
            "content": f"{sentence(number)}{f'[[{named}|Person]]' if number < people else named}もいた。",
            "created_at": told.isoformat(),
            "source": pick.choice(("user", "user", "assistant", _person(pick.randrange(50)))),
            "session_id": f"s{number // 40}",
            "kind": pick.choice(("fact", "conversation", "conversation", "experience")),
            "tags": pick.sample([f"tag{tag}" for tag in range(40)], 2) + (["rare"] if number % 5_000 == 0 else []),
            "category": pick.choice(("work", "home", "health", "travel")),
            "privacy_level": pick.choice(("public", "internal", "internal", "private")),
            "importance": round(pick.random(), 2),
        }
        if _is_replaced(number - 1):
            row["supersedes"] = f"memory_{number - 1}"
        if _is_in_trash(number):
            row["deleted_at"] = told.isoformat()
        yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


async def fill(server: Server, memories: int, report: Report) -> None:
    """Import the memories, and wait until the server has nothing left to do in the background."""
    stored = [*lines(memories, datetime.now(UTC))]

    async def body() -> Any:
        for start in range(0, memories, BATCH):
            yield b"".join(stored[start : start + BATCH])

    async with httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": PERSONA}, trust_env=False, timeout=60) as http:
        begun = time.perf_counter()
        answer = (await http.post("/api/import", content=body(), timeout=IMPORT_TIMEOUT_SECONDS)).raise_for_status().json()
        report.add([{"what": "import", "memories": memories, "stored": answer["stored"], "seconds": round(time.perf_counter() - begun, 1)}])
        until = time.monotonic() + CHORE_SECONDS
        while any(chore["due"] for chore in (await http.get("/ready")).json()["chores"].values()):
            if time.monotonic() > until:
                raise SystemExit("the background work does not end")
            await asyncio.sleep(LOOK_SECONDS)


def visits(memories: int, turn: int) -> Mapping[str, str]:
    """What → address of each page, other ones in each turn."""
    pick = random.Random(turn)
    key = f"memory_{pick.randrange(memories // 50) * 50}"
    introduced = [number for number in range(min(PEOPLE, memories)) if not (_is_replaced(number) or _is_in_trash(number))]
    somebody, another = map(_person, pick.sample(introduced, 2))
    now, asked = datetime.now(UTC), question(turn)

    def page(path: str, **query: object) -> str:
        return f"/p/{PERSONA}/ui/{path}{f'?{urlencode(query)}' if query else ''}"

    def below(share: float) -> str:
        return f"{(now - timedelta(days=DAYS * share)).isoformat(timespec='microseconds')}/{memories}"

    day = (now - timedelta(days=pick.randrange(1, DAYS))).date()
    filters = {
        "tags": f"tag{pick.randrange(40)}",
        "kind": pick.choice(("fact", "conversation", "experience")),
        "source": _person(pick.randrange(50)),
        "session_id": f"s{pick.randrange(max(memories // 40, 1))}",
        "category": "health",
        "privacy_level": "private",
        "min_importance": "0.95",
        "date_range": f"{day}..{day + timedelta(days=7)}",
    }
    return {
        "personas": "/ui?choose=1",
        "today": page("today"),
        "today: decide": page("today/decide"),
        "memories": page("memories"),
        **{f"memories: {share:.0%} down": page("memories", after=below(share)) for share in DEEP},
        **{f"memories: {what}": page("memories", **{what: value}) for what, value in filters.items()},
        **{f"memories: {what}, half down": page("memories", **{what: value}, after=below(0.5)) for what, value in filters.items()},
        **{f"memories: {shelf}": page("memories", shelf=shelf) for shelf in SHELVES},
        **{f"memories: {shelf}, half down": page("memories", shelf=shelf, after=below(0.5)) for shelf in SHELVES},
        "memories: a rare tag": page("memories", tags="rare"),
        "memories: nothing passes": page("memories", tags="no such tag", min_importance="0.5"),
        "memories: several filters": page("memories", kind="fact", source="user", category="work", tags="tag1"),
        "memories: search": page("memories", q=asked),
        "memories: search with filters": page("memories", q=asked, kind="fact", tags="tag1"),
        "memory": page("memory", key=key),
        "memory: as of": page("memory", key=key, as_of=str(day)),
        "memory: edit": page("memory/edit", key=key),
        "memories: new": page("memories/new"),
        "memories: replace": page("memories/new", supersedes=key),
        "ask": page("ask"),
        "ask: a question": page("ask", q=asked),
        "ask: a name": page("ask", q=somebody),
        "ask: by the graph": page("ask", q=somebody, mode="graph"),
        "ask: other settings": page("ask", q=asked, **{"fusion.date_boost": "0.4"}),
        "ask: context": page("ask/context", q=asked),
        "ask: what a model sees": page("ask/seen", q=asked),
        "find": page("find"),
        "find: words": page("find", q=asked),
        "people": page("people"),
        "people: deep": page("people", offset=PEOPLE - 100),
        "people: search": page("people", q=somebody[:2]),
        "people: type": page("people", type="Person"),
        "people: picture": page("people/picture"),
        "people: picture of 500": page("people/picture", limit=500),
        "people: one": page("people/one", entity=somebody),
        "people: one, three steps": page("people/one", entity=somebody, depth=3),
        "people: path": page("people/path", source=somebody, target=another),
        "people: statistics": page("people/statistics"),
        "people: twice": page("people/twice"),
        "house": page("house"),
        "house: settings": page("house/settings"),
        "house: log": page("house/log"),
        "house: privacy": page("house/privacy"),
        "house: tokens": page("house/tokens"),
        "house: erase": page("house/erase"),
    }


def processor_seconds(pid: int) -> float:
    """What a process and its threads have used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Visitor:
    """A browser that has signed in."""

    def __init__(self, server: Server, http: httpx2.AsyncClient, report: Report, memories: int) -> None:
        self._server, self._http, self._report, self._memories = server, http, report, memories

    async def sign_in(self, secret: str) -> None:
        """Get the cookie of a session."""
        form = await self._http.get("/ui/sign-in")
        found = re.search(r'name="form_key" value="([0-9a-f]+)"', form.text)
        assert found, form.text
        answer = await self._http.post("/ui/sign-in", data={"form_key": found[1], "token": secret})
        assert answer.status_code == 303, answer.text

    async def visit(self, what: str, count: int) -> None:
        """Ask for a page some times, another one of its kind each time, and report it."""
        await self._timed(visits(self._memories, -1)[what])  # the first one fills caches that a room has only once
        pings: list[float] = []
        pinging = asyncio.create_task(self._ping(pings))
        used = processor_seconds(self._server.pid)
        waits = sorted([await self._timed(visits(self._memories, turn)[what]) for turn in range(count)])
        used = processor_seconds(self._server.pid) - used
        pinging.cancel()
        self._add("page", waits, page=what, cpu_ms=round(used / count * 1e3, 1), slowest_ping_ms=round(max(pings, default=0) * 1e3, 1))

    async def floor(self, count: int) -> None:
        """The empty call alone."""
        self._add("floor", sorted([await self._timed("/health") for _ in range(count)]))

    def _add(self, what: str, waits: list[float], **facts: Any) -> None:
        figures = {"p50_ms": round(statistics.median(waits) * 1e3, 1), "p95_ms": round(waits[int(len(waits) * 0.95)] * 1e3, 1)}
        self._report.add([{"what": what, "memories": self._memories, "count": len(waits), **figures, **facts}])

    async def _timed(self, address: str) -> float:
        begun = time.perf_counter()
        answer = await self._http.get(address)
        took = time.perf_counter() - begun
        if answer.status_code != 200:
            raise SystemExit(f"{address}: {answer.status_code}: {answer.text}")
        return took

    async def _ping(self, pings: list[float]) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            pings.append(await self._timed("/health"))


async def measured(arguments: argparse.Namespace, directory: Path, report: Report, *, is_filled: bool) -> None:
    if not is_filled:
        with running(FILLING, data=directory) as server:
            await fill(server, arguments.memories, report)
    with running(data=directory) as server:
        now = datetime.now(UTC)
        secret = create_token(directory, name="bench", personas=None, scopes=TOKEN_SCOPES, now=now, expires_at=now + timedelta(days=1))[1]
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=120) as http:
            visitor = Visitor(server, http, report, arguments.memories)
            await visitor.sign_in(secret)
            await visitor.floor(200)
            for what in visits(arguments.memories, 0):
                if any(what.startswith(wanted) for wanted in arguments.pages):
                    await visitor.visit(what, arguments.visits)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--visits", type=int, default=40, help="how often each page is asked for")
    parser.add_argument("--pages", nargs="+", default=[""], help="only the pages whose names begin with one of these")
    parser.add_argument("--data", type=Path, help="keep the filled data directory here, and use it again")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = parser.parse_args()
    results = Report(asked.out)
    results.add([machine("dashboard")])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as temporary:
        data = asked.data or Path(temporary)
        asyncio.run(measured(asked, data, results, is_filled=any(data.glob("*/memory.sqlite"))))
