"""A word by which plans move or are off tells so of a day."""

from datetime import date

import pytest

from memory_mcp.dates import change_words
from memory_mcp.dates.statements import days_of_statement

TOLD_ON = date(2026, 11, 12)
NOUNS = f"{change_words.CALLED_OFF}|{change_words.POSTPONED}".split("|")


@pytest.mark.parametrize("noun", NOUNS)
def test_the_day_of_what_is_off_is_none(noun):
    assert days_of_statement(f"11月16日の会議は{noun}になった", TOLD_ON) == []


@pytest.mark.parametrize("noun", [*change_words.POSTPONED.split("|"), "延長"])
def test_the_new_day_is_to_come(noun):
    assert days_of_statement(f"引き渡しは11月20日に{noun}になった", TOLD_ON) == [(date(2026, 11, 20), date(2026, 11, 21))]
