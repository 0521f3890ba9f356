"""Times counted in hours and minutes from now: 2時間前, 30分後, 過去24時間, the last 24 hours."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memory_mcp.dates.numerals import COUNT, KANJI_NUMBER, named_group, number_of
from memory_mcp.domain import TimeRange

_FEW = 6
_NUMBER = rf"(\d{{1,3}}|{KANJI_NUMBER})"
_UNITS = r"(hours?|hrs?|h|minutes?|mins?)"
_ABOUT = "(?:(?:about|around|roughly|approximately|just|maybe|like) )?"
_AGO = re.compile(
    rf"{named_group(_NUMBER, 'count1')}\s*(?P<unit1>時間|分)(?P<half>半)?(?:ほど|くらい|ぐらい)?前(?:ほど|くらい|ぐらい)?"
    rf"|{_ABOUT}{named_group(COUNT, 'count2')}\s*{named_group(_UNITS, 'unit2')}\s+(?:ago|back)"
)
_LATER = re.compile(
    rf"{named_group(_NUMBER, 'count1')}\s*(?P<unit1>時間|分)後|{named_group(COUNT, 'count2')}\s*{named_group(_UNITS, 'unit2')}\s+from now"
    rf"|in {named_group(COUNT, 'count3')}\s*{named_group(_UNITS, 'unit3')}"
)
_SOME = re.compile("数(時間|分)前|(?:a )?(?:few|couple of|couple|several) (hours?|minutes?) ago")
_UP_TO_NOW = re.compile(
    rf"(?:ここ|この|過去|直近|最近)の?(?:{_NUMBER}|数)(時間|分)(?:以内)?(?![前目])|(?<![\d一二三四五六七八九十])(?:{_NUMBER}|数)(時間|分)以内"
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
    before, after = _AGO.fullmatch(plain), _LATER.fullmatch(plain)
    match = before or after
    if not match:
        return None
    groups = match.groupdict()
    count, name = next((groups[f"count{index}"], groups[f"unit{index}"]) for index in range(1, 4) if groups.get(f"count{index}"))
    unit = _unit(name)
    distance = (number_of(count) + (0.5 if groups.get("half") else 0)) * unit
    moment = now.astimezone(UTC) + (-distance if before else distance)
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
