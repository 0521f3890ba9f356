"""Hours: what qualifies a day (夜, 9pm, 上旬, 頃), and times counted in hours and minutes from now (2時間前, the last 24 hours)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from memory_mcp.dates.spans import COUNT, KANJI_NUMBER, ONE_DAY, DaySpan, first_of_month, named_group, number_of
from memory_mcp.domain import TimeRange

# The hour at which each part of a day begins.
_PARTS = {
    "未明|早朝|明け方|夜明け前?|朝早く|早く|dawn|early morning|small hours": 4,
    "昼過ぎ|昼下がり": 13,
    "昼前|late morning": 11,
    "夜遅く|遅く|夜更け|夜ふけ|深夜|夜中|真夜中|midnight|late night|late evening": 23,
    "朝一番?|朝イチ|朝方?|午前中|午前|morning": 7,
    "昼休み|昼間?|お昼|正午|noon|midday|lunch(?:time| break)?": 12,
    "午後|afternoon": 13,
    "夕方|夕|evening": 17,
    "夜|晩|night": 20,
}
_PART_OF_DAY = re.compile("|".join(f"(?P<p{index}>{words})" for index, words in enumerate(_PARTS)))
_NIGHT_BEGINS, _NIGHT_ENDS = 20, 5
_NUMBER = r"(\d{1,2}|[一二三四五六七八九十]{1,3})"
_JAPANESE_CLOCK = re.compile(rf"{_NUMBER}時(?:{_NUMBER}分|(半))?")
_CLOCK = re.compile(
    r"(?:(?<![a-z])at )?(?<!\d)(\d{1,2}):(\d{2})(?::\d{2})?\s*([ap]\.?m\.?)?|(?<![a-z\d])(?:at )?(\d{1,2})\s*([ap]\.?m\.?)(?![a-z])"
    r"|(?<![a-z])(?:at|around|about) (\d{1,2})(?!\d)"
)
_ABOUT = re.compile(
    "前後|頃|ころ|ごろ|くらい|ぐらい|ほど|程度?|ばかり|近く|今頃|今ごろ|辺り|あたり|だいたい|およそ|約|(?<![a-z])(?:around|about|circa|roughly|almost|nearly|approximately"
    "|or so)(?![a-z])"
)
_PART_OF_SPAN = re.compile(
    "(?P<first>上旬|初旬|初め|はじめ|始め|初頭|早々|頭|あたま|初日|(?<![a-z])(?:early|the beginning of|beginning of|the start of|start of))"
    "|(?P<middle>中旬|半ば|なかば|中頃|中ごろ|真ん中|まんなか|中盤|(?<![a-z])(?:mid|middle of|the middle of)(?![a-z]))"
    "|(?P<last>下旬|末日|末|終わり|おわり|終盤|(?<![a-z])(?:late|the end of|end of)(?![a-z]))"
    "|(?P<half>前半|上半?期|後半|下半?期|(?<![a-z])(?:the )?(?:first|second) half of)"
)
# Of a month: its first seven days are its first week.
_WEEK_OF_SPAN = re.compile(
    "第(?P<number>[1-5一二三四五])週目?|(?P<first>最初の週)|(?P<last>最後の週|最終週)"
    "|(?<![a-z])(?:the )?(?P<ordinal>first|second|third|fourth|last) week (?:of|in)(?![a-z])"
)
_ORDINALS = ("first", "second", "third", "fourth")
# The day before or after a named one: クリスマスの翌日, the day before Christmas.
_DAY_BESIDE = re.compile("の(?:前日|前の日|(?P<later>翌日|次の日|明くる日))|(?:the )?day (?:before|(?P<after>after))(?![a-z])")
_AT_NIGHT = re.compile("夜(?!明け)|晩|night")
_AFTERNOON = re.compile("午後|夕方|afternoon|evening")
_LONG_DAYS, _MONTH_DAYS = 80, 28
# The end of a year is its last months, late in a year its last third.
_MOST_OF_A_YEAR, _MONTHS_AT_AN_END = 300, 2
_LOOSELY = re.compile("early|late|mid|the mid|中|半|なかば|真|まん")


@dataclass(frozen=True, slots=True)
class DayReading:
    """Whole days, and what qualifies them: the `hour` at which it began, to the `minute` if a clock time is given; `about`: it is not
    exact."""

    days: DaySpan
    hour: int | None = None
    minute: int | None = None
    about: bool = False

    @property
    def at_night(self) -> bool:
        """Whether it may last until the next morning."""
        return self.minute is None and self.hour is not None and self.hour >= _NIGHT_BEGINS

    @property
    def filtered_days(self) -> DaySpan:
        """The days that a filter covers: a day that is not exact with two on either side, a longer span with ten."""
        margin = timedelta(days=0 if not self.about else (2 if self.days[1] - self.days[0] < timedelta(days=_MONTH_DAYS) else 10))
        return self.days[0] - margin, self.days[1] + margin


def with_modifiers(days: DaySpan, rest: str) -> tuple[DayReading, str]:
    """The days as `rest`, the text without their expressions, qualifies them, and what of `rest` is not understood.

    Raises:
        ValueError, OverflowError: there is no such time or part.
    """
    reading = DayReading(days)
    for pattern, apply in (
        (_WEEK_OF_SPAN, _week_of_span),
        (_PART_OF_SPAN, _part_of_span),
        (_JAPANESE_CLOCK, _japanese_clock),
        (_CLOCK, _clock),
    ):
        match = pattern.search(rest)
        if match:
            reading = apply(reading, match, rest)
            rest = rest[: match.start()] + " " + rest[match.end() :]
    beside = _DAY_BESIDE.search(rest)
    if beside and reading.days[1] - reading.days[0] == ONE_DAY:
        off = ONE_DAY if beside["after"] or beside["later"] else -ONE_DAY
        reading = replace(reading, days=(reading.days[0] + off, reading.days[1] + off))
        rest = _DAY_BESIDE.sub(" ", rest)
    part = _PART_OF_DAY.search(rest)
    if part:
        begins = next(hour for index, hour in enumerate(_PARTS.values()) if part[f"p{index}"])
        reading = replace(reading, hour=begins) if reading.minute is None else reading
        rest = _PART_OF_DAY.sub(" ", rest)
    if _ABOUT.search(rest):
        reading, rest = replace(reading, about=True), _ABOUT.sub(" ", rest)
    return reading, rest


# Behind or in front of a week, month or year in a sentence: 来月いっぱい, 来月の初め, early next month.
_TO_THE_END = re.compile(r"\s?(?:中)?いっぱい|の?(?:末日|最終日)|末まで|の終わりまで")
_PART_BEHIND = re.compile(rf"の?(?:{_PART_OF_SPAN.pattern})(?![ァ-ヶ一-龥])")
_PART_IN_FRONT = re.compile(rf"(?:{_PART_OF_SPAN.pattern})(?: the)?\s?\Z")
_SHORTEST_WITH_PARTS = timedelta(days=7)


def part_of_span(span: DaySpan, before: str, after: str) -> DaySpan:
    """The part of a week, month or year that a sentence means, given its text before and after it; of 来月いっぱい and of an end the last day."""
    if span[1] - span[0] < _SHORTEST_WITH_PARTS:
        return span
    if _TO_THE_END.match(after) or before.endswith(("end of ", "end of the ")):
        return span[1] - ONE_DAY, span[1]
    part = _PART_BEHIND.match(after) or _PART_IN_FRONT.search(before)
    return _part_of_span(DayReading(span), part, "").days if part else span


def night_hours() -> timedelta:
    """How far a night extends into the next day."""
    return timedelta(hours=_NIGHT_ENDS)


def _part_of_span(reading: DayReading, match: re.Match[str], _rest: str) -> DayReading:
    start, end = reading.days
    length = (end - start).days
    if match["half"]:
        middle = start + timedelta(days=length // 2) if length < _LONG_DAYS else first_of_month(start, length // 60)
        return replace(reading, days=(middle, end) if re.search("後|下|second", match["half"]) else (start, middle))
    if length < _MONTH_DAYS or (length < _LONG_DAYS and start.day > 1):
        third = max(length // 3, 1)
        cuts = start + timedelta(days=third), end - timedelta(days=third)
    elif length < _LONG_DAYS:
        cuts = start.replace(day=11), start.replace(day=21)
    else:
        ends = _MONTHS_AT_AN_END if length > _MOST_OF_A_YEAR and not _LOOSELY.match(match[0]) else length // 90
        cuts = first_of_month(start, ends), first_of_month(end, -ends)
    return replace(reading, days=(start, cuts[0]) if match["first"] else (cuts[0], cuts[1]) if match["middle"] else (cuts[1], end))


def _week_of_span(reading: DayReading, match: re.Match[str], _rest: str) -> DayReading:
    start, end = reading.days
    if not _MONTH_DAYS <= (end - start).days < _LONG_DAYS:
        raise ValueError("only a month has a first week")
    if match["last"] or match["ordinal"] == "last":
        return replace(reading, days=(end - timedelta(days=7), end))
    weeks = number_of(match["number"]) - 1 if match["number"] else _ORDINALS.index(match["ordinal"] or "first")
    first = start + timedelta(days=7 * weeks)
    return replace(reading, days=(first, min(first + timedelta(days=7), end)))


def _japanese_clock(reading: DayReading, match: re.Match[str], rest: str) -> DayReading:
    minute = 30 if match[3] else number_of(match[2]) if match[2] else 0
    return _at(reading, _hour_of_day(number_of(match[1]), rest), minute)


def _clock(reading: DayReading, match: re.Match[str], rest: str) -> DayReading:
    if reading.minute is not None:
        return reading
    hour, minute = int(match[1] or match[4] or match[6]), int(match[2] or 0)
    half = (match[3] or match[5] or "")[:1]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return _at(reading, _hour_of_day(hour, rest, has_half=bool(half)), minute)


def _hour_of_day(hour: int, rest: str, *, has_half: bool = False) -> int:
    """The hour of the day that a clock time means together with 夜 or 午後; one o'clock at night belongs to the night that begins on that
    day."""
    if hour < _NIGHT_ENDS + 1 and _AT_NIGHT.search(rest) and not _AFTERNOON.search(rest):
        return hour + 24
    if has_half or hour > 12:
        return hour
    if _AT_NIGHT.search(rest):
        return hour + 12
    return hour + 12 if hour < 12 and _AFTERNOON.search(rest) else hour


def _at(reading: DayReading, hour: int, minute: int) -> DayReading:
    """25時 is one o'clock of the next day, as night owls in Japan count."""
    if hour >= 30 or minute >= 60:
        raise ValueError("no such time")
    return replace(reading, hour=hour, minute=minute)


