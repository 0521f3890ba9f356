"""The one day of what is said of a longer span, where a moment is asked for: 一週間前 is seven days before, 月末 the last day of the month."""

import re
from dataclasses import replace
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.spans import UNITS, months_back, number_of
from memory_mcp.dates.time_of_day import Said

_UNIT = "(?P<unit{}>week|fortnight|month|year)s?(?![a-z])"
_COUNTED = re.compile(
    rf"(?<!数){NUMBER.replace('(', '(?P<n1>', 1)}(?:(?P<unit1>[週年])間?|[ヶケかカ箇]?(?P<unit2>月))(?P<half>半)?(?:前|(?P<later1>後))"
    r"|(?P<half_a_year>半年(?:前|(?P<later2>後))|half a year ago)|(?P<moons>[ひふ])(?:と|た)月前"
    rf"|(?<![a-z\d])(?:{COUNT.replace('(', '(?P<n2>', 1)} )?{_UNIT.format(3)} (?:ago|back|(?P<later3>from (?:today|now)))"
    rf"|(?<![a-z])(?P<later4>in) {COUNT.replace('(', '(?P<n3>', 1)} {_UNIT.format(4)}"
)
_END_OF_MONTH = re.compile("月の?末|end of")
_THIRD_OF_MONTH = 11
_DAY = timedelta(days=1)


def exact_day(said: Said, plain: str, today: date) -> Said:
    """What was said, of its one day where the words have one."""
    first, after = said.days
    if not said.about and after.day == 1 and (after - first).days <= _THIRD_OF_MONTH and _END_OF_MONTH.search(plain):
        return replace(said, days=(after - _DAY, after))
    found = _COUNTED.search(plain)
    try:
        wide, day = _counted(found, today) if found else (said.days, None)
    except (ValueError, OverflowError):
        return said
    return replace(said, days=(day, day + _DAY)) if day and wide == said.days else said


def _counted(found: re.Match[str], today: date) -> tuple[Days, date]:
    """The calendar's week, month or year of a count, and the day itself."""
    later = any(found[f"later{place}"] for place in range(1, 5))
    unit = next((found[f"unit{place}"] for place in range(1, 5) if found[f"unit{place}"]), "月")
    number = next((found[f"n{place}"] for place in range(1, 4) if found[f"n{place}"]), "1")
    count = number_of(number)
    if found["half_a_year"]:
        count = 6
    elif found["moons"]:
        count = "ひふ".index(found["moons"]) + 1
    elif found["half"]:
        unit, count = "月", count * 12 + 6
    if later:
        count = -count
    wide = months_back(today, count) if unit == "月" else UNITS[unit](today, count)
    return wide, UNITS[unit](today, count, rolling=True)[0]
