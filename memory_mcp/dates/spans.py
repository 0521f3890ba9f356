"""Spans of days, and the numbers of dates: counts, eras, weeks, months and years, spans that narrow each other, and texts with their dates
in digits."""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from memory_mcp import lexicon
from memory_mcp.patterns import Needed, bounded

# The first day, and the first day after the last.
DaySpan = tuple[date, date]

ONE_DAY = timedelta(days=1)
WEEKDAY_NAMES = lexicon.CLASSES["days_of_week"]
WEEKDAYS = {
    name: index
    for index, (kanji, name) in enumerate(zip(WEEKDAY_NAMES, lexicon.words("en", "weekday_names"), strict=True))
    for name in (kanji, name[:3])
}
SATURDAY = 5
ORDINALS = lexicon.words("en", "ordinals")
MONTH_NAMES = lexicon.words("en", "month_names")
MONTHS = {form: number for number, name in enumerate(MONTH_NAMES, start=1) for form in (name, name[:3])} | {"sept": 9}
# A date without a year may mean that date in each of so many last years, as long as it only raises a score.
YEARS_CONSIDERED = 5
# The dates of one text that are compared with each other.
DATES_LIMIT = 40


def day_of(day: date) -> DaySpan:
    return day, day + ONE_DAY


def week_of(day: date, back: int = 0) -> DaySpan:
    """The week of a day, or the week `back` weeks earlier. A week begins on Monday."""
    monday = day - timedelta(days=day.weekday() + 7 * back)
    return monday, monday + timedelta(days=7)


def month_of(year: int, month: int) -> DaySpan:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def months_back(today: date, back: int) -> DaySpan:
    """The calendar month `back` months before that of `today`."""
    year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
    return month_of(year, month + 1)


