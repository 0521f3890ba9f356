"""Whether two names may be of one person, place or thing, and why: for a proposal, which somebody has to agree to.

Kanji tell no reading without a dictionary: 田中 and たなか are alike only where one of the two has the other as a further name.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory_mcp.characters import HIRAGANA
from memory_mcp.text.names import bare

# Names of days and hours differ by one character, and mean something else.
EXACT_TYPES = frozenset({"TimeUnit"})
# A name that is a part of another is a shorter form of it for a person; 渋谷 and 渋谷駅 are two places.
SHORTENED_TYPES = frozenset({"Person"})
# So many letters a name needs before one of them may be a slip.
SLIP_LENGTH = 4
_VARIANTS = str.maketrans(
    {
        old: new
        for new, olds in {
            "辺": "邊邉", "斉": "斎齊齋", "高": "髙", "崎": "﨑嵜", "浜": "濱", "沢": "澤", "広": "廣", "桜": "櫻", "国": "國", "竜": "龍", "恵": "惠",
            "真": "眞", "島": "嶋嶌", "富": "冨", "吉": "𠮷", "滝": "瀧", "栄": "榮", "徳": "德", "瀬": "瀨", "蔵": "藏", "条": "條", "児": "兒", "関": "關", "円": "圓",
        }.items()
        for old in olds
    }
)  # fmt: skip
_COMPANY = re.compile(
    r"株式会社|有限会社|合同会社|\(株\)|\(有\)|(?<=[\s,.])(?:inc|ltd|llc|corp|corporation|company|co|gmbh|plc)\.?(?=$|\s)", re.IGNORECASE
)
_KATAKANA = {letter: letter - 0x60 for letter in range(ord("ァ"), ord("ヶ") + 1)}
_KANA = re.compile(f"[{HIRAGANA}]+")
_SEPARATORS = re.compile(r"[\s・･=＝\-_.,'’]+")


@dataclass(frozen=True, slots=True)
class Likeness:
    """How likely two names are of one, 0 to 1, and why."""

    score: float
    why: str


SAME = Likeness(0.95, "the same but for honorifics, width or case")
COMPANY = Likeness(0.9, "the same but for the form of the company")
KANA = Likeness(0.9, "the same in hiragana and katakana")
VARIANT = Likeness(0.85, "the same with another form of a kanji")
SPACED = Likeness(0.85, "the same but for spaces and signs")
LONG_VOWEL = Likeness(0.8, "the same but for a long vowel")
SHORTER = Likeness(0.6, "one is a part of the other")
AMBIGUOUS = Likeness(0.45, "one is a part of the other, and of others too")
AMBIGUOUS_NAME = Likeness(0.45, "a further name of both, or of others too")
SLIP = Likeness(0.55, "one letter apart")


def forms(name: str, type_: str) -> Iterator[tuple[str, Likeness]]:
    """What names have in common that may be of one: each form with what it says where two names share it, the surest first."""
    plain = bare(name)
    yield f"same {plain}", SAME
    if type_ in EXACT_TYPES:
        return
    if type_ == "Organization" and (core := _SEPARATORS.sub(" ", _COMPANY.sub(" ", plain)).strip()):
        yield f"company {core}", COMPANY
    yield f"kana {_hiragana(plain)}", KANA
    yield f"variant {_hiragana(plain).translate(_VARIANTS)}", VARIANT
    close = _SEPARATORS.sub("", _hiragana(plain).translate(_VARIANTS))
    if close:
        yield f"spaced {close}", SPACED
    if len(short := close.replace("ー", "")) > 1:
        yield f"vowel {short}", LONG_VOWEL


def spelled(name: str, type_: str) -> str:
    """The name as it is compared letter by letter; empty where one letter may be what tells it apart: Project A, プロジェクトB, 10月17日,
    kanji, too few letters."""
    plain = _hiragana(bare(name))
    close = _SEPARATORS.sub("", plain)
    is_told_by_letters = all(map(_is_kana, close)) or all(map(_is_latin, close))
    has_a_sign = any(len(word) == 1 for word in _SEPARATORS.split(plain))
    return close if type_ not in EXACT_TYPES and len(close) >= SLIP_LENGTH and is_told_by_letters and not has_a_sign else ""


def slips(spelling: str) -> Iterator[str]:
    """Itself, and without each one of its letters: two that are one letter apart share one of these."""
    if spelling:
        yield spelling
    for place in range(len(spelling)):
        yield spelling[:place] + spelling[place + 1 :]


def is_slip(one: str, other: str) -> bool:
    """Whether one letter is another, missing, or has changed places with the next."""
    start = next((place for place, (here, there) in enumerate(zip(one, other, strict=False)) if here != there), min(len(one), len(other)))
    here, there = one[start:], other[start:]
    return here[1:] in (there, there[1:]) or here == there[1:] or (here[:2] == there[1::-1] and here[2:] == there[2:])


def parts(name: str, type_: str) -> Iterator[str]:
    """Shorter names that this one may have: its beginning or end in kanji, its words in letters."""
    if type_ not in SHORTENED_TYPES:
        return
    plain = bare(name)
    words = [word for word in re.split(r"[\s・･=＝]+", plain) if len(word) > 1]
    if len(words) > 1:
        yield from words
    elif not plain.isascii() and len(plain) > 2:
        yield from (plain[:size] for size in range(2, len(plain)))
        yield from (plain[-size:] for size in range(2, len(plain)))


def _hiragana(text: str) -> str:
    return text.translate(_KATAKANA)


def _is_kana(letter: str) -> bool:
    return letter == "ー" or _KANA.match(letter) is not None


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN")


def surest(found: Iterable[Likeness]) -> Likeness:
    """The one that says most."""
    return max(found, key=lambda one: one.score)
