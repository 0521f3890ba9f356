"""A text as the patterns read it: full-width letters and digits as ASCII, every character where it was.

Nothing here uses `\\b` or `\\w`: to those kana and kanji are letters like any other, and what is glued to them has no border.
"""

import re

# One character for one: an offset in the shadow is the same offset in the text.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xA0: " "}
# A katakana ー and a minus sign stand between digits as often as a hyphen does. The hyphen is last: inside [ ] it is then itself.
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u30fc\uff70-"
# What stands where something was taken out says PHONE or KEY itself, and must not make the next number one.
_TAKEN_OUT = re.compile(r"(?<=\[)REDACTED_[A-Z_]+(?=\])")


def shadow(text: str) -> str:
    """The same text, as long as it was, without the words of what was taken out before."""
    read = text if text.isascii() else text.translate(_ASCII)
    return _TAKEN_OUT.sub(lambda found: "□" * len(found[0]), read) if "[REDACTED_" in read else read


def is_ascii_letter_or_digit(text: str, place: int) -> bool:
    """Whether there is one at this place, which may lie outside the text."""
    return 0 <= place < len(text) and text[place].isascii() and text[place].isalnum()


def hangs_on_left(text: str, start: int) -> bool:
    """Whether what begins here is the end of something longer: `A123`, `a1-123`, `1.123`, `path/123`."""
    before = text[start - 1 : start]
    if is_ascii_letter_or_digit(text, start - 1) or before == "_":
        return True
    beyond = text[start - 2 : start - 1] if start >= 2 else ""
    match before:
        case ".":
            return beyond.isdigit()
        case "/":
            return beyond.isascii() and beyond.isalpha()
        case _:
            return bool(before) and before in DASHES and is_ascii_letter_or_digit(text, start - 2)


def hangs_on_right(text: str, end: int) -> bool:
    """Whether what ends here goes on: `123A`, `123-a1`, `123.4`, `123.html`."""
    after = text[end : end + 1]
    if is_ascii_letter_or_digit(text, end) or after == "_":
        return True
    if after == ".":
        return is_ascii_letter_or_digit(text, end + 1)
    return bool(after) and after in DASHES and is_ascii_letter_or_digit(text, end + 1)
