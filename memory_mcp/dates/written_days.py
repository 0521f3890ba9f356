"""Where days and months stand in a text, in figures, in Japanese and in English: 2025年10月17日, 10/17, 2026.10.17, 10月17日〜19日, October 17."""

import re
from collections.abc import Iterator

from memory_mcp.dates.english_days import days_in_english
from memory_mcp.dates.spans import ERAS, number_of, western_year
from memory_mcp.dates.written_day import Written

_YEARS_ON = {"再来年": 2, "来年": 1, "今年": 0, "本年": 0, "去年": -1, "昨年": -1, "一昨年": -2, "おととし": -2}
_YEAR = rf"(?:(?P<year>[12１２]\d{{3}})年|(?P<era>{'|'.join(ERAS)})(?P<of_era>\d{{1,2}}|元)年|(?P<on>{'|'.join(_YEARS_ON)})の?)"
_COUNT = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_IN_FIGURES = re.compile(r"\d[/／.-]\d")
_DATE = re.compile(
    r"(?<!\d)(?P<y>[12１２]\d{3})[-/／](?P<m>\d{1,2})[-/／](?P<d>\d{1,2})(?!\d)"
    r"|(?<![A-Za-z0-9_.．-])(?P<dotted>(?:19|20)\d{2}\.\d{1,2}\.\d{1,2})(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
    rf"|{_YEAR}(?P<month>{_COUNT})月(?:(?P<day>{_COUNT})日(?!間)|(?![\d間号]))"
    rf"|(?:(?<=毎年)|(?<=例年)|(?<![\d年一二三四五六七八九十]))(?P<month_alone>{_COUNT})月(?P<day_alone>{_COUNT})日(?!間)"
    r"|(?<![\d/／.,])(?P<before_slash>\d{1,2})[/／](?P<after_slash>\d{1,2})(?P<follows>\s?[(（][月火水木金土日]|から|まで|以降|締|頃|ごろ|です|だ|[にのはもか、。]|\Z"
    r"|(?=[〜～~–-]\d{1,2}(?:日|[/／]\d{1,2}|[にのはもか、。(（]|から|まで|です|\Z)))"
)
# What is counted so is a version of a program.
_VERSION = re.compile(
    r"(?:\b(?:v|ver\.?|version|release|build)|バージョン|リリース|版|[=<>~^@]|\b(?-i:[a-z][\w.]*-[a-z]\w*))\s?\Z", re.IGNORECASE
)
# 1/2の量 is a half, and 1/2(金) and 1/2まで are days.
_SURELY_A_DAY = re.compile(r"\s?[(（]|から|まで|以降|締|頃|ごろ")
_LARGEST_PART = 10
_REACH = 20
# 17日〜19日, 17日と18日, 17日(金)、18日(土): the month is that of the day before. 17日から20日かかった and 17日と2日後 are so many days.
_BESIDE = r"(?:の?[月火水木金土日]曜日?|\s?[(（][月火水木金土日](?:曜日?)?(?:・祝)?[)）])?"
_COUNTED = "間|前|後|目|め|分|ぶり|振り|ほど|くらい|ぐらい|程|以上|以内|未満|坊主|月"
_FURTHER = re.compile(
    rf"{_BESIDE}\s?(?:(?P<from>から|より)|[〜～~–—-]|と|及び|および|(?P<list>[、，,・や]))\s?(?P<day>{_COUNT})日(?!{_COUNTED})"
    r"(?(from)(?=まで|に(?!わた|及)|の|は|です|では|[、。,)）〜～(（]|\s|\Z))(?(list)(?=まで|から|です|[にのはもがとでかや、。,・)）〜～(（]|\s|\Z))"
)
_FURTHER_IN_FIGURES = re.compile(rf"{_BESIDE}\s?[〜～~–-]\s?(?P<day>\d{{1,2}})(?:日(?!{_COUNTED})|(?![\d/／:.年月日]))")


def written_days(text: str) -> list[Written]:
    """Each of them, in the order of the text."""
    found = [*_in_figures(text)] if "月" in text or _IN_FIGURES.search(text) else []
    return sorted([*found, *days_in_english(text)], key=lambda one: one.start)


def _in_figures(text: str) -> Iterator[Written]:
    for match in _DATE.finditer(text):
        told = _told(match)
        if told is None:
            continue
        one = Written(*told, match.start(), _end(match), _YEARS_ON.get(match["on"]) if match["on"] else None)
        yield one
        if one.day:
            yield from _further(text, one, in_figures=not match[0].endswith("日"))


def _further(text: str, one: Written, *, in_figures: bool) -> Iterator[Written]:
    """The later days of the same month that stand behind a day."""
    further = _FURTHER_IN_FIGURES if in_figures else _FURTHER
    while (match := further.match(text, one.end)) and number_of(match["day"]) > (one.day or 0):
        one = one._replace(day=number_of(match["day"]), start=match.start("day"), end=match.end(), joined=True)
        yield one


def _told(match: re.Match[str]) -> tuple[int | None, int, int | None] | None:
    """Year, month and day as far as they are written; None where that is a share, or the number of a version."""
    if match["y"]:
        return int(match["y"]), int(match["m"]), int(match["d"])
    if match["dotted"]:
        if _VERSION.search(match.string[max(match.start() - _REACH, 0) : match.start()]):
            return None
        dotted = [int(number) for number in match["dotted"].split(".")]
        return dotted[0], dotted[1], dotted[2]
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
