"""Dates in words: what a caller means by 2025-10-17, 先週の金曜, 3日前の夜, 去年の夏 or last month, seen from a given now.

A day is a calendar day in the caller's zone, a week begins on Monday. The words are in `datewords`, what is said beside them in
`daytimes`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from memory_mcp.dates.absolute import ALWAYS, FIGURES, IN_A_QUESTION
from memory_mcp.dates.coming_days import HOUR_OF_NIGHT, NEXT, coming, is_open, is_soon, of_night, told_of, with_those_to_come
from memory_mcp.dates.counted_days import exact_day
from memory_mcp.dates.hours import hours_ago, is_just_now, named_hours, up_to_now
from memory_mcp.dates.iso import in_utc, iso_span, outside_calendar
from memory_mcp.dates.nested_days import Days, narrowed
from memory_mcp.dates.numerals import in_digits
from memory_mcp.dates.ranges import Found, with_ranges
from memory_mcp.dates.refused_dates import refusal
from memory_mcp.dates.relative import Resolver
from memory_mcp.dates.spans import MONTHS, WEEKDAYS, day_of
from memory_mcp.dates.spoken import Spoken
from memory_mcp.dates.tense import Direction
from memory_mcp.dates.time_of_day import Said, night_hours, with_modifiers
from memory_mcp.dates.weeks import WEEKDAY
from memory_mcp.dates.words_alone import ALONE
from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput

_DAY_NAMES = "mon|tue|wed|thu|fri|sat|sun"
_MONTH_NAMES = "|".join(sorted({name[:3] for name in MONTHS}))
_NAME_ENDS = "|".join(sorted({name[-3:] for name in MONTHS} | {"day", *_DAY_NAMES.split("|")}))
_SEPARATOR = re.compile(
    r"\.\.|〜|~|–|から| to | until | through | - |(?<=[\d日月])-(?=\d{1,2}日?\Z)|(?<=\d{4}-\d\d-\d\d)/(?=\d{4}-)|(?<=[a-z\d]) and (?=.)"
    rf"|(?<=\d)-(?=\d{{1,2}}/\d{{1,2}}\Z)|(?<={_NAME_ENDS})-(?={_DAY_NAMES}|{_MONTH_NAMES})"
)
_BESIDE = re.compile(r"と|、|,|&|及び|(?<=[a-z\d]) and (?=.)")
_EVER = TimeRange(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
# A range with one end: what comes before or after its date, and which of the date's own ends it has.
_BOUNDS: list[tuple[re.Pattern[str], Callable[[TimeRange], TimeRange]]] = [
    (re.compile("(?:since|from|starting) (.+)|(.+?)(?:以降|以来|以後)"), lambda span: TimeRange(span.start, _EVER.end)),
    (re.compile("after (.+)|(.+?)(?:より後|の後)"), lambda span: TimeRange(span.besides or span.end, _EVER.end)),
    (
        re.compile("(?:up )?(?:until|till|by|up to|through) (.+)|(.+?)(?:以前|まで)"),
        lambda span: TimeRange(_EVER.start, span.end, span.besides),
    ),
    (re.compile("before (.+)|(.+?)(?:よりも?前|の前)"), lambda span: TimeRange(_EVER.start, span.start)),
]
# Words for a day that also say when in it.
_IMPLIED = [
    (re.compile("昨夜|昨晩|ゆうべ|夕べ|今夜|今晩|明晩|tonight|last night|night before last|(?<![a-z])nights? ago"), "夜"),
    (re.compile("今朝|明朝|this morning"), "朝"),
    (re.compile("this afternoon"), "午後"),
    (re.compile("(?:this|last) evening"), "夕方"),
]
_IN_QUESTIONS, _AS_ARGUMENTS = Spoken([*ALWAYS, *IN_A_QUESTION], FIGURES), Spoken([*ALWAYS, *ALONE], FIGURES)
LONGEST_WORDS = 200
_READ_OF_CONTENT = 2000
_HALF_A_DAY = timedelta(hours=12)
_LATE = re.compile("夜|晩|夕|午後|night|evening|afternoon|pm")
_LONGEST_MONTH = timedelta(days=31, hours=1)  # October where clocks go back
_DAY_OF_WEEK_BESIDE = re.compile(
    r"(?<=[昨今明]日)(?:丸|まる)?1日(?:中|じゅう)?(?=の|に|\Z)|(?<=[先今来]週)(?:1|一)週間(?=の|に|\Z)|"
    r"(?<=\d日)\s*\(?[月火水木金土日](?:曜日?)?\)?(?![本間])|\([月火水木金土日]曜?日?\)"
    rf"|(?<![a-z])(?:{_DAY_NAMES})(?:(?:s|nes|rs|ur)?day|s|rs?)?,?\s+(?=(?:the )?\d{{1,2}}(?:st|nd|rd|th)|(?:{_MONTH_NAMES})[a-z]*\.? \d|\d{{1,2}} (?:{_MONTH_NAMES}))"
)
_CLOCK_ALONE = re.compile(r"\A(?:午前|午後|昼|夕方|早朝|未明|朝|深夜|真?夜中|夜|晩)?の?\d{1,2}(?:時半?|時\d{1,2}分|:\d\d|\s*[ap]m)\Z")
_CLOCK_WORDS = frozenset("お昼 正午 深夜 夜中 未明 早朝 明け方 昼前 昼過ぎ 夕方 noon midnight".split())
_PART_BEFORE_WEEK = re.compile(
    rf"(?<![a-z])(?P<day>{WEEKDAY}) (?P<part>morning|afternoon|evening|night),? (?P<week>(?:of )?(?:last|this|next) week)(?!end)"
)
_WEEKDAY_ALONE = re.compile(rf"([月火水木金土日])曜日?|{WEEKDAY}")
# What may stand between the dates of one day: 去年の10月, friday of last week, 10月17日(金).
_CONNECTORS = re.compile(
    r"['’]s(?![a-z])|に入って|ずっと|いっぱい|つい|ちょうど|確か|たしか|じゅう|内(?=\Z)|\([月火水木金土日]曜?日?\)|[月火水木金土日]曜日?|[のにはも、,()\s-]|日中|中(?=[のに]|\Z)|丸?1?一?日(?=\Z)"
    r"|(?<![a-z])(?:on|in|of|the|at|this|during|over|within|sometime|one day|some day|back|earlier|later|just|only|exactly|more than|some|still|maybe|probably|approximately)(?![a-z])"
)


def parse_moment(text: str, now: datetime, zone: ZoneInfo, content: str = "") -> datetime:
    """A moment in UTC from ISO or from words; of a day or a longer span, its beginning. Without an offset it is local time.

    A part of a day begins where people say it does: 3日前の夜 is eight in the evening. Of a day without a year, `content` tells which one is
    meant: where it is a plan the next, else the latest that has begun; where it tells neither, one that is at hand instead of one that
    is nearly a year off.

    Raises:
        InvalidInput: it is no date.
    """
    plain, today = in_digits(text), now.astimezone(zone).date()
    exact = iso_span(plain, zone) or hours_ago(plain, now)
    if exact:
        return exact.start
    if is_just_now(plain):
        return now.astimezone(UTC)
    told = partial(_told_of, content, plain, today)
    said = _said(plain, today, told=told)
    if said:
        moment = _moment_of(exact_day(said, plain, today), zone)
        return of_night(moment, now, told) if HOUR_OF_NIGHT.search(plain) else moment
    span = up_to_now(plain, now) or _range_of(plain, today, zone)
    first = _said(_SEPARATOR.split(plain, maxsplit=1)[0].strip(), today, told=told) if span else None
    if first and first.days[0] >= today:  # a plan, as a range
        return _moment_of(first, zone)
    if span is None or span.start == _EVER.start:
        raise _refusal("occurred_at", text, plain, today)
    return span.start


def parse_range(text: str, now: datetime, zone: ZoneInfo) -> TimeRange:
    """A range in UTC from a day, `A..B` (either end may be missing, both are included), or words.

    A part of a day stands for the whole day, a night also for the hours after midnight; only a clock time stands for that hour or minute:
    what is only known by its day would be left out. 頃 and around take the days beside it in.

    Raises:
        InvalidInput: it is no date, or ends before it begins.
    """
    plain, today = in_digits(text), now.astimezone(zone).date()
    span = up_to_now(plain, now) or hours_ago(plain, now) or _single(plain, today, zone) or _range_of(plain, today, zone)
    if span is None:
        raise _refusal("date_range", text, plain, today)
    if span.start >= span.end:
        raise InvalidInput(f"date_range {text[:80]!r} ends before it begins", "", "Write the earlier date first: 2025-10-01..2025-10-17")
    return span


def named_dates(query: str, now: datetime, zone: ZoneInfo) -> list[TimeRange]:
    """The spans that a query names, in UTC. One without a year stands for that date in each of the last years.

    A date inside another narrows it: 今年の1月 is one month.
    """
    plain = in_digits(query)
    found, _ = _found(plain, now.astimezone(zone).date(), _IN_QUESTIONS)
    return [*_representable(narrowed(with_ranges(plain, found)), zone), *named_hours(plain, now)]


def _told_of(content: str, plain: str, today: date) -> Direction | None:
    """Whether the beginning of a content takes a date for one that is to come."""
    if not content:
        return None
    begun = in_digits(content[:_READ_OF_CONTENT])
    meant = {span for _, _, days in _found(plain, today, _AS_ARGUMENTS)[0] for span in days}
    found, _ = _found(begun, today, _AS_ARGUMENTS)
    return told_of(begun, [(start, end) for start, end, days in found if not meant.isdisjoint(days)])


def _found(plain: str, today: date, words: Spoken, *, to_come: bool = False) -> tuple[list[Found], str]:
    """Where the dates of a text are and what each may mean, and the text without them."""
    taken = bytearray(len(plain))  # a flag for each character: a query may name thousands of dates
    dates: list[Found] = []
    for pattern, days_of in words.patterns(plain):
        for found in pattern.finditer(plain):
            if any(taken[found.start() : found.end()]):
                continue  # 先週 inside 先週の金曜 was meant as part of it
            days = list(_resolved(days_of, found, today))
            if to_come and is_open(pattern, days, today):
                days = with_those_to_come(pattern, days_of, found, today, days)
            if days:
                taken[found.start() : found.end()] = b"\1" * (found.end() - found.start())
                dates.append((found.start(), found.end(), days))
    return dates, "".join(" " if flag else character for character, flag in zip(plain, taken, strict=True))


def _said(plain: str, today: date, near: date | None = None, told: Callable[[], Direction | None] | None = None) -> Said | None:
    """What the whole of a text says, if that is a date: the latest that is not in the future where several are meant.

    `near` is where a range begins that this is the end of: it may leave the year unsaid. `told` says whether it is to come.
    """
    if len(plain) > LONGEST_WORDS:
        return None
    dated = _PART_BEFORE_WEEK.sub(r"\g<day> \g<week> \g<part>", _DAY_OF_WEEK_BESIDE.sub("", plain))
    found, rest = _found(dated, today, _AS_ARGUMENTS)
    strictly = NEXT.search(rest) is not None
    ahead, _ = _found(dated, today, _AS_ARGUMENTS, to_come=True) if found and (strictly or told) else ([], "")
    to_come = ahead != found and bool(ahead) and (strictly or (told is not None and _is_to_come(ahead, told(), today)))
    if to_come:
        found, rest = ahead, NEXT.sub(" ", rest)
    meanings = [days for _, _, days in found]
    if not meanings and (_CLOCK_ALONE.search(plain) or plain in _CLOCK_WORDS):
        meanings = [[day_of(today - timedelta(days=1) if HOUR_OF_NIGHT.search(plain) else today)]]
    spans = narrowed(meanings)
    if not any(set(spans) <= set(meaning) for meaning in meanings):
        return None  # no date, or two that lie apart
    implied = [part for words, part in _IMPLIED if words.search(plain)]
    try:
        said, rest = with_modifiers(
            coming(spans, today, strictly=strictly) if to_come else _meant(spans, today, near), " ".join([rest, *implied])
        )
    except (ValueError, OverflowError):
        return None
    return None if _CONNECTORS.sub("", rest) else said


def _is_to_come(ahead: Sequence[Found], told: Direction | None, today: date) -> bool:
    return told == "next" or (told is None and is_soon(narrowed([days for _, _, days in ahead]), today))


def _meant(spans: Sequence[Days], today: date, near: date | None) -> Days:
    if near and len(spans) > 1:
        later = [span for span in spans if span[0] >= near]
        return later[-1] if later else (spans[0][0].replace(year=today.year + 1), spans[0][1].replace(year=spans[0][1].year + 1))
    return next((span for span in spans if span[0] <= today), spans[0])


def _single(plain: str, today: date, zone: ZoneInfo, near: date | None = None) -> TimeRange | None:
    """The span of one date, in UTC."""
    exact = iso_span(plain, zone)
    if exact:
        return exact
    said = _said(plain, today, near)
    if said is None:
        return None
    if said.minute is not None:
        start = _moment_of(said, zone)
        return TimeRange(start, start + timedelta(minutes=1 if said.minute else 60))
    span = in_utc(said.filtered_days, zone)
    return TimeRange(span.start, span.end + night_hours(), span.end) if said.at_night else span


def _range_of(plain: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """A span with a beginning and an end that are said, or with one of them, or of two dates side by side."""
    beside = _side_by_side(plain, today, zone)
    if beside:
        return beside
    first, *last = (part.strip() for part in _SEPARATOR.split(re.sub("^(?:from|between) ", "", plain), maxsplit=1))
    if last and (first or last[0]):
        start = _single(first, today, zone) if first else _EVER
        end = (
            _end_of(re.sub("まで$|にかけて$", "", last[0]).strip(), start, today, zone, late=bool(_LATE.search(first)))
            if last[0] and start
            else _EVER
        )
        return TimeRange(start.start, end.end, end.besides) if start and end else None
    for words, bound in _BOUNDS:
        found = words.fullmatch(plain)
        span = _single((found[1] or found[2]).strip(), today, zone) if found else None
        if span:
            return bound(span)
    return None


def _side_by_side(plain: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """昨日と一昨日, in whichever order; nothing may lie between the two."""
    parts = [part.strip() for part in _BESIDE.split(plain, maxsplit=1)]
    spans = [span for part in parts if part and (span := _single(part, today, zone))]
    if len(spans) != 2:
        return None
    one, other = sorted(spans, key=lambda span: span.start)
    later = max(one, other, key=lambda span: span.end)
    return TimeRange(one.start, later.end, later.besides) if other.start <= one.end else None


def _end_of(plain: str, start: TimeRange, today: date, zone: ZoneInfo, *, late: bool) -> TimeRange | None:
    """The end of a range, which may leave the month or the year of its beginning unsaid. A clock time is the last moment; `late`: the beginning
    was said to be in the second half of a day."""
    begun = start.start.astimezone(zone).date() if start.start != _EVER.start else None
    day = re.fullmatch(r"(?:the )?(\d{1,2})(?:日|st|nd|rd|th)?", plain)
    try:
        if day and begun:
            if start.end - start.start > _LONGEST_MONTH:  # 2026-13 is no thirteenth of anything
                return None
            return in_utc(day_of(begun.replace(day=int(day[1]))), zone)
        if begun and (named := _WEEKDAY_ALONE.fullmatch(plain)):
            return in_utc(day_of(begun + timedelta(days=(WEEKDAYS[named[1] or named[2]] - begun.weekday()) % 7)), zone)
    except (ValueError, OverflowError):
        return None
    if begun and _CLOCK_ALONE.search(plain):
        span = _single(f"{begun.isoformat()} {plain}", today, zone)
        if span and span.end <= start.start:
            off = _HALF_A_DAY if late and span.start + _HALF_A_DAY > start.start else 2 * _HALF_A_DAY
            span = TimeRange(span.start + off, span.end + off)
    else:
        span = _single(plain, today, zone, begun)
    exact = span is not None and span.end - span.start <= timedelta(hours=1)
    return TimeRange(span.start, span.start + timedelta(microseconds=1)) if span and exact else span


def _moment_of(said: Said, zone: ZoneInfo) -> datetime:
    """When it began, in UTC. 25時 is one o'clock of the next day."""
    day = said.days[0] + timedelta(days=(said.hour or 0) // 24)
    try:
        return datetime.combine(day, time((said.hour or 0) % 24, said.minute or 0), tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise outside_calendar() from None


def _refusal(name: str, text: str, plain: str, today: date) -> InvalidInput:
    return refusal(name, text, plain[:LONGEST_WORDS], today, _AS_ARGUMENTS.patterns(plain))


def _resolved(days_of: Resolver, found: re.Match[str], today: date) -> Iterator[Days]:
    try:
        yield from days_of(found, today)
    except (ValueError, OverflowError):
        return  # 2月30日, or further back than the calendar goes: no date


def _representable(spans: Iterable[Days], zone: ZoneInfo) -> Iterator[TimeRange]:
    """The spans that UTC has a time for: a query may quote the year 1, and is still a query."""
    for span in spans:
        try:
            yield in_utc(span, zone)
        except InvalidInput:
            continue