_FEW = 6
_UNIT_COUNT = rf"(\d{{1,3}}|{KANJI_NUMBER})"
_UNITS = r"(hours?|hrs?|h|minutes?|mins?)"
_ROUGHLY = "(?:(?:about|around|roughly|approximately|just|maybe|like) )?"
_FROM_NOW = re.compile(
    rf"{named_group(_UNIT_COUNT, 'count1')}\s*(?P<unit1>時間|分)(?:(?P<half>半)?(?:ほど|くらい|ぐらい)?(?P<ago1>前)(?:ほど|くらい|ぐらい)?|後)"
    rf"|{_ROUGHLY}{named_group(COUNT, 'count2')}\s*{named_group(_UNITS, 'unit2')}\s+(?:(?P<ago2>ago|back)|from now)"
    rf"|in {named_group(COUNT, 'count3')}\s*{named_group(_UNITS, 'unit3')}"
)
_SOME = re.compile("数(時間|分)前|(?:a )?(?:few|couple of|couple|several) (hours?|minutes?) ago")
_UP_TO_NOW = re.compile(
    rf"(?:ここ|この|過去|直近|最近)の?(?:{_UNIT_COUNT}|数)(時間|分)(?:以内)?(?![前目])|(?<![\d一二三四五六七八九十])(?:{_UNIT_COUNT}|数)(時間|分)以内"
    rf"|(?<![a-z])(?:(?:within|in|over|during) )?(?:the )?(?:last|past) (?:{COUNT} ?|(?:few|several) )?{_UNITS}(?![a-z])"
)
_JUST_NOW = re.compile("(?:つい)?さっき|(?:つい)?先ほど|たった今|今|いま|現在|now|just now|right now|a moment ago|earlier today")


