"""Two results of any benchmark as ratios: each figure of the second divided by the same one of the first.

    python -m benchmarks.compare before.jsonl after.jsonl

A line is the same as another when all that is no figure agrees: what was measured, of which set, with how many clients. For
quality, whose differences are small beside chance, use `python -m benchmarks.quality --compare` instead.
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
# Numbers that say what was measured rather than how it went.
CIRCUMSTANCES = frozenset({"clients", "memories", "count", "n", "deadline_ms"})
NOT_COMPARED = frozenset({"machine", "question", "benchmark"})


def ratios(before: Path, after: Path) -> Iterator[Line]:
    """One line for each measurement that both results hold: its circumstances, and the ratio of each figure; 0 to 0 is 1."""
    earlier = {_circumstances(line): line for line in lines(before)}
    for line in lines(after):
        known = earlier.get(_circumstances(line))
        if known is None or line["what"] in NOT_COMPARED:
            continue
        figures = {
            name: _ratio(known[name], value)
            for name, value in line.items()
            if _is_figure(name, value) and _is_figure(name, known.get(name))
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
    found = list(ratios(arguments.before, arguments.after))
    if not found:
        parser.error("nothing of the two is alike: what was measured, its size and its number of calls have to agree")
    try:
        for ratio in found:
            print(json.dumps(ratio, ensure_ascii=False), flush=True)
    except BrokenPipeError:  # whoever reads has seen enough; what the interpreter flushes at its end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
