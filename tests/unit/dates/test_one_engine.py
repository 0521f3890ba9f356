"""Arguments, questions and statements read the same words as the same days."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.dates.mentions import days
from memory_mcp.dates.numerals import ERAS, MONTHS_BACK, YEARS_BACK
from memory_mcp.dates.resolve import named_dates, parse_moment, parse_range

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
    assert as_argument(f"{words}の最初の日") == (month, month)


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
