"""Classes of characters for regular expressions: kana, kanji, and whether a text is Japanese."""

import re

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
