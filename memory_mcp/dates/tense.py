"""Whether a sentence is about a day to come or one that is past: 10月17日に会う, 10月17日に会った, due on 10月17日; and which a question asks for.

The first verb behind the day decides, in English the last one before it; then words for plans. The rules know a few endings and words: a
sentence without them shows neither.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from memory_mcp.characters import KANJI, is_japanese
from memory_mcp.dates.spans import WEEKDAY_NAMES
from memory_mcp.patterns import bounded

Direction = Literal["next", "last"]

PLANNED = (
    "予定|締切|締め切り|締切り|〆切|しめきり|納期|期限|期日|までに|本番|予約|約束|発売|開催|公開|リリース|開幕|開業|オープン|納品|提出|実施|入籍|まで有効|まであと"
    "|空いて|支払い?日?[はが：:]"
)
EVENTS = (
    "式|会議|打ち?合わせ|ミーティング|面談|面接|試験|テスト|検査|検診|健診|手術|診察|ライブ|コンサート|公演|旅行|出張|引っ?越し|飲み会|飲み(?=$|[、。がはも]|です|だ)"
    "|同窓会|誕生日?会|送別会|歓迎会|忘年会|新年会|発表会?|デート|試合|大会|運動会|文化祭|パーティー?|歯医者|病院|集合|出発|帰国|締め|退院|入院|会食|ランチ会?|セミナー|研修"
    "|イベント|祭り?|取材|撮影|収録|マラソン|健康診断|遠足|合宿|帰省|参観|法事|葬儀|通夜|花見|オフ会|食事会|女子会|懇親会|説明会|保護者会|勉強会|予防接種|美容[院室]|面会"
    "|内見|納車|商談|プレゼン|オーディション|キャンプ|バーベキュー"
)
_SENTENCE_END = bounded(r"[。！？!?\n]|(?<!\d)\.(?=\s|$)")
# How far around a day a sentence is read.
_REACH = 60
_SPEECH = bounded(
    r"(?:だ|です)?(?:と|って)(?:の?こと|いう(?:話|連絡)|聞|き[いか]|言|い[わっ]|教え|伝え|知|連絡|メモ|約束|思[いうっ]|決ま|決め|誘)"
)
# What follows a verb in its plain form: the end, a noun, or a conjunction.
_GOES_ON = rf"(?=\s*(?:$|[{KANJI}ァ-ヶ、，,.)）」』…ー~〜！!？?]|こと|の[はをがに]|ので|から|けど|が|し|よ|ね|か|ため|そう|らしい|みたい|はず|つもり|とき|んだ|って|わ|ぞ))"
_TO_COME = (
    rf"(?:[行書聞着働歩続開届動弾引描泣置招磨咲]く|[{KANJI}かもらま]う|[{KANJI}ご]す|[立待持勝打育]つ|[{KANJI}]む|[{KANJI}]ぶ|[泳急継注]ぐ"
    rf"|[がもは]ある|(?:[{KANJI}]|[うくけげさざすせちねびべまみめらりれえきぎしじなやわかがった]|(?<![てで])い|(?<=[捨育立建当])て)る){_GOES_ON}"
    r"|(?<!てい)(?<!でい)(?<!てお)(?<!で)(?<!ござい)ます|(?<!てい)(?<!でい)ません(?!でし)|[おこそとのぼもろごよ]う(?=$|[よねか、]|と)"
    r"|[てで](?:ください|下さい|ほしい|欲しい)|ましょう|[きしちにみりいびぎじえけせてねべめれげ]たい(?=$|[なねよ、]|と|です|ので|けど)"
    r"|[らかさまばわがえけせてれべめいきしみりぜ]ない(?=$|[よねな、]|と|です|ので|から|予定)|なきゃ|なければ|なくては|べき|だろう|でしょう|つもり"
)
_WAS = (
    rf"(?:[っいしきえけせてめれべねげぎみりちびじ]|[{KANJI}])た(?![いちくぶりめだほ]|ら(?!しい)|方が|が[りるっ])"
    rf"|[{KANJI}しらこ]んだ(?!ろ)|[{KANJI}なそ]いだ(?!ろ)|でした|だった(?!ら)"
)
_FIRST_VERB = bounded(rf"(?P<was>{_WAS})|(?P<comes>{_TO_COME})")
# What was done for a day to come: 予約した, 面接が入った, 10月17日に決まった.
_ARRANGED = bounded(
    r"(?:予約|約束|予定|申し?込み?|エントリー|チケット|切符|航空券|席|宿|ホテル|部屋|有給|休暇)[^、]{0,8}?(?:した|しま|し、|取[っれ]|とっ|とれ|買っ|入[れっ]|立て|でき|押さえ|決|当た)"
    rf"|申し込[んみ]|応募し|当選し|(?:{EVENTS}|仕事|用事|シフト|アポ)(?:[がも][^、がをに]{{0,5}}?(?:入っ(?!てい)|入り|決|組まれ)|[をに]命)"
)
_BESIDE_DAY = rf"(?:\s?[(（][^)）]*[)）]|の?[{WEEKDAY_NAMES}]曜日?)?(?:の?\s?(?:午前|午後|朝|昼|夕方|夜))?(?:の?\s?\d{{1,2}}(?:時半?|:\d\d)(?:\d{{1,2}}分)?)?"
_FIXED = bounded(rf"{_BESIDE_DAY}(?:から)?[にへ](?:決[まめ定]|な(?:っ(?!て)|り)|変更|確定|延期|延[びば]|ずら|移し|取り直|して?もら)")
_OBJECT = bounded("を[^はが、]*$")
# Something was to be, and was not or may not have been; and what was done about an event, which does not say when that is.
_UNCLEAR = bounded(
    r"(?:予定|つもり|はず)(?:だった|でした|で(?=[、し]))|(?:だった|でした)(?:が|けど|のを?に?|もの)|^のこと|中止|延期に?$|キャンセル|誘われ|招待|案内"
)
_ABOUT_IT = bounded(r"^の(?!\s?[朝昼夕夜晩午])[^はがも、]*を")
_CONTRAST = bounded(r"(?:のに|けど|けれど|(?<=[たいだるう])が)[、\s]*(?P<rest>[^。]*)$")
_PLANS = bounded(rf"{PLANNED}|次の?|次回|今度|もうすぐ|楽しみ")
_HAPPENS_ON = bounded(rf"(?:{EVENTS})(?:は|が|の日は|日は|も|[、\s:])[、\s]*$")
_PLAIN = bounded(rf"^{_BESIDE_DAY}(?:に|から|で|まで)?(?:です|だ)?(?:よ|ね|から|ので)?\s*(?:$|、)")
_IS_THE_DAY = bounded(rf"^{_BESIDE_DAY}(?:(?:は|が|に|から|も|、|\s)[^、]{{0,20}}?)?(?:{EVENTS})日?(?:です|だ)?(?:よ|ね|から|ので)?\s*$")
_SINCE = bounded(r"^(?:以来|から[^、]*[てで]い?(?:る|ます|ない))")
_LATELY = bounded("先日|この前|前回|最後に|初めて|昨日")

_ENGLISH = bounded(
    r"\b(?:(?P<was>(?:was|were) (?:due|going to|supposed to|scheduled|planned)|(?:should|could|would) have|had (?:planned|scheduled"
    r"|booked|an?)|used to)"
    r"|(?P<plan>(?:(?:was|were|got|been) )?(?:confirmed(?! on\s*$)|arranged|booked|reserved|invited)|(?:got|bought"
    r"|won)(?: \w+){0,3}? tickets?(?= (?:for|to)\b)"
    r"|due|deadline|will|won't|would|'ll|shall|going to|gonna|plans?|planned|planning|scheduled?|appointment|upcoming|reservation"
    r"|postponed|rescheduled"
    r"|(?:moved|pushed|shifted|switched|changed|put|set|settled)(?: (?!to\b)[\w']+){0,5}? (?:to|until|for)(?=(?: (?:the"
    r"|[a-z]+day),?)?\s*$)|(?:settled|agreed) on(?=\s*$)"
    r"|ha(?:ve|s) to|needs? to|must|should|supposed to|want to|hope to|let's|remind|remember to|don't forget|(?:is|are|it's)(?: on| at"
    r"| set for)?(?: [a-z]+day,?)?(?=\s*$)"
    r"|(?:is|are|am|'m|'re) \w+ing(?: \w+ed\b)?|see you|(?:can|could|shall) we|are you free|renews?|ha(?:s|ve) (?:an? )?(?:surgery|exam"
    r"|appointment|meeting|game|flight|interview|date)"
    r"|(?:starts?|begins?|ends|opens|closes|expires|leaves|arrives|departs)\b)"
    r"|(?P<past>was|were|did|didn't|went|met|had|saw|came|ate|got|took|bought|made|told|said|left|gave|began|became|felt|won|lost|wrote"
    r"|ran|flew|drove|spoke"
    r"|heard|broke|fell|found|paid|sent|spent|sold|taught|thought|built|kept|slept|died"
    r"|(?!(?:need|needed|indeed|speed|feed|exceed|hundred|naked|red|bed|wed|shed|united|limited)\b)[a-z]{2,}ed))\b",
    re.IGNORECASE,
)
_BY = bounded(r"\b(?:by|until|till|before)\s*$", re.IGNORECASE)
# A sentence without a verb: dentist on Friday.
_EVENT_ON = bounded(
    r"\b(?:dentist|doctor|vet|surgery|exams?|test|interview|meeting|call|concert|gig|wedding|funeral|party|flight|trip|dinner|lunch"
    r"|brunch|haircut"
    r"|check-?up|match|game|recital|conference|presentation|demo|delivery|viewing)(?: (?:with|at|in|for|to) [a-z' ]{1,30}?)?(?: on|,"
    r"|:)?(?: the)?\s*$",
    re.IGNORECASE,
)
_SINCE_IN_ENGLISH = bounded(r"\bsince\s*$", re.IGNORECASE)
_ENGLISH_CLAUSE = bounded(r"[,;:]|\b(?:but|who|so|because)\b", re.IGNORECASE)
_KANA, _WORD = bounded("[\u3041-\u30ff]"), bounded("[A-Za-z]{2}")
# What is so whenever such a day comes, in a question, and what asks for plans there.
_HABIT = bounded(
    r"毎|隔週|いつも|普段|ふだん|よく|たいてい|習慣|日課|定例|定休|休館|休診|[何な]曜|ゴミ|ごみ|在宅|塾|学校|教室|レッスン|部活|ジム|ヨガ|バイト|教会|週報|苦手|生まれ|たび|になると"
    r"|ことにして|昔|当時|時代|の(?:頃|ころ)は?|\b(?:every|each|always|usually|often|closed|trash|garbage|class|lessons?|work|ago|favou?rite|born)\b"
)
_PLAN_ASKED = bounded(
    rf"予定|スケジュール|用事|空いて|あいて(?=[るいま])|空き|暇|ひま(?=$|だ|か|で)|(?:何|なに|なん)(?:か|かは|が|も|の予定が)?(?:ある|あります|あった|ありました)|{PLANNED}"
    r"|\b(?:what(?:'s| is| do (?:i|we) have| have (?:i|we) got)(?: (?:on|happening|planned|up|scheduled|due|the plan|going on"
    r"|coming up))*(?: for| on)?(?: the)?\s*$"
    r"|anything(?: (?:on|planned|scheduled|happening|going on|due))*(?: for| on)?(?: the)?\s*$|(?:(?:am|are) (?:i|we|you) (?:free|busy"
    r"|available)"
    r"|agenda|calendar|schedule[sd]?|plans?|planned|appointments?|due)\b)"
)
_RECALLED = bounded(r"っけ|(?:予定|約束|締め?切り?|用事).*(?:だった|でした)")


def direction(before: str, after: str) -> Direction | None:
    """Whether a sentence, given its text before and after a day, means the next such day or the last one; None where it shows neither."""
    if _WORD.search(before + after) and not _KANA.search(before + after):
        return _english(before, after)
    told = _SPEECH.split(after, maxsplit=1)[0]
    if _FIXED.match(told) and not _OBJECT.search(before):
        return "next"
    if _SINCE.match(told):
        return "last"
    verb, arranged = _FIRST_VERB.search(told), _ARRANGED.search(told)
    contrast = _CONTRAST.search(after)
    if verb is None:
        return _without_a_verb(before, told)
    if verb["was"]:
        return (
            "next" if arranged and arranged.start() <= verb.start() else None if _UNCLEAR.search(told) or _ABOUT_IT.match(told) else "last"
        )
    return None if _UNCLEAR.search(told) or (contrast and re.search(_WAS, contrast["rest"])) else "next"


def is_habit(sentence: str) -> bool:
    """Whether a sentence says what is so whenever such a day comes."""
    return _HABIT.search(sentence) is not None


def first_tense(text: str) -> Direction | None:
    """The tense of the first verb that has one."""
    verb = _FIRST_VERB.search(text)
    return None if verb is None else "last" if verb["was"] else "next"


def direction_of_relation(type_: str, other_end: str) -> Direction | None:
    """The same for a day at one end of a relation, which has no sentence: deadlines and plans mean the next one."""
    words = type_.replace("_", " ")
    if re.search(rf"{PLANNED}|due|deadline|schedule|plan|appointment|reserv|expire|until", words, re.IGNORECASE) or _PLANS.search(
        other_end
    ):
        return "next"
    verb = _ENGLISH.search(words)
    return ("next" if verb["plan"] else "last") if verb else first_tense(words)


def direction_of_text(text: str, positions: Iterable[tuple[int, int]]) -> Direction | None:
    """Whether the sentences around the days at `positions`, else the others of the text, are about the future or the past; None where they
    show neither, or both."""
    named = list(positions)
    directions = {direction(*sentence_around(text, start, end)) for start, end in named} - {None}
    if not directions:
        words = {text[start:end] for start, end in named}
        others = [sentence.strip() for sentence in _SENTENCE_END.split(text) if not any(map(sentence.__contains__, words))]
        directions = {
            direction("", sentence) or direction(sentence, "") for sentence in others if sentence and not _HABIT.search(sentence)
        } - {None}
    return directions.pop() if len(directions) == 1 else None


def asked_directions(before: str, after: str) -> Iterator[Direction]:
    """Which days a question means with a day of the week or month alone: the last one, the coming one, or, as 「金曜って何かあったっけ」, either."""
    whole = f"{before}\0{after}"
    if _HABIT.search(whole):
        return
    japanese = is_japanese(whole)
    is_planned = _PLAN_ASKED.search(whole.replace("\0", " " if not japanese else "\0")) is not None
    told = first_tense(after) if japanese else direction(before, after)
    if told == "last" and (japanese or not is_planned):
        yield "last"
        if is_planned and _RECALLED.search(after):
            yield "next"
    elif is_planned or (told == "next" and not japanese):
        yield "next"


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What the sentence of `text[start:end]` has before and after it."""
    return _SENTENCE_END.split(text[max(start - _REACH, 0) : start])[-1], _SENTENCE_END.split(text[end : end + _REACH])[0]


def _without_a_verb(before: str, after: str) -> Direction | None:
    if _LATELY.search(before):
        return "last"
    here = before.rstrip("、 ").rpartition("、")[2] + " " + after.lstrip("、 ").partition("、")[0]
    if _UNCLEAR.search(after):
        return None
    happens = (_HAPPENS_ON.search(before) and _PLAIN.match(after)) or _IS_THE_DAY.match(after)
    return "next" if happens or _PLANS.search(here) else None


def _english(before: str, after: str) -> Direction | None:
    """The tense of the last verb before the day in its clause, else of the first behind it, else of those of the whole sentence."""
    if _SINCE_IN_ENGLISH.search(before):
        return "last"
    near = _ENGLISH_CLAUSE.split(before)[-1], _ENGLISH_CLAUSE.split(after)[0]
    for left, right in (near, (before, after)):
        if verb := next(iter([*reversed(list(_ENGLISH.finditer(left))), *_ENGLISH.finditer(right)]), None):
            return "next" if verb["plan"] else None if _BY.search(left) else "last"
    return "next" if _BY.search(before) or _EVENT_ON.search(before) else None
