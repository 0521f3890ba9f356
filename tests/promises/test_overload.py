"""More than the server can do: it does what it can, refuses the rest with a time to come again, and grows neither memory nor files."""

import functools
import json
import threading
from pathlib import Path

import pytest
from crashing import BY_WORDS, crashing
from figures import Figure
from floods import Tally, call_until, needs_proc, running, status_of
from processes import RunningServer
from soundness import faults
from writers import Caller

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RECALLERS, WRITERS, FLOODERS = 50, 8, 40
IMPORTED, THOROUGH_IMPORTED = 1_000, 6_000
CALM_SECONDS, THOROUGH_CALM_SECONDS = 2, 15
# Small enough for these callers to overflow it: all of them, and the flooders alone.
LIMITS = {"at_once": 20, "at_once_per_persona": 8, "waiting": 50, "waiting_per_persona": 12}
MEMORY_LIMIT_BYTES = 700 * 1024 * 1024
PERSONAS, THOROUGH_PERSONAS = 200, 1_000
WARM = 150  # more than are kept open


def files_of(server: RunningServer) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def flood(server: RunningServer, stop: threading.Event, tally: Tally) -> list[functools.partial[None]]:
    """50 that recall and 8 that write, as ten personas; 40 that recall as one who takes more than its share."""
    call = functools.partial(call_until, stop, server, tally=tally)
    recallers = [
        functools.partial(call, f"reader{n % 10}", "recall", lambda _: {"query": "海辺の散歩"}, kind="recall") for n in range(RECALLERS)
    ]
    writers = [
        functools.partial(call, f"reader{n}", "remember", lambda number, n=n: {"content": f"書き手{n}の記憶{number}"}, kind="remember")
        for n in range(WRITERS)
    ]
    greedy = [functools.partial(call, "greedy", "recall", lambda _: {"query": "海辺"}, kind="greedy") for _ in range(FLOODERS)]
    return [*recallers, *writers, *greedy]


@needs_proc
def test_a_flood_is_answered_or_refused_with_a_time_and_nothing_acknowledged_is_lost(
    tmp_path: Path, figure: Figure, thorough: bool
) -> None:
    count = THOROUGH_IMPORTED if thorough else IMPORTED
    lines = "".join(json.dumps({"content": f"海辺の散歩その{number}、{number * 7919 % 1000}日目"}) + "\n" for number in range(count))
    tally, stop = Tally(), threading.Event()
    with crashing(tmp_path, {**BY_WORDS, "calls": LIMITS}) as server:
        with running(flood(server, stop, tally), stop):
            threading.Event().wait(THOROUGH_CALM_SECONDS if thorough else CALM_SECONDS)
            calm = tally.p95("recall")
            with Caller(server, "importing") as importing:
                imported = importing.imported(lines.encode())
            busy = tally.p95("recall")
            with Caller(server, "importing") as asking:
                assert asking.get("/health").json()["status"] == "ok"
        assert tally.errors == []
        assert (imported["stored"], imported["refused"]) == (count, 0)
        for persona, contents in tally.stored.items():
            with Caller(server, persona) as caller:
                rows = [row["content"] for row in caller.exported()]
            assert sorted(rows) == sorted(set(rows))
            assert set(contents) <= set(rows)
        assert faults(server.data) == []
        assert set(tally.refused) == {429, 503}
        memory = status_of(server, "VmHWM") * 1024
        assert memory < MEMORY_LIMIT_BYTES
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    figure("overload: calls answered", tally.answered.total())
    figure("overload: refused with Retry-After", tally.refused.total())
    figure("overload: errors", len(tally.errors))
    figure("overload: p95 of other personas' recall while one imports, against before", f"{busy / calm:.2f} ({busy:.2f} s, {calm:.2f} s)")
    figure("overload: most memory (MiB)", memory // 2**20)


@needs_proc
def test_personas_that_are_opened_in_turn_leave_no_file_and_no_thread(tmp_path: Path, figure: Figure, thorough: bool) -> None:
    count = THOROUGH_PERSONAS if thorough else PERSONAS
    with crashing(tmp_path, BY_WORDS) as server:
        for number in range(count):
            with Caller(server, f"人物{number}") as caller:
                assert caller("remember", content=f"{number}人目")["stored"]
            if number == WARM:
                files, threads = files_of(server), status_of(server, "Threads")
        assert files_of(server) <= files + 10
        assert status_of(server, "Threads") <= threads + 10
        with Caller(server, "人物0") as caller:
            assert caller("recall", query="人目")["hits"][0]["content"] == "0人目"
        figure("personas opened in turn", count)
        figure(
            "personas opened in turn: files and threads more than after the first 150",
            f"{files_of(server) - files}, {status_of(server, 'Threads') - threads}",
        )
