"""Compares two results of a benchmark: each figure of the second divided by the same figure of the first.

    python -m benchmarks.compare before.jsonl after.jsonl

Lines are matched by everything that is not a figure: what was measured, of which set, with how many clients. For
quality, whose differences are small compared with chance, use `python -m benchmarks.quality --compare` instead.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.sets import lines

Line = dict[str, Any]
# Numbers that describe the measurement and are not results.
CIRCUMSTANCES = frozenset({"clients", "memories", "count", "n", "deadline_ms"})
NOT_COMPARED = frozenset({"machine", "question", "benchmark"})


def ratios(before: Path, after: Path) -> Iterator[Line]:
    """One line for each measurement in both results: its circumstances, and the ratio of each figure; 0 to 0 is 1."""
    earlier = {_circumstances(line): line for line in lines(before)}
    for line in lines(after):
        previous = earlier.get(_circumstances(line))
        if previous is None or line["what"] in NOT_COMPARED:
            continue
        figures = {
            name: _ratio(previous[name], value)
            for name, value in line.items()
            if _is_figure(name, value) and _is_figure(name, previous.get(name))
        }
        if figures:
            yield {**dict(_circumstances(line)), **figures}


def _circumstances(line: Line) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in line.items() if isinstance(value, str | bool) or name in CIRCUMSTANCES)


def _is_figure(name: str, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and name not in CIRCUMSTANCES


def _ratio(before: float, after: float) -> float | None:
    if not before:
        return None if after else 1.0
    return round(after / before, 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    arguments = parser.parse_args()
    compared = list(ratios(arguments.before, arguments.after))
    if not compared:
        parser.error("no measurement is in both files: what was measured, its size and its number of calls must agree")
    try:
        for ratio in compared:
            print(json.dumps(ratio, ensure_ascii=False), flush=True)
    except BrokenPipeError:  # the reader has closed the pipe; the interpreter's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
