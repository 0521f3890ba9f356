"""A server that takes the time from a file: 「先週末」 is then asked as on the day that a question was written for.

    python -m benchmarks.clocked --clock FILE --config FILE --data DIRECTORY [--hurry shortened|cut]

The file holds one ISO time with an offset. It is read at every call; while it is not there, the time is the real one. With `--hurry`
every question is reranked as under load, when others wait behind it: what the page shows alone, or the beginnings of that.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from memory_mcp.app import serve
from memory_mcp.encoders.reranking import PooledReranker
from memory_mcp.search.rerank import BEGINNING_CHARACTERS

Hurry = Literal["shortened", "cut"]


def time_in(file: Path) -> datetime:
    """What the file says, or the real time."""
    try:
        return datetime.fromisoformat(file.read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        return datetime.now(UTC)


def hurry_up(how: Hurry) -> None:
    """From now on there is never time for more than the texts that are enough; with `cut`, not for long ones among these as a whole."""
    unhurried = PooledReranker.score

    def score(
        self: PooledReranker, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None
    ) -> list[float] | None:
        enough = texts[:at_least]
        if how == "cut" and at_least is not None and any(len(text) > BEGINNING_CHARACTERS for text in enough):
            return None  # whoever asks comes back with the beginnings
        return unhurried(self, query, enough, deadline, at_least)

    PooledReranker.score = score  # type: ignore[method-assign]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--hurry", choices=("shortened", "cut"))
    arguments = parser.parse_args()
    if arguments.hurry:
        hurry_up(arguments.hurry)
    serve(arguments.config, arguments.data, port=0, clock=lambda: time_in(arguments.clock))
