"""The days that a statement is about, as meant on the day on which it was made."""

from datetime import date

import pytest

from memory_mcp.dates.statements import SPANS_LIMIT, days_of_statement

SAID_ON = date(2025, 11, 5)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("昨日の夕飯はカレー", ["11-04..11-05"]),
        ("返却期限は12月1日", ["12-01..12-02"]),
        ("来週の火曜に健太と会う", ["11-11..11-12"]),
        ("18日に予防接種を受ける予定", ["11-18..11-19"]),
        ("3日に歯医者へ行った", ["11-03..11-04"]),
        ("dinner was curry last night", ["11-04..11-05"]),
        ("The book is due on December 1.", ["12-01..12-02"]),
        ("来月から禁煙する", ["12-01..01-01"]),
        ("昨日は寿司、明日は鍋", ["11-04..11-05", "11-06..11-07"]),
        ("今年は忙しい", []),  # too long to say anything
        ("誕生日は10月3日", []),  # of every year
        ("I may go there", []),
        ("土曜は雨", []),  # the last or the next one
        ("苺が好き", []),
    ],
)
def test_a_statement_names_days(text, days):
    assert sorted(f"{first:%m-%d}..{after:%m-%d}" for first, after in days_of_statement(text, SAID_ON)) == sorted(days)


def test_a_list_of_dates_has_an_end():
    assert len(days_of_statement("、".join(f"11月{day}日" for day in range(1, 28)), SAID_ON)) == SPANS_LIMIT
