"""Computes the table by which `memory_mcp/language/privacy/randomness.py` tells words from what was drawn at random.

python -m benchmarks.character_costs     prints what each character costs after each other, in bits, and the same for capitals

The words are those of the sources of Python's standard library: English, and names as programs and people build them.
"""

import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log2
from pathlib import Path

from memory_mcp.language.privacy.randomness import AFTER, BEFORE, COST_DIGITS, case_of, kind_of

_WORD = re.compile(r"[A-Za-z0-9_./:-]{3,40}")
_DRAWN = re.compile(r"[0-9a-fA-F]{12,}|.*[A-Za-z0-9+/]{40}.*")


def words() -> Iterator[str]:
    """Each word that occurs twice, once."""
    sources = Path(sysconfig.get_paths()["stdlib"])
    counts: Counter[str] = Counter()
    for path in (*sources.glob("*.py"), *sources.glob("*/*.py")):
        counts.update(_WORD.findall(path.read_text(encoding="utf-8", errors="ignore")))
    return (word for word, count in counts.items() if count >= 2 and not _DRAWN.fullmatch(word))


def main() -> None:
    """Prints the table, and the costs of capitals."""
    pairs: Counter[tuple[str, str]] = Counter()
    cases: Counter[tuple[str, str]] = Counter()
    for word in words():
        pairs.update(pairwise(["^", *map(kind_of, word)]))
        cases.update(pairwise(["x", *map(case_of, word)]))
    for before in BEFORE:
        total = sum(pairs[before, after] for after in AFTER) + len(BEFORE) / 2
        costs = (round(-log2((pairs[before, after] + 0.5) / total)) for after in AFTER)
        print("".join(COST_DIGITS[min(cost, len(COST_DIGITS) - 1)] for cost in costs))
    print(
        {
            (before, after): round(-log2(cases[before, after] / (cases[before, "u"] + cases[before, "l"])), 1)
            for before in "xlu"
            for after in "ul"
        }
    )


if __name__ == "__main__":
    main()
