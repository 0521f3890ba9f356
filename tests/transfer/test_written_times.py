"""Days in titles, and times as programs write them."""

import pytest

from memory_mcp.transfer.formats.written_times import day_in_title, written_time


@pytest.mark.parametrize(
    ("title", "day"),
    [
        ("2019年10月7日", "2019-10-07"),
        ("2019年1月5日", "2019-01-05"),
        ("花見2019年10月7日", "2019-10-07"),
        ("第3回 2019年10月7日（月）", "2019-10-07"),
        ("Oct 17, 2019", "2019-10-17"),
        ("Meeting Oct 17, 2019", "2019-10-17"),
        ("17 October 2019 notes", "2019-10-17"),
        ("令和元年10月7日 花見", "2019-10-07"),
        ("2019-1-5", "2019-01-05"),
        ("2019.10.07", "2019-10-07"),
        ("IMG_20191017_1234", "2019-10-17"),
        ("2025-10-29 21-05", "2025-10-29"),
        # Longer than a day, of another day, or no day of the calendar.
        ("2019年の目標", None),
        ("May 2019", None),
        ("2019", None),
        ("10月29日", None),
        ("昨日のこと", None),
        ("20259999", None),
        ("Top 10 2019", None),
        ("母", None),
        ("", None),
    ],
)
def test_a_title_names_its_day_in_any_form(title: str, day: str | None) -> None:
    assert day_in_title(title) == day


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2019-10-17", "2019-10-17"),
        ("20191017", "2019-10-17"),
        ("2019-10-17T21:00:00.1230000+09:00", "2019-10-17T21:00:00.123000+09:00"),
        ("2019/10/17", "2019/10/17"),
        ("2019年10月17日", "2019年10月17日"),
        ("2025/10/29 25:30", "2025/10/29 25:30"),
        ("明日", None),
        ("Monday", None),
        ("45000", None),
        ("", None),
    ],
)
def test_a_time_is_one_that_needs_no_other_day(text: str, time: str | None) -> None:
    assert written_time(text) == time
