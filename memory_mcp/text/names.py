"""Names as they are compared: width, case and honorifics aside; and a text folded so that places in it can be found again."""

import re
import unicodedata
from collections.abc import Sequence

NAME_LIMIT = 100
# あっくん is a name as a whole: あっ is how 「あった」 begins.
_HONORIFIC = re.compile(
    "(?<=[^っッ])(?:さん|さま|様|くん|君|ちゃん|たん|氏|殿|先生|先輩|部長|課長|係長|主任|社長|店長|教授|博士|選手|監督|コーチ|-?(?:san|kun|chan|sama|sensei))$"
)
_NICKNAME = re.compile("[っッ](?:さん|さま|くん|ちゃん|たん)$")

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})

# A character with the marks that belong to it: half-width kana carry theirs apart.
_MARKS = "[\uff9e\uff9f\u3099\u309a\u0300-\u036f]"
_MARK, _SIGN = re.compile(_MARKS), re.compile(f"(?s:.){_MARKS}*")


def fold(name: str) -> str:
    """NFKC, case-folded, blanks within made one: two names that fold alike are the same name."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def is_invisible(name: str) -> bool:
    """Whether nothing of a name can be seen: blanks, marks of direction, control characters. A sign that Python does not know yet may be seen."""
    return all(unicodedata.category(sign) in _INVISIBLE for sign in fold(name))


def bare(name: str) -> str:
    """The folded name without what politeness adds: 田中さん, 田中様, 田中部長 → 田中."""
    folded = fold(name)
    return _HONORIFIC.sub("", folded).strip() or folded


def is_polite(name: str) -> bool:
    """Whether an honorific is a part of the name: 田中さん, and あっくん, who is nobody without it."""
    return _HONORIFIC.search(fold(name)) is not None or _NICKNAME.search(fold(name)) is not None


def folded_with_places(text: str) -> tuple[str, Sequence[int]]:
    """The text folded sign by sign, and for each character of that its place in the text (one more for the end)."""
    if unicodedata.is_normalized("NFKC", text) and not _MARK.search(text) and len(cases := text.casefold()) == len(text):
        return cases, range(len(text) + 1)  # nearly every text: a tenth of the time
    parts: list[str] = []
    places: list[int] = []
    for sign in _SIGN.finditer(text):
        folded = unicodedata.normalize("NFKC", sign[0]).casefold()
        parts.append(folded)
        places += [sign.start()] * len(folded)
    places.append(len(text))
    return "".join(parts), places
