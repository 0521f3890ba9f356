"""SIGKILL inside reports and judgements, of a persona and of its pool: what was acknowledged counts, once, and nothing is half there."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from crashing import TAUGHT, crashing, died
from figures import Figure
from processes import RunningServer
from soundness import faults
from writers import Caller

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

INVOICES, DEPLOYING = "請求書を月末にまとめて発行する", "Deploy the shop to production"
# Each is asked for advice on its task first; `used` is how many entries of the advice were followed, or are judged.
CALLS: list[dict[str, Any]] = [
    {"task": INVOICES, "outcome": "worked", "steps": ["締め番号をもらう", "控えを残す"], "sign": "印影が薄い", "instead": "300dpiで貼る"},
    {"task": INVOICES, "outcome": "failed", "steps": ["一枚ずつ出す"]},
    {"task": INVOICES, "outcome": "worked", "used": 1},
    {"task": DEPLOYING, "outcome": "worked", "steps": ["Freeze the queue"], "strategy": "sequential", "pool": "team"},
    {"task": DEPLOYING, "outcome": "failed", "sign": "The cache is stale", "steps": ["Skip the tests"], "pool": "team"},
    {"task": DEPLOYING, "outcome": "worked", "used": 1, "pool": "team"},
    {"task": INVOICES, "verdict": "helped", "used": 1},
    {"task": DEPLOYING, "verdict": "hurt", "used": 1},
]
VERDICTS = 9  # that these calls count, each of them a moment
COMMITS = len(CALLS)

Counted = dict[str, Counter[tuple[str, str]]]


def told(caller: Caller, number: int) -> None:
    """Make one of the calls. A report is the run of its number."""
    call = dict(CALLS[number])
    advised = caller("advise", task=call["task"])
    keys = [entry["key"] for entry in advised["try"]][: call.pop("used", 0)]
    if "verdict" in call:
        assert caller("judge", keys=keys, verdict=call["verdict"])["outcomes"][0]["outcome"] == "judged"
    else:
        answer = caller("report", **call, used=keys, run=str(number))
        assert "not_counted" not in answer


def counted(server: RunningServer) -> Counted:
    """Content → (run, verdict) → times, over both stores. A judgement has no run: it counts for each showing."""
    found: Counted = {}
    for store in ({}, {"X-Pool": "team"}):
        answer = httpx2.get(f"{server.url}/api/export", headers={"X-Persona": "nilou", **store}, timeout=60, trust_env=False)
        for row in map(json.loads, answer.raise_for_status().text.splitlines()):
            if row.get("kind") == "experience":
                verdicts = [(_run(entry), entry["verdict"]) for entry in row.get("feedback", ())]
                found[row["content"]] = found.get(row["content"], Counter()) + Counter(verdicts)
                showings = [entry["run"] for entry in row.get("feedback", ()) if _run(entry) == ""]
                assert len(showings) == len(set(showings))
    return found


def _run(entry: dict[str, str]) -> str:
    return "" if entry["verdict"] in ("helped", "hurt") else entry["run"]


def of_run(counts: Counted, run: int) -> dict[str, list[str]]:
    """What a run has counted: content → verdicts."""
    found = {content: sorted(verdict for (of, verdict) in counts[content] if of == str(run)) for content in counts}
    return {content: verdicts for content, verdicts in found.items() if verdicts}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """What stands there where nobody was killed."""
    with crashing(tmp_path_factory.mktemp("whole"), TAUGHT) as server, Caller(server, "nilou") as caller:
        for number in range(len(CALLS)):
            told(caller, number)
        yield counted(server)


def moments(config: pytest.Config) -> list[tuple[str, int]]:
    """Some of the steps; with --thorough each."""
    before, after, commit = (
        "before what became of a memory is counted",
        "after what became of a memory is counted",
        "after the commit, before the answer",
    )
    if not config.getoption("--thorough"):
        return [(before, 2), (after, 4), (after, VERDICTS), (commit, COMMITS)]
    every = [(moment, ordinal) for moment in (before, after) for ordinal in range(1, VERDICTS + 1)]
    return [*every, *((commit, ordinal) for ordinal in range(1, COMMITS + 1)), *(("inside a write", ordinal) for ordinal in range(1, 6))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "ordinal" in metafunc.fixturenames:
        metafunc.parametrize(("moment", "ordinal"), moments(metafunc.config))


def test_a_kill_inside_a_report_or_a_judgement_counts_it_once_or_not_at_all(
    tmp_path: Path, wanted: Counted, moment: str, ordinal: int, figure: Figure
) -> None:
    answered = 0
    with crashing(tmp_path, TAUGHT, moment, ordinal) as server:
        with pytest.raises(httpx2.TransportError), Caller(server, "nilou") as caller:  # noqa: PT012  each call may be the last
            for number in range(len(CALLS)):
                told(caller, number)
                answered += 1
        assert died(server)
    with crashing(tmp_path, TAUGHT) as server, Caller(server, "nilou") as caller:
        found = counted(server)
        reports = [number for number in range(answered) if "outcome" in CALLS[number]]
        lost = [number for number in reports if of_run(found, number) != of_run(wanted, number)]
        half = [content for content, verdicts in found.items() if not verdicts]
        half += [] if of_run(found, answered) in ({}, of_run(wanted, answered)) else [str(answered)]
        for number in range(answered, len(CALLS)):
            told(caller, number)
        done = counted(server)
        twice = [(content, of) for content, verdicts in done.items() for of, times in verdicts.items() if of[0] and times > 1]
        assert {content: set(verdicts) for content, verdicts in done.items()} == {
            content: set(verdicts) for content, verdicts in wanted.items()
        }
        assert faults(server.data) == []
    figure("kills inside reports and judgements", 1)
    figure("experiences: acknowledged and lost by a kill", len(lost))
    figure("experiences: counted twice after a kill", len(twice))
    figure("experiences: half written by a kill", len(half))
    assert (lost, twice, half) == ([], [], [])
