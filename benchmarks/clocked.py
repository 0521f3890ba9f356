"""A server that reads the time from a file, so that 「先週末」 means the same as on the day for which a question was written.

    python -m benchmarks.clocked --clock FILE --config FILE --data DIRECTORY [--hurry shortened|cut] [--without RULE …]

The file contains one ISO time with an offset and is read at every call; without the file, the real time is used. With `--hurry`
every question is reranked as under load: only the memories of the page, or only their beginnings. With `--without` it searches without these
rules: see `rules`.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from benchmarks.rules import take_out
from memory_mcp.app import serve
from memory_mcp.encoders.reranking import PooledReranker
from memory_mcp.search.rerank import PART_CHARACTERS

Hurry = Literal["shortened", "cut"]


def time_in(file: Path) -> datetime:
    """The time in the file, or the real time if there is no file."""
    try:
        return datetime.fromisoformat(file.read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        return datetime.now(UTC)


def hurry_up(how: Hurry) -> None:
    """Makes the reranker have time only for the minimum number of texts; with `cut`, not even for the whole of long ones among them."""
    unhurried = PooledReranker.score

    def score(
        self: PooledReranker, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None
    ) -> list[float] | None:
        enough = texts[:at_least]
        if how == "cut" and at_least is not None and any(len(text) > PART_CHARACTERS for text in enough):
            return None  # the caller retries with the beginnings
        return unhurried(self, query, enough, deadline, at_least)

    PooledReranker.score = score  # type: ignore[method-assign]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--hurry", choices=("shortened", "cut"))
    parser.add_argument("--without", nargs="*", default=(), metavar="RULE")
    arguments = parser.parse_args()
    take_out(arguments.without)
    if arguments.hurry:
        hurry_up(arguments.hurry)
    serve(arguments.config, arguments.data, port=0, clock=lambda: time_in(arguments.clock))
