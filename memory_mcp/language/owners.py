"""Whose attribute a question asks for, and whose a text tells: 陸 of 陸の身長, Ken of "Ken's job" and of "the job of Ken". Texts are plain (`plain`)."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA
from memory_mcp.language.kanji_variants import with_usual_kanji
from memory_mcp.language.names import bare
from memory_mcp.language.speakers import is_role
from memory_mcp.language.synonyms import synonyms
from memory_mcp.language.tokens import is_function_word, is_single_kanji, normalise
from memory_mcp.patterns import bounded

# The characters before an attribute in which its owners are looked for, and those of an attribute.
OWNERS_LIMIT, ATTRIBUTE_LIMIT = 20, 12

_WRITTEN = f"{HAN}{KATAKANA}a-z0-9-"
_ASKED = bounded(
    rf"(?:^|[\s、。,])([^\Wを]{{1,{OWNERS_LIMIT}}})の((?:もの|こと|[^\Wはがをにでとへの]){{1,{ATTRIBUTE_LIMIT}}}?)"
    r"(?:は|って|[?\s]|$|を?教え|いつ|何|な[にん]|誰|だれ|ど[これ]|いく[つら])"
)
# A noun has no particle behind kanji or katakana, and one in hiragana more than one character.
_NO_NOUN = bounded(rf"[{_WRITTEN}][はがにでとへ]|^[{HIRAGANA}]?$")
_LAST_NOUN = bounded(rf"[おご]?(?:[{HAN}]+|[{KATAKANA}]+|[a-z0-9-]+)[{HIRAGANA}]{{0,3}}$|[{HIRAGANA}]{{2,8}}$")
_NAME = bounded(rf"([{HAN}]+|[{KATAKANA}]+|[{HIRAGANA}]{{2,6}}?)(?:さん|くん|君|ちゃん|先生|[はがもとにを、])")
_ENGLISH = bounded(r"\b(?:([a-z0-9]+)'s|(my|our|your)) (?=([a-z]+))|\bthe (?=([a-z]+) of (?:(?:the|my|our|your|an?) )?([a-z0-9]+))")
_SAME_WORD = tuple(bounded(f"[{script}]{{2}}") for script in (HAN, KATAKANA, "a-z0-9"))
# No owner, or one that only the text before tells.
_NO_OWNER = frozenset(
    "うち 家 彼 彼女 自分 本人 相手 今 いま 次 前 昔 最近 最初 最後 初めて 一番 いちばん 他 ほか みんな he she it that there here let".split()
)


class Noun:
    """A noun that says whose something is, without an honorific."""

    def __init__(self, written: str) -> None:
        self.text = bare(written)

    @cached_property
    def meanings(self) -> frozenset[str]:
        """It and other words for it, as phrases of tokens."""
        return frozenset((self.text, *(word for each in synonyms(self.text) for word in (each.word, *each.others))))

    def names_in(self, text: str) -> "list[Noun]":
        """The names that a text gives it: 浩二 in 「夫の浩二は区役所にいる」, of 夫 and of 旦那."""
        ends = (start + len(word) + 1 for word in self.meanings if (start := text.find(f"{word}の")) >= 0)
        return [Noun(name[1]) for end in ends if (name := _NAME.match(text, end))]

    def is_in(self, text: str) -> bool:
        """Whether a text has it. A single kanji is a word only by itself: 母 is none in 義母."""
        start = text.find(self.text)
        if is_single_kanji(self.text) or self.text.isascii():
            while start >= 0 and (_goes_on(text, start) or _goes_on(text, start + len(self.text))):
                start = text.find(self.text, start + 1)
        return start >= 0


def plain(text: str) -> str:
    """The text in normalized width and case, each kanji in its usual form."""
    return with_usual_kanji(normalise(text))


def asked_attribute(question: str) -> tuple[str, Sequence[Noun]] | None:
    """What a question asks for, if it is an attribute of somebody or something other than the speakers, and the nouns that say whose, the nearest last."""
    if "の" in question:
        match = _ASKED.search(question)
        owners = [owner for owner in match[1].split("の") if owner not in _NO_OWNER and not is_role(owner)] if match else []
        return (match[2], list(map(Noun, owners))) if match and owners and not any(map(_NO_NOUN.search, owners)) else None
    found = ((attribute, [Noun(owner)]) for owner, attribute in _in_english(question) if not (is_role(owner) or is_function_word(owner)))
    return next(found, None)


def owners_of(attribute: str, text: str) -> Sequence[Noun]:
    """The nouns that say whose attribute of this name a text tells, the nearest last."""
    if attribute.isascii():
        return next(([Noun(owner)] for owner, named in _in_english(text) if named == attribute), [])
    found = text.find(f"の{attribute}")
    if found < 1 or _goes_on(text, found + 1 + len(attribute)):
        return []
    owners: list[Noun] = []
    for part in reversed(text[max(0, found - OWNERS_LIMIT) : found].split("の")):
        noun = _LAST_NOUN.search(part)
        if not noun or noun[0] in _NO_OWNER:
            break
        owners.insert(0, Noun(noun[0]))
        if noun[0] != part:
            break
    return owners


def without_shared_end(owners: Sequence[Noun], others: Sequence[Noun]) -> tuple[Sequence[Noun], Sequence[Noun]]:
    """Both without the nouns at their end that mean the same: 慎吾 and 大輔 of 慎吾の母 and 大輔のお母さん. One without any left may be the other."""
    same = 0
    for owner, other in zip(reversed(owners), reversed(others), strict=False):
        if owner.meanings.isdisjoint(other.meanings):
            break
        same += 1
    return owners[: len(owners) - same], others[: len(others) - same]


def _in_english(text: str) -> Iterator[tuple[str, str]]:
    """Each owner in an English text, with what it owns."""
    if "'s " in text or "my " in text or "our " in text or " of " in text:
        for owner, speaker, attribute, told, of in _ENGLISH.findall(text):
            if (owner or of) not in _NO_OWNER:
                yield owner or speaker or of, attribute or told


def _goes_on(text: str, at: int) -> bool:
    """Whether the same word stands on both sides of a place: between 車 and 検."""
    return at > 0 and any(script.match(text, at - 1) for script in _SAME_WORD)
