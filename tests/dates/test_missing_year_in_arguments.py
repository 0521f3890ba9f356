"""When something is to happen or happened, as its words and its sentence tell it, seen from five in the afternoon of Sunday, 22 November 2026, in Tokyo."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.errors import InvalidInput

TOKYO = ZoneInfo("Asia/Tokyo")
NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)


def moment(words, content="", now=NOW) -> str:
    local = parse_moment(words, now, TOKYO, content).astimezone(TOKYO)
    return local.strftime("%Y-%m-%d %H:%M" if local.hour or local.minute else "%Y-%m-%d")


@pytest.mark.parametrize(
    ("words", "content", "meant"),
    [
        ("11月30日15時", "歯医者の予約は11月30日の15時。", "2026-11-30 15:00"),
        ("11月30日", "歯医者に行く", "2026-11-30"),
        ("12月10日", "12月10日に歯医者に行く。", "2026-12-10"),
        ("12/10", "12月10日に歯医者に行く。", "2026-12-10"),
        ("大晦日の23時", "大晦日の23時に神社に集合する", "2026-12-31 23:00"),
        ("年末", "年末に実家へ帰る予定", "2026-12-21"),
        ("勤労感謝の日", "勤労感謝の日に山に登る予定", "2026-11-23"),
        ("first Friday of December", "We will have dinner on the first Friday of December", "2026-12-04"),
        ("early January", "I'm going to move in early January", "2027-01-01"),
        ("Thanksgiving", "We are going to my aunt's for Thanksgiving", "2026-11-26"),
        ("2月29日", "2月29日に式を挙げる予定", "2028-02-29"),
        ("今度の30日", "", "2026-11-30"),
        ("金曜", "金曜に歯医者に行く", "2026-11-27"),
        ("30日", "30日に歯医者の予約", "2026-11-30"),
        ("2週間後の土曜", "2週間後の土曜に引っ越す", "2026-12-05"),
        ("3週間後の水曜の15時", "", "2026-12-09 15:00"),
        ("Saturday in two weeks", "", "2026-12-05"),
        ("in two weeks on Saturday", "", "2026-12-05"),
        ("the Monday after next", "", "2026-11-30"),
        ("年内", "年内に引っ越す", "2026-12-31"),
        ("年内に", "", "2026-12-31"),
        ("年内いっぱい", "", "2026-12-31"),
        ("今月中", "今月中にレポートを出す", "2026-11-30"),
        ("月内", "", "2026-11-30"),
        ("11月30日〜12月2日", "11月30日から12月2日まで出張する", "2026-11-30"),
        ("11月22日の20時", "11月22日の20時に電話する", "2026-11-22 20:00"),
        ("去年の10月", "友人に会う予定", "2025-10-01"),
        ("12月5日", "12月5日に雑誌の取材が入った。カメラマンも来る。", "2026-12-05"),
        ("1月10日", "手術が決まった。", "2027-01-10"),
        ("12月20日", "同窓会の案内が来た。", "2026-12-20"),
        ("12月20日", "上司から出張を命じられた。", "2026-12-20"),
        ("3月1日", "東京マラソンに当選した。3月1日。", "2027-03-01"),
        ("12月20日", "12月20日の飲み会は中止になった。", "2026-12-20"),
        ("December 20", "Got tickets for December 20!", "2026-12-20"),
    ],
)  # fmt: skip
def test_a_plan_without_a_year_is_the_next_such_day(words, content, meant):
    assert moment(words, content) == meant


@pytest.mark.parametrize(
    ("words", "content", "meant"),
    [
        ("11月30日", "11月30日に歯医者に行った。", "2025-11-30"),
        ("今月中", "今月中に歯医者に行った。", "2026-11-01"),
        ("12月5日", "12月5日に京都へ行った", "2025-12-05"),
        ("5月22日", "結婚式の招待状をもらった。", "2026-05-22"),
        ("5月22日", "5月22日に結婚式の招待状が届いた。", "2026-05-22"),
        ("大晦日の23時", "大晦日の23時に神社で会った", "2025-12-31 23:00"),
        ("first Friday of December", "We had dinner on the first Friday of December", "2025-12-05"),
        ("金曜", "金曜に歯医者に行った", "2026-11-20"),
        ("10月17日", "10月17日に会った。11月30日に歯医者に行く。", "2026-10-17"),
    ],
)  # fmt: skip
def test_what_is_told_without_a_year_was_on_the_last_such_day(words, content, meant):
    assert moment(words, content) == meant


UNTOLD = ["", "健太は苺が好き", "健太は毎朝走る", "11月30日に会った。11月30日に会う。"]


@pytest.mark.parametrize("content", UNTOLD)
@pytest.mark.parametrize(
    ("words", "meant"), [("2月3日", "2026-02-03"), ("金曜", "2026-11-20"), ("10月", "2026-10-01"), ("11月22日", "2026-11-22")]
)
def test_where_the_sentence_cannot_tell_it_is_the_latest_that_has_begun(words, meant, content):
    assert moment(words, content) == meant


@pytest.mark.parametrize("content", [*UNTOLD, "歯医者 11月30日 15時", "Team party"])
@pytest.mark.parametrize(
    ("words", "meant"),
    [("11月30日", "2026-11-30"), ("勤労感謝の日", "2026-11-23"), ("大晦日の23時", "2026-12-31 23:00"), ("Thanksgiving", "2026-11-26")],
)
def test_where_it_cannot_tell_a_day_at_hand_is_meant_rather_than_one_nearly_a_year_ago(words, meant, content):
    assert moment(words, content) == meant


def test_a_plan_whose_day_has_just_passed_is_not_moved_by_a_year():
    assert moment("11月10日", "11月10日に歯医者に行く") == "2026-11-10"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("一週間前", "2026-11-15"), ("1週間前", "2026-11-15"), ("a week ago", "2026-11-15"), ("two weeks ago", "2026-11-08"), ("a fortnight ago", "2026-11-08"),
        ("1か月前", "2026-10-22"), ("ひと月前", "2026-10-22"), ("a month ago", "2026-10-22"), ("9ヶ月前", "2026-02-22"), ("半年前", "2026-05-22"),
        ("1年前", "2025-11-22"), ("2 years ago", "2024-11-22"), ("1年半前", "2025-05-22"), ("half a year ago", "2026-05-22"), ("1週間前の夜", "2026-11-15 20:00"),
        ("1週間ほど前", "2026-11-15"), ("about a month ago", "2026-10-22"), ("1週間後", "2026-11-29"), ("in two weeks", "2026-12-06"), ("1か月後", "2026-12-22"), ("半年後", "2027-05-22"),
        ("先週", "2026-11-09"), ("1年前の11月", "2025-11-01"), ("1週間前の金曜", "2026-11-13"), ("2年前の夏", "2024-06-01"), ("3日前", "2026-11-19"),
        ("月末", "2026-11-30"), ("今月末", "2026-11-30"), ("先月末", "2026-10-31"), ("来月の末", "2026-12-31"), ("10月末", "2026-10-31"), ("end of last month", "2026-10-31"),
        ("月末の夜", "2026-11-30 20:00"), ("今月下旬", "2026-11-21"), ("先週末", "2026-11-14"),
    ],
)  # fmt: skip
def test_a_moment_so_long_ago_is_the_day_that_is_counted_and_the_end_of_a_month_its_last(words, meant):
    assert moment(words) == meant


@pytest.mark.parametrize(
    "words", ["一週間前", "a week ago", "1か月前", "1年前", "半年前", "1週間後", "月末", "今月末", "10月末", "1年半前"]
)
def test_the_range_of_what_is_counted_is_wide_and_holds_its_day(words):
    span = parse_range(words, NOW, TOKYO)
    assert parse_moment(words, NOW, TOKYO) in span
    assert (span.end - span.start).days >= 7


def test_the_day_a_month_before_the_31st_is_the_last_of_a_shorter_one():
    assert moment("1か月前", now=datetime(2026, 10, 31, 3, tzinfo=UTC)) == "2026-09-30"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("この三連休", "2026-11-21"), ("この連休", "2026-11-21"), ("2026年5月の連休", "2026-05-02"), ("2019年5月の連休", "2019-04-27"), ("5月の連休", "2026-05-02"),
        ("さ来週", "2026-11-30"), ("さ来週の金曜", "2026-12-04"), ("さ来月", "2027-01-01"), ("さ来年", "2028-01-01"),
        ("来年早々", "2027-01-01"), ("来月早々", "2026-12-01"), ("来週早々", "2026-11-23"),
        ("次のクリスマス", "2026-12-25"), ("今度の11月30日", "2026-11-30"), ("今度の大晦日の23時", "2026-12-31 23:00"), ("次の11月10日", "2027-11-10"), ("来る12月10日", "2026-12-10"),
        ("next spring", "2027-03-01"), ("next summer", "2027-06-01"), ("next winter", "2026-12-01"), ("next Thanksgiving", "2026-11-26"), ("次の夏", "2027-06-01"), ("今度の正月", "2027-01-01"), ("last Thanksgiving", "2025-11-27"),
        ("昨日の昼休み", "2026-11-21 12:00"), ("昨日の昼休みに", "2026-11-21 12:00"), ("yesterday's lunch break", "2026-11-21 12:00"),
        ("Friday night last week", "2026-11-13 20:00"), ("Monday morning of last week", "2026-11-09 07:00"), ("Tuesday afternoon next week", "2026-11-24 13:00"),
        ("2026-11-22T10:00 JST", "2026-11-22 10:00"), ("2026-11-22 10:00 jst", "2026-11-22 10:00"), ("2026-11-22T01:00 UTC", "2026-11-22 10:00"), ("2026-11-22T10:00 +09:00", "2026-11-22 10:00"),
        ("2026-11-22T24:00", "2026-11-23"), ("2026-11-22T24:00:00", "2026-11-23"), ("2026-11-22 24:00", "2026-11-23"), ("2026-11-22T24:00+09:00", "2026-11-23"),
        ("深夜2時", "2026-11-22 02:00"), ("夜中の2時", "2026-11-22 02:00"), ("深夜2時半", "2026-11-22 02:30"), ("真夜中の1時", "2026-11-22 01:00"), ("夜1時", "2026-11-22 01:00"), ("昨日の深夜2時", "2026-11-22 02:00"),
        ("夜9時", "2026-11-22 21:00"), ("未明の3時", "2026-11-22 03:00"), ("夜7時半", "2026-11-22 19:30"), ("夕方6時ごろ", "2026-11-22 18:00"),
        ("7:30pm", "2026-11-22 19:30"),
        ("around 6pm yesterday", "2026-11-21 18:00"), ("half an hour ago", "2026-11-22 16:30"), ("1時間半後", "2026-11-22 18:30"),
        ("by the end of next month", "2026-12-31"), ("来月末まで", "2026-12-31"), ("来週Friday", "2026-11-27"),
    ],
)  # fmt: skip
def test_what_people_say_of_days_and_hours_is_understood(words, meant):
    assert moment(words) == meant
    assert parse_moment(words, NOW, TOKYO) in parse_range(words, NOW, TOKYO)


def test_an_hour_of_the_night_alone_is_the_last_or_of_a_plan_the_next():
    soon_after_midnight = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)
    assert moment("深夜2時", now=soon_after_midnight) == "2026-11-21 02:00"
    assert moment("深夜2時", "深夜2時に起きる予定", now=soon_after_midnight) == "2026-11-22 02:00"
    assert moment("深夜2時", "深夜2時に試合を見る予定") == "2026-11-23 02:00"


@pytest.mark.parametrize("words", ["2026-11-22T25:00", "2026-11-22T24:30", "2026-11-22T10:00 XYZ", "この次の連休明け次"])
def test_what_no_clock_shows_is_refused(words):
    with pytest.raises(InvalidInput):
        moment(words)


def test_a_range_that_begins_today_is_of_today():
    assert moment("11月22日の20時から", "11月22日の20時から会議がある") == "2026-11-22 20:00"


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("ゴールデンウィーク", "2026-04-29", "2026-05-06"), ("2024年のGW", "2024-04-29", "2024-05-06"), ("2023年のゴールデンウィーク", "2023-04-29", "2023-05-05"),
        ("GW明け", "2026-05-07", "2026-05-09"), ("前の日曜", "2026-11-15", "2026-11-15"), ("日曜", "2026-11-22", "2026-11-22"), ("前の土曜", "2026-11-21", "2026-11-21"),
    ],
)  # fmt: skip
def test_days_off_end_with_the_day_that_stands_in_for_a_sunday(words, first, last):
    span = parse_range(words, NOW, TOKYO)
    assert [day.astimezone(TOKYO).date().isoformat() for day in (span.start, span.end - timedelta(days=1))] == [first, last]


@pytest.mark.parametrize("words", ["9999-12-31", "0001-01-01", "9999年12月31日"])
@pytest.mark.parametrize("parse", [parse_moment, parse_range])
def test_a_day_at_the_ends_of_the_calendar_is_refused_with_its_range(parse, words):
    with pytest.raises(InvalidInput, match="between 0002-01-01 and 9998-12-31"):
        parse(words, NOW, TOKYO)


@pytest.mark.parametrize(
    "words", ["2月30日", "今月の31日", "2026-02-30", "2026年2月30日", "11月31日の15時", "13月1日", "2/30", "February 30", "2026-02-29T10:00"]
)  # fmt: skip
@pytest.mark.parametrize("parse", [parse_moment, parse_range])
def test_a_day_that_does_not_exist_is_refused_as_one(parse, words):
    with pytest.raises(InvalidInput, match="no such day"):
        parse(words, NOW, TOKYO)


@pytest.mark.parametrize("words", ["いつか", "the day after never", "2020年のクリスマスごはん", "昨日の30時", "10月と12月"])
def test_what_names_no_day_is_not_said_to_be_one(words):
    with pytest.raises(InvalidInput) as refused:
        moment(words)
    assert "no such day" not in str(refused.value)
