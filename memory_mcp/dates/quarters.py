"""Quarters and halves of a year with their year: Q1 2024, last quarter, 前四半期, H1 2025."""

import re
from datetime import date

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.relative import Pattern
from memory_mcp.dates.spans import month_of, months_back


def quarter(year: int, which: str) -> Days:
    """`which` is a digit or an English ordinal."""
    number = int(which) if which.isdecimal() else "first second third fourth".split().index(which) + 1
    return month_of(year, number * 3 - 2)[0], month_of(year, number * 3)[1]


def _quarter_of(today: date, back: int) -> Days:
    """The one that is, or so many before."""
    passed = (today.month - 1) % 3
    return months_back(today, passed + 3 * back)[0], months_back(today, passed + 3 * back - 2)[1]


def _half(year: int, which: int) -> Days:
    return month_of(year, which * 6 - 5)[0], month_of(year, which * 6)[1]


_BACK = {"前": 1, "先": 1, "last": 1, "previous": 1, "来": -1, "next": -1}
QUARTERS: list[Pattern] = [
    (
        re.compile(r"(?<![a-z\d])(?:q([1-4])|(first|second|third|fourth) quarter)(?:\s+(?:of\s+)?|/|-)?(\d{4})(?!\d)"),
        lambda m, today: [quarter(int(m[3]), m[1] or m[2])],
    ),
    (
        re.compile(r"(?<!\d)(\d{4})年?(?:の|\s*)(?:q|第)([1-4])(?:四半期|(?![\w週]))"),
        lambda m, today: [quarter(int(m[1]), m[2])],
    ),
    (re.compile(r"(?<![a-z\d])h([12])\s?(\d{4})(?!\d)"), lambda m, today: [_half(int(m[2]), int(m[1]))]),
    (re.compile(r"(?<!\d)(\d{4})\s?h([12])(?![a-z\d])"), lambda m, today: [_half(int(m[1]), int(m[2]))]),
    (
        re.compile("([今前先来])四半期|(?<![a-z])(last|previous|this|next) quarter(?![a-z])"),
        lambda m, today: [_quarter_of(today, _BACK.get(m[1] or m[2], 0))],
    ),
]
