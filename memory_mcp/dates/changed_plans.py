"""Days that a plan no longer has: the one from which it was moved (11月10日から17日に変更した), the week that it skips (今週は休み、次は25日), and that of what is called off (11月16日のライブは中止になった).

The words by which plans move or are off are in `dates/change_words.py`; what may stand around them is here.
"""

from memory_mcp.dates import change_words as words
from memory_mcp.patterns import bounded

TIME_OF_DAY = r"(?:の?\s?(?:午前|午後|朝|昼|夕方|夜))?(?:の?\s?\d{1,2}(?:時半?|:\d\d)(?:\d{1,2}分)?)?"
# The day of the week and the time behind a day.
BESIDE_DAY = rf"(?:\s?[(（][^)）]*[)）]|の?[月火水木金土日]曜日?)?{TIME_OF_DAY}"
# What is planned; の behind another noun makes it a part of that: 11月12日の会議の資料.
_PLAN = "(?:の予定)?の(?:[^、はをがもでの]|(?<=[とへん])の){1,24}[はをがも、]"
_HAD_BEEN_PLANNED = "に(?:予定|計画)(?:して|されて)い?た[^、はをがも]{1,24}[はをがも、]|[^、。]{0,10}(?:だった|でした)(?:の[がをは]|が|けど|けれど|ところ|もの)"
_FROM = bounded(rf"{BESIDE_DAY}(?:(?:から|より)|(?P<plan>{_PLAN})|{_HAD_BEEN_PLANNED})、?[^、はをが]{{0,8}}")
_TO = bounded(rf"{BESIDE_DAY}(?:から)?(?:に|へ)(?:な[っりる]|して(?=もら|いただ)|(?P<done_on>し(?=た|まし))|{words.TO_DAY}|[、\s]*$)")
_SKIPPED = bounded(rf"{BESIDE_DAY}は?お?(?:休み|休講|なし|無し|中止|ない)[^、はがを]{{0,6}}、(?:次|今度)回?は")
_RATHER = bounded(rf"{BESIDE_DAY}(?:では|じゃ|で)なく")
_CALLED_OFF = rf"(?:{words.OFF}|なく{words.BECAME}|見送(?:[っり]|られ){words.DONE}|[日曜週月][にへ](?:{words.TO_DAY}))"
_IS_OFF = bounded(
    rf"{BESIDE_DAY}(?:(?:{_PLAN}|は[^、はをがも]{{1,12}}[はをが])|{_HAD_BEEN_PLANNED}、?|(?:に|の)?[^、。]{{0,10}}予定だったが、?)(?:(?!雨天|荒天|なら|たら|場合)[^、がをは]){{0,12}}?{_CALLED_OFF}"
)
_WHAT_WAS_OFF = bounded(rf"(?:{words.CALLED_OFF}|{words.POSTPONED})(?:になっ|にし|し|され)た[^、。はをが]{{0,8}}$")

_MOVED = rf"\b(?:{words.ENGLISH_MOVED}|{words.ENGLISH_PUT_OFF}|brought)\b"
_SAME_CLAUSE = r"(?:(?!\b(?:and|but|so|then|because|when|while|for)\b)[\w' ]){0,40}?"
_MOVED_BEFORE = bounded(rf"{_MOVED}{_SAME_CLAUSE}(?<!\bto )(?<!\buntil )$")
_TO_ANOTHER = bounded(rf"{_SAME_CLAUSE}\b(?:to|until|till)\s*(?:(?:the|[a-z]+day),? )?")
_MOVED_BEHIND = bounded(rf"{_SAME_CLAUSE}{_MOVED}{_SAME_CLAUSE}\b(?:to|until|till)\s*(?:(?:the|[a-z]+day),? )?")
_ORIGINALLY = bounded(rf"\b(?:originally|initially)\b{_SAME_CLAUSE}$")
_INSTEAD = bounded(r"\b(?:instead of|rather than|not)(?: on)?(?: the)?\s*$")
_ENGLISH_OFF = f"(?:{words.ENGLISH_OFF}|postponed|put off)"
_OFF_BEFORE = bounded(rf"\b{_ENGLISH_OFF}\b(?! on\s*$){_SAME_CLAUSE}(?<!\bto )(?<!\buntil )(?<!\btill )(?<!\bby )(?<!\bbefore )$")
_OFF_BEHIND = bounded(rf"{_SAME_CLAUSE}\b(?:was|were|is|are|been|got|gets)\s+{_ENGLISH_OFF}\b")


def was_moved(before: str, between: str, after: str) -> bool:
    """Whether a plan was moved from one day to the next one named: the text before the first, between the two, and behind the second."""
    source, target = _FROM.fullmatch(between), _TO.match(after)
    # 11月20日の準備は19日にした says when it was done.
    if source and target and not (source["plan"] and target["done_on"]):
        return True
    if _SKIPPED.fullmatch(between) or _MOVED_BEHIND.fullmatch(between) or _ORIGINALLY.search(before):
        return True
    return _MOVED_BEFORE.search(before) is not None and _TO_ANOTHER.fullmatch(between) is not None


def is_denied(before: str, after: str) -> bool:
    """Whether a sentence names a day to say that it is another one: 11月9日ではなく."""
    return _RATHER.match(after) is not None or _INSTEAD.search(before) is not None


def is_called_off(before: str, after: str) -> bool:
    """Whether a sentence, given its text before and after a day, says that what was planned for it does not take place then."""
    return any((_IS_OFF.match(after), _WHAT_WAS_OFF.search(before), _OFF_BEHIND.match(after), _OFF_BEFORE.search(before)))
