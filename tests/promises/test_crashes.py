"""SIGKILL at random moments under eight writers: nothing acknowledged is lost, nothing is there twice, every file is sound."""

import itertools
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crashing import INDEXED, crashing, kill
from figures import Figure
from processes import RunningServer
from soundness import faults, graph_faults, index_differences
from writers import Caller, Expected, judged, retry_unanswered, settle, write_until_it_dies

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

ROUNDS, THOROUGH_ROUNDS = 8, 60
WRITERS = 8
PERSONAS = ("nilou", "さくら", "A/B")
LONGEST_LIFE_SECONDS = 1.2  # for a second or so of it the next server imports beside the writers


def seed() -> int:
    """TRUST_SEED, or a new one: it decides the moments and what is written, if not how the threads run."""
    return int(os.environ.get("TRUST_SEED") or random.randrange(1_000_000))


class Rounds:
    """One life after another of a server over the same data."""

    def __init__(self, directory: Path, chosen: int) -> None:
        self.directory, self.chance = directory, random.Random(chosen)
        self.expected = {persona: Expected() for persona in PERSONAS}
        self.numbers = itertools.count()
        self.restarts: list[float] = []
        self.lost = self.duplicates = 0

    def live_and_die(self) -> None:
        """Starts, holds the server to what was acknowledged before, writes, and kills it."""
        began = time.monotonic()
        with crashing(self.directory, INDEXED) as server:
            self.restarts.append(time.monotonic() - began)
            self.hold(server)
            with ThreadPoolExecutor(WRITERS) as threads:
                running = [
                    threads.submit(write_until_it_dies, server, persona, self.expected[persona], self.numbers, self.chance.randrange(10**9))
                    for persona in itertools.islice(itertools.cycle(PERSONAS), WRITERS)
                ]
                threading.Event().wait(self.chance.uniform(0.1, LONGEST_LIFE_SECONDS))
                kill(server)
                for writer in running:
                    writer.result()

    def hold(self, server: RunningServer) -> None:
        """Retries what got no answer; then every key says what it should, nothing is there twice, and SQLite finds no fault."""
        for persona, expected in self.expected.items():
            with Caller(server, persona) as caller:
                retry_unanswered(caller, expected)
                verdict = judged(caller.exported(), expected)
                self.lost += len(verdict.lost)
                self.duplicates += len(verdict.duplicates)
                assert not verdict, (persona, verdict)
        assert faults(server.data) == []


def test_whenever_the_server_is_killed_nothing_acknowledged_is_lost_and_a_retry_makes_no_duplicate(
    tmp_path: Path, figure: Figure, thorough: bool
) -> None:
    chosen = seed()
    print(f"TRUST_SEED={chosen}")
    rounds, count = Rounds(tmp_path, chosen), THOROUGH_ROUNDS if thorough else ROUNDS
    for _ in range(count):
        rounds.live_and_die()
    with crashing(tmp_path, INDEXED) as server:
        rounds.hold(server)
        settle(server)
        assert server.stop() == 0
    assert index_differences(tmp_path / "memory") == {}
    assert graph_faults(tmp_path / "memory") == {}
    figure("kill rounds", f"{count} (seed {chosen})")
    figure("kill rounds: acknowledged writes", sum(expected.acknowledged for expected in rounds.expected.values()))
    figure("kill rounds: lost", rounds.lost)
    figure("kill rounds: duplicates", rounds.duplicates)
    figure("kill rounds: slowest restart until it answers, but for its imports (s)", round(max(rounds.restarts), 2))
