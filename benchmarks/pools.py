"""What pools cost a call: the CPU time of `recall` and `get_context` without any, compared with another tree, and with one, turn by turn.

    python -m benchmarks.pools [--against DIR] [--memories 2000] [--rounds 30]

Each side is a process that answers the same questions in its turn; what else the machine does falls on all of them. `--against` is a tree from
before pools, such as a git worktree; it runs this file, so nothing here imports more of the product than such a tree has.
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
    from memory_mcp.config.live import LiveConfig  # noqa: PLC0415  only this process is of the tree that is measured
    from memory_mcp.domain import TOKEN_SCOPES  # noqa: PLC0415
    from memory_mcp.encoders.models import Models, ModelState  # noqa: PLC0415
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415
    from memory_mcp.server.actions.context import ContextArguments, get_context  # noqa: PLC0415
    from memory_mcp.server.actions.memories import RecallArguments, RememberArguments, recall, remember  # noqa: PLC0415
    from memory_mcp.server.auth import Admission  # noqa: PLC0415
    from memory_mcp.server.call import Call  # noqa: PLC0415
    from memory_mcp.server.refusal_log import RefusalLog  # noqa: PLC0415
    from memory_mcp.server.runtime import Runtime  # noqa: PLC0415

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
    parser.add_argument("--against", type=Path)
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        answer_turns(options.memories, options.side)
        return
    here = Path(__file__).parents[1]
    trees = {"without pools": (here, 0), "with a pool": (here, options.memories)}
    if options.against:
        trees["the other tree"] = (options.against.resolve(), 0)
    sides = {name: started(tree, options.memories, pool) for name, (tree, pool) in trees.items()}
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
    base = seconds["the other tree" if options.against else "without pools"]
    for name, took in seconds.items():
        ratio = statistics.median(mine / other for mine, other in zip(took, base, strict=True))
        print(f"{name:16} {statistics.median(took) / (2 * QUESTIONS) * 1000:6.2f} ms  {ratio:.3f}")


def started(tree: Path, memories: int, pool: int) -> subprocess.Popen[str]:
    """A side, which waits for its turn."""
    command = [sys.executable, __file__, "--side", str(pool), "--memories", str(memories)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tree)


def turn(side: subprocess.Popen[str]) -> float:
    """The CPU seconds of a side for all questions."""
    if side.stdin is None or side.stdout is None:
        raise RuntimeError("a side without pipes")
    side.stdin.write("\n")
    side.stdin.flush()
    return float(side.stdout.readline())


if __name__ == "__main__":
    main()
