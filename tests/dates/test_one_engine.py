"""Arguments, questions and statements read the same words as the same days."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import ERAS, MONTHS_BACK, YEARS_BACK
from memory_mcp.dates.statements import days
from memory_mcp.errors import InvalidInput

TOKYO = ZoneInfo("Asia/Tokyo")
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TODAY = date(2025, 10, 30)


def first_and_last(span):
    return span.start.astimezone(TOKYO).date(), (span.end.astimezone(TOKYO) - timedelta(microseconds=1)).date()


def as_argument(text):
    return first_and_last(parse_range(text, NOON, TOKYO))


def in_question(text):
    return [first_and_last(span) for span in named_dates(text, NOON, TOKYO)]


def in_statement(text):
    return [day.name for day in days(text, TODAY)]


@pytest.mark.parametrize(("words", "back"), YEARS_BACK.items())
def test_a_year_in_words_is_the_same_everywhere(words, back):
    day = date(2025 - back, 10, 17)
    text = f"{words}の10月17日"
    assert as_argument(text) == (day, day)
    assert in_question(f"{text}に何をした？") == [(day, day)]
    assert in_statement(f"{text}に会った") == [day.isoformat()]
    assert parse_moment(text, NOON, TOKYO).astimezone(TOKYO).date() == day


@pytest.mark.parametrize(("words", "back"), YEARS_BACK.items())
def test_a_season_and_days_off_have_the_same_years(words, back):
    assert as_argument(f"{words}の夏") == (date(2025 - back, 6, 1), date(2025 - back, 8, 31))
    assert as_argument(f"{words}の夏休み")[0] == date(2025 - back, 7, 20)
    if back >= 0:
        assert {first.year for first, _ in in_question(f"{words}の三連休はどこへ行った？")} == {2025 - back}


@pytest.mark.parametrize(("words", "back"), MONTHS_BACK.items())
def test_a_month_in_words_is_the_same_everywhere(words, back):
    month = date(2025, 10 - back, 1)
    assert as_argument(words)[0] == month
    assert as_argument(f"{words}の17日") == (month.replace(day=17), month.replace(day=17))


@pytest.mark.parametrize("spelling", ["先々月の連休", "先先月の連休"])
def test_days_off_of_the_month_before_last_in_both_spellings(spelling):
    assert parse_moment(spelling, datetime(2025, 11, 20, tzinfo=UTC), TOKYO).astimezone(TOKYO).date() == date(2025, 9, 13)


@pytest.mark.parametrize(("era", "before"), ERAS.items())
def test_a_year_of_each_era_is_the_same_everywhere(era, before):
    day = date(before + 10, 10, 17)
    text = f"{era}10年10月17日"
    assert as_argument(text) == (day, day)
    assert in_question(f"{text}に何があった？") == [(day, day)]
    assert in_statement(f"{text}の日記") == [day.isoformat()]
    assert as_argument(f"{era}元年")[0].year == before + 1


@pytest.mark.parametrize(("today", "year"), [(date(2025, 12, 1), 2025), (date(2025, 12, 2), 2026)])
def test_a_plan_that_is_written_down_up_to_45_days_late_is_of_this_year(today, year):
    assert [day.name for day in days("10月17日に会う", today)] == [f"{year}-10-17"]
    now = datetime(today.year, today.month, today.day, 12, tzinfo=TOKYO)
    assert parse_moment("10月17日", now, TOKYO, "10月17日に会う").astimezone(TOKYO).date() == date(year, 10, 17)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2025-10-17", "2025-10-17"), ("2025/10/17", "2025-10-17"), ("2025.10.17", "2025-10-17"), ("2025年10月17日", "2025-10-17"), ("２０２５年１０月１７日", "2025-10-17"),
        ("二〇二五年十月十七日", "2025-10-17"), ("令和7年10月17日", "2025-10-17"), ("令和七年十月十七日", "2025-10-17"), ("平成元年1月8日", "1989-01-08"),
        ("昭和六十三年三月四日", "1988-03-04"), ("10月17日", "2025-10-17"), ("十月十七日", "2025-10-17"), ("10/17", "2025-10-17"), ("10月17日(金)", "2025-10-17"),
        ("来年の4月8日", "2026-04-08"), ("去年12月3日", "2024-12-03"), ("October 17", "2025-10-17"), ("Oct 17th, 2024", "2024-10-17"), ("17 October 2024", "2024-10-17"),
        ("17th of October", "2025-10-17"), ("2025年十月", "2025-10"), ("令和七年十月", "2025-10"), ("October 2024", "2024-10"), ("おととしの12月", "2023-12"),
    ],
)  # fmt: skip
def test_a_written_date_is_the_same_as_an_argument_and_in_a_statement(text, day):
    assert in_statement(text) == [day]
    first, last = as_argument(text)
    assert first.isoformat()[: len(day)] == day == last.isoformat()[: len(day)]


@pytest.mark.parametrize(
    "text", ["十月十十日に会った", "十十月三日", "2025年十十月", "十月三日と十十日", "十十時間前", "過去十十時間", "十十日前の十十時十十分"]
)
def test_what_is_no_date_is_refused_and_does_not_fail(text):
    in_statement(text)
    in_question(text)
    for parse in (parse_moment, parse_range):
        with suppress(InvalidInput):
            parse(text, NOON, TOKYO)
