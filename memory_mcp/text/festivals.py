"""Days that have a name and fall on the same date each year: クリスマス, 大晦日, Halloween."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice

from memory_mcp.text.nested_days import Days
from memory_mcp.text.yearless import each_year

_FESTIVALS: dict[str, tuple[int, int, int]] = {  # what is said: month, day, how many days
    "元日|元旦|(?<![a-z])new year['’]?s day": (1, 1, 1),
    "お?正月(?!休)": (1, 1, 3),
    # The eve of spring moves by a day.
    "節分": (2, 2, 2),
    "建国記念(?:の日|日)": (2, 11, 1),
    "バレンタイン(?:デー|・デー)?(?![ァ-ヺー])|(?<![a-z])(?:st\\.? )?valentine['’]?s day": (2, 14, 1),
    "天皇誕生日": (2, 23, 1),
    "ひな祭り|雛祭り?|桃の節句": (3, 3, 1),
    "ホワイトデー": (3, 14, 1),
    "エイプリルフール|(?<![a-z])april fools?['’]?s? day": (4, 1, 1),
    "昭和の日": (4, 29, 1),
    "憲法記念日": (5, 3, 1),
    "みどりの日": (5, 4, 1),
    "(?:こども|子ども|子供)の日(?![曜常々])|端午の節句": (5, 5, 1),
    "七夕": (7, 7, 1),
    "山の日(?![曜常々])": (8, 11, 1),
    "お盆(?!休|に[乗の載])": (8, 13, 4),
    "ハロウィー?ン(?![ァ-ヺー])|(?<![a-z])halloween(?![a-z])": (10, 31, 1),
    "文化の日(?![曜常々])": (11, 3, 1),
    "七五三": (11, 15, 1),
    "勤労感謝の日": (11, 23, 1),
    "クリスマス・?[イエ][ブヴ](?![ァ-ヺー])|(?<![a-z])christmas eve(?![a-z])": (12, 24, 1),
    "クリスマス(?:・?デー)?(?![ァ-ヺー・])|(?<![a-z])christmas(?! eve)(?: day)?(?![a-z])": (12, 25, 1),
    "大晦日|大みそか|(?<![a-z])new year['’]?s eve": (12, 31, 1),
}
FESTIVAL = re.compile(
    "(?:(?<![a-z])(?P<last>last) )?(?:" + "|".join(f"(?P<f{place}>{words})" for place, words in enumerate(_FESTIVALS)) + ")"
    r"(?:,?\s+(?P<year>(?:19|20)\d{2})(?![\d年]))?"
)


def festival(found: re.Match[str], today: date) -> Iterator[Days]:
    """What `FESTIVAL` found, in its year, else in each of the last years; after `last` the latest that is over."""
    month, day, length = next(dated for place, dated in enumerate(_FESTIVALS.values()) if found[f"f{place}"])

    def in_year(year: int) -> Days:
        first = date(year, month, day)
        return first, first + timedelta(days=length)

    if found["year"]:
        return iter([in_year(int(found["year"]))])
    years = each_year(today, in_year)
    return islice((span for span in years if span[1] <= today), 1) if found["last"] else years
