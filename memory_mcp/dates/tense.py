"""Whether a sentence is about a day to come or one that is past: 10月17日に会う, 10月17日に会った, due on 10月17日; and which a question asks for.

The first verb behind the day decides, in English the last one before it; then words for plans. The rules know a few endings and words
(`sentences.toml`): a sentence without them shows neither.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from memory_mcp.characters import is_japanese
from memory_mcp.lexicon import expressions, words

Direction = Literal["next", "last"]

_IS = expressions(__file__, "sentences.toml", "tense")
# How far around a day a sentence is read.
_REACH = 60
_RECALLED = ("っけ", "予定", "約束", "締切", "締め切り", "用事")
_PLANS, _LATELY, _BY = words("ja", "planned", "coming"), words("ja", "lately"), ("by", "until", "till", "before")


def direction(before: str, after: str) -> Direction | None:
    """Whether a sentence, given its text before and after a day, means the next such day or the last one; None where it shows neither."""
    if _IS["in_english"].fullmatch(before + after):
        return _english(before.casefold(), after.casefold())
    told = _IS["speech"].split(after, maxsplit=1)[0]
    if _IS["fixed"].match(told) and not before.endswith("を"):
        return "next"
    if _IS["since"].match(told):
        return "last"
    verb, arranged = _IS["first_verb"].search(told), _IS["arranged"].search(told)
    if verb is None:
        return _without_a_verb(before, told)
    if verb["was"]:
        return (
            "next"
            if arranged and arranged.start() <= verb.start()
            else None
            if _IS["unclear"].search(told) or _IS["about_it"].match(told)
            else "last"
        )
    return None if _IS["unclear"].search(told) else "next"


def is_habit(sentence: str) -> bool:
    """Whether a sentence says what is so whenever such a day comes."""
    return _IS["habit"].search(sentence) is not None


def direction_of_text(text: str, positions: Iterable[tuple[int, int]]) -> Direction | None:
    """Whether the sentences around the days at `positions`, else the others of the text, are about the future or the past; None where they
    show neither, or both."""
    named = list(positions)
    directions = {direction(*sentence_around(text, start, end)) for start, end in named} - {None}
    if not directions:
        days = {text[start:end] for start, end in named}
        others = [sentence.strip() for sentence in _IS["sentence_end"].split(text) if not any(map(sentence.__contains__, days))]
        directions = {direction("", sentence) or direction(sentence, "") for sentence in others if sentence and not is_habit(sentence)} - {
            None
        }
    return directions.pop() if len(directions) == 1 else None


def asked_directions(before: str, after: str) -> Iterator[Direction]:
    """Which days a question means with a day of the week or month alone: the last one, the coming one, or, as 「金曜って何かあったっけ」, either."""
    whole = f"{before}\0{after}"
    if is_habit(whole):
        return
    japanese = is_japanese(whole)
    is_planned = _IS["plan_asked"].search(whole.replace("\0", " " if not japanese else "\0")) is not None
    verb = _IS["first_verb"].search(after) if japanese else None
    told = direction(before, after) if not japanese else None if verb is None else "last" if verb["was"] else "next"
    if told == "last" and (japanese or not is_planned):
        yield "last"
        if is_planned and any(word in after for word in _RECALLED):
            yield "next"
    elif is_planned or (told == "next" and not japanese):
        yield "next"


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What the sentence of `text[start:end]` has before and after it."""
    return _IS["sentence_end"].split(text[max(start - _REACH, 0) : start])[-1], _IS["sentence_end"].split(text[end : end + _REACH])[0]


def _without_a_verb(before: str, after: str) -> Direction | None:
    if any(word in before for word in _LATELY):
        return "last"
    if _IS["unclear"].search(after):
        return None
    here = before.rstrip("、 ").rpartition("、")[2] + " " + after.lstrip("、 ").partition("、")[0]
    happens = (_IS["happens_on"].search(before) and _IS["plain"].match(after)) or _IS["is_the_day"].match(after)
    return "next" if happens or any(word in here for word in _PLANS) else None


def _english(before: str, after: str) -> Direction | None:
    """The tense of the last verb before the day in its clause, else of the first behind it, else of those of the whole sentence."""
    preposition = before.rsplit(maxsplit=1)[-1] if before.split() else ""
    if preposition == "since":
        return "last"
    near = _IS["english_clause"].split(before)[-1], _IS["english_clause"].split(after)[0]
    for left, right in (near, (before, after)):
        if verb := next(iter([*reversed(list(_IS["english_verb"].finditer(left))), *_IS["english_verb"].finditer(right)]), None):
            return "next" if verb["plan"] else None if preposition in _BY and left else "last"
    return "next" if preposition in _BY or _IS["event_on"].search(f"{before}\0{after}") else None
