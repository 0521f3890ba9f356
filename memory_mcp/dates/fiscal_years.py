"""Years that begin in April, as offices and schools in Japan count them: 今年度, 2024年度, 年度末."""

import re
from collections.abc import Iterator
from datetime import date

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.spans import month_of
from memory_mcp.dates.yearless import each_year

_FIRST_MONTH = 4
_YEARS_BACK = {"一昨": 2, "昨": 1, "去": 1, "前": 1, "今": 0, "本": 0, "来": -1, "再来": -2}
_PART = "(?P<last>末)|(?P<first>初め?|始め|はじめ|頭)"
FISCAL_YEAR = re.compile(rf"(?:(?<!\d)(?P<year>\d{{4}})|(?P<named>一昨|再来|[昨去前今本来]))年度の?(?:{_PART})?")
PART_OF_FISCAL_YEAR = re.compile(f"年度(?:{_PART})")


def fiscal_year(found: re.Match[str], today: date) -> list[Days]:
    """The year, of which 末 is the March and 初め the April."""
    current = today.year if today.month >= _FIRST_MONTH else today.year - 1
    year = int(found["year"]) if found["year"] else current - _YEARS_BACK[found["named"]]
    if found["last"] or found["first"]:
        return [_part(found, year)]
    return [(date(year, _FIRST_MONTH, 1), date(year + 1, _FIRST_MONTH, 1))]


def part_of_fiscal_year(found: re.Match[str], today: date) -> Iterator[Days]:
    """年度末 without its year: in each of the last years."""
    return each_year(today, lambda year: _part(found, year - 1 if found["last"] else year))


def _part(found: re.Match[str], year: int) -> Days:
    return month_of(year + 1, _FIRST_MONTH - 1) if found["last"] else month_of(year, _FIRST_MONTH)
