"""Detects possible contradictions between two short texts: one negates the other, or both give one thing different values.

Both must be single sentences that are otherwise alike: a wrong hint costs more trust than a missing one.
"""

import re
from typing import Literal

from memory_mcp.characters import is_japanese
from memory_mcp.language.sentences import is_single_sentence
from memory_mcp.language.tokens import normalise

Why = Literal["opposite", "another value"]

LONGEST = 120
# The required similarity of the texts without their negations: of Japanese character pairs, and of English words.
ALIKE, ALIKE_WORDS = 0.6, 0.8

_NEGATIONS = re.compile(
    r"(?:では|じゃ|く)?(?:ない|なかった|なくなった|ません(?:でした)?)(?:です)?|ぬ(?=。|$)|"
    r"\b(?:not|never|no longer|cannot|(?:do|does|did|is|are|was|were|ca|wo|would|should|could)n't|do|does|did)\b"
)
_COUNTED_NEGATIONS = re.compile(r"ない|なかった|なくなった|ません|ぬ(?=。|$)|\b(?:not|never|no longer|cannot)\b|n't\b")
# Opposites without a negation word: `yes` affirms what `no` denies.
_OPPOSITES = re.compile(
    r"(?P<yes>大?好き|得意|賛成|信じ|開催|嬉し|安全|\b(?:likes?|loves?|enjoys?|trusts?|agrees?|supports?|can|safe)\b)|"
    r"(?P<no>大?嫌い|苦手|不得意|反対|疑っ|疑う|中止|悲し|危険|\b(?:dislikes?|hates?|distrusts?|disagrees?|opposes?|unsafe)\b)"
)
# Without a name before it, such a property is the speaker's own.
_OWN = "誕生日|生年月日|年齢|住所|住まい|電話番号|連絡先|本名|名字|職業|勤め先|勤務先|職場|出身|出身地|故郷|血液型|身長"
_SINGLE = f"{_OWN}|締切|締め切り|〆切|期限|納期|開催日|開始日|会場|集合場所|待ち合わせ場所|値段|価格|担当|担当者|責任者|上司|宛先"
_VALUE = re.compile(
    rf"^(?P<head>[^。、は]{{1,40}}の(?:{_SINGLE})|{_OWN})は(?P<value>[^。、]{{1,40}}?)(?:です|だ|である|になった|になりました)?[。!]?$"
)
_ENGLISH_VALUE = re.compile(
    r"^(?P<head>[\w .-]{1,40}'s (?:birthday|age|address|phone number|full name|job|employer|home ?town|deadline|due date|price|boss|blood type|height)) "
    r"(?:is|was) (?P<value>[^.,]{1,40}?)\.?$"
)
_WORD = re.compile(r"[a-z0-9'-]+")
# 苺が好き and 苺は嫌い are about the same, whatever the particle; 海老を食べる and 海老は食べない, too: は may replace が or を.
_BEFORE_OPPOSITE = re.compile(rf"[がはをも]、?(?={_OPPOSITES.pattern})")
_CASE = re.compile(r"(?<=[^\u3041-\u3096\W])[はがを](?=.)")
_SPEAKER = re.compile("^(?:私|僕|俺|わたし|ぼく)は、?")
_HIRAGANA = re.compile("[\u3041-\u3096]+")


def contradicting(text: str, other_text: str) -> Why | None:
    """How two texts may contradict each other; None if there is no sign of it."""
    if not (may_contradict(text) and may_contradict(other_text)):
        return None
    first, second = normalise(text).strip(), normalise(other_text).strip()
    if _values_differ(first, second):
        return "another value"
    return "opposite" if is_negated(first) != is_negated(second) and _alike_without_negation(first, second) else None


def may_contradict(text: str) -> bool:
    """Whether a text is so short that it can be compared: a single sentence."""
    if len(text) > 2 * LONGEST:  # it may become shorter
        return False
    normal = normalise(text).strip()
    return len(normal) <= LONGEST and is_single_sentence(normal)


def _values_differ(text: str, other_text: str) -> bool:
    for form in (_VALUE, _ENGLISH_VALUE):
        first, second = form.match(text), form.match(other_text)
        if first and second and first["head"] == second["head"]:
            values = first["value"].strip(), second["value"].strip()
            # 「京都」 and 「京都の宇治」 are the same place at different precision.
            return not (values[0] in values[1] or values[1] in values[0])
    return False


def is_negated(text: str) -> bool:
    """Whether a normalized text is negated: an odd number of negations and negative words."""
    return (len(_COUNTED_NEGATIONS.findall(text)) + sum(match["no"] is not None for match in _OPPOSITES.finditer(text))) % 2 == 1


def _alike_without_negation(text: str, other_text: str) -> bool:
    first, second = (_NEGATIONS.sub("", _OPPOSITES.sub("", _plain(text))) for text in (text, other_text))
    if not (is_japanese(first) and is_japanese(second)):
        words = [{word.removesuffix("s") for word in _WORD.findall(text)} for text in (first, second)]
        return min(map(len, words)) >= 2 and _jaccard(*words) >= ALIKE_WORDS
    stems = [re.sub(r"[\W_]", "", _HIRAGANA.sub("", text)) for text in (first, second)]
    if stems[0] != stems[1] or not stems[0]:
        return False
    first, second = first.rstrip("。!"), second.rstrip("。!")
    cases = list(zip(_CASE.findall(first), _CASE.findall(second), strict=False))
    if all(case == other or "は" in (case, other) for case, other in cases):
        first, second = _CASE.sub("", first), _CASE.sub("", second)
    return first == second or _jaccard(_pairs(first), _pairs(second)) >= ALIKE


def _plain(text: str) -> str:
    """A text without its speaker and the particle before a word that has an opposite."""
    return _BEFORE_OPPOSITE.sub("", _SPEAKER.sub("", text.replace("can't", "cannot")))


def _pairs(text: str) -> set[str]:
    return {text[index : index + 2] for index in range(len(text) - 1)}


def _jaccard(words: set[str], other_words: set[str]) -> float:
    return len(words & other_words) / max(len(words | other_words), 1)
