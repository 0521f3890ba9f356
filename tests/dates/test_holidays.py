"""Public holidays of Japan: the package's, loaded only when they are needed."""

import subprocess
import sys
from datetime import date

from memory_mcp.dates.holidays import public_holidays


def test_a_holiday_exists_only_since_its_law():
    assert date(2015, 8, 11) not in public_holidays(2015)
    assert date(2016, 8, 11) in public_holidays(2016)


def test_only_a_text_with_a_holiday_loads_them_and_of_all_countries_only_japan():
    program = (
        "import sys; from datetime import datetime, UTC; from zoneinfo import ZoneInfo; from memory_mcp.dates.resolve import parse_range\n"
        "def ask(text): return parse_range(text, datetime(2025, 10, 30, tzinfo=UTC), ZoneInfo('Asia/Tokyo'))\n"
        "ask('先週の金曜'); ask('クリスマス'); assert 'holidays' not in sys.modules\n"
        "assert ask('敬老の日'); assert 'holidays' in sys.modules and 'holidays.countries' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
