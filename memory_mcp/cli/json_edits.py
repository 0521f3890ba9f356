"""Changes a JSON file that may have comments, and commas before closing brackets: whatever a change doesn't concern stays as it is written."""

import json
import re
from dataclasses import dataclass
from typing import Any

# What has no end goes on to that of the line, or of the file: it is read once, and not from each quotation mark in it.
_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*+[}}\]])")
_COMMA = re.compile(r"\s{0,1000}+,")
_VISIBLE = re.compile(r"\S")
_INDENT = re.compile(r"(?m)^([ \t]+)\S")
_decoded_at = json.JSONDecoder().raw_decode


def without_comments(text: str) -> str:
    """The JSON of a file, with blanks instead of comments and last commas: everything else keeps its offset."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def edited(text: str, new: Any) -> str:
    """The file `text` so that it holds `new`. Members and items keep their order, and new ones come last."""
    indent = _INDENT.search(text)
    file = _File(text, _blanked(_COMMENT, text), without_comments(text), indent[1] if indent else "  ")
    start = file.next(0)
    value, end = file.changed(start, new)
    return text[:start] + value + text[end:]


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[0] if match[0].startswith('"') else re.sub(r"\S", " ", match[0]), text)


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is, without its comments, and also without last commas; and what each level is indented by."""

    text: str
    with_commas: str
    plain: str
    indent: str

    def next(self, at: int) -> int:
        """Where the next thing begins that is no comment."""
        match = _VISIBLE.search(self.plain, at)
        return match.start() if match else len(self.plain)

    def changed(self, at: int, new: Any) -> tuple[str, int]:
        """The text that makes `new` of the value that begins here, and where that value ends."""
        old, end = _decoded_at(self.plain, at)
        if old == new:
            return self.text[at:end], end
        is_object = isinstance(old, dict) and isinstance(new, dict)
        if not is_object and not (isinstance(old, list) and isinstance(new, list)):
            return _dumped(new, self.indent, self._margin(at)), end
        kept, taken_out, has_last_comma, rest_start = self._kept(at, new)
        rest = _joined(taken_out, self.text[rest_start : end - 1])
        added = [(name, value) for name, value in new.items() if name not in old] if is_object else list(enumerate(new[len(kept) :]))
        if not kept and not added and not rest.strip():
            return self.text[at] + self.text[end - 1], end
        comments = rest.rstrip()
        is_inline = bool(kept) and "\n" not in self.text[at:end]
        outer = f"\n{self._margin(at)}"
        inner = " " if is_inline else f"{outer}{self.indent}"
        indent = None if is_inline else self.indent
        written = [
            inner + (f"{json.dumps(name, ensure_ascii=False)}: " if is_object else "") + _dumped(value, indent, inner[1:])
            for name, value in added
        ]
        closing = rest[len(comments) :] if is_inline or not added or "\n" in rest[len(comments) :] else outer
        before = ",".join(kept) + ("," if kept and (added or has_last_comma) else "")
        after = ",".join(written) + ("," if written and has_last_comma else "")
        return f"{self.text[at]}{before}{comments}{after}{closing}{self.text[end - 1]}", end

    def _kept(self, at: int, new: Any) -> tuple[list[str], str, bool, int]:
        """The parts of a container: each entry that stays, changed, with the text before it; the comments of removed entries after the last that
        stays; whether the last entry has a comma; and where the rest begins."""
        kept: list[str] = []
        left, comma = "", None
        offset, start = at + 1, self.next(at + 1)
        while self.plain[start] not in "}]":
            value_at, name = start, None
            if self.plain[at] == "{":
                name, colon = _decoded_at(self.plain, start)
                value_at = self.next(self.next(colon) + 1)
            value, end = _decoded_at(self.plain, value_at)
            comma = _COMMA.match(self.with_commas, end)
            before = _joined(left, self.text[offset:start])
            stays = name in new if name is not None else len(kept) < len(new) and new[len(kept)] == value
            if stays:
                text = self.changed(value_at, new[name])[0] if name is not None else self.text[value_at:end]
                gap = self.text[end : comma.end() - 1] if comma else ""
                kept.append(before + self.text[start:value_at] + text + gap)
                left = ""
            else:
                left = before.rstrip()
            offset = comma.end() if comma else end
            start = self.next(offset)
        return kept, left, comma is not None, offset

    def _margin(self, at: int) -> str:
        """The blanks before the line of this place."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _joined(comments: str, following: str) -> str:
    """The comment before what was taken out may last until the end of its line."""
    return comments + ("\n" if comments and not following.lstrip(" \t").startswith("\n") else "") + following


def _dumped(value: Any, indent: str | None, margin: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent).replace("\n", f"\n{margin}")
