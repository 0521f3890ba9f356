"""Days that have a name: クリスマス, 大晦日, 敬老の日, 来年の母の日, Halloween, Easter."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import islice

from memory_mcp.dates import moving_days
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.relative import Pattern
from memory_mcp.dates.yearless import each_year

# What is said, and its first day in a year: month and day, or a rule; and how many days.
_Festival = tuple[str, tuple[int, int] | Callable[[int], date], int]
_NO_WEEKDAY = "(?![曜常々差没記課])"
# A tray is called the same.
_BON = (
    "お盆(?!休|明け|に[乗の載置盛並]|の上|を(?:持|運|拭|洗|割|買|置|出|下げ)|[でと](?:運|皿|湯|茶))"
    "|(?<![初おァ-ヺ一-龥])盆(?=過ぎ|前(?![に後])|の(?:墓|帰省|送り|迎え|入り|間|[0-9]))"
)
_JAPANESE: list[_Festival] = [
    ("元日|元旦", (1, 1), 1),
    ("お?正月(?!休|明け)(?:三が日)?|三が日", (1, 1), 3),
    # The eve of spring moves by a day.
    ("節分", (2, 2), 2),
    ("建国記念(?:の日|日)", (2, 11), 1),
    ("バレンタイン(?:デー|・デー)?(?![ァ-ヺー])", (2, 14), 1),
    ("天皇誕生日", (2, 23), 1),
    ("ひな祭り|雛祭り?|桃の節句", (3, 3), 1),
    ("ホワイトデー", (3, 14), 1),
    ("エイプリルフール", (4, 1), 1),
    ("昭和の日", (4, 29), 1),
    ("憲法記念日", (5, 3), 1),
    ("みどりの日", (5, 4), 1),
    (f"(?:こども|子ども|子供)の日{_NO_WEEKDAY}|端午の節句", (5, 5), 1),
    ("七夕", (7, 7), 1),
    (_BON, (8, 13), 4),
    ("ハロウィー?ン(?![ァ-ヺー])", (10, 31), 1),
    (f"文化の日{_NO_WEEKDAY}", (11, 3), 1),
    ("七五三", (11, 15), 1),
    ("勤労感謝の日", (11, 23), 1),
    ("クリスマス・?[イエ][ブヴ](?![ァ-ヺー])", (12, 24), 1),
    ("クリスマス(?:・?デー)?(?![ァ-ヺー・])", (12, 25), 1),
    ("大晦日|大みそか", (12, 31), 1),
    ("冬至", (12, 21), 2),
    ("夏至", (6, 21), 1),
    (f"成人の日{_NO_WEEKDAY}", moving_days.coming_of_age_day, 1),
    ("春分(?:の日)?(?![曜常々点])", moving_days.spring_equinox, 1),
    (f"海の日{_NO_WEEKDAY}", moving_days.marine_day, 1),
    (f"山の日{_NO_WEEKDAY}", moving_days.mountain_day, 1),
    ("敬老の日", moving_days.respect_for_the_aged_day, 1),
    ("秋分(?:の日)?(?![曜常々点])", moving_days.autumn_equinox, 1),
    ("(?:スポーツ|体育)の日(?![曜常々])", moving_days.sports_day, 1),
    (f"母の日{_NO_WEEKDAY}", moving_days.mothers_day, 1),
    (f"父の日{_NO_WEEKDAY}", moving_days.fathers_day, 1),
    ("イースター(?!島|エッグ)", moving_days.easter, 1),
    ("ブラックフライデー", lambda year: moving_days.thanksgiving(year) + timedelta(days=1), 1),
]
_ENGLISH: list[_Festival] = [
    ("new year['’]?s day", (1, 1), 1),
    ("(?:st\\.? )?valentine['’]?s day", (2, 14), 1),
    ("april fools?['’]?s? day", (4, 1), 1),
    ("independence day|the fourth of july", (7, 4), 1),
    ("halloween(?![a-z])", (10, 31), 1),
    ("christmas eve(?![a-z])", (12, 24), 1),
    ("christmas(?! eve)(?: day)?(?![a-z])", (12, 25), 1),
    ("boxing day", (12, 26), 1),
    ("new year['’]?s eve", (12, 31), 1),
    ("mother['’]?s['’]? day(?![a-z])", moving_days.mothers_day, 1),
    ("father['’]?s['’]? day(?![a-z])", moving_days.fathers_day, 1),
    ("good friday", lambda year: moving_days.easter(year) - timedelta(days=2), 1),
    ("easter monday", lambda year: moving_days.easter(year) + timedelta(days=1), 1),
    ("easter(?: sunday)?(?! (?:island|egg|bunny|monday)|[a-z])", moving_days.easter, 1),
    ("thanksgiving(?! (?:break|vacation|holiday|week))(?: day)?(?![a-z])", moving_days.thanksgiving, 1),
    ("black friday", lambda year: moving_days.thanksgiving(year) + timedelta(days=1), 1),
    ("labou?r day", lambda year: moving_days.nth_weekday(year, 9, 0, 1), 1),
    ("memorial day", lambda year: moving_days.nth_weekday(year, 5, 0, -1), 1),
]
_YEARS_ON = {"来年": 1, "再来年": 2, "next": 1}
# A year that is past is told by what narrows the day: it may be said of several.
_YEAR_TO_COME = r"(?:(?<!\d)(?P<year>20\d{2})年|(?P<named>再?来年))の?"
_YEAR_BEHIND = r"(?:,?\s+(?:(?:of |in )?(?P<year>(?:19|20)\d{2})(?![\d年])|(?P<named>next) year))?"


def _names(festivals: Sequence[_Festival]) -> str:
    return "(?:" + "|".join(f"(?P<f{place}>{words})" for place, (words, _, _) in enumerate(festivals)) + ")"


def _meaning(festivals: Sequence[_Festival]) -> Callable[[re.Match[str], date], Iterator[Days]]:
    """What a pattern of these found, in its year, else in each of the last years; after `last` the latest that is over, after `next` the first
    that is to come."""

    def meant(found: re.Match[str], today: date) -> Iterator[Days]:
        _, begins, length = next(one for place, one in enumerate(festivals) if found[f"f{place}"])

        def in_year(year: int) -> Days:
            first = begins(year) if callable(begins) else date(year, *begins)
            return first, first + timedelta(days=length)

        said = found.groupdict()
        if said.get("year") or said.get("named"):
            year = int(said["year"]) if said["year"] else today.year + _YEARS_ON[said["named"]]
            return iter([in_year(year)] if year > today.year or "which" in said else [])
        if said.get("which") == "next":
            coming = (in_year(year) for year in (today.year, today.year + 1))
            return islice((span for span in coming if span[0] > today), 1)
        years = each_year(today, in_year)
        return islice((span for span in years if span[1] <= today), 1) if said.get("which") else years

    return meant


FESTIVALS: list[Pattern] = [
    (re.compile(_YEAR_TO_COME + _names(_JAPANESE)), _meaning(_JAPANESE)),
    (re.compile(_names(_JAPANESE)), _meaning(_JAPANESE)),
    (re.compile(rf"(?<![a-z])(?:(?P<which>last|next) )?(?=[nsaihcbmfgetlv]){_names(_ENGLISH)}{_YEAR_BEHIND}"), _meaning(_ENGLISH)),
]
