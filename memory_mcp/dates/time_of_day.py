"""What is said beside a day: a time of it (夜, 9pm), a part of a longer span (上旬, early), or that it is not exact (頃)."""

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.spans import number_of

# When each part of a day begins, for a moment that was only named so.
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
_PART_OF_DAY = re.compile("|".join(f"(?P<p{place}>{words})" for place, words in enumerate(_PARTS)))
_NIGHT_BEGINS, _NIGHT_ENDS = 20, 5
_NUMBER = r"(\d{1,2}|[一二三四五六七八九十]{1,3})"
_JAPANESE_CLOCK = re.compile(rf"{_NUMBER}時(?:{_NUMBER}分|(半))?")
_CLOCK = re.compile(
    r"(?:(?<![a-z])at )?(?<!\d)(\d{1,2}):(\d{2})(?::\d{2})?\s*([ap]\.?m\.?)?|(?<![a-z\d])(?:at )?(\d{1,2})\s*([ap]\.?m\.?)(?![a-z])|(?<![a-z])(?:at|around|about) (\d{1,2})(?!\d)"
)
_ABOUT = re.compile(
    "前後|頃|ころ|ごろ|くらい|ぐらい|ほど|程度?|ばかり|近く|今頃|今ごろ|辺り|あたり|だいたい|およそ|約|(?<![a-z])(?:around|about|circa|roughly|almost|nearly|approximately|or so)(?![a-z])"
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
_DAY = timedelta(days=1)
# Of a day that is named: クリスマスの翌日, the day before Christmas.
_DAY_BESIDE = re.compile("の(?:前日|前の日|(?P<later>翌日|次の日|明くる日))|(?:the )?day (?:before|(?P<after>after))(?![a-z])")
_AT_NIGHT = re.compile("夜(?!明け)|晩|night")
_AFTERNOON = re.compile("午後|夕方|afternoon|evening")
_LONG_DAYS, _MONTH_DAYS = 80, 28
# The end of a year is said of its last months, late in a year of its last third.
_MOST_OF_A_YEAR, _MONTHS_AT_AN_END = 300, 2
_LOOSELY = re.compile("early|late|mid|the mid|中|半|なかば|真|まん")


@dataclass(frozen=True, slots=True)
class Said:
    """Whole days, and what else was said of them: `hour` of the day at which it began, to the `minute` if a clock was named."""

    days: Days
    hour: int | None = None
    minute: int | None = None
    about: bool = False

    @property
    def at_night(self) -> bool:
        """Whether it may have lasted until the next morning."""
        return self.minute is None and self.hour is not None and self.hour >= _NIGHT_BEGINS

    @property
    def filtered_days(self) -> Days:
        """The days to look at: a day that is not exact lies among its neighbours, a month reaches ten days further."""
        margin = timedelta(days=0 if not self.about else (2 if self.days[1] - self.days[0] < timedelta(days=_MONTH_DAYS) else 10))
        return self.days[0] - margin, self.days[1] + margin


def with_modifiers(days: Days, rest: str) -> tuple[Said, str]:
    """What `rest` says beside the days that were found, and what it says that is not understood."""
    said = Said(days)
    for pattern, apply in (
        (_WEEK_OF_SPAN, _week_of_span),
        (_PART_OF_SPAN, _part_of_span),
        (_JAPANESE_CLOCK, _japanese_clock),
        (_CLOCK, _clock),
    ):
        found = pattern.search(rest)
        if found:
            said = apply(said, found, rest)
            rest = rest[: found.start()] + " " + rest[found.end() :]
    beside = _DAY_BESIDE.search(rest)
    if beside and said.days[1] - said.days[0] == _DAY:
        off = _DAY if beside["after"] or beside["later"] else -_DAY
        said = replace(said, days=(said.days[0] + off, said.days[1] + off))
        rest = _DAY_BESIDE.sub(" ", rest)
    part = _PART_OF_DAY.search(rest)
    if part:
        begins = next(hour for place, hour in enumerate(_PARTS.values()) if part[f"p{place}"])
        said = replace(said, hour=begins) if said.minute is None else said
        rest = _PART_OF_DAY.sub(" ", rest)
    if _ABOUT.search(rest):
        said, rest = replace(said, about=True), _ABOUT.sub(" ", rest)
    return said, rest


def night_hours() -> timedelta:
    """How far a night reaches into the next day."""
    return timedelta(hours=_NIGHT_ENDS)


def _part_of_span(said: Said, found: re.Match[str], _rest: str) -> Said:
    start, end = said.days
    length = (end - start).days
    if found["half"]:
        middle = start + timedelta(days=length // 2) if length < _LONG_DAYS else _months_on(start, length // 60)
        return replace(said, days=(middle, end) if re.search("後|下|second", found["half"]) else (start, middle))
    if length < _MONTH_DAYS or (length < _LONG_DAYS and start.day > 1):
        third = max(length // 3, 1)
        cuts = start + timedelta(days=third), end - timedelta(days=third)
    elif length < _LONG_DAYS:
        cuts = start.replace(day=11), start.replace(day=21)
    else:
        ends = _MONTHS_AT_AN_END if length > _MOST_OF_A_YEAR and not _LOOSELY.match(found[0]) else length // 90
        cuts = _months_on(start, ends), _months_on(end, -ends)
    return replace(said, days=(start, cuts[0]) if found["first"] else (cuts[0], cuts[1]) if found["middle"] else (cuts[1], end))


def _week_of_span(said: Said, found: re.Match[str], _rest: str) -> Said:
    start, end = said.days
    if not _MONTH_DAYS <= (end - start).days < _LONG_DAYS:
        raise ValueError("only a month has a first week")
    if found["last"] or found["ordinal"] == "last":
        return replace(said, days=(end - timedelta(days=7), end))
    weeks = number_of(found["number"]) - 1 if found["number"] else _ORDINALS.index(found["ordinal"] or "first")
    first = start + timedelta(days=7 * weeks)
    return replace(said, days=(first, min(first + timedelta(days=7), end)))


def _months_on(day: date, count: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    return date(year, month + 1, 1)


def _japanese_clock(said: Said, found: re.Match[str], rest: str) -> Said:
    minute = 30 if found[3] else number_of(found[2]) if found[2] else 0
    return _at(said, _hour_of_day(number_of(found[1]), rest), minute)


def _clock(said: Said, found: re.Match[str], rest: str) -> Said:
    if said.minute is not None:
        return said
    hour, minute = int(found[1] or found[4] or found[6]), int(found[2] or 0)
    half = (found[3] or found[5] or "")[:1]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return _at(said, _hour_of_day(hour, rest, told_by_half=bool(half)), minute)


def _hour_of_day(hour: int, rest: str, *, told_by_half: bool = False) -> int:
    """Of the hour that a clock shows, by what is said beside it. One o'clock at night is of the night that began on that day."""
    if hour < _NIGHT_ENDS + 1 and _AT_NIGHT.search(rest) and not _AFTERNOON.search(rest):
        return hour + 24
    if told_by_half or hour > 12:
        return hour
    if _AT_NIGHT.search(rest):
        return hour + 12
    return hour + 12 if hour < 12 and _AFTERNOON.search(rest) else hour


def _at(said: Said, hour: int, minute: int) -> Said:
    """25時 is one o'clock of the next day, as night owls in Japan count."""
    if hour >= 30 or minute >= 60:
        raise ValueError("no such time")
    return replace(said, hour=hour, minute=minute)
