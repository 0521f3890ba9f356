"""Days and months as English writes them: October 17, Oct 17th, 2026, 17 October, October 17-19. May and March may also be verbs."""

import re
from collections.abc import Iterator

from memory_mcp.dates.spans import MONTHS
from memory_mcp.dates.written_day import Written

_FULL = "january|february|april|june|july|august|september|october|november|december"
_MONTH = (
    rf"(?:(?P<MONTH>(?i:{_FULL})|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?![A-Za-z])|JAN|FEB|MAR|APR|JUN|JUL|AUG|SEPT?|OCT|NOV|DEC)"
    r"|(?P<VERB>March|May|MARCH|MAY))(?![A-Za-z])\.?"
)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_ENDS = r"(?![A-Za-z0-9_:%$€£]|[.,/]\d|['’]s\d)"
_YEAR = r"(?:19|20)\d{2}(?!\d)"
# What follows a number that counts nothing: 17 people and 3 miles are no days.
_NO_COUNT = (
    r"(?=\s*(?:\Z|[.,;:!?)\]\"'’–—-]|(?:is|was|are|were|will|at|in|on|for|with|from|to|and|or|but|we|I|he|she|it|they|the|a|an|my|our|his|her|their"
    r"|there|until|till|through|as|because|when|while|after|before|this|last|next|every|each|(?:19|20)\d\d)\b|[^\x00-\x7f]))"
)
_AND = r"(?:\s?[-–~〜]\s?|\s(?:to|through|until|till|and|&)\s|,\s(?:and\s)?)(?:the\s)?"
_ONE = re.compile(_NUMBER)
_BEGINNINGS = tuple({name[:3] for name in MONTHS})


def _month(place: int) -> str:
    return _MONTH.replace("MONTH>", f"month{place}>").replace("VERB>", f"verb{place}>")


_DAY = re.compile(
    rf"(?<![A-Za-z0-9_@#])(?:{_month(1)}\s{{1,2}}(?:the\s)?(?P<day1>{_NUMBER}){_ENDS}(?P<more1>(?:{_AND}{_NUMBER}{_ENDS}{_NO_COUNT})*)(?:,?\s(?P<year1>{_YEAR}))?"
    rf"|{_month(2)},?\s(?P<year2>{_YEAR})"
    rf"|(?<![.:,/-])(?P<day3>{_NUMBER})(?P<more3>(?:{_AND}{_NUMBER})*)\s(?:of\s)?{_month(3)}(?:,?\s(?P<year3>{_YEAR}))?)"
)
_DIGIT = re.compile("[0-9]")
_COUNTS_NOTHING = re.compile(_NO_COUNT)


def days_in_english(text: str) -> Iterator[Written]:
    """The days and months that stand in a text, in its order; of two with one month, each."""
    if not _may_name_one(text):
        return
    for found in _DAY.finditer(text):
        place = next(place for place in (1, 2, 3) if found[f"month{place}"] or found[f"verb{place}"])
        year = int(found[f"year{place}"]) if found[f"year{place}"] else None
        may_be_a_verb = found[f"verb{place}"] and not year and not re.search("st|nd|rd|th", found[0])
        if may_be_a_verb and not _COUNTS_NOTHING.match(text, found.end()):
            continue
        month = MONTHS[(found[f"month{place}"] or found[f"verb{place}"]).lower()]
        if place == 2:
            yield Written(year, month, None, found.start(), found.end())
        else:
            yield from _each(found, place, year, month)


def _may_name_one(text: str) -> bool:
    """Whether looking for days is worth while: most texts have no number."""
    if not _DIGIT.search(text):
        return False
    plain = text.lower()
    return any(month in plain for month in _BEGINNINGS)


def _each(found: re.Match[str], place: int, year: int | None, month: int) -> Iterator[Written]:
    """The days that share a month: the one beside it with the month, the others alone."""
    first, more = found.span(f"day{place}"), found.span(f"more{place}")
    others = [one.span() for one in _ONE.finditer(found.string, *more)]
    if place == 3 and others:
        spans = [first, *others[:-1], (others[-1][0], found.end())]
    else:
        spans = [(found.start(), found.end() if not others else first[1]), *others]
    numbers = [first, *others]
    for (start, end), number in zip(spans, numbers, strict=True):
        day = int(re.sub("[a-z]", "", found.string[slice(*number)]))
        yield Written(year, month, day, start, end, joined=(start, end) != spans[0])
