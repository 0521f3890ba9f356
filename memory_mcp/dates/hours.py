"""Times counted in hours and minutes from now: 2時間前, 30分後, 過去24時間, the last 24 hours."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.spans import number_of
from memory_mcp.domain import TimeRange

_FEW = 6
_UNITS = r"(hours?|hrs?|h|minutes?|mins?)"


def _named(group: str, name: str) -> str:
    return group.replace("(", f"(?P<{name}>", 1)


_ABOUT = "(?:(?:about|around|roughly|approximately|just|maybe|like) )?"
_AGO = re.compile(
    rf"{_named(NUMBER, 'count1')}\s*(?P<unit1>時間|分)(?P<half>半)?(?:ほど|くらい|ぐらい)?前(?:ほど|くらい|ぐらい)?"
    rf"|{_ABOUT}{_named(COUNT, 'count2')}\s*{_named(_UNITS, 'unit2')}\s+(?:ago|back)"
)
_LATER = re.compile(
    rf"{_named(NUMBER, 'count1')}\s*(?P<unit1>時間|分)後|{_named(COUNT, 'count2')}\s*{_named(_UNITS, 'unit2')}\s+from now"
    rf"|in {_named(COUNT, 'count3')}\s*{_named(_UNITS, 'unit3')}"
)
_SOME = re.compile("数(時間|分)前|(?:a )?(?:few|couple of|couple|several) (hours?|minutes?) ago")
_UP_TO_NOW = re.compile(
    rf"(?:ここ|この|過去|直近|最近)の?(?:{NUMBER}|数)(時間|分)(?:以内)?(?![前目])|(?<!\d)(?:{NUMBER}|数)(時間|分)以内"
    rf"|(?<![a-z])(?:(?:within|in|over|during) )?(?:the )?(?:last|past) (?:{COUNT} ?|(?:few|several) )?{_UNITS}(?![a-z])"
)
_JUST_NOW = re.compile("(?:つい)?さっき|(?:つい)?先ほど|たった今|今|いま|現在|now|just now|right now|a moment ago|earlier today")


def hours_ago(plain: str, now: datetime) -> TimeRange | None:
    """2時間前 or 1時間後, and as much after it as it leaves open."""
    before, after = _AGO.fullmatch(plain), _LATER.fullmatch(plain)
    found = before or after
    if some := _SOME.fullmatch(plain):
        one = _unit(some[1] or some[2]) if (some[1] or some[2]).startswith(("時", "h")) else timedelta(minutes=5)
        return TimeRange(now.astimezone(UTC) - _FEW * one, now.astimezone(UTC) - one)
    if not found:
        return None
    said = found.groupdict()
    count, name = next((said[f"count{place}"], said[f"unit{place}"]) for place in range(1, 4) if said.get(f"count{place}"))
    unit = _unit(name)
    distance = (number_of(count) + (0.5 if said.get("half") else 0)) * unit
    moment = now.astimezone(UTC) + (-distance if before else distance)
    return TimeRange(moment, moment + unit)


def up_to_now(plain: str, now: datetime) -> TimeRange | None:
    """過去24時間, or さっき: the last hour. To the end of this minute."""
    if _JUST_NOW.fullmatch(plain):
        return _until_now(now, timedelta(hours=1))
    found = _UP_TO_NOW.fullmatch(plain)
    return _until_now(now, _length(found)) if found else None


def named_hours(plain: str, now: datetime) -> Iterator[TimeRange]:
    """The same, wherever in a question it stands."""
    return (_until_now(now, _length(found)) for found in _UP_TO_NOW.finditer(plain))


def is_just_now(plain: str) -> bool:
    return _JUST_NOW.fullmatch(plain) is not None


def _length(found: re.Match[str]) -> timedelta:
    counts, units = (found[1], found[3], found[5]), (found[2], found[4], found[6])
    unit = next(unit for unit in units if unit)
    said = next((count for count in counts if count), None)
    single = found[6] is not None and not unit.endswith("s") and said is None
    return (number_of(said) if said else 1 if single else _FEW) * _unit(unit)


def _unit(name: str) -> timedelta:
    return timedelta(hours=1) if name.startswith(("時", "h")) else timedelta(minutes=1)


def _until_now(now: datetime, length: timedelta) -> TimeRange:
    moment = now.astimezone(UTC)
    return TimeRange(moment - length, moment + timedelta(minutes=1))
