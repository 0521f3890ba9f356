"""Days that fall on another date each year: the nth Monday of a month, equinoxes, Easter; and the public holidays of Japan."""

from datetime import date, timedelta

_DAY = timedelta(days=1)
_MONDAY, _THURSDAY, _SUNDAY = 0, 3, 6
# Holidays that were moved for the Olympic Games, and those of the new emperor: cabinet office of Japan, 国民の祝日について.
_MOVED = {
    (2020, "海の日"): (7, 23),
    (2020, "スポーツの日"): (7, 24),
    (2020, "山の日"): (8, 10),
    (2021, "海の日"): (7, 22),
    (2021, "スポーツの日"): (7, 23),
    (2021, "山の日"): (8, 8),
}
_ONCE = {2019: [(5, 1), (10, 22)]}


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The `nth` such day of a month; -1 is its last. Raises ValueError where there is no fifth."""
    if nth < 0:
        after = date(year + month // 12, month % 12 + 1, 1)
        return after - timedelta(days=(after.weekday() - weekday - 1) % 7 + 1)
    first = date(year, month, 1)
    day = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
    if day.month != month:
        raise ValueError("the month has no such day")
    return day


def spring_equinox(year: int) -> date:
    """In Japan, by the formula of Nagasawa (1981), right from 1980 to 2099."""
    return date(year, 3, int(20.8431 + 0.242194 * (year - 1980)) - (year - 1980) // 4)


def autumn_equinox(year: int) -> date:
    return date(year, 9, int(23.2488 + 0.242194 * (year - 1980)) - (year - 1980) // 4)


def easter(year: int) -> date:
    """Easter Sunday of the western churches (Meeus, Jones and Butcher 1876)."""
    a, (b, c) = year % 19, divmod(year, 100)
    g = (8 * b + 13) // 25
    h = (19 * a + b - b // 4 - g + 15) % 30
    m = (a + 11 * h) // 319
    r = (2 * (b % 4) + 2 * (c // 4) - c % 4 - h + m + 32) % 7
    month = (h - m + r + 90) // 25
    return date(year, month, (h - m + r + month + 19) % 32)


def coming_of_age_day(year: int) -> date:
    return nth_weekday(year, 1, _MONDAY, 2)


def marine_day(year: int) -> date:
    return _moved(year, "海の日") or nth_weekday(year, 7, _MONDAY, 3)


def mountain_day(year: int) -> date:
    return _moved(year, "山の日") or date(year, 8, 11)


def respect_for_the_aged_day(year: int) -> date:
    return nth_weekday(year, 9, _MONDAY, 3)


def sports_day(year: int) -> date:
    return _moved(year, "スポーツの日") or nth_weekday(year, 10, _MONDAY, 2)


def mothers_day(year: int) -> date:
    return nth_weekday(year, 5, _SUNDAY, 2)


def fathers_day(year: int) -> date:
    return nth_weekday(year, 6, _SUNDAY, 3)


def thanksgiving(year: int) -> date:
    return nth_weekday(year, 11, _THURSDAY, 4)


def _moved(year: int, name: str) -> date | None:
    moved = _MOVED.get((year, name))
    return date(year, *moved) if moved else None


def end_of_golden_week(year: int) -> date:
    """The first day after it: that after 5 May, or after the day that stands in for a Sunday."""
    after, off = date(year, 5, 6), public_holidays(year)
    while after in off:
        after += _DAY
    return after


def public_holidays(year: int) -> frozenset[date]:
    """Those of Japan, with the days that stand in for a Sunday and those between two, as the law has been since 2016."""
    birthday = [(2, 23)] if year >= 2020 else [(12, 23)] if year <= 2018 else []
    dated = [(1, 1), (2, 11), (4, 29), (5, 3), (5, 4), (5, 5), (11, 3), (11, 23), *birthday, *_ONCE.get(year, [])]
    rules = (
        coming_of_age_day,
        spring_equinox,
        marine_day,
        mountain_day,
        respect_for_the_aged_day,
        autumn_equinox,
        sports_day,
    )
    days = {date(year, *one) for one in dated} | {rule(year) for rule in rules}
    between = {day + _DAY for day in days if day + 2 * _DAY in days and day + _DAY not in days and (day + _DAY).weekday() != _SUNDAY}
    for sunday in (day for day in days if day.weekday() == _SUNDAY):
        between.add(next(after for count in range(1, 7) if (after := sunday + count * _DAY) not in days))
    return frozenset(days | between)