def year_of(year: int) -> DaySpan:
    return date(year, 1, 1), date(year + 1, 1, 1)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The `nth` such day of the week of a month; -1 is the last one.

    Raises:
        ValueError: the month has no fifth.
    """
    first, after = month_of(year, month)
    if nth < 0:
        return after - timedelta(days=(after.weekday() - weekday - 1) % 7 + 1)
    day = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
    if day >= after:
        raise ValueError("the month has no such day")
    return day


def each_year(today: date, span_in: Callable[[int], DaySpan], ahead: int = 0, back: int = YEARS_CONSIDERED) -> Iterator[DaySpan]:
    """The span of each of the last years, the latest first, without years that have no such day (29 February)."""
    for year in range(today.year + ahead, today.year - back, -1):
        with suppress(ValueError):
            yield span_in(year)


# Each unit in days or months.
_DAYS, _MONTHS = {"日": 1, "day": 1, "night": 1, "週": 7, "week": 7, "fortnight": 14}, {"月": 1, "month": 1, "年": 12, "year": 12}


def units_back(today: date, unit: str, count: int) -> DaySpan:
    """The calendar day, week, month or year so many units ago."""
    if unit in ("年", "year"):
        return year_of(today.year - count)
    if unit in _MONTHS:
        return months_back(today, count)
    return day_of(day_back(today, unit, count)) if _DAYS[unit] == 1 else week_of(today, count * _DAYS[unit] // 7)


def day_back(today: date, unit: str, count: int) -> date:
    """This very day so many units ago; of a month that has no such day the last one."""
    if unit not in _MONTHS:
        return today - timedelta(days=count * _DAYS[unit])
    first, after = months_back(today, count * _MONTHS[unit])
    return min(first + timedelta(days=today.day - 1), after - ONE_DAY)


def narrowed(meanings: Sequence[Sequence[DaySpan]]) -> list[DaySpan]:
    """The spans that the dates of one text mean together, each once: 今年の1月 is a January of this year.

    `meanings` holds the spans that each date may mean; the first `DATES_LIMIT` count. A span inside a span of another date is kept, and the
    wider one is dropped. Of a date that may mean several years, the spans inside another date are kept, if there are any.
    """
    meanings = meanings[:DATES_LIMIT]
    distinct = {span for spans in meanings for span in spans}
    pairs = [(one, other) for one in distinct for other in distinct if other[0] <= one[0] and one[1] <= other[1] and one != other]
    around = {other for _, other in pairs}
    inside = {one for one, _ in pairs} | {
        spans[0] for spans in meanings if len(spans) == 1
    }  # 今月17日、10月17日: the same day, and of this year
    chosen: dict[DaySpan, None] = {}
    for spans in meanings:
        within = [span for span in spans if span in inside] if len(spans) > 1 else []
        chosen |= dict.fromkeys(span for span in within or spans if span not in around)
    return list(chosen)


# Japanese eras and the year before their first.
ERAS = lexicon.counts("ja", "eras")
# 昭和 had 64 years.
_LONGEST_ERA = 64
_KANJI_DIGITS = "〇一二三四五六七八九"
_ENGLISH_NUMBERS = lexicon.words("en", "numbers")
# Years and months counted from this one: a positive number is in the past.
YEARS_BACK, MONTHS_BACK = lexicon.counts("ja", "years_back"), lexicon.counts("ja", "months_back")
# May match what is no number, such as 十十, of which `number_of` raises ValueError; `KANJI_NUMBER` does not.
NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
KANJI_NUMBER = "[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九]{1,3}"
COUNT = rf"(?:\d{{1,3}}|an?|{lexicon.any_of(_ENGLISH_NUMBERS[1:])})"

# 令和 as R, 平成 as H, 昭和 as S.
_ERA_LETTERS = dict(zip("rhs", ERAS, strict=False))


def _western_year(match: re.Match[str]) -> str:
    """The western year of 令和 and 7, 七 or 元."""
    era, year = _ERA_LETTERS.get(match[1], match[1]), match[2]
    return f"{ERAS[era] + (1 if year == '元' else number_of(year))}{'年' if match[0].endswith('年') else ''}" if year else match[0]


# What a run of kanji means before 年, 月 and 日. 数十日 and 百三十日 are so many days.
_WRITTEN_OUT = {
    "年": re.compile(f"[一二][{_KANJI_DIGITS}]{{3}}"),
    "月": re.compile(f"十[一二]?|[{_KANJI_DIGITS[1:]}]"),
    "日": re.compile(f"[一二三]?十[{_KANJI_DIGITS[1:]}]?|[{_KANJI_DIGITS[1:]}]"),
}


def _in_digits(match: re.Match[str]) -> str:
    return str(number_of(match[0])) if _WRITTEN_OUT[match.string[match.end()]].fullmatch(match[0]) else match[0]


def _in_full(match: re.Match[str]) -> str:
    """The year of two digits, from 1961 to 2060."""
    return f"{1961 + (int(match[1]) - 61) % 100}{match[2]}"


def _day_in_figures(match: re.Match[str]) -> str:
    """3rd of "the third" before "of October", "october 3" of "October the third"."""
    number = nth_of(match[1] or match[3])
    return f"{number}th" if match[1] else f"{match[2]} {number}"


def _clock_in_figures(match: re.Match[str]) -> str:
    """7:30 of "half past seven", 8:45 of "quarter to nine"."""
    hour, minutes = number_of(match[3]), 30 if match[1] == "half" else 15
    return f"{hour}:{minutes}" if match[2] == "past" else f"{(hour - 1) % 24}:{60 - minutes}"


def _quarter_in_figures(match: re.Match[str]) -> str:
    """q3 of "the third quarter of"."""
    return f"q{nth_of(match[1])} "


def _long_unit(match: re.Match[str]) -> str:
    return {"wk": "week", "yr": "year", "mo": "month", "hr": "hour"}[match[0]]


_BEHIND_DAY = [f"{end}{comma}" for end in (r"\d", "st", "nd", "rd", "th") for comma in ("", ",")]
_BEFORE_SHORT_YEAR = "|".join(f"(?<={word} ...)" for word in ("in", "since", "of", "during", *MONTHS, *_BEHIND_DAY))
_ROWS = tomllib.loads(Path(__file__).with_name("spellings.toml").read_text("utf-8"))
_KNOWN = {"before_short_year": _BEFORE_SHORT_YEAR, "hour_in_words": "|".join(_ENGLISH_NUMBERS[1:13])}
_PARTS = lexicon.parts_of(_ROWS["parts"], _KNOWN)
_AS = (_western_year, _in_digits, _in_full, _long_unit, _day_in_figures, _clock_in_figures, _quarter_in_figures)
_WRITES = {write.__name__.removeprefix("_"): write for write in _AS}
# Of each spelling what is written otherwise, and what stands in its place.
_SPELLINGS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (bounded(lexicon.filled(row["pattern"], _PARTS)), row["written"] if "written" in row else _WRITES[row["as"]])
    for row in _ROWS["spelling"]
]
_SPELT = Needed(lexicon.needed(row["needs"]) for row in _ROWS["spelling"])
_CLUSTER = re.compile(r"(?s).[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*+")


def number_of(text: str) -> int:
    """The value of 3, 三, 二十一, 二〇二五, three or a."""
    if text.isdecimal():
        return int(text)
    if text.isascii():
        return _ENGLISH_NUMBERS.index(text) if text in _ENGLISH_NUMBERS else 1
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_KANJI_DIGITS.index(digit)) for digit in text))
    return (_KANJI_DIGITS.index(tens) if tens else 1) * 10 + (_KANJI_DIGITS.index(ones) if ones else 0)


def nth_of(word: str) -> int:
    """Which one a word counts, -1 for the last."""
    if word in ("最後", "最", "last"):
        return -1
    return 1 if word == "最初" else ORDINALS.index(word) + 1 if word in ORDINALS else number_of(word)


def spellings_of_year(year: int) -> list[str]:
    """How a text may write a year: 2025, 二〇二五年, 令和7年, 令和七年, R7年, 平成元年."""
    eras = [(era, year - before) for era, before in ERAS.items() if year > before]
    latest = [(era, count) for era, count in eras[:2] if count <= _LONGEST_ERA]
    letters = {era: letter for letter, era in _ERA_LETTERS.items()}
    return [
        str(year),
        "".join(_KANJI_DIGITS[int(digit)] for digit in str(year)) + "年",
        *(f"{era}{count}年" for era, count in latest),
        *(f"{era}{_in_kanji(count)}年" for era, count in latest),
        *(f"{letters[era]}{count}年" for era, count in latest if era in letters),
        *(f"{era}元年" for era, count in eras[:1] if count == 1),
    ]


def _in_kanji(count: int) -> str:
    """五十 of 50, of a count up to 99."""
    tens, ones = divmod(count, 10)
    return ("" if tens < 2 else _KANJI_DIGITS[tens]) + ("十" if tens else "") + (_KANJI_DIGITS[ones] if ones else "")


def normalize(text: str) -> str:
    """The text in NFKC, without upper case, and with the years and days of dates in digits. Years of two digits run from 1961 to 2060."""
    return normalized_with_places(text)[0]


def normalized_with_places(text: str) -> tuple[str, Sequence[int]]:
    """The normalized text, and for each place of it, its end included, the place in the text itself."""
    return normalized_further(*composed_with_places(text))


def normalized_further(plain: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """The same, from what `composed_with_places` gives."""
    blanks = len(plain) - len(plain.lstrip())
    blanks += len("西暦") if plain.startswith("西暦", blanks) else 0
    end = max(len(plain.rstrip()), blanks)
    plain, places = plain[blanks:end].replace("’", "'"), places[blanks : end + 1]
    tried, last = _SPELT.within(plain), -1
    while later := [number for number in tried if number > last]:
        last = min(later)
        pattern, written = _SPELLINGS[last]
        replaced, places = _replaced(plain, places, pattern, written)
        if replaced is not plain:
            plain, tried = replaced, _SPELT.within(replaced)
    return plain, places


def composed_with_places(text: str) -> tuple[str, Sequence[int]]:
    """The text in NFKC and without upper case, and for each place of it, its end included, the place in the text itself."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if len(plain) == len(text) and (text.isascii() or unicodedata.is_normalized("NFC", text)):
        return plain, range(len(text) + 1)
    places: list[int] = []
    for cluster in _CLUSTER.finditer(text):
        places += [cluster.start()] * len(unicodedata.normalize("NFKC", cluster[0]).casefold())
    places += [len(text)] * (len(plain) + 1 - len(places))
    return plain, places


def _replaced(
    plain: str, places: Sequence[int], pattern: re.Pattern[str], written: str | Callable[[re.Match[str]], str]
) -> tuple[str, Sequence[int]]:
    parts: list[str] = []
    moved: list[int] = []
    end = 0
    for match in pattern.finditer(plain):
        new = match.expand(written) if isinstance(written, str) else written(match)
        parts += plain[end : match.start()], new
        moved += [*places[end : match.start()], *[places[match.start()]] * len(new)]
        end = match.end()
    return ("".join([*parts, plain[end:]]), [*moved, *places[end:]]) if end else (plain, places)
