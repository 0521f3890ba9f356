"""Public holidays of Japan: the package's, in every year, and loaded only when they are needed."""

import subprocess
import sys
from datetime import date

import pytest

from memory_mcp.dates.holidays import golden_week, public_holidays


def test_a_year_before_or_after_those_of_the_package_has_the_holidays_of_the_law_as_it_is():
    assert {date(2104, 1, 14), date(2104, 7, 21), date(2104, 11, 23)} <= public_holidays(2104)  # Mondays, and one day in lieu
    assert {date(1925, 2, 11), date(1925, 10, 12)} <= public_holidays(1925)
    assert golden_week(9000)[1] > date(9000, 5, 5)


def test_there_is_no_year_zero():
    with pytest.raises(ValueError, match="year 0"):
        public_holidays(0)


def test_a_holiday_exists_only_since_its_law():
    assert date(2015, 8, 11) not in public_holidays(2015)
    assert date(2016, 8, 11) in public_holidays(2016)


def test_only_a_text_with_a_holiday_loads_them_and_of_all_countries_only_japan():
    program = (
        "import sys; from datetime import datetime, UTC; from zoneinfo import ZoneInfo; from memory_mcp.dates.resolve import named_dates\n"
        "def ask(text): return named_dates(text, datetime(2025, 10, 30, tzinfo=UTC), ZoneInfo('Asia/Tokyo'))\n"
        "ask('先週の金曜'); ask('クリスマス'); assert 'holidays' not in sys.modules\n"
        "assert ask('敬老の日'); assert 'holidays' in sys.modules and 'holidays.countries' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
