"""The numbers of dates: what counts days and hours in a pattern, and dates with every number in digits (九月三日, 令和七年, 25年10月)."""

import re
import unicodedata

from memory_mcp.dates.spans import ENGLISH_NUMBERS, number_of, western_year

NUMBER = r"(\d{1,3}|[一二三四五六七八九十]{1,3})"
COUNT = rf"(\d{{1,3}}|an?|{'|'.join(sorted(ENGLISH_NUMBERS[1:], key=len, reverse=True))})"

_LETTERS = {"r": "令和", "h": "平成"}
_ERA_YEAR = re.compile(r"(令和|平成|昭和)(\d{1,2}|元|[一二三四五六]?十?[一二三四五六七八九]?)年|(?<![a-z])([rh])(\d{1,2})(?=[./年])")
_YEAR_IN_KANJI = re.compile("[一二][〇一二三四五六七八九]{3}(?=年)")
# 三月前 is three months ago; 数十日 and 百三十日 are so many days, 三日月 is the moon. Neither 五月雨 nor 一月半 is said of a month of the year.
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


def in_digits(text: str) -> str:
    """The text in its plain form (NFKC, no upper case), with the years and the days of dates in digits. Years of two digits run from 1961 to 2060."""
    plain = unicodedata.normalize("NFKC", text).casefold().strip().removeprefix("西暦")
    if "さ来" in plain:
        plain = _AFTER_NEXT.sub("再来", plain)
    plain = _ERA_YEAR.sub(_western, plain)
    plain = _YEAR_IN_KANJI.sub(lambda found: str(number_of(found[0])), plain)
    plain = _DAY_OR_MONTH.sub(lambda found: str(number_of(found[0])), plain)
    plain = _SHORT_YEAR.sub(lambda found: f"{('20' if int(found[1]) <= 60 else '19')}{found[1]}年", plain)
    if " ago" in plain or " back" in plain:
        plain = _SHORT_UNITS.sub(lambda found: _LONG_UNITS[found[0]], plain)
    if "まえ" in plain:
        plain = _BEFORE.sub(r"\1前", plain)
    if "前" not in plain:
        return plain
    plain = _SOME.sub(r"数\1前", _NOT_EXACTLY.sub(r"前\1", plain))
    return _FROM_NOW.sub("", plain)


def _western(found: re.Match[str]) -> str:
    era, year = found[1] or _LETTERS[found[3]], found[2] or found[4]
    if not year:
        return found[0]
    return f"{western_year(era, year)}" + ("年" if found[1] else "")
