"""Dates in words, seen from noon of Thursday, 30 October 2025, in Tokyo."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mcp.errors import InvalidInput
from memory_mcp.text.timewords import named_dates, parse_moment, parse_range
from memory_mcp.text.yearless import YEARS_MEANT

TOKYO = ZoneInfo("Asia/Tokyo")
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
PIECES = [
    *"0 1 9 31 99 0000 0001 2025 9999 - / . : T Z + ~ .. 年 月 日 週 前 間 の から まで 十 一 〇 〜 ~".split(),
    *"昨日 先週 先月 去年 金曜 末 ヶ last ago month week day of in to jan may december 2nd ２ Ⅳ ٣ ſ İ \ud800".split(),
    " ",
]
ANYTHING = st.text() | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def days_of(text: str) -> tuple[str, str]:
    """The first and the last local day of a range."""
    span = parse_range(text, NOON, TOKYO)
    last = span.end.astimezone(TOKYO) - timedelta(microseconds=1)
    return span.start.astimezone(TOKYO).date().isoformat(), last.date().isoformat()


def named(query: str) -> list[date]:
    return [span.start.astimezone(TOKYO).date() for span in named_dates(query, NOON, TOKYO)]


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("今日", "2025-10-30"), ("きのう", "2025-10-29"), ("一昨日", "2025-10-28"), ("明日", "2025-10-31"),
        ("3日前", "2025-10-27"), ("三日前", "2025-10-27"), ("二十一日前", "2025-10-09"), ("１０日前", "2025-10-20"),
        ("先週の金曜", "2025-10-24"), ("今週の月曜日", "2025-10-27"), ("来週の土曜", "2025-11-08"),
        ("yesterday", "2025-10-29"), ("Today", "2025-10-30"), ("2 days ago", "2025-10-28"), ("a day ago", "2025-10-29"),
        ("last Friday", "2025-10-24"), ("last Thursday", "2025-10-23"), ("last mon", "2025-10-27"), ("last wednesday", "2025-10-29"),
        ("2025年10月17日", "2025-10-17"), ("2025/10/17", "2025-10-17"), ("10月17日", "2025-10-17"), ("12月31日", "2024-12-31"),
        ("Oct 17, 2025", "2025-10-17"), ("17th of October 2025", "2025-10-17"), ("October 17", "2025-10-17"), ("Dec. 31", "2024-12-31"),
    ],
)  # fmt: skip
def test_words_for_a_day_mean_that_day(words, day):
    assert days_of(words) == (day, day)


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("先週", "2025-10-20", "2025-10-26"), ("last week", "2025-10-20", "2025-10-26"), ("今週", "2025-10-27", "2025-11-02"),
        ("先々週", "2025-10-13", "2025-10-19"), ("2週間前", "2025-10-13", "2025-10-19"), ("先週末", "2025-10-25", "2025-10-26"),
        ("last weekend", "2025-10-25", "2025-10-26"), ("先月", "2025-09-01", "2025-09-30"), ("last month", "2025-09-01", "2025-09-30"),
        ("10ヶ月前", "2024-12-01", "2024-12-31"), ("12か月前", "2024-10-01", "2024-10-31"), ("去年", "2024-01-01", "2024-12-31"),
        ("2年前", "2023-01-01", "2023-12-31"), ("2025年2月", "2025-02-01", "2025-02-28"), ("2024-02", "2024-02-01", "2024-02-29"),
        ("12月", "2024-12-01", "2024-12-31"), ("September 2025", "2025-09-01", "2025-09-30"), ("2024", "2024-01-01", "2024-12-31"),
    ],
)  # fmt: skip
def test_words_for_a_longer_span_mean_all_of_its_days(words, first, last):
    assert days_of(words) == (first, last)


@pytest.mark.parametrize("separator", ["..", "〜", "～", "~", "から", " to "])
def test_a_range_includes_both_its_days(separator):
    assert days_of(f"2025-10-01{separator}2025-10-17") == ("2025-10-01", "2025-10-17")


def test_a_range_may_be_said_in_words_and_end_at_a_whole_span():
    assert days_of("先月から昨日まで") == ("2025-09-01", "2025-10-29")
    assert days_of("2025-01..2025-03") == ("2025-01-01", "2025-03-31")


def test_a_range_may_lack_an_end():
    assert parse_range("2025-10-17..", NOON, TOKYO).end.year == 9999
    assert parse_range("..2025-10-17", NOON, TOKYO).start.year == 1


def test_a_range_of_moments_includes_them():
    span = parse_range("2025-10-17T10:00..2025-10-17T12:00+00:00", NOON, TOKYO)
    assert datetime(2025, 10, 17, 1, tzinfo=UTC) in span
    assert datetime(2025, 10, 17, 12, tzinfo=UTC) in span
    assert datetime(2025, 10, 17, 12, 0, 1, tzinfo=UTC) not in span


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidInput, match="ends before it begins"):
        parse_range("2025-10-17..2025-10-01", NOON, TOKYO)


@pytest.mark.parametrize("words", ["", "soon", "2025-02-30", "十十日前", "2025-13-01", "last sunset", "the market"])
def test_what_is_no_date_is_refused_with_examples(words):
    with pytest.raises(InvalidInput, match="2025-10-17"):
        parse_moment(words, NOON, TOKYO)


def test_a_moment_without_an_offset_is_local_and_one_with_it_is_not():
    assert parse_moment("2025-10-17T12:00", NOON, TOKYO) == datetime(2025, 10, 17, 3, tzinfo=UTC)
    assert parse_moment("2025-10-17 12:00Z", NOON, TOKYO) == datetime(2025, 10, 17, 12, tzinfo=UTC)


def test_a_day_as_a_moment_is_its_local_beginning():
    assert parse_moment("昨日", NOON, TOKYO) == datetime(2025, 10, 28, 15, tzinfo=UTC)


def test_a_day_is_counted_where_the_user_lives():
    late_in_utc = datetime(2025, 10, 29, 20, tzinfo=UTC)  # the 30th in Tokyo
    assert parse_moment("今日", late_in_utc, TOKYO) == datetime(2025, 10, 29, 15, tzinfo=UTC)
    assert parse_moment("今日", late_in_utc, ZoneInfo("UTC")) == datetime(2025, 10, 29, tzinfo=UTC)


def test_a_query_names_its_dates_wherever_they_stand():
    assert named("昨日の夕飯、それと先週の金曜に何を食べた？") == [date(2025, 10, 24), date(2025, 10, 29)]


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("クリスマス", "2024-12-25", "2024-12-25"), ("クリスマスイブ", "2024-12-24", "2024-12-24"), ("クリスマス・イヴ", "2024-12-24", "2024-12-24"),
        ("バレンタインデー", "2025-02-14", "2025-02-14"), ("お正月", "2025-01-01", "2025-01-03"), ("元旦", "2025-01-01", "2025-01-01"),
        ("大みそか", "2024-12-31", "2024-12-31"), ("節分", "2025-02-02", "2025-02-03"), ("こどもの日", "2025-05-05", "2025-05-05"),
        ("ﾊﾛｳｨﾝ", "2024-10-31", "2024-10-31"), ("七夕", "2025-07-07", "2025-07-07"), ("お盆", "2025-08-13", "2025-08-16"),
        ("Christmas", "2024-12-25", "2024-12-25"), ("Christmas Eve", "2024-12-24", "2024-12-24"), ("Christmas 2021", "2021-12-25", "2021-12-25"),
        ("New Year's Eve", "2024-12-31", "2024-12-31"), ("New Year’s Day", "2025-01-01", "2025-01-01"), ("last Halloween", "2024-10-31", "2024-10-31"),
        ("Valentine's Day", "2025-02-14", "2025-02-14"), ("last October", "2024-10-01", "2024-10-31"), ("last May", "2025-05-01", "2025-05-31"),
        ("先週の水曜", "2025-10-22", "2025-10-22"), ("おととい", "2025-10-28", "2025-10-28"),
    ],
)  # fmt: skip
def test_a_day_may_have_a_name(words, first, last):
    assert days_of(words) == (first, last)


def test_a_named_day_without_a_year_stands_for_each_of_the_last_years_and_the_last_one_for_one():
    assert named("クリスマスは何をした？") == [date(year, 12, 25) for year in range(2025, 2025 - YEARS_MEANT, -1)]
    assert named("what did I do last christmas?") == [date(2024, 12, 25)]


def test_a_date_that_is_named_twice_counts_once():
    assert named("昨日、そう昨日の夕飯は？") == [date(2025, 10, 29)]


def test_the_longer_reading_wins():
    assert named("一昨日") == [date(2025, 10, 28)]
    assert named("on October 17, 2025 at noon") == [date(2025, 10, 17)]


def test_a_date_without_a_year_stands_for_each_of_the_last_years():
    assert named("10月17日は？") == [date(year, 10, 17) for year in range(2025, 2025 - YEARS_MEANT, -1)]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("今年の1月に何をした？", "2025-01-01", "2025-01-31"), ("去年の10月17日", "2024-10-17", "2024-10-17"),
        ("1月、そう、今年の", "2025-01-01", "2025-01-31"), ("in March last year", "2024-03-01", "2024-03-31"),
        ("今月17日、10月17日のこと", "2025-10-17", "2025-10-17"), ("去年のクリスマス", "2024-12-25", "2024-12-25"),
        ("Christmas Eve in 2023", "2023-12-24", "2023-12-24"), ("今週の水曜、今週の話", "2025-10-29", "2025-10-29"),
    ],
)  # fmt: skip
def test_a_date_inside_another_stands_for_both(query, first, last):
    (span,) = named_dates(query, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).date().isoformat() == first
    assert (span.end.astimezone(TOKYO) - timedelta(days=1)).date().isoformat() == last


def test_dates_that_lie_apart_all_stand():
    assert named("去年の1月と昨日と2022年") == [date(2024, 1, 1), date(2022, 1, 1), date(2025, 10, 29)]
    assert len(named("10月と12月")) == 2 * YEARS_MEANT


def test_a_leap_day_stands_only_for_years_that_have_one():
    assert named("2月29日") == [date(2024, 2, 29)]


@pytest.mark.parametrize(
    "query",
    [
        "in separate rooms",
        "at the market 5 times",
        "last sunset",
        "in decline",
        "may I?",
        "3時間前",
        "25:00",
        "クリスマスツリー",
        "子供の日曜",
        "正月休み",
        "lasting",
    ],
)
def test_words_that_only_look_like_dates_name_none(query):
    assert named(query) == []


def test_a_query_may_quote_a_day_that_has_no_time_in_utc():
    assert named("why does it say 0001-01-01 since yesterday") == [date(2025, 10, 29)]


@given(ANYTHING)
@example("9999-12-31T23:59:59.999999Z")
@example("0001-01-01")
@example("999年前")
def test_no_text_makes_a_date_fail_in_any_way_but_a_refusal(text):
    for parse in (parse_moment, parse_range):
        with suppress(InvalidInput):
            parse(text, NOON, TOKYO)


@given(ANYTHING)
def test_no_query_is_refused_for_the_dates_in_it(text):
    for span in named_dates(text, NOON, TOKYO):
        assert span.start < span.end


@given(st.dates(min_value=date(2, 1, 1), max_value=date(9998, 12, 30)))
def test_an_iso_day_is_exactly_that_day(day):
    assert days_of(day.isoformat()) == (day.isoformat(), day.isoformat())
