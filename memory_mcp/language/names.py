"""Compares names without regard to width, case and honorifics, and folds a text so that offsets in it can be mapped back."""

import re
import unicodedata
from collections.abc import Sequence

from memory_mcp.lexicon import words

NAME_LIMIT = 100
# あっくん is a name as a whole: あっ is how 「あった」 begins.
_JAPANESE, _LATIN = ("|".join(words(language, "honorifics")) for language in ("ja", "en"))
_HONORIFIC = re.compile(f"(?<=[^っッ])(?:{_JAPANESE}|-?(?:{_LATIN}))$")
_NICKNAME = re.compile("[っッ](?:さん|さま|くん|ちゃん|たん)$")

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})

# A character with the marks that belong to it: half-width kana carry theirs apart.
_MARKS = "[\uff9e\uff9f\u3099\u309a\u0300-\u036f]"
_MARK, _CHARACTER = re.compile(_MARKS), re.compile(f"(?s:.){_MARKS}*")


class _Folded(dict[int, str]):
    """The folded characters that texts had so far."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = unicodedata.normalize("NFKC", chr(code)).casefold()
        return folded


_FOLDED = _Folded()


def fold(name: str) -> str:
    """NFKC, case-folded, with single blanks: names that fold alike are the same name."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def normalized_length(text: str) -> int:
    """The number of characters to work on: as written, or in NFKC, where a single one may become eighteen (U+FDFA)."""
    return len(text) if text.isascii() else max(len(text), len(unicodedata.normalize("NFKC", text)))


def is_invisible(name: str) -> bool:
    """Whether a name has only invisible characters: blanks, direction marks, control characters. Characters unknown to Python count as visible."""
    return all(unicodedata.category(character) in _INVISIBLE for character in fold(name))


def bare(name: str) -> str:
    """The folded name without an honorific: 田中さん, 田中様, 田中部長 → 田中."""
    folded = fold(name)
    return _HONORIFIC.sub("", folded).strip() or folded


def is_polite(name: str) -> bool:
    """Whether the name has an honorific: 田中さん, and あっくん, which is no name without it."""
    return _HONORIFIC.search(fold(name)) is not None or _NICKNAME.search(fold(name)) is not None


def folded_with_offsets(text: str) -> tuple[str, Sequence[int]]:
    """The text folded character by character, and for each folded character its offset in the text (and one for the end)."""
    if not _MARK.search(text) and len(folded := text.translate(_FOLDED)) == len(text):
        return folded, range(len(text) + 1)  # nearly every text: a tenth of the time
    parts: list[str] = []
    offsets: list[int] = []
    for match in _CHARACTER.finditer(text):
        folded = unicodedata.normalize("NFKC", match[0]).casefold()
        parts.append(folded)
        offsets += [match.start()] * len(folded)
    offsets.append(len(text))
    return "".join(parts), offsets
