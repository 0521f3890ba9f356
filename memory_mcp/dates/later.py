"""Days that are counted on from today, as a table: 3日後, in two weeks, a week from Friday, 今後3日. In a sentence 3日後 is after something else."""

import re
from datetime import timedelta

from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.relative import Pattern, fixed
from memory_mcp.dates.spans import UNITS, WEEKDAYS, day_of, number_of
from memory_mcp.dates.weeks import WEEKDAY, next_weekday

_UNIT = r"(day|night|week|fortnight|month|year)s?(?![a-z])"


LATER: list[Pattern] = [
    (
        re.compile(rf"(?<![a-z\d]){COUNT} weeks? from {WEEKDAY}"),
        lambda m, today: [day_of(next_weekday(today, WEEKDAYS[m[2]])[0] + timedelta(days=7 * number_of(m[1])))],
    ),
    (
        re.compile(rf"(?<![a-z]){WEEKDAY} week(?![a-z])"),
        lambda m, today: [day_of(next_weekday(today, WEEKDAYS[m[1]])[0] + timedelta(days=7))],
    ),
    (
        re.compile(rf"(?<![a-z\d]){COUNT} weeks? from (?:today|now)|{NUMBER}週間後の(?:今日|今頃|今ごろ)"),
        lambda m, today: [day_of(today + timedelta(days=7 * number_of(m[1] or m[2])))],
    ),
    (
        re.compile(rf"(?<![a-z\d]){COUNT} {_UNIT} from (?:today|now)|(?<![a-z])in {COUNT} {_UNIT}(?:['’]s? time)?"),
        lambda m, today: [UNITS[m[2] or m[4]](today, -number_of(m[1] or m[3]))],
    ),
    (
        re.compile(rf"{NUMBER}(日|週|年)間?後|{NUMBER}[ヶケかカ箇](月)後"),
        lambda m, today: [UNITS[m[2] or m[4]](today, -number_of(m[1] or m[3]))],
    ),
    fixed("半年後", lambda today: UNITS["月"](today, -6)),
    (
        re.compile(
            rf"(?:今後|これから|この先|向こう)の?(?:{NUMBER}(日|週|年)間?|{NUMBER}[ヶケかカ箇](月)間?)|(?<![a-z])(?:the |over the )?(?:next|coming) {COUNT} {_UNIT}"
        ),
        lambda m, today: [
            (today, UNITS[m[2] or m[4] or m[6]](today, -number_of(m[1] or m[3] or m[5]), rolling=True)[0] + timedelta(days=1))
        ],
    ),
]
