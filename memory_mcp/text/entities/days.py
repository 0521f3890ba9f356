"""Days and months that a Japanese text names, as ISO writes them: 2025年10月17日, 令和7年10月17日, 10月17日, 10/17, 来年4月.

A date without its year is the next one where its sentence speaks of what is to come (unless it has just passed), the last one where it speaks
of what is past, and else the one nearest to when that was said: 10月17日 of this year and of the last are two days. What is of every year, such as a birthday,
keeps no year. 明日 and 明後日 name nothing: what was meant is told by when the memory was stored.
"""

import re
from collections.abc import Iterator
from datetime import date

from memory_mcp.text.calendar import ERAS, number_of, western_year
from memory_mcp.text.entities.mention import Mention
from memory_mcp.text.entities.tense import Direction, direction, direction_of_relation

# Told by these rules alone: the same words are another day a year later, so they are never looked for as a known name.
DAY = "day"
_YEARS_ON = {"再来年": 2, "来年": 1, "今年": 0, "本年": 0, "去年": -1, "昨年": -1, "一昨年": -2, "おととし": -2}
_YEAR = rf"(?:(?P<year>[12１２]\d{{3}})年|(?P<era>{'|'.join(ERAS)})(?P<of_era>\d{{1,2}}|元)年|(?P<on>{'|'.join(_YEARS_ON)})の?)"
_COUNT = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_MAY_NAME_ONE = re.compile("[月/-]")
_DATE = re.compile(
    r"(?<!\d)(?P<y>[12]\d{3})[/-](?P<m>\d{1,2})[/-](?P<d>\d{1,2})(?!\d)"
    rf"|{_YEAR}(?P<month>{_COUNT})月(?:(?P<day>{_COUNT})日(?!間)|(?![\d間号]))"
    rf"|(?:(?<=毎年)|(?<=例年)|(?<![\d年一二三四五六七八九十]))(?P<month_alone>{_COUNT})月(?P<day_alone>{_COUNT})日(?!間)"
    r"|(?<![\d/.,])(?P<before_slash>\d{1,2})/(?P<after_slash>\d{1,2})(?P<follows>\s?[(（][月火水木金土日]|から|まで|以降|締|頃|ごろ|です|だ|[にのはもか、。]|\Z)"
)
# 1/2の量 is a half, and 1/2(金) and 1/2まで are days.
_SURELY_A_DAY = re.compile(r"\s?[(（]|から|まで|以降|締|頃|ごろ")
_LARGEST_PART = 10
LEAP_YEAR = 2000
_EVERY_YEAR = re.compile("誕生日|記念日|命日|毎年|例年|生まれ|祝日|何の日")
_EVERY_YEAR_IN_ENGLISH = re.compile("birthday|anniversary|born|every_year", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[。！？!?\n]|(?<!\d)\.(?=\s|$)")
# Between two days of which one thing is said.
_AND = re.compile(r"(?:[とや、,・〜~～–-]|から|まで|か|または|及び|および|and|\s|[(（][^)）]*[)）])*")
# A sentence is looked at so far around a day.
_REACH = 60
# In which years there may be such a day, from when it was said on: the 29th of February may be eight years off.
_YEARS_OFF = range(9)
# 10/17(金) tells the year by itself: in three that follow each other it is another day of the week.
_DAY_OF_WEEK = re.compile(r"\s?(?:[(（]([月火水木金土日])(?:曜日?)?[)）]|の?([月火水木金土日])曜(?:日(?!曜)|(?=[にのはがもと、。]|\Z)))")
# Nobody leaves out the year of a plan that is so nearly a year off: it is of this one, and written down late.
_LATE_DAYS = 45


def days(text: str, said_on: date | None, ahead: Direction | None = None) -> Iterator[Mention]:
    """The days and months that a text names. `said_on`: from when a date without a year is reckoned; where it is not known, such a date has none.
    `ahead`: which one it is where that is known otherwise than by the sentence."""
    if not _MAY_NAME_ONE.search(text):
        return
    for match in _DATE.finditer(text):
        told = _told(match)
        if told is None:
            continue
        year, month, day = told
        if year is None and match["on"]:
            year = said_on.year + _YEARS_ON[match["on"]] if said_on else None
            if year is None and day is None:
                continue
        elif year is None and said_on and day:
            year = _year_of(text, match, said_on, month, day, ahead)
        if not _exists(year, month, day):
            continue
        name, aliases = _names(match, year, month, day)
        yield Mention(name, "TimeUnit", match.start(), _end(match), "rule", subtype=DAY, aliases=aliases)


def day_called(name: str, said_on: date | None, relation: str = "", beside: str = "") -> Mention | None:
    """The day or month that a name is of as a whole; None where it is another name. `relation`: the type of the one that has it at an end;
    `beside`: its other end. They may tell that it comes back each year, or is to come."""
    said = f"{relation} {beside}"
    if _EVERY_YEAR.search(said) or _EVERY_YEAR_IN_ENGLISH.search(said):
        said_on = None
    ahead = direction_of_relation(relation, beside) if said_on else None
    return next((day for day in days(name, said_on, ahead) if (day.start, day.end) == (0, len(name))), None)


def _told(match: re.Match[str]) -> tuple[int | None, int, int | None] | None:
    """Year, month and day as far as they are written; None where that is a share."""
    if match["y"]:
        return int(match["y"]), int(match["m"]), int(match["d"])
    if match["before_slash"]:
        month, day = int(match["before_slash"]), int(match["after_slash"])
        is_share = month < day <= _LARGEST_PART and not _SURELY_A_DAY.match(match["follows"])
        return None if is_share else (None, month, day)
    if match["month_alone"]:
        return None, number_of(match["month_alone"]), number_of(match["day_alone"])
    year = int(match["year"]) if match["year"] else None
    if match["era"]:
        year = western_year(match["era"], match["of_era"])
    return year, number_of(match["month"]), number_of(match["day"]) if match["day"] else None


def _end(match: re.Match[str]) -> int:
    return match.start("follows") if match["follows"] is not None else match.end()


def _year_of(text: str, match: re.Match[str], said_on: date, month: int, day: int, ahead: Direction | None) -> int | None:
    """The year that the sentence means; None where that is each year, or there is no such day."""
    before = _SENTENCE_END.split(text[max(match.start() - _REACH, 0) : match.start()])[-1]
    after = _SENTENCE_END.split(text[_end(match) : match.end() + _REACH])[0]
    if _EVERY_YEAR.search(before + after):
        return None
    ahead = ahead or direction(before, _of_this_day(after))
    nearest = _nearest(said_on, month, day)
    year = _on_its_day_of_week(text, match, said_on, month, day)
    if year and (ahead is None or (ahead == "next") is (date(year, month, day) >= said_on) or year == nearest):
        return year
    if ahead is None or (ahead == "next" and nearest and 0 < (said_on - date(nearest, month, day)).days <= _LATE_DAYS):
        return nearest
    return _next_or_last(said_on, month, day, ahead)


def _on_its_day_of_week(text: str, match: re.Match[str], said_on: date, month: int, day: int) -> int | None:
    """The year around then in which that day is on the day of the week that stands behind it; None where none stands there, or it never is.
    A slip of the pen is no year: it counts only where the sentence does not speak of the other side of then."""
    named = _DAY_OF_WEEK.match(text, _end(match))
    if named is None:
        return None
    wanted = "月火水木金土日".index(named[1] or named[2])
    return next((there.year for there in _around(said_on, month, day) if there.weekday() == wanted), None)


def _of_this_day(after: str) -> str:
    """What follows a day up to the next one, unless of both the same is said."""
    begin = 0
    for other in _DATE.finditer(after):
        if _AND.fullmatch(after, begin, other.start()) is None:
            return after[begin : other.start()]
        begin = _end(other)
    return after[begin:]


def _next_or_last(said_on: date, month: int, day: int, ahead: Direction) -> int | None:
    """The year of the next such day, or the last; the day itself when it was said is both."""
    towards = 1 if ahead == "next" else -1
    years = (said_on.year + towards * off for off in _YEARS_OFF)
    there = (year for year in years if 0 < year <= date.max.year and _exists(year, month, day))
    return next((year for year in there if (date(year, month, day) - said_on).days * towards >= 0), None)


def _nearest(said_on: date, month: int, day: int) -> int | None:
    """The year in which that day is nearest to when it was said; None where there is no such day."""
    near = [(abs((there - said_on).days), there.year) for there in _around(said_on, month, day)]
    return min(near)[1] if near else None


def _around(said_on: date, month: int, day: int) -> list[date]:
    """That day of the year before, of the one in which it was said, and of the one after, as far as there is such a day."""
    years = range(max(said_on.year - 1, 1), said_on.year + 2)
    return [date(year, month, day) for year in years if _exists(year, month, day)]


def _exists(year: int | None, month: int, day: int | None) -> bool:
    try:
        date(LEAP_YEAR if year is None else year, month, day or 1)
    except ValueError:
        return False
    return True


def _names(match: re.Match[str], year: int | None, month: int, day: int | None) -> tuple[str, tuple[str, ...]]:
    """What it is called, and how else: never by a word that is another day tomorrow."""
    if year is None:
        name, others = f"{month}月{day}日", []
    elif day is None:
        name, others = f"{year}-{month:02}", [f"{year}年{month}月"]
    else:
        name, others = f"{year}-{month:02}-{day:02}", [f"{year}年{month}月{day}日", f"{month}月{day}日"]
    if not match["on"]:
        others.append(match[0].removesuffix(match["follows"] or ""))
    return name, tuple(dict.fromkeys(other for other in others if other != name))