def hours_ago(plain: str, now: datetime) -> TimeRange | None:
    """The moment of 2時間前 or 1時間後, and the hour or minute after it."""
    if some := _SOME.fullmatch(plain):
        unit = _unit(some[1] or some[2])
        if unit < timedelta(hours=1):
            unit *= 5
        return TimeRange(now.astimezone(UTC) - _FEW * unit, now.astimezone(UTC) - unit)
    match = _FROM_NOW.fullmatch(plain)
    if not match:
        return None
    form = next(form for form in (1, 2, 3) if match[f"count{form}"])
    unit = _unit(match[f"unit{form}"])
    distance = (number_of(match[f"count{form}"]) + (0.5 if match["half"] else 0)) * unit
    moment = now.astimezone(UTC) + (-distance if match["ago1"] or match["ago2"] else distance)
    return TimeRange(moment, moment + unit)


def up_to_now(plain: str, now: datetime) -> TimeRange | None:
    """The hours of 過去24時間, or the last hour for さっき, to the end of this minute."""
    if _JUST_NOW.fullmatch(plain):
        return _until_now(now, timedelta(hours=1))
    match = _UP_TO_NOW.fullmatch(plain)
    return _until_now(now, _length(match)) if match else None


def named_hours(plain: str, now: datetime) -> Iterator[TimeRange]:
    """Each 過去24時間 in a text."""
    return (_until_now(now, _length(match)) for match in _UP_TO_NOW.finditer(plain))


def is_just_now(plain: str) -> bool:
    return _JUST_NOW.fullmatch(plain) is not None


def _length(match: re.Match[str]) -> timedelta:
    unit = next(unit for unit in (match[2], match[4], match[6]) if unit)
    count = next((count for count in (match[1], match[3], match[5]) if count), None)
    is_singular = match[6] is not None and not unit.endswith("s") and count is None
    return (number_of(count) if count else 1 if is_singular else _FEW) * _unit(unit)


def _unit(name: str) -> timedelta:
    return timedelta(hours=1) if name.startswith(("時", "h")) else timedelta(minutes=1)


def _until_now(now: datetime, length: timedelta) -> TimeRange:
    moment = now.astimezone(UTC)
    return TimeRange(moment - length, moment + timedelta(minutes=1))
