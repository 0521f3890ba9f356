"""Makes HTML of any depth shallow before a library reads it: the libraries go down one call for each element within another.

Most pages are deep only because their authors left out the ends of paragraphs and items, which a browser adds.
"""

import re
from typing import cast

# Beyond this depth elements are left out; their text stays.
DEEPEST = 100
# What has no end, and what ends where another one begins.
_EMPTY = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_BLOCKS = "p h1 h2 h3 h4 h5 h6 div ul ol dl table blockquote pre section article header footer nav"
_CELLS, _ROWS, _GROUPS = "td th", "tr", "thead tbody tfoot"
_ENDED_BY = {
    **dict.fromkeys(_BLOCKS.split(), ("p",)),
    "li": ("p", "li"),
    "option": ("option",),
    **dict.fromkeys(("dt", "dd"), ("p", "dt", "dd")),
    **dict.fromkeys(_CELLS.split(), ("p", *_CELLS.split())),
    _ROWS: ("p", *_CELLS.split(), _ROWS),
    **dict.fromkeys(_GROUPS.split(), ("p", *_CELLS.split(), _ROWS, *_GROUPS.split())),
}
# What a closing tag may close across is looked for among the innermost.
_CLOSED_ACROSS = 200
# What nobody sees in a page; the navigation is that of an EPUB file, a table of its contents. Without an end the rest of the page belongs to
# a script, a style and a comment.
_NO_PAGE = re.compile(r"<!--|<(script|style|noscript|template|nav(?=[^<>]*?epub:type))\b", re.IGNORECASE)
_ENDS = {"": re.compile("-->")} | {
    name: re.compile(f"</{name}[^<>]*>", re.IGNORECASE) for name in ("script", "style", "noscript", "template", "nav")
}
# The reading above a word, and the brackets around it for browsers that can't put it there.
_READING = re.compile(r"<(rt|rp)\b[^<>]*+>[^<]*+(?:</\1\s*+>)?", re.IGNORECASE)
# Elements that stand apart on a page, though the library puts their words right beside each other. What is put between is no part of what a piece is
# known by.
_APART = frozenset("option optgroup select textarea button label legend math svg text title desc object audio video iframe canvas".split())
_BETWEEN = "\u200a"
# A cell that another one above it reaches into is put in, so that those after it stay in their columns. By what it holds, it is known as put in.
PUT_IN = "\u2063"
_SPANS = re.compile(r"""\b(row|col)span\s{0,9}=\s{0,9}["']?(\d{1,4})""", re.IGNORECASE)
_WIDEST, _MOST_PUT_IN = 20, 20_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*+)[^<>]*+>")


def flattened(page: str) -> str:
    """The page without scripts, styles, comments and the readings of its words, with the ends that its author left out, and at most so deep."""
    page = _READING.sub("", _without_scripts(page))
    inside: list[str] = []
    parts, at, tables = list[str](), 0, [_Rows()]
    for tag in _TAG.finditer(page):
        name = tag[2].lower()
        parts += [page[at : tag.start()], _BETWEEN if name in _APART else ""]
        if name == "table":
            if not tag[1]:
                tables.append(_Rows())
            elif len(tables) > 1:
                tables.pop()
        for _ in range(tables[-1].reached_before(tag, name)):
            parts += [
                _kept(cast("re.Match[str]", _TAG.match("<td>")), inside),
                PUT_IN,
                _kept(cast("re.Match[str]", _TAG.match("</td>")), inside),
            ]
        parts.append(_kept(tag, inside))
        at = tag.end()
    return "".join([*parts, page[at:]])


class _Rows:
    """The rows of a table: where the next cell is, and how many further rows each column is reached into."""

    def __init__(self) -> None:
        self._column, self._reached, self._put_in = 0, dict[int, int](), 0

    def reached_before(self, tag: re.Match[str], name: str) -> int:
        """How many cells there are between the last one and this tag that a cell above reaches into."""
        if name not in ("tr", "td", "th") or (tag[1] and name != "tr") or (name == "tr" and not (tag[1] or self._column)):
            return 0
        begun = self._column
        while self._reached.get(self._column) and self._put_in + self._column - begun < _MOST_PUT_IN:
            self._reached[self._column] -= 1
            self._column += 1
        reached = self._column - begun
        self._put_in += reached
        if name == "tr":
            self._column = 0
            return reached
        spans = {kind.lower(): int(count) for kind, count in _SPANS.findall(tag[0])}
        columns = range(self._column, self._column + max(spans.get("col", 1), 1))
        self._reached.update({column: spans.get("row", 1) - 1 for column in columns[:_WIDEST] if column < _WIDEST})
        self._column = columns.stop
        return reached


def _kept(tag: re.Match[str], inside: list[str]) -> str:
    """What becomes of a tag within these elements, which it changes."""
    name = tag[2].lower()
    if name in _EMPTY or tag[0].endswith("/>"):
        # Of each that isn't ended, Beautiful Soup keeps a note, and goes through all of them at each end of an element.
        return tag[0] if tag[1] or tag[0].endswith("/>") else f"{tag[0][:-1]} />"
    if not tag[1]:
        ended = _ENDED_BY.get(name, ())
        end = ""
        while inside and inside[-1] in ended:
            end += _popped(inside, 1)
        inside.append(name)
        return end + (tag[0] if len(inside) <= DEEPEST else "")
    across = next((count for count, opened in enumerate(reversed(inside[-_CLOSED_ACROSS:]), start=1) if opened == name), 0)
    return _popped(inside, across) if across else ""


def _popped(inside: list[str], count: int) -> str:
    """The ends of the innermost elements, of those that are kept."""
    kept = [name for depth, name in enumerate(inside[-count:], start=len(inside) - count + 1) if depth <= DEEPEST]
    del inside[-count:]
    return "".join(f"</{name}>" for name in reversed(kept))


def _without_scripts(page: str) -> str:
    parts, at, without_end = list[str](), 0, set[str]()
    for start in _NO_PAGE.finditer(page):
        name = (start[1] or "").lower()
        if start.start() < at or name in without_end:
            continue
        end = _ENDS[name].search(page, start.end())
        if end is None and name in ("noscript", "template", "nav"):
            without_end.add(name)
            continue
        parts.append(page[at : start.start()])
        if end is None:
            return "".join(parts)
        at = end.end()
    return "".join([*parts, page[at:]])
