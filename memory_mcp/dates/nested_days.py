"""Dates of one text that narrow each other: 今年の1月 is a January of this year, neither the whole year nor any other January."""

from collections.abc import Iterable, Sequence
from datetime import date

Days = tuple[date, date]  # the first day, and the first day after the last


def narrowed(meanings: Sequence[Sequence[Days]]) -> list[Days]:
    """The spans that are meant, each once. `meanings` holds for each date of the text the spans that it may mean.

    A span inside one of another date stands, and the wider one goes. Of a date that may mean several years the ones inside stand,
    if there are any. Takes n·log n time: a text may name thousands of dates.
    """
    distinct = dict.fromkeys(span for spans in meanings for span in spans)
    inside, around = _inside(distinct), _around(distinct)
    inside |= {spans[0] for spans in meanings if len(spans) == 1}  # 今月17日、10月17日: the same day, and of this year
    chosen: dict[Days, None] = {}
    for spans in meanings:
        within = [span for span in spans if span in inside] if len(spans) > 1 else []
        chosen |= dict.fromkeys(span for span in within or spans if span not in around)
    return list(chosen)


def _inside(spans: Iterable[Days]) -> set[Days]:
    """Those that another one has in it."""
    found = set()
    latest_end = date.min
    for span in sorted(spans, key=lambda span: (span[0], date.max - span[1])):  # of those that begin together the longest first
        if span[1] <= latest_end:
            found.add(span)
        latest_end = max(latest_end, span[1])
    return found


def _around(spans: Iterable[Days]) -> set[Days]:
    """Those that have another one in them."""
    found = set()
    earliest_end: date | None = None
    for span in sorted(spans, key=lambda span: (date.max - span[0], span[1])):  # the last first, of those that begin together the shortest
        if earliest_end and earliest_end <= span[1]:
            found.add(span)
        earliest_end = min(earliest_end or span[1], span[1])
    return found
