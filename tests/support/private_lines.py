"""The hand-made lines of `data/private_lines.txt`: what people write, and what in it is private."""

import re
from dataclasses import dataclass

from places import DATA

_LINES = DATA / "private_lines.txt"
_MARK = re.compile(r"⟦([a-z_]+):(.*?)⟧")
_JOINT = "·"

Place = tuple[str, int, int]


@dataclass(frozen=True)
class Line:
    """A text, and the (kind, start, end) of everything in it that is private."""

    text: str
    private: frozenset[Place]


def lines() -> list[Line]:
    """All of them, in the order of the file."""
    told = _LINES.read_text(encoding="utf-8").split("\n")
    return [_line(line.replace(_JOINT, "")) for line in told if line and not line.startswith("#")]


def _line(marked: str) -> Line:
    text, place = "", 0
    private: list[Place] = []
    for mark in _MARK.finditer(marked):
        text += marked[place : mark.start()]
        private.append((mark[1], len(text), len(text) + len(mark[2])))
        text, place = text + mark[2], mark.end()
    return Line(text + marked[place:], frozenset(private))
