"""Whether two short texts may contradict each other: the same is said and denied, or one thing is given two values. Only hints.

Both must be one sentence, and alike in all but that: a hint that is wrong costs more trust than one that is missing.
"""

import re
from typing import Literal

from memory_mcp.characters import is_japanese
from memory_mcp.text.tokens import normalise

Why = Literal["opposite", "another value"]

LONGEST = 120
# So much of what is left without the denial must be the same.
ALIKE, ALIKE_WORDS = 0.6, 0.8

_DENIALS = re.compile(
    r"(?:では|じゃ|く)?(?:ない|なかった|なくなった|ません(?:でした)?)(?:です)?|ぬ(?=。|$)|"
    r"\b(?:not|never|no longer|cannot|(?:do|does|did|is|are|was|were|ca|wo|would|should|could)n't|do|does|did)\b"
)
_COUNTED = re.compile(r"ない|なかった|なくなった|ません|ぬ(?=。|$)|\b(?:not|never|no longer|cannot)\b|n't\b")
# What is the contrary of what without a denial: the first of each pair is yes, the second no.
_OPPOSITES = re.compile(
    r"(?P<yes>大?好き|得意|賛成|信じ|開催|嬉し|安全|\b(?:likes?|loves?|enjoys?|trusts?|agrees?|supports?|can|safe)\b)|"
    r"(?P<no>大?嫌い|苦手|不得意|反対|疑っ|疑う|中止|悲し|危険|\b(?:dislikes?|hates?|distrusts?|disagrees?|opposes?|unsafe)\b)"
)
_SINGLE = (
    "誕生日|生年月日|年齢|住所|住まい|電話番号|連絡先|本名|名字|職業|勤め先|勤務先|職場|出身|出身地|故郷|締切|締め切り|〆切|期限|納期|開催日|開始日|"
    "会場|集合場所|待ち合わせ場所|値段|価格|血液型|身長|担当|担当者|責任者|上司|宛先"
)
_VALUE = re.compile(
    rf"^(?P<head>[^。、は]{{1,40}}の(?:{_SINGLE}))は(?P<value>[^。、]{{1,40}}?)(?:です|だ|である|になった|になりました)?[。!]?$"
)
_ENGLISH_VALUE = re.compile(
    r"^(?P<head>[\w .-]{1,40}'s (?:birthday|age|address|phone number|full name|job|employer|home ?town|deadline|due date|price|boss|blood type|height)) "
    r"(?:is|was) (?P<value>[^.,]{1,40}?)\.?$"
)
_WORD = re.compile(r"[a-z0-9'-]+")
_HIRAGANA = re.compile("[\u3041-\u3096]+")
_SENTENCE_END = re.compile(r"[。.!?！？\n](?=.)")


def contradicting(one: str, other: str) -> Why | None:
    """In what the two may contradict each other; None where nothing says so."""
    first, second = normalise(one).strip(), normalise(other).strip()
    if max(len(first), len(second)) > LONGEST or any(_SENTENCE_END.search(text) for text in (first, second)):
        return None
    if _values_differ(first, second):
        return "another value"
    return "opposite" if _polarity(first) != _polarity(second) and _same_besides(first, second) else None


def _values_differ(one: str, other: str) -> bool:
    for form in (_VALUE, _ENGLISH_VALUE):
        first, second = form.match(one), form.match(other)
        if first and second and first["head"] == second["head"]:
            values = first["value"].strip(), second["value"].strip()
            # 「京都」 and 「京都の宇治」 are one place, told more or less exactly.
            return not (values[0] in values[1] or values[1] in values[0])
    return False


def _polarity(text: str) -> bool:
    """Whether it is denied, all in all."""
    return (len(_COUNTED.findall(text)) + sum(found["no"] is not None for found in _OPPOSITES.finditer(text))) % 2 == 1


def _same_besides(one: str, other: str) -> bool:
    first, second = (_DENIALS.sub("", _OPPOSITES.sub("", text)) for text in (one, other))
    if not (is_japanese(first) and is_japanese(second)):
        words = [{word.removesuffix("s") for word in _WORD.findall(text)} for text in (first, second)]
        return min(map(len, words)) >= 2 and _jaccard(*words) >= ALIKE_WORDS
    bones = [re.sub(r"[\W_]", "", _HIRAGANA.sub("", text)) for text in (first, second)]
    if bones[0] != bones[1] or len(bones[0]) < 2:
        return False
    pairs = [{text[place : place + 2] for place in range(len(text) - 1)} for text in (first.rstrip("。!"), second.rstrip("。!"))]
    return _jaccard(*pairs) >= ALIKE


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
