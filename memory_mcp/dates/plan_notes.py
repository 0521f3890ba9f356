"""Notes of plans that have no verb: 火曜に車検, 土曜13時 ネイル, 金曜の夜は同期と焼肉, "Friday 7pm - drinks with Ken".

Only their form tells. 水曜はカレー has the form of what is so every week, and is none.
"""

from memory_mcp.characters import HIRAGANA, KANJI, KATAKANA
from memory_mcp.dates.changed_plans import BESIDE_DAY
from memory_mcp.patterns import bounded

_CLOCK = r"\d{1,2}(?:時半?|:\d\d)(?:\d{1,2}分)?"
# A noun at the end: a kanji, katakana, a letter, or the end of what is done, as in いちご狩り and 打ち合わせ, which no adjective has.
_NOUN_ENDS = rf"(?:[{KANJI}{KATAKANA}a-z]|[{KANJI}][{HIRAGANA}]?[りみきちびせけえれし])"
_NOUN = rf"[^はがをも、。]*{_NOUN_ENDS}"
# What stands behind the noun: when and for whom.
_DETAILS = rf"(?>、\s?+(?:(?:午前|午後)?{_CLOCK}(?:から|まで|に|[〜~-])?|[^はがをも、]*{_NOUN_ENDS})(?=[、\s]|\Z))*(?:\s{_CLOCK}(?:から|[〜~-])?)?\s*"
_TITLE = bounded(r"\W*(?:[^、はがをも]{1,16}[、:]\s*|(?:今週|来週|再来週)[はの]?、?)?")
_TIMED = rf"{BESIDE_DAY}(?:(?:から|[〜~-])(?:{_CLOCK})?(?:まで)?)?"
_AT = bounded(rf"{BESIDE_DAY}に{_NOUN}へ?{_DETAILS}")
_BESIDE = bounded(rf"{_TIMED}(?:[、:]\s?|\s){_NOUN}へ?{_DETAILS}")
# は alone tells no plan; one to go does, and when, with whom or where.
_GOES = rf"{BESIDE_DAY}は{_NOUN}へ"
_WHEN_AND_WITH = rf"(?=の?(?:[昼夕夜晩]|午後|\s?\d)){BESIDE_DAY}は[^はがをも、]+[とで]{_NOUN}"
_TOPIC = bounded(rf"(?:{_GOES}|{_WHEN_AND_WITH}){_DETAILS}")
_SINCE = bounded(rf"から{_NOUN}(?<!中)\s*")
_TOPIC_OF_MONTH = bounded(rf"は{_NOUN}\s*")
_PAYMENT = bounded(r"\W*(?:[^はがを、]{1,12}の)?(?:支払い?|引き?落と?し|振り?込み?|支給|給料日)は")
_PLAIN = bounded(rf"{_TIMED}(?:です|だ)?(?:よ|ね)?\s*")
# What is so, and not done: weather, health, shifts, what shops do.
_STATE = bounded(
    "雨|雪|晴|曇|台風|天気|[気室]温|憂鬱|暇|無理|最[悪高]|多忙|元気|不[調良在]|痛|熱|風邪|留守|寝坊|休|祝日|平日|半額|割|特売|セール|限定|専用|好き|嫌い|[早遅当]番|[夜日]勤|残業|デー$|中止|延期|キャンセル|変更|終わ|夢中|[なだ]し$|件$|の話$"
)

_ENGLISH_CLOCK = r"(?:noon|\d{1,2}(?::\d\d)?\s?[ap]m|\d{1,2}:\d\d)"
_ENGLISH_NOUNS = r"(?!(?:i|we|you|he|she|they|it|no|not)\b)[a-z][\w' -]{2,40}"
_LABEL = bounded(rf",?(?: at)? {_ENGLISH_CLOCK}(?::\s?|,\s|\s?[–—-]\s){_ENGLISH_NOUNS}\s*")
_LABELED = bounded(rf"\W*{_ENGLISH_NOUNS}(?:,|:|\s[–—-])\s(?:on )?(?:the )?")
_TIME = bounded(rf",?(?: at)? {_ENGLISH_CLOCK}\s*")
# What stands before the day, and behind it.
_FORMS = [(_TITLE, _AT), (_TITLE, _TOPIC), (_TITLE, _LABEL), (_LABELED, _TIME), (_PAYMENT, _PLAIN)]


def notes_plan(before: str, after: str) -> bool:
    """Whether a sentence without a tense, given its text before and after a day, is a note of what is planned for it."""
    if _STATE.search(before + after):
        return False
    if any(behind.fullmatch(after) and front.fullmatch(before) for front, behind in _FORMS):
        return True
    # 月曜 国語、火曜 算数 is a timetable.
    return bool(_TITLE.fullmatch(before) and _BESIDE.fullmatch(after) and "曜" not in before + after)


def notes_day_of_month(after: str) -> bool:
    """Whether a sentence without a tense that begins with a day of the month says what is then, or begins: 22日は母と外食, 21日から一人暮らし.

    What comes each month is on the coming one as well.
    """
    return not _STATE.search(after) and bool(_SINCE.fullmatch(after) or _TOPIC_OF_MONTH.fullmatch(after))
