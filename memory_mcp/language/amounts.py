"""The amount that a question asks for: 「家賃は月6万8千円」 has that of 家賃はいくら？, "Leo, who is 7" that of "How old is Leo?". Texts are normalized."""

import re
from functools import cache

_NUMERALS = r"\d一二三四五六七八九十百千万"
_COUNTERS = "歳才人名本枚杯個回匹台冊軒件年月日分泊度点位着足階割倍つ"
_SAME_COUNTERS = ("歳才", "人名")
_MONEY = re.compile(
    rf"[{_NUMERALS}](?:円|[百千万](?![{_COUNTERS}])|ドル|ユーロ)|[$€£¥]\s?\d|\d\s?(?:usd|eur|yen|dollars?|bucks|euros?|pounds?|k)\b|無料|ただで|タダ|\bfree\b"
)
_CLOCK_TIME = re.compile(rf"[{_NUMERALS}]時(?!間)|\d:\d\d|\d\s?[ap]\.?m\b|\bo'clock\b|\b(?:noon|midnight)\b|正午")
_NUMBER = re.compile(
    rf"\d|[{_NUMERALS}][{_COUNTERS}円]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|half|dozen|"
    r"once|twice|no|none)\b"
)
_ASKED_ALONE = r"(?:は|って)?(?:[?？]|$|いく|どれ|どの|なん|何|教え|わか)"
_ASKED = (
    (re.compile(r"(?:何|なん)[時じ](?!間|か(?!ら))|\bwhat time\b"), _CLOCK_TIME),
    (
        re.compile(
            rf"いくら(?!でも)|(?:何|なん)円|(?:値段|料金|費用|代金|家賃|時給|月給|年収|給料){_ASKED_ALONE}|\bwhat\b[^?]*\b(?:price|cost|rent|salary|fee|earn)\b|"
            r"\bhow much\b[^?]*\b(?:cost|pay|paid|spend|spent|charge|charged|earn|rent|price)\b"
        ),
        _MONEY,
    ),
    (re.compile(r"いくつ|\bhow (?:much|many|old|tall|heavy)\b"), _NUMBER),
)
_ASKED_COUNT = re.compile(rf"(?:何|なん)([{_COUNTERS}])(?!か(?!ら))")


def asked_amount(question: str) -> re.Pattern[str] | None:
    """What is found in a text that has an amount of the kind that a question asks for; None if it asks for none."""
    if counted := _ASKED_COUNT.search(question):
        return _of_counter(counted[1])
    return next((amount for asks, amount in _ASKED if asks.search(question)), None)


@cache
def _of_counter(counter: str) -> re.Pattern[str]:
    same = next((counters for counters in _SAME_COUNTERS if counter in counters), counter)
    return re.compile(rf"[{_NUMERALS}数半](?:[{same}])")
