"""Names as they are compared: width, case and honorifics aside; and a text folded so that places in it can be found again."""

import re
import unicodedata

_HONORIFIC = re.compile(
    "(?<=.)(?:さん|さま|様|くん|君|ちゃん|たん|氏|殿|先生|先輩|部長|課長|係長|主任|社長|店長|教授|博士|選手|監督|コーチ|-?(?:san|kun|chan|sama|sensei))$"
)


def fold(name: str) -> str:
    """NFKC, case-folded, blanks within made one: two names that fold alike are the same name."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def bare(name: str) -> str:
    """The folded name without what politeness adds: 田中さん, 田中様, 田中部長 → 田中."""
    folded = fold(name)
    return _HONORIFIC.sub("", folded).strip() or folded


def folded_with_places(text: str) -> tuple[str, list[int]]:
    """The text folded character by character, and for each character of that its place in the text (one more for the end)."""
    parts: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        folded = unicodedata.normalize("NFKC", character).casefold()
        parts.append(folded)
        places += [place] * len(folded)
    places.append(len(text))
    return "".join(parts), places
