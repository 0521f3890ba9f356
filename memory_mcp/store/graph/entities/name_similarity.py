"""Whether two names may belong to one entity, and why: for merge proposals, which a person has to confirm.

Kanji have no reading without a dictionary: 田中 and たなか are similar only if one is an alias of the other.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory_mcp.characters import HIRAGANA
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.synonyms import to_hiragana

# Names of days and hours that differ by one character are different.
EXACT_TYPES = frozenset({"TimeUnit"})
# Letters that a name needs before one of them may be a typo.
TYPO_LENGTH = 4
_COMPANY = re.compile(
    r"株式会社|有限会社|合同会社|\(株\)|\(有\)|(?<=[\s,.])(?:inc|ltd|llc|corp|corporation|company|co|gmbh|plc)\.?(?=$|\s)", re.IGNORECASE
)
_KANA = re.compile(f"[{HIRAGANA}ー]*")
_SEPARATORS = re.compile(r"[\s・･=＝\-_.,'’]+")


@dataclass(frozen=True, slots=True)
class Similarity:
    """How likely two names belong to one entity, 0 to 1, and why."""

    score: float
    why: str


SAME = Similarity(0.95, "the same but for honorifics, width or case")
COMPANY = Similarity(0.9, "the same but for the form of the company")
KANA = Similarity(0.9, "the same in hiragana and katakana")
VARIANT = Similarity(0.85, "the same with another form of a kanji")
SPACED = Similarity(0.85, "the same but for spaces and signs")
LONG_VOWEL = Similarity(0.8, "the same but for a long vowel")
SHORTER = Similarity(0.6, "one is a part of the other")
AMBIGUOUS = Similarity(0.45, "one is a part of the other, and of others too")
AMBIGUOUS_NAME = Similarity(0.45, "a further name of both, or of others too")
TYPO = Similarity(0.55, "one letter apart")


def forms(plain: str, type_: str) -> Iterator[tuple[str, Similarity]]:
    """Forms under which a name without honorifics is compared, each with the similarity of names that share it, the surest first."""
    yield f"same {plain}", SAME
    if type_ in EXACT_TYPES:
        return
    if type_ == "Organization" and (core := _SEPARATORS.sub(" ", _COMPANY.sub(" ", plain)).strip()):
        yield f"company {core}", COMPANY
    yield f"kana {(in_hiragana := to_hiragana(plain))}", KANA
    yield f"variant {(usual := with_usual_kanji(in_hiragana))}", VARIANT
    close = _SEPARATORS.sub("", usual)
    if close:
        yield f"spaced {close}", SPACED
    if len(short := close.replace("ー", "")) > 1:
        yield f"vowel {short}", LONG_VOWEL


def spelling(plain: str, type_: str) -> str:
    """A name without honorifics for a comparison letter by letter; empty where one letter may be the difference: Project A, プロジェクトB,
    10月17日, kanji, too few letters."""
    plain = to_hiragana(plain)
    close = _SEPARATORS.sub("", plain)
    is_spelled = _KANA.fullmatch(close) or all(unicodedata.name(letter, "").startswith("LATIN") for letter in close)
    has_single_letter = any(len(word) == 1 for word in _SEPARATORS.split(plain))
    return close if type_ not in EXACT_TYPES and len(close) >= TYPO_LENGTH and is_spelled and not has_single_letter else ""


def typo_keys(spelling: str) -> Iterator[str]:
    """The spelling itself, and without each one of its letters: two that are one letter apart share one of these."""
    if spelling:
        yield spelling
    for index in range(len(spelling)):
        yield spelling[:index] + spelling[index + 1 :]


def is_typo(first: str, second: str) -> bool:
    """Whether one letter is different, missing, or swapped with the next."""
    start = next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    here, there = first[start:], second[start:]
    return here[1:] in (there, there[1:]) or here == there[1:] or (here[:2] == there[1::-1] and here[2:] == there[2:])


def surest(similarities: Iterable[Similarity]) -> Similarity:
    """The one with the highest score."""
    return max(similarities, key=lambda similarity: similarity.score)
