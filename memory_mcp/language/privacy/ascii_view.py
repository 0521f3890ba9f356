"""The normalized text that the patterns search: full-width letters and digits become ASCII, offsets stay the same.

The patterns don't use `\\b` or `\\w`, which treat kana and kanji as letters: there would be no boundary between them and a number.
"""

import re
from collections.abc import Sequence

from memory_mcp.config.settings import Privacy

# Each character maps to one character, so that offsets in the view are offsets in the text.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | dict.fromkeys(
    [0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "
)
# Katakana ー and the minus sign are used between digits as often as a hyphen. The hyphen is last, so that it is literal inside [ ].
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u30fc\uff70-"
# Placeholders contain words such as PHONE or KEY, which must not make the following number a finding.
_PLACEHOLDER = re.compile(rf"(?<=\[)REDACTED_(?:{'|'.join(map(str.upper, Privacy.model_fields))})(?=\])")
# Zero-width characters, soft hyphens, marks of direction and of byte order: they are invisible, and may be inside a secret.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def ascii_view(text: str) -> str:
    """The text in ASCII forms, with the words of placeholders blanked out; as long as the original."""
    view = text if text.isascii() else text.translate(_ASCII)
    return _PLACEHOLDER.sub(lambda match: "□" * len(match[0]), view) if "[REDACTED_" in view else view


def without_invisible(text: str) -> tuple[str, Sequence[int]]:
    """The text without invisible characters, and for each character its offset in the text (and one for the end)."""
    if text.isascii() or not _INVISIBLE.search(text):
        return text, range(len(text) + 1)
    offsets = [offset for offset, character in enumerate(text) if not _INVISIBLE.match(character)]
    return "".join(text[offset] for offset in offsets), [*offsets, len(text)]


def lowered(text: str) -> str:
    """The text in lower case, as long as the original: İ is the only letter that is longer in lower case."""
    return text.replace("İ", "I").lower()


def is_ascii_letter_or_digit(text: str, offset: int) -> bool:
    """Whether the character at this offset is one; False outside the text."""
    return 0 <= offset < len(text) and text[offset].isascii() and text[offset].isalnum()


def continues_left(text: str, start: int) -> bool:
    """Whether the number that begins here is the end of a longer token: `A123`, `a1-123`, `1.123`, `path/123`."""
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


def continues_right(text: str, end: int) -> bool:
    """Whether the number that ends here is the beginning of a longer token: `123A`, `123-a1`, `123.4`, `123.html`."""
    after = text[end : end + 1]
    if is_ascii_letter_or_digit(text, end) or after == "_":
        return True
    if after == ".":
        return is_ascii_letter_or_digit(text, end + 1)
    return bool(after) and after in DASHES and is_ascii_letter_or_digit(text, end + 1)
