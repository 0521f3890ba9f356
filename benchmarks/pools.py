"""What a pool costs a call: the CPU time of `recall` and `get_context` without one and with one, turn by turn.

    python -m benchmarks.pools [--memories 2000] [--rounds 30]

Each side is a process that answers the same questions in its turn; what else the machine does falls on both.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from memory_mcp.config.live import LiveConfig
from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.personas.registry import Personas
from memory_mcp.server.actions.context import ContextArguments, get_context
from memory_mcp.server.actions.memories import RecallArguments, RememberArguments, recall, remember
from memory_mcp.server.auth import Admission
from memory_mcp.server.call import Call
from memory_mcp.server.refusal_log import RefusalLog
from memory_mcp.server.runtime import Runtime

THINGS = ("本", "皿", "傘", "鍵", "地図", "手紙", "時計", "靴")
PLACES = ("棚", "机", "箱", "海辺", "山小屋", "図書館", "商店街", "舞台")
QUESTIONS = 25
POOL = "shared"


def contents(count: int, seed: int) -> list[str]:
    """Sentences about things and places."""
    chance = random.Random(seed)
    return [
        f"{chance.choice(PLACES)}の{number}番に{chance.choice(THINGS)}を置いて、{chance.choice(PLACES)}へ行った" for number in range(count)
    ]


def answer_turns(memories: int, pool_memories: int) -> None:
    """The process of one side: fills a store, and then answers all questions for each line that it reads."""

    def clock() -> datetime:
        return datetime.now(UTC)

    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "config.json")
        pools = {"pools": {POOL: {"writers": ["bench"]}}} if pool_memories else {}
        config.write_text(json.dumps({"embeddings_model": None, "reranker_model": None, **pools}), encoding="utf-8")
        personas, off = Personas(Path(directory, "memory")), ModelState("off")
        runtime = Runtime(LiveConfig(config), personas, lambda _: Models(None, None, off, off), clock=clock, started_at=clock())
        admission = Admission(None, None, frozenset(TOKEN_SCOPES), "", RefusalLog(personas.log, clock))

        def call() -> Call:
            return Call(runtime, {"type": "http", "path": "/mcp", "headers": []}, ["bench"], admission)

        for content in contents(memories, 1):
            remember(call(), RememberArguments(content=content))
        for content in contents(pool_memories, 2):
            remember(call(), RememberArguments(content=content, pool=POOL))
        asked = contents(QUESTIONS, 3)
        for _ in sys.stdin:
            began = time.process_time()
            for query in asked:
                recall(call(), RecallArguments(query=query))
                get_context(call(), ContextArguments(query=query))
            print(time.process_time() - began, flush=True)
        personas.close()


def main() -> None:
    """Measures, and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        answer_turns(options.memories, options.side)
        return
    sides = {"without pools": started(options.memories, 0), "with a pool": started(options.memories, options.memories)}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(options.rounds + 2):
        order = list(sides) if number % 2 else list(reversed(sides))
        for name in order:
            took = turn(sides[name])
            if number >= 2:  # the first two fill caches
                seconds[name].append(took)
    for side in sides.values():
        side.communicate()
    print(
        f"{options.memories} memories, {2 * QUESTIONS} calls a turn, {options.rounds} turns; CPU time, ms a call, and the median ratio of a turn"
    )
    for name, took in seconds.items():
        ratio = statistics.median(mine / other for mine, other in zip(took, seconds["without pools"], strict=True))
        print(f"{name:16} {statistics.median(took) / (2 * QUESTIONS) * 1000:6.2f} ms  {ratio:.3f}")


def started(memories: int, pool_memories: int) -> subprocess.Popen[str]:
    """A side, which waits for its turn."""
    command = [sys.executable, "-m", "benchmarks.pools", "--side", str(pool_memories), "--memories", str(memories)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def turn(side: subprocess.Popen[str]) -> float:
    """The CPU seconds of a side for all questions."""
    if side.stdin is None or side.stdout is None:
        raise RuntimeError("a side without pipes")
    side.stdin.write("\n")
    side.stdin.flush()
    return float(side.stdout.readline())


if __name__ == "__main__":
    main()
