"""No text from outside keeps a regular expression of the package busy for longer than its length explains."""

import json
import re
import subprocess
import sys

import pytest
from figures import Figure
from pattern_scan import WAYS, grows, watching_the_clock
from places import SUPPORT
from regex_pumps import pumps

from memory_mcp.patterns import with_ends

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

SCAN = SUPPORT / "pattern_scan.py"
# Minutes: only an expression that holds the interpreter takes so long.
SCAN_SECONDS, THOROUGH_SCAN_SECONDS = 600, 1_700
LEAST_PATTERNS = 700
BAD = [
    r"(?:#{1,6} [^\n]*\n?)+",
    r"Pattern: (.*?)\nContext: (.*?)\nWrong: (.*?)\nRight: (.*)",
    r"\s*<([a-z]+(?:[-_][a-z]+)+)[^>]*>.*?</\1>\s*",
    r"\s*+,",
    r"[a-z]+@",
    r"(a+)+$",
    r"\d+\.?\d+x",
    r"\s{0,9}<(think)>.*?</\1>",
    r" \([^)]*\)",
]
GOOD = [r"\s{0,20}+<", r"[a-z]{1,20}@", r"(?<![a-z])[a-z]++@", r"a|b|c", r"[a-z]+", r"(?<![a-z ])(?:[a-z]+ )*+x"]


def slowest(pattern: str) -> bool:
    compiled = re.compile(pattern, re.DOTALL)
    with watching_the_clock():
        return any(grows(compiled, pumped, way) for pumped in pumps(compiled) for way in WAYS)


@pytest.mark.parametrize("pattern", BAD)
def test_the_pumps_find_an_expression_that_tries_the_same_text_in_many_ways(pattern: str) -> None:
    assert slowest(pattern)


@pytest.mark.parametrize("pattern", GOOD)
def test_an_expression_that_reads_a_text_once_is_left_alone(pattern: str) -> None:
    assert not slowest(pattern)


@pytest.mark.parametrize(
    ("pattern", "bounded"),
    [
        (r"a+b*?c++(?:d|e){2,}x{3}?", "a{1,9}b{0,9}?c{1,9}+(?:d|e){2,9}x{3}?"),
        (r"[*+]+\*(?P<n>.*)(?P=n)??$", r"[*+]{1,9}\*(?P<n>.{0,9})(?P=n)??$"),
        (r"[]*]+|[^]+]*|\[+", r"[]*]{1,9}|[^]+]{0,9}|\[{1,9}"),
        (r"(?<!a)b?+c{1,2}+d{20,}", "(?<!a)b?+c{1,2}+d{20,20}"),
    ],
)
def test_every_repetition_gets_an_end_and_nothing_else_changes(pattern: str, bounded: str) -> None:
    assert with_ends(pattern, 9) == bounded
    assert with_ends(bounded, 9) == bounded


def test_every_expression_of_the_package_takes_time_in_proportion_to_the_text(figure: Figure, thorough: bool) -> None:
    command = [sys.executable, str(SCAN), *(["--thorough"] if thorough else [])]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=THOROUGH_SCAN_SECONDS if thorough else SCAN_SECONDS, check=True
    )
    scanned = json.loads(done.stdout)
    assert scanned["slow"] == []
    assert scanned["patterns"] >= LEAST_PATTERNS
    figure("patterns pumped", scanned["patterns"])
    figure("texts that patterns were pumped with", scanned["pumps"])
