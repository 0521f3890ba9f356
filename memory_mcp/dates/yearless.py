"""Dates without a year: they may mean any of the last years, as long as they only raise a score."""

from collections.abc import Callable, Iterator
from datetime import date

from memory_mcp.dates.nested_days import Days

YEARS_MEANT = 5


def each_year(today: date, span_of: Callable[[int], Days]) -> Iterator[Days]:
    """The date in this year and the ones before, and none that doesn't exist (29 February)."""
    for year in range(today.year, today.year - YEARS_MEANT, -1):
        try:
            yield span_of(year)
        except ValueError:
            continue
