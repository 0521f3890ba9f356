"""Dates as people say them every day, seen from noon of Thursday, 30 October 2025, in Tokyo."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import YEARS_CONSIDERED
from memory_mcp.errors import InvalidInput

TOKYO = ZoneInfo("Asia/Tokyo")
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


def days(span) -> str:
    """The first and the last local day of a span, without the century; one where they are the same."""
    first, last = (moment.astimezone(TOKYO).strftime("%y-%m-%d") for moment in (span.start, span.end - timedelta(microseconds=1)))
    return first if first == last else f"{first}..{last}"


def said(words: str) -> str:
    return days(parse_range(words, NOON, TOKYO))


def named(query: str) -> list[str]:
    return [days(span) for span in named_dates(query, NOON, TOKYO)]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("十月", "25-10-01..25-10-31"), ("九月三日", "25-09-03"), ("三日", "25-10-03"), ("十日の朝", "25-10-10"), ("10日の朝", "25-10-10"),
        ("十一月二十三日", "24-11-23"), ("二〇二五年十月三日", "25-10-03"), ("令和七年十月", "25-10-01..25-10-31"), ("三十一日", "25-08-31"),
        ("九月三日から五日", "25-09-03..25-09-05"), ("三日前", "25-10-27"), ("三月前", "25-07-01..25-07-31"), ("三月前半", "25-03-01..25-03-15"), ("十月半ば", "25-10-11..25-10-20"),
        ("25年10月", "25-10-01..25-10-31"), ("98年10月", "98-10-01..98-10-31"), ("24年の夏", "24-06-01..24-08-31"), ("25年10月3日", "25-10-03"),
    ],
)  # fmt: skip
def test_numbers_may_be_written_as_one_likes(words, meant):
    assert said(words) == meant


@pytest.mark.parametrize(
    "query", ["三日月", "三日坊主", "一日中雨だった", "五月雨", "数十日", "七日間の旅", "二十歳の誕生日", "一月半", "百三十月"]
)
def test_words_with_a_number_in_them_name_no_date(query):
    assert named(query) == []
    with pytest.raises(InvalidInput):
        said(query)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("2年前の夏", "23-06-01..23-08-31"), ("二年前の秋", "23-09-01..23-11-30"), ("３年前の冬", "22-12-01..23-02-28"),
        ("summer before last", "24-06-01..24-08-31"), ("the winter before last", "23-12-01..24-02-29"), ("two summers ago", "24-06-01..24-08-31"),
        ("昨秋", "24-09-01..24-11-30"), ("昨夏", "24-06-01..24-08-31"), ("昨冬", "24-12-01..25-02-28"), ("今夏", "25-06-01..25-08-31"),
        ("今春", "25-03-01..25-05-31"), ("この夏", "25-06-01..25-08-31"), ("last quarter", "25-07-01..25-09-30"), ("this quarter", "25-10-01..25-12-31"), ("前四半期", "25-07-01..25-09-30"),
        ("昨夏の終わり", "24-08-01..24-08-31"),
        ("2年前の年末", "23-12-21..23-12-31"), ("去年の暮れ", "24-12-21..24-12-31"), ("昨年末", "24-12-21..24-12-31"), ("2024年末", "24-12-21..24-12-31"),
        ("2024年の年末", "24-12-21..24-12-31"), ("年の瀬", "24-12-21..24-12-31"), ("年初", "25-01-01..25-01-10"),
        ("年度末", "25-03-01..25-03-31"), ("年度初め", "25-04-01..25-04-30"), ("今年度", "25-04-01..26-03-31"), ("昨年度", "24-04-01..25-03-31"),
        ("2024年度", "24-04-01..25-03-31"), ("2023年度末", "24-03-01..24-03-31"), ("令和6年度", "24-04-01..25-03-31"),
        ("this October", "25-10-01..25-10-31"), ("this May", "25-05-01..25-05-31"), ("next May", "26-05-01..26-05-31"), ("next October", "26-10-01..26-10-31"),
    ],
)  # fmt: skip
def test_a_part_of_a_year_may_be_said_in_many_ways(words, meant):
    assert said(words) == meant


def test_a_year_of_office_is_that_of_its_day():
    in_february = datetime(2026, 2, 10, 3, tzinfo=UTC)
    assert days(parse_range("今年度", in_february, TOKYO)) == "25-04-01..26-03-31"
    assert days(parse_range("昨年度末", in_february, TOKYO)) == "25-03-01..25-03-31"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("last week", "25-10-20..25-10-26"), ("within the last week", "25-10-24..25-10-30"), ("in the last week", "25-10-24..25-10-30"),
        ("the last week", "25-10-24..25-10-30"), ("during the last month", "25-09-30..25-10-30"), ("last month", "25-09-01..25-09-30"),
        ("in the last year", "24-10-31..25-10-30"), ("past week", "25-10-24..25-10-30"), ("the past 3 days", "25-10-28..25-10-30"),
        ("in the last couple of days", "25-10-29..25-10-30"), ("the last fifteen days", "25-10-16..25-10-30"), ("within a week", "25-10-24..25-10-30"),
        ("within 3 days", "25-10-28..25-10-30"), ("the past half year", "25-04-30..25-10-30"),
        ("1週間以内", "25-10-24..25-10-30"), ("3日以内", "25-10-28..25-10-30"), ("この三日以内", "25-10-28..25-10-30"), ("一か月以内", "25-09-30..25-10-30"),
        ("過去2週間以内", "25-10-17..25-10-30"), ("半年以内", "25-04-30..25-10-30"), ("ここ半年", "25-04-30..25-10-30"), ("数日以内", "25-10-25..25-10-30"),
        ("ここ数日", "25-10-25..25-10-30"), ("最近1週間", "25-10-24..25-10-30"), ("ここ2、3日", "25-10-28..25-10-30"), ("ここ最近", "25-09-30..25-10-30"),
        ("この一週間", "25-10-24..25-10-30"), ("直近の3日間", "25-10-28..25-10-30"),
    ],
)  # fmt: skip
def test_up_to_now_is_so_many_days_with_today(words, meant):
    assert said(words) == meant


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        ("last 24 hours", 24), ("in the last 24 hours", 24), ("the past 48 hours", 48), ("past few hours", 6), ("in the last hour", 1),
        ("within the last two hours", 2), ("last 24h", 24), ("24時間以内", 24), ("過去24時間", 24), ("この1時間", 1), ("ここ数時間", 6), ("直近の三時間", 3), ("last 30 minutes", 0.5),
        ("30分以内", 0.5),
    ],
)  # fmt: skip
def test_up_to_now_may_be_counted_in_hours(words, hours):
    span = parse_range(words, NOON, TOKYO)
    assert span.start == NOON - timedelta(hours=hours)
    assert NOON in span
    assert NOON + timedelta(hours=1) not in span
    assert [span.start for span in named_dates(f"{words} what did we say?", NOON, TOKYO)] == [span.start]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("今から3日前", "25-10-27"), ("今日から3日前", "25-10-27"), ("fortnight ago", "25-10-13..25-10-19"), ("week ago", "25-10-20..25-10-26"),
        ("ふた月前", "25-08-01..25-08-31"), ("a year and a half ago", "24-04-01..24-04-30"), ("fifteen days ago", "25-10-15"),
        ("今度の日曜", "25-11-02"), ("次の木曜", "25-11-06"), ("this coming Sunday", "25-11-02"), ("前の日曜", "25-10-26"), ("この前の日曜", "25-10-26"),
        ("two weekends ago", "25-10-18..25-10-19"), ("two Fridays ago", "25-10-17"), ("a Friday ago", "25-10-24"), ("Friday before last", "25-10-17"),
        ("2週間前の金曜", "25-10-17"), ("二週間前の今日", "25-10-16"), ("先週の今日", "25-10-23"), ("2 weeks ago today", "25-10-16"), ("a month ago today", "25-09-30"),
        ("2か月前の今日", "25-08-30"), ("10月20日前後", "25-10-18..25-10-22"), ("Friday two weeks ago", "25-10-17"),
        ("しあさって", "25-11-02"), ("先週の土日", "25-10-25..25-10-26"), ("この週末", "25-11-01..25-11-02"),
        ("earlier this week", "25-10-27..25-11-02"), ("the previous week", "25-10-20..25-10-26"), ("previous month", "25-09-01..25-09-30"),
        ("今月中", "25-10-01..25-10-31"), ("10月中", "25-10-01..25-10-31"), ("今月に入って", "25-10-01..25-10-31"),
        ("the last week of October", "25-10-25..25-10-31"), ("the first week of October", "25-10-01..25-10-07"), ("10月の第2週", "25-10-08..25-10-14"),
        ("先月の最後の週", "25-09-24..25-09-30"), ("10月最初の週", "25-10-01..25-10-07"),
    ],
)  # fmt: skip
def test_near_days_may_be_said_in_many_ways(words, meant):
    assert said(words) == meant


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("昨日と一昨日", "25-10-28..25-10-29"), ("一昨日と昨日", "25-10-28..25-10-29"), ("今日と昨日", "25-10-29..25-10-30"), ("土曜と日曜", "25-10-25..25-10-26"),
        ("today and yesterday", "25-10-29..25-10-30"), ("yesterday and today", "25-10-29..25-10-30"), ("先週と今週", "25-10-20..25-11-02"),
        ("昨日、一昨日", "25-10-28..25-10-29"), ("9月と10月", "25-09-01..25-10-31"), ("昨日と先週", None), ("10月と12月", None), ("昨日と", None), ("昨日と夕飯", None),
    ],
)  # fmt: skip
def test_days_side_by_side_are_one_span_and_others_are_refused(words, meant):
    if meant:
        assert said(words) == meant
    else:
        with pytest.raises(InvalidInput, match="no date"):
            said(words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("Mon-Wed", "25-10-27..25-10-29"), ("Monday-Wednesday", "25-10-27..25-10-29"), ("Jan-Mar", "25-01-01..25-03-31"), ("Oct-Nov", "25-10-01..25-11-30"),
        ("mid-October", "25-10-11..25-10-20"), ("between May and July", "25-05-01..25-07-31"), ("May through July", "25-05-01..25-07-31"),
        ("from May until July", "25-05-01..25-07-31"), ("from last week until yesterday", "25-10-20..25-10-29"),
        ("5月から7月まで", "25-05-01..25-07-31"), ("5月から7月にかけて", "25-05-01..25-07-31"), ("10日から15日まで", "25-10-10..25-10-15"),
        ("先週から今週にかけて", "25-10-20..25-11-02"), ("10/3-10/5", "25-10-03..25-10-05"), ("3日前から昨日まで", "25-10-27..25-10-29"),
        ("月曜から水曜", "25-10-27..25-10-29"),
    ],
)  # fmt: skip
def test_a_range_may_be_said_in_many_ways(words, meant):
    assert said(words) == meant


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [("昨日の21時から23時", "29T21", "29T23"), ("yesterday 9pm to 11pm", "29T21", "29T23"), ("昨日の22時から1時", "29T22", "30T01")],
)
def test_hours_of_a_day_are_a_range_to_the_last_moment(words, start, end):
    span = parse_range(words, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).strftime("%dT%H") == start
    assert (span.end - timedelta(microseconds=1)).astimezone(TOKYO).strftime("%dT%H") == end


@pytest.mark.parametrize(
    ("words", "start"),
    [("since Monday", "10-27"), ("since last Monday", "10-27"), ("先週以来", "10-20"), ("10月以来", "10-01"), ("1週間前から", "10-20"), ("今年に入ってから", "01-01")],
)  # fmt: skip
def test_since_then_has_no_end(words, start):
    span = parse_range(words, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).strftime("%m-%d") == start
    assert span.end.year == 9999


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("2年前の夏", "2023-06-01T00:00"), ("十月", "2025-10-01T00:00"), ("昨日と一昨日", "2025-10-28T00:00"), ("十日の朝", "2025-10-10T07:00"),
        ("昨日の昼過ぎ", "2025-10-29T13:00"), ("昨日の夜遅く", "2025-10-29T23:00"), ("昨日の朝方", "2025-10-29T07:00"), ("今から2時間前", "2025-10-30T10:00"),
        ("昨日の午後三時", "2025-10-29T15:00"), ("九月三日の夜九時", "2025-09-03T21:00"), ("去年の暮れ", "2024-12-21T00:00"),
    ],
)  # fmt: skip
def test_what_happened_may_be_dated_the_same_way(words, moment):
    assert parse_moment(words, NOON, TOKYO).astimezone(TOKYO).isoformat(timespec="minutes")[:-6] == moment


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("2年前の夏に行った海は？", ["23-06-01..23-08-31"]), ("1週間以内に会った人は？", ["25-10-24..25-10-30"]), ("昨秋の旅行", ["24-09-01..24-11-30"]),
        ("what did we eat within the last week?", ["25-10-24..25-10-30"]), ("what happened last week?", ["25-10-20..25-10-26"]),
        ("what did we plan in the last week of October 2024?", ["24-10-01..24-10-31"]), ("what did we do two summers ago?", ["24-06-01..24-08-31"]),
        ("去年の暮れの話", ["24-12-21..24-12-31"]), ("昨年度の目標", ["24-04-01..25-03-31"]), ("25年10月の予定", ["25-10-01..25-10-31"]),
        ("しあさっての予定", ["25-11-02"]), ("what did she say since Monday?", ["25-10-27..25-10-30"]), ("two weekends ago we met", ["25-10-18..25-10-19"]),
        ("今度の日曜の約束", ["25-11-02"]),
    ],
)  # fmt: skip
def test_a_question_may_say_its_date_in_many_ways(query, meant):
    assert named(query) == meant


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("昨日から今日にかけて何を食べた？", ["25-10-29..25-10-30"]), ("先週から昨日まで", ["25-10-20..25-10-29"]), ("3日前から昨日までの話", ["25-10-27..25-10-29"]),
        ("去年の10月から今年の3月まで", ["24-10-01..25-03-31"]), ("2025年10月3日から5日の旅行", ["25-10-03..25-10-05"]),
        ("2025年10月3日〜10月5日の旅行", ["25-10-03..25-10-05"]), ("from last week until yesterday, what happened?", ["25-10-20..25-10-29"]),
        ("what did we do between October 3, 2025 and October 5, 2025?", ["25-10-03..25-10-05"]), ("先週から", ["25-10-20..25-10-26"]),
        ("昨日と先週の話", ["25-10-20..25-10-26", "25-10-29"]), ("2025年10月30日から5日前に", ["25-10-30", "25-10-25"]),
        ("last week and yesterday", ["25-10-29", "25-10-20..25-10-26"]), ("2025年10月3日から40日", ["25-10-03"]), ("今日から昨日", ["25-10-29", "25-10-30"]),
    ],
)  # fmt: skip
def test_a_question_may_name_a_range(query, meant):
    assert sorted(named(query)) == sorted(meant)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("5月から7月まで何をした？", "25-05-01..25-07-31"), ("between May and July where did we go?", "25-05-01..25-07-31"), ("from Nov to Feb", "25-11-01..26-02-28"),
        ("10月3日から5日の旅行", "25-10-03..25-10-05"), ("October 3-5 in Kyoto", "25-10-03..25-10-05"),
    ],
)  # fmt: skip
def test_a_range_without_a_year_stands_for_each_of_the_last_years(query, first):
    assert named(query)[0] == first
    assert len(named(query)) == YEARS_CONSIDERED


@pytest.mark.parametrize(("query", "first"), [("十月に何をした？", "25-10-01..25-10-31"), ("九月三日は？", "25-09-03")])
def test_a_date_in_kanji_without_a_year_stands_for_each_of_the_last_years(query, first):
    assert named(query)[0] == first
    assert len(named(query)) == YEARS_CONSIDERED


@pytest.mark.parametrize(
    "query",
    [
        "this may be wrong",
        "昨今春雨が人気",
        "今夏帆さんが来た",
        "夕暮れ",
        "一日一善",
        "within reason",
        "in the last resort",
        "Mon-el",
        "今春香さん",
    ],
)
def test_what_only_looks_like_such_a_date_names_none(query):
    assert named(query) == []
