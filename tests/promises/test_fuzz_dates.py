"""Whatever is written where a date belongs, reading it ends, and the answer is a date or a refusal of ours."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates
from fuzzing import TEXT, explore
from hypothesis import strategies as st

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.errors import InvalidInput

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

JAPANESE = (
    "昨日 一昨日 おととい 今日 今朝 明日 先週 先々週 今週 来週 先月 先々月 今月 去年 昨年 一昨年 今年 先週の金曜 来週の月曜日 先週末 "
    "三日前 3日前 十二ヶ月前 999年前 百年前 2025年10月17日 10月17日 2月30日 2025年 九月 月 日 年 前 の から まで 〜 間 十十 〇年前 ２０２５年１０月"
).split()
ENGLISH = (
    "yesterday|the day before yesterday|today|tonight|tomorrow|last week|last weekend|last month|last year|this week|3 days ago|an hour ago|999 years ago|"
    "last friday|last sun|october 17, 2025|17th of october|feb 30|sept 31 2024|may|in march|since june|in 1999|to|..|~|-|/|of|january february"
).split("|")
NUMERIC = "2025-10-17 2025/10 2025 0000-00-00 9999-12-31 0001-01-01 10000-1-1 2025-10-17T25:61 2025-W42-5 20251017 2025-10-17T12:00+99:99 T12 1e9 ٢٠٢٥-١٠-١٧".split()
PIECES = st.sampled_from([*JAPANESE, *ENGLISH, *NUMERIC]) | st.integers().map(str) | TEXT
TEXTS = st.lists(PIECES, max_size=6).flatmap(
    lambda pieces: st.sampled_from(["", " ", "..", "の", " to "]).map(lambda between: between.join(pieces))
)
NOWS = st.datetimes(datetime(1971, 1, 1), datetime(9990, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  hypothesis wants naive bounds
ZONES = st.sampled_from(["Asia/Tokyo", "UTC", "America/St_Johns", "Pacific/Apia", "Pacific/Kiritimati"]).map(ZoneInfo)


def test_dates_in_words_are_read_or_refused(figure, thorough):
    read = 0

    def check(case: tuple[str, datetime, ZoneInfo]) -> None:
        nonlocal read
        text, now, zone = case
        with suppress(InvalidInput):
            moment = parse_moment(text, now, zone)
            assert moment.utcoffset() == timedelta(0)
            read += 1
        with suppress(InvalidInput):
            span = parse_range(text, now, zone)
            assert span.start < span.end
            read += 1
        for span in named_dates(text, now, zone):
            assert span.start < span.end

    examples = 10_000 if thorough else 1_000
    explore(st.tuples(TEXTS, NOWS, ZONES), check, examples)
    assert read > examples / 50, "most cases were refused before anything was read"
    figure("fuzz: dates", f"{examples} cases, 0 failures")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "piece", ["昨日", "先週の", "10月", "十", "january ", " to ", "2025-", "1", "in ", " ", "クリスマス", "last christmas ", "last may "]
)
def test_a_text_of_any_length_is_read_to_its_end(piece: str) -> None:
    """Time that grows with the square of the length would not come to an end here."""
    text = piece * (300_000 // len(piece))
    now: Any = datetime(2025, 10, 30, 3, tzinfo=UTC)
    for parse in (parse_moment, parse_range):
        with suppress(InvalidInput):
            parse(text, now, ZoneInfo("Asia/Tokyo"))
    assert len(named_dates(text, now, ZoneInfo("Asia/Tokyo"))) < 400
