"""Dates in words, seen from noon of Thursday, 30 October 2025, in Tokyo."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import YEARS_CONSIDERED
from memory_mcp.errors import InvalidInput

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
        ("クリスマス", "2024-12-25", "2024-12-25"), ("クリスマスイブ", "2024-12-24", "2024-12-24"), ("クリスマス・イヴ", "2024-12-24", "2024-12-24"),
        ("バレンタインデー", "2025-02-14", "2025-02-14"), ("お正月", "2025-01-01", "2025-01-03"), ("元旦", "2025-01-01", "2025-01-01"),
        ("大みそか", "2024-12-31", "2024-12-31"), ("節分", "2025-02-02", "2025-02-02"), ("2024年の節分", "2024-02-03", "2024-02-03"), ("こどもの日", "2025-05-05", "2025-05-05"),
        ("ﾊﾛｳｨﾝ", "2024-10-31", "2024-10-31"), ("七夕", "2025-07-07", "2025-07-07"), ("お盆", "2025-08-13", "2025-08-16"),
        ("Christmas", "2024-12-25", "2024-12-25"), ("Christmas Eve", "2024-12-24", "2024-12-24"), ("Christmas 2021", "2021-12-25", "2021-12-25"),
        ("New Year's Eve", "2024-12-31", "2024-12-31"), ("New Year’s Day", "2025-01-01", "2025-01-01"), ("last Halloween", "2024-10-31", "2024-10-31"),
        ("Valentine's Day", "2025-02-14", "2025-02-14"), ("last October", "2024-10-01", "2024-10-31"), ("last May", "2025-05-01", "2025-05-31"),
        ("先週の水曜", "2025-10-22", "2025-10-22"), ("おととい", "2025-10-28", "2025-10-28"),
        ("さきおととい", "2025-10-27", "2025-10-27"), ("明後日", "2025-11-01", "2025-11-01"), ("two days ago", "2025-10-28", "2025-10-28"),
        ("この前の土曜日", "2025-10-25", "2025-10-25"), ("金曜日", "2025-10-24", "2025-10-24"), ("on Tuesday", "2025-10-28", "2025-10-28"),
        ("next Tuesday", "2025-11-04", "2025-11-04"), ("Friday of last week", "2025-10-24", "2025-10-24"), ("17日", "2025-10-17", "2025-10-17"),
        ("先月の17日", "2025-09-17", "2025-09-17"), ("last month's 17th", "2025-09-17", "2025-09-17"), ("the 17th", "2025-10-17", "2025-10-17"),
        ("10/17", "2025-10-17", "2025-10-17"), ("10/17/2025", "2025-10-17", "2025-10-17"), ("17.10.2025", "2025-10-17", "2025-10-17"),
        ("10月17日(金)", "2025-10-17", "2025-10-17"), ("10月17日金曜日", "2025-10-17", "2025-10-17"), ("20251017", "2025-10-17", "2025-10-17"),
        ("令和7年10月17日", "2025-10-17", "2025-10-17"), ("R7.10.17", "2025-10-17", "2025-10-17"), ("令和元年", "2019-01-01", "2019-12-31"),
        ("去年の今日", "2024-10-30", "2024-10-30"), ("a year ago today", "2024-10-30", "2024-10-30"), ("去年の今頃", "2024-10-15", "2024-11-14"),
        ("週末", "2025-10-25", "2025-10-26"), ("来週末", "2025-11-08", "2025-11-09"), ("先週の週末", "2025-10-25", "2025-10-26"),
        ("the weekend before last", "2025-10-18", "2025-10-19"), ("the week before last", "2025-10-13", "2025-10-19"), ("2024-W10", "2024-03-04", "2024-03-10"),
        ("来月", "2025-11-01", "2025-11-30"), ("再来週", "2025-11-10", "2025-11-16"), ("来年", "2026-01-01", "2026-12-31"),
        ("去年の夏", "2024-06-01", "2024-08-31"), ("2024年夏", "2024-06-01", "2024-08-31"), ("summer of 2024", "2024-06-01", "2024-08-31"),
        ("last summer", "2025-06-01", "2025-08-31"), ("去年の冬", "2024-12-01", "2025-02-28"), ("今年の冬", "2024-12-01", "2025-02-28"),
        ("冬", "2024-12-01", "2025-02-28"), ("in autumn", "2025-09-01", "2025-11-30"), ("夏休み", "2025-07-20", "2025-08-31"),
        ("GW", "2025-04-29", "2025-05-06"), ("年末年始", "2024-12-27", "2025-01-05"), ("去年の年末", "2024-12-21", "2024-12-31"),
        ("10月上旬", "2025-10-01", "2025-10-10"), ("10月の半ば", "2025-10-11", "2025-10-20"), ("先月末", "2025-09-21", "2025-09-30"),
        ("late September", "2025-09-21", "2025-09-30"), ("mid-October", "2025-10-11", "2025-10-20"), ("the beginning of October", "2025-10-01", "2025-10-10"),
        ("今年の前半", "2025-01-01", "2025-06-30"), ("first half of 2024", "2024-01-01", "2024-06-30"), ("Q1 2024", "2024-01-01", "2024-03-31"),
        ("early 2024", "2024-01-01", "2024-04-30"), ("先月前半", "2025-09-01", "2025-09-15"), ("月末", "2025-10-21", "2025-10-31"),
        ("10月頃", "2025-09-21", "2025-11-10"), ("around October", "2025-09-21", "2025-11-10"), ("昨日くらい", "2025-10-27", "2025-10-31"),
        ("数日前", "2025-10-24", "2025-10-28"), ("2、3日前", "2025-10-27", "2025-10-28"), ("3〜2日前", "2025-10-27", "2025-10-28"),
        ("3 to 2 days ago", "2025-10-27", "2025-10-28"), ("2～3週間前", "2025-10-06", "2025-10-19"),
        ("a few days ago", "2025-10-24", "2025-10-28"), ("a couple of weeks ago", "2025-10-06", "2025-10-19"), ("two or three days ago", "2025-10-27", "2025-10-28"),
        ("半年前", "2025-04-01", "2025-04-30"), ("1年半前", "2024-04-01", "2024-04-30"), ("a fortnight ago", "2025-10-13", "2025-10-19"),
        ("ここ一週間", "2025-10-24", "2025-10-30"), ("過去30日間", "2025-10-01", "2025-10-30"), ("the last 3 days", "2025-10-28", "2025-10-30"),
        ("past week", "2025-10-24", "2025-10-30"), ("最近", "2025-09-30", "2025-10-30"), ("the other day", "2025-10-16", "2025-10-29"),
        ("10月1日〜17日", "2025-10-01", "2025-10-17"), ("10/1〜10/17", "2025-10-01", "2025-10-17"), ("October 1-17", "2025-10-01", "2025-10-17"),
        ("10月から12月", "2025-10-01", "2025-12-31"), ("11月から2月", "2024-11-01", "2025-02-28"), ("去年の10月から今年の3月まで", "2024-10-01", "2025-03-31"),
        ("先週の月曜から金曜", "2025-10-20", "2025-10-24"), ("from Monday to Friday", "2025-10-27", "2025-10-31"), ("昨日から今日", "2025-10-29", "2025-10-30"),
        ("between October 1 and October 17", "2025-10-01", "2025-10-17"), ("2025-10-01/2025-10-17", "2025-10-01", "2025-10-17"),
        ("2025-10-01 2025-10-17", "2025-10-01", "2025-10-17"),
    ],
)  # fmt: skip
def test_words_for_a_span_a_named_day_or_a_range_mean_all_of_its_days(words, first, last):
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


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("since 2025-10-17", "2025-10-17", None), ("after 2025-10-17", "2025-10-18", None),
        ("until 2025-10-17", None, "2025-10-18"), ("before 2025-10-17", None, "2025-10-17"),
    ],
)  # fmt: skip
def test_the_one_end_of_a_range_may_be_an_iso_day(words, start, end):
    span = parse_range(words, NOON, TOKYO)
    ends = [None if moment.year in (1, 9999) else moment.astimezone(TOKYO).date().isoformat() for moment in (span.start, span.end)]
    assert ends == [start, end]


def test_a_range_of_moments_includes_them():
    span = parse_range("2025-10-17T10:00..2025-10-17T12:00+00:00", NOON, TOKYO)
    assert datetime(2025, 10, 17, 1, tzinfo=UTC) in span
    assert datetime(2025, 10, 17, 12, tzinfo=UTC) in span
    assert datetime(2025, 10, 17, 12, 0, 1, tzinfo=UTC) not in span


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidInput, match="ends before it begins"):
        parse_range("2025-10-17..2025-10-01", NOON, TOKYO)


@pytest.mark.parametrize(
    "words", ["", "soon", "2025-02-30", "十十日前", "2025-13-01", "2025-13", "2025-00", "2025〜20", "last sunset", "the market", "until yesterday", "昨日まで", "..2025-10-17"]
)  # fmt: skip
def test_what_is_no_date_or_has_only_an_end_is_refused_with_examples(words):
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


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("10月16日(水)", "2024-10-16"), ("12月25日（木）", "2025-12-25"), ("Wednesday, October 16", "2024-10-16"),
        ("10月16日(火)", "2025-10-16"),  # of none of the years: the day counts
    ],
)  # fmt: skip
def test_a_weekday_beside_a_day_says_which_year(words, day):
    assert days_of(words)[0] == day


def test_a_query_names_its_dates_wherever_they_stand():
    assert named("昨日の夕飯、それと先週の金曜に何を食べた？") == [date(2025, 10, 29), date(2025, 10, 24)]


def test_a_named_day_without_a_year_stands_for_each_of_the_last_years_and_the_last_one_for_one():
    assert named("クリスマスは何をした？") == [date(year, 12, 25) for year in range(2025, 2025 - YEARS_CONSIDERED, -1)]
    assert named("what did I do last christmas?") == [date(2024, 12, 25)]


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("last July 25", "2025-07-25"), ("last July the 25th", "2025-07-25"), ("the 25th of last July", "2025-07-25"),
        ("last October 30", "2024-10-30"), ("last December 3", "2024-12-03"), ("last February 29", "2024-02-29"),
    ],
)  # fmt: skip
def test_the_last_day_of_that_name_is_the_latest_before_today(words, day):
    assert named(f"what did we do {words}?") == [date.fromisoformat(day)]
    assert days_of(words) == (day, day)


def test_the_last_day_of_that_name_is_past_even_in_a_plan():
    assert parse_moment("last July 25", NOON, TOKYO, "I will visit them again").astimezone(TOKYO).date() == date(2025, 7, 25)


def test_a_date_that_is_named_twice_counts_once():
    assert named("昨日、そう昨日の夕飯は？") == [date(2025, 10, 29)]


def test_the_longer_reading_wins():
    assert named("一昨日") == [date(2025, 10, 28)]
    assert named("on October 17, 2025 at noon") == [date(2025, 10, 17)]


def test_a_date_without_a_year_stands_for_each_of_the_last_years():
    assert named("10月17日は？") == [date(year, 10, 17) for year in range(2025, 2025 - YEARS_CONSIDERED, -1)]


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
    assert sorted(named("去年の1月と昨日と2022年")) == [date(2022, 1, 1), date(2024, 1, 1), date(2025, 10, 29)]
    assert len(named("10月と12月")) == 2 * YEARS_CONSIDERED


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


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("10月17日以降", "2025-10-17", None), ("since last week", "2025-10-20", None), ("先週から", "2025-10-20", None), ("from 2024", "2024-01-01", None),
        ("after October 17", "2025-10-18", None), ("after 2023", "2024-01-01", None), ("昨日まで", None, "2025-10-30"), ("until yesterday", None, "2025-10-30"),
        ("before 2024", None, "2024-01-01"), ("2024年以前", None, "2025-01-01"), ("10月より前", None, "2025-10-01"), ("2025-10-17..", "2025-10-17", None),
    ],
)  # fmt: skip
def test_a_range_may_have_one_end_in_words(words, start, end):
    span = parse_range(words, NOON, TOKYO)
    day = [None if moment.year in (1, 9999) else moment.astimezone(TOKYO).date().isoformat() for moment in (span.start, span.end)]
    assert day == [start, end]


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("3日前の夜", "10-27T20:00"), ("昨日の朝", "10-29T07:00"), ("昨夜", "10-29T20:00"), ("last night", "10-29T20:00"), ("今朝", "10-30T07:00"),
        ("yesterday evening", "10-29T17:00"), ("last Tuesday night", "10-28T20:00"), ("昨日の夜9時", "10-29T21:00"), ("昨日の午後3時半", "10-29T15:30"),
        ("昨日21時05分", "10-29T21:05"), ("昨日の25時", "10-30T01:00"), ("yesterday at 9pm", "10-29T21:00"), ("last Friday at 9", "10-24T09:00"),
        ("2025年10月17日 21:30", "10-17T21:30"), ("today at 12 am", "10-30T00:00"), ("the night before last", "10-28T20:00"), ("21時", "10-30T21:00"),
        ("2時間前", "10-30T10:00"), ("an hour ago", "10-30T11:00"), ("30分前", "10-30T11:30"), ("さっき", "10-30T12:00"), ("now", "10-30T12:00"),
        ("去年の夏から", "2024-06-01T00:00"), ("先週の月曜から金曜", "10-20T00:00"), ("10月頃", "10-01T00:00"), ("20251017", "10-17T00:00"),
    ],
)  # fmt: skip
def test_a_moment_begins_when_its_part_of_the_day_does(words, moment):
    said = parse_moment(words, NOON, TOKYO).astimezone(TOKYO).isoformat(timespec="minutes")[:-6]
    assert said == (moment if moment.startswith("20") else f"2025-{moment}")


def test_a_part_of_a_day_filters_by_the_whole_day_and_a_night_reaches_into_the_next():
    assert days_of("昨日の朝") == ("2025-10-29", "2025-10-29")
    span = parse_range("3日前の夜", NOON, TOKYO)
    assert span.start.astimezone(TOKYO).isoformat() == "2025-10-27T00:00:00+09:00"
    assert span.end.astimezone(TOKYO).isoformat() == "2025-10-28T05:00:00+09:00"


@pytest.mark.parametrize("words", ["3日前の夜", "先週から3日前の夜まで", "昨夜まで", "一昨日の夜と昨夜", "昨夜と一昨日の夜"])
def test_a_night_holds_what_is_known_to_the_hour_and_not_what_is_known_by_the_next_day_alone(words):
    span = parse_range(words, NOON, TOKYO)
    next_day = span.end - timedelta(hours=5)
    assert next_day not in span
    assert next_day + timedelta(minutes=90) in span
    assert next_day - timedelta(minutes=90) in span


def test_what_comes_after_a_night_begins_with_the_next_day():
    assert parse_range("after last night", NOON, TOKYO).start == parse_moment("今日", NOON, TOKYO)


@pytest.mark.parametrize(
    ("words", "seconds"), [("昨日の21時", 3600), ("yesterday 21:15", 60), ("2025-10-17T21:00", 60), ("2025-10-17T21", 3600), ("30分前", 60)]
)
def test_a_clock_time_filters_by_its_hour_or_minute(words, seconds):
    span = parse_range(words, NOON, TOKYO)
    assert (span.end - span.start).total_seconds() == seconds


@pytest.mark.parametrize(
    "words", ["昨日と先週", "2025-13", "2025..20", "昨日の30時", "10月と12月", "昨日 去年", "前日", "once", "昨日 ごはん", "夏 " * 200]
)
def test_what_is_no_one_date_is_refused(words):
    with pytest.raises(InvalidInput):
        parse_range(words, NOON, TOKYO)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("去年の夏に行った海は？", "2024-06-01"), ("what did we do last summer?", "2025-06-01"), ("この前の日曜に誰と会った？", "2025-10-26"),
        ("ここ3日で何があった？", "2025-10-28"), ("the past two weeks in short", "2025-10-17"), ("去年の年末はどこに？", "2024-12-21"),
        ("two days ago at lunch", "2025-10-28"), ("先月の17日の約束", "2025-09-17"), ("数日前の話", "2025-10-24"), ("再来週の予定", "2025-11-10"),
    ],
)  # fmt: skip
def test_a_query_may_say_its_date_in_many_ways(query, first):
    (span,) = named_dates(query, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).date().isoformat() == first


@pytest.mark.parametrize(
    "query",
    [
        "夏は好き？",
        "秋田の話",
        "春香の好物",
        "best summer drink",
        "金曜は何をしてる？",
        "on mondays",
        "最近どう？",
        "the 3rd option",
        "1/2 cup",
        "年末調整",
        "3月号",
    ],
)
def test_words_that_may_mean_anything_name_no_date_in_a_query(query):
    assert named(query) == []


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


@pytest.mark.parametrize(
    ("digits", "moment"), [("1712010101", "2024-04-01T22:21:41+00:00"), ("1712010101010", "2024-04-01T22:21:41.010000+00:00")]
)
def test_ten_and_thirteen_digits_are_seconds_and_milliseconds_since_1970(digits, moment):
    assert parse_moment(digits, NOON, TOKYO).isoformat() == moment


@pytest.mark.parametrize("digits", ["171201010", "2025103012", "202510301200", "20251030120000", "1" * 20])
def test_other_long_numbers_are_no_dates(digits):
    with pytest.raises(InvalidInput):
        parse_moment(digits, NOON, TOKYO)
