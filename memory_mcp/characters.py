"""Classes of characters for regular expressions: kana, kanji, whether a text is Japanese; and in which encoding bytes seem to be."""

import codecs
import re
from itertools import pairwise

KANA = "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u3096"
KATAKANA = "\u30a1-\u30fa\u30fc"
# The kanji of names; without the rare ones of `HAN`.
KANJI = "\u4e00-\u9fff々"
# Also those that hardly any name has, for the characters next to a name.
EVERY_KANJI = f"\u3400-\u4dbf{KANJI}"

_JAPANESE = re.compile(f"[{KANA}{HAN}\uff66-\uff9d]")


def is_japanese(text: str) -> bool:
    """Whether a text has a kana, of full or half width, or a kanji."""
    return _JAPANESE.search(text) is not None


# How many bytes after the first that is no UTF-8 are looked at.
_SEEN_BYTES = 4096
_JAPANESE_ENCODINGS = {"cp932": "Shift_JIS (CP932)", "euc_jp": "EUC-JP"}
# How ISO-2022-JP says that kanji follow: ASCII, and so UTF-8, to the letter.
_JIS_ESCAPES = (b"\x1b$@", b"\x1b$B")


def not_utf8(body: bytes) -> tuple[int, str] | None:
    """The number of the first byte that is no text in UTF-8, and the encoding that the text seems to be in, in words; empty if that can't
    be said. None for a text in UTF-8."""
    # A text of JSON begins with ASCII, so that UTF-16 and UTF-32 have a zero among its first bytes.
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in body[:2]:
        return 1, "UTF-32" if b"\0\0" in (body[:2], body[2:4]) else "UTF-16"
    if escapes := [at for escape in _JIS_ESCAPES if (at := body.find(escape)) >= 0]:
        return min(escapes) + 1, "ISO-2022-JP"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start + 1, _seeming(body[error.start : error.start + _SEEN_BYTES])
    return None


def _seeming(seen: bytes) -> str:
    likeness, best = max((_likeness(seen, encoding), name) for encoding, name in _JAPANESE_ENCODINGS.items())
    if likeness > 0:
        return best
    return "Windows-1252 (Latin)" if any(map(str.isalpha, seen[:1].decode("cp1252", "ignore"))) else ""


def _likeness(seen: bytes, encoding: str) -> int:
    """How much like Japanese a text reads in an encoding: kana of half width are what others look like, Latin letters don't begin with a
    byte below A0, and in Japanese a character stands beside others of it."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(seen)
    except UnicodeDecodeError:
        return 0
    lead = encoding == "cp932" and 0x81 <= seen[0] < 0xA0
    kana = sum("ぁ" <= one <= "ヺ" or one in "ー、。" for one in text)
    half_width = sum("\uff61" <= one <= "\uff9f" for one in text)
    return 4 * kana + sum(min(pair) > "\x7f" for pair in pairwise(text)) + 2 * lead - 4 * half_width
