"""Numbers in dates: patterns and values of counts, Japanese eras, and dates rewritten in digits (九月三日, 令和七年, 25年10月)."""

import re
import unicodedata

# Japanese eras and the year before their first.
ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}
_KANJI_DIGITS = "〇一二三四五六七八九"
_ENGLISH_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
).split()
# Years counted from this one: a positive number is in the past.
YEARS_BACK = {
    "さきおととし": 3,
    "一昨々年": 3,
    "一昨昨年": 3,
    "再来年": -2,
    "一昨年": 2,
    "おととし": 2,
    "去年": 1,
    "昨年": 1,
    "今年": 0,
    "本年": 0,
    "来年": -1,
}
MONTHS_BACK = {"先々月": 2, "先先月": 2, "先月": 1, "今月": 0, "再来月": -2, "来月": -1}
# May match what is no number, such as 十十, of which `number_of` raises ValueError; `KANJI_NUMBER` does not.
NUMBER = r"(\d{1,3}|[一二三四五六七八九十]{1,3})"
KANJI_NUMBER = "[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九]{1,3}"
COUNT = rf"(\d{{1,3}}|an?|{'|'.join(sorted(_ENGLISH_NUMBERS[1:], key=len, reverse=True))})"

_ERA_LETTERS = {"r": "令和", "h": "平成"}
_ERA_YEAR = re.compile(
    rf"({'|'.join(ERAS)})(\d{{1,2}}|元|[一二三四五六]?十?[一二三四五六七八九]?)年|(?<![a-z])([{''.join(_ERA_LETTERS)}])(\d{{1,2}})(?=[./年])"
)
YEAR_IN_KANJI = "[一二][〇一二三四五六七八九]{3}"
_YEAR_IN_KANJI = re.compile(f"{YEAR_IN_KANJI}(?=年)")
# 三月前 is three months ago; 数十日 and 百三十日 are so many days, 三日月 is the moon. Neither 五月雨 nor 一月半 contains a month of the year.
_DAY_OR_MONTH = re.compile(
    "(?<![〇一二三四五六七八九十百千数])"
    "(?:(?:[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])(?=日(?!月(?!曜)))|(?:十[一二]?|[一二三四五六七八九])(?=月(?!前(?!半)|[間号雨蝿蠅目]|半(?!ば))))"
)
_SHORT_YEAR = re.compile(r"(?<![\d年])['’]?(\d\d)年(?=の?(?:\d{1,2}月|[春夏秋冬]))")
# 3日ほど前 is 3日前ほど, 何日か前 is 数日前.
_NOT_EXACTLY = re.compile("(?<=[日週間月年半数])(ほど|くらい|ぐらい|程度?|ばかり|近く)前")
_SOME = re.compile("何(?=(?:日|週間?|[ヶケかカ箇]月|年)か前)(日|週間?|[ヶケかカ箇]月|年)か前")
_BEFORE = re.compile("(?<=[日間月年半分])((?:ほど|くらい|ぐらい)?)まえ")
_AFTER_NEXT = re.compile("(?<![いきしじびみりなかたらき])さ来(?=[週月年])")
_SHORT_UNITS = re.compile(r"(?<=[\da] )(wk|yr|mo|hr)(?=s? (?:ago|back))")
_LONG_UNITS = {"wk": "week", "yr": "year", "mo": "month", "hr": "hour"}
_FROM_NOW = re.compile("(?:今日?|本日|現在)から(?=[^から]{1,8}前)")


def named_group(pattern: str, name: str) -> str:
    """A pattern such as `NUMBER` or `COUNT` with a name for its group."""
    return pattern.replace("(", f"(?P<{name}>", 1)


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


def western_year(era: str, year: str) -> int:
    """The western year of 令和 and 7, 七 or 元."""
    return ERAS[era] + (1 if year == "元" else number_of(year))


def normalize(text: str) -> str:
    """The text in NFKC, without upper case, and with the years and days of dates in digits. Years of two digits run from 1961 to 2060."""
    plain = unicodedata.normalize("NFKC", text).casefold().strip().removeprefix("西暦")
    if "さ来" in plain:
        plain = _AFTER_NEXT.sub("再来", plain)
    plain = _ERA_YEAR.sub(_with_western_year, plain)
    plain = _YEAR_IN_KANJI.sub(lambda match: str(number_of(match[0])), plain)
    plain = _DAY_OR_MONTH.sub(lambda match: str(number_of(match[0])), plain)
    plain = _SHORT_YEAR.sub(lambda match: f"{('20' if int(match[1]) <= 60 else '19')}{match[1]}年", plain)
    if " ago" in plain or " back" in plain:
        plain = _SHORT_UNITS.sub(lambda match: _LONG_UNITS[match[0]], plain)
    if "まえ" in plain:
        plain = _BEFORE.sub(r"\1前", plain)
    if "前" not in plain:
        return plain
    plain = _SOME.sub(r"数\1前", _NOT_EXACTLY.sub(r"前\1", plain))
    return _FROM_NOW.sub("", plain)


def _with_western_year(match: re.Match[str]) -> str:
    era, year = match[1] or _ERA_LETTERS[match[3]], match[2] or match[4]
    if not year:
        return match[0]
    return f"{western_year(era, year)}" + ("年" if match[1] else "")
