"""Cuts Markdown into the sections below its headings, and these into pieces.

langchain's splitter of headings deletes every character that Python doesn't call printable, the spaces of Japanese and of typesetters among them, and all
indentation. A piece is known by its text without these, as it was when that splitter was used, and without the cells of tables that were put in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from memory_mcp.transfer.formats.flat_html import PUT_IN

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

_HEADING = re.compile(r"(#{1,4})(?: (.*))?")
_FENCE = re.compile(r"\A(?:```(?!.*```)|~~~)")
_INDENT = re.compile(r"(?:\t|[ ]{2})[ \t]*")
_OTHER_SPACES = re.compile(r"[^\S\n\t\u3000]")
# What is shown though Python doesn't call it printable; the last two join and part letters and the pictures of an emoji.
_SHOWN = "\t\u3000\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Line:
    """A line: as it is shown, and its printable characters."""

    shown: str
    plain: str

    @classmethod
    def of(cls, line: str) -> "Line":
        """With plain spaces for those of other widths but the Japanese one, without what can't be seen, and with its indentation."""
        text = line.strip()
        if not text:
            return cls("", "")
        shown = "".join(character for character in _OTHER_SPACES.sub(" ", text) if character.isprintable() or character in _SHOWN)
        indented = _INDENT.match(line)
        return cls((indented[0] if indented else "") + shown, "".join(filter(str.isprintable, text.replace(f" {PUT_IN} |", ""))))

    def after(self, count: int) -> "Line":
        """What is behind so many printable characters that it begins with."""
        return Line(self.shown.lstrip()[count:].strip(), self.plain[count:].strip())


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece: the headings above it from the first level on, its text, and by what it is known among the pieces of its document."""

    headings: list[str]
    text: str
    known_by: tuple[str, ...]


# The headings above a text, by their levels.
Above = dict[int, Line]


def pieces(markdown: str, cut: "RecursiveCharacterTextSplitter") -> Iterator[Piece]:
    """The pieces of each section. A heading without a text below it, or below one under it, is a piece of its own."""
    grouped = groupby(_blocks(markdown), key=lambda block: {level: heading.plain for level, heading in block[0].items()})
    sections = [
        (found[0][0], [lines for _, lines in found if any(line.plain for line in lines)]) for _, blocks in grouped if (found := [*blocks])
    ]
    for (above, blocks), (below, _) in pairwise([*sections, (Above(), [])]):
        told = [above[level] for level in sorted(above) if above[level].plain]
        headings, known = [line.shown for line in told], tuple(line.plain for line in told)
        shown, plain = (
            "  \n".join("\n".join(map(form, lines)) for lines in blocks) for form in (lambda line: line.shown, lambda line: line.plain)
        )
        yield from (Piece(headings, text, (*known, piece)) for text, piece in _aligned(shown, cut.split_text(plain)))
        if headings and not plain and not above.items() <= below.items():
            yield Piece(headings, "", (*known, ""))


def _blocks(markdown: str) -> Iterator[tuple[Above, list[Line]]]:
    """The blocks between blank lines, each with the headings above it; after each heading an empty one."""
    above, block, fence = Above(), list[Line](), ""
    for line in map(Line.of, markdown.split("\n")):
        heading = None if fence else _HEADING.fullmatch(line.plain)
        if heading or not (fence or line.plain):
            yield above, block
            block = []
        if heading:
            level = len(heading[1])
            above = {of: text for of, text in above.items() if of < level} | {level: line.after(level)}
            yield above, []
        elif fence or line.plain:
            block.append(line)
        if fence:
            fence = "" if line.plain.startswith(fence) else fence
        elif _FENCE.match(line.plain):
            fence = line.plain[:3]
    yield above, block


def _aligned(shown: str, found: list[str]) -> Iterator[tuple[str, str]]:
    """The parts of a text that have these pieces of its printable characters, with them: what is between two pieces is blank."""
    at = 0
    for piece in found:
        ends = []
        for character in piece:
            at = shown.index(character, at) + 1
            ends.append(at)
        yield shown[ends[0] - 1 : ends[-1]], piece
