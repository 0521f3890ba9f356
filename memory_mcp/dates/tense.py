"""Whether a sentence is about a day to come or a day in the past: 10月17日に会う, 10月17日に会った, due on 10月17日.

The first verb behind the day decides, as in 10月17日に行った店にまた行く予定, in English the last one before it; then words for plans.
The rules know a few words: a sentence without them shows neither.
"""

import re
from collections.abc import Iterable
from typing import Literal

from memory_mcp.characters import KANJI
from memory_mcp.dates import change_words as words
from memory_mcp.dates.changed_plans import BESIDE_DAY, is_called_off
from memory_mcp.patterns import bounded

Direction = Literal["next", "last"]

_SENTENCE_END = bounded(r"[。！？!?\n]|(?<!\d)\.(?=\s|$)")
# How far around a day a sentence is read.
_REACH = 60
_HABIT = bounded(r"毎|いつも|よく|普段|ふだん|(?<![a-z])(?:every|always|usually|often|each)(?![a-z])")

PLANNED = "予定|締切|締め切り|締切り|〆切|しめきり|納期|期限|期日|までに|本番|予約|約束|発売|開催|公開|リリース|開幕|開業|オープン|納品|提出|実施|入籍|まで有効|まであと|空いて|支払い?日?[はが：:]"
EVENTS = (
    "式|会議|打ち?合わせ|ミーティング|面談|面接|試験|テスト|検査|検診|健診|手術|診察|ライブ|コンサート|公演|旅行|出張|引っ?越し|飲み会|飲み(?=$|[、。がはも]|です|だ)|同窓会|誕生日?会|送別会|歓迎会"
    "|忘年会|新年会|発表会?|デート|試合|大会|運動会|文化祭|パーティー?|歯医者|病院|集合|出発|帰国|締め|退院|入院|会食|ランチ会?|セミナー|研修|イベント|祭り?|取材|撮影|収録|マラソン|健康診断"
    "|遠足|合宿|帰省|参観|法事|葬儀|通夜|花見|オフ会|食事会|女子会|懇親会|説明会|保護者会|勉強会|予防接種|美容[院室]|面会|内見|納車|商談|プレゼン|オーディション|キャンプ|バーベキュー"
)
_SPEECH = bounded(
    r"(?:だ|です)?(?:と|って)(?:の?こと|いう(?:話|連絡|こと)|聞|き[いか]|言|い[わっ]|教え|伝え|知|連絡|メモ|書|返事|話し|約束|思[いうっ]|決ま|決め|考え|頼|誘)"
)
# What follows a verb in its plain form: the end, a noun, or a conjunction.
_GOES_ON = rf"(?=\s*(?:$|[{KANJI}ァ-ヶ、，,.)）」』…ー~〜！!？?]|こと|の[はをでがに]|ので|から|けど|が|し|よ|ね|な[ぁあ]?$|か|ため|そう|らしい|みたい|はず|つもり|とき|まえ|んだ|んで|って|わ|ぞ))"
_TO_COME = bounded(
    rf"(?:[行書聞着働歩続開届動弾引描泣置招磨咲]く|[{KANJI}かもらま]う|[{KANJI}ご]す|[立待持勝打育]つ|[{KANJI}]む|[{KANJI}]ぶ|[泳急継注]ぐ|死ぬ"
    rf"|[がもは]ある|(?:[{KANJI}]|[うくけげさざすせちねびべまみめらりれえきぎしじなやわかがった]|(?<![てで])い|(?<=[捨育立建当])て)る){_GOES_ON}"
    r"|(?<!てい)(?<!でい)(?<!てお)(?<!でお)(?<!で)(?<!ござい)ます|(?<!てい)(?<!でい)ません(?!でし)|[おこそとのぼもろごよ]う(?=$|[よねか、]|と)|(?:て|で)(?:ください|下さい|ほしい|欲しい|ね?$)|ましょう"
    r"|[きしちにみりいびぎじえけせてねべめれげ]たい(?=$|[なねよ、]|と|です|ので|けど)|[らかさまばわがえけせてれべめいきしみりぜ]ない(?=$|[よねな、]|と|です|ので|から|予定)"
    r"|なきゃ|なければ|なくては|なくちゃ|べき|だろう|でしょう|つもり"
)
_WAS = bounded(
    rf"(?:[っいしきえけせてめれべねげぎみりちびじ]|[{KANJI}])た(?![いちくぶりめだほ]|ら(?!しい)|方が|が[りるっ])|[{KANJI}しらこ]んだ(?!ろ)|[{KANJI}なそ]いだ(?!ろ)|でした|てる?た"
)
# An action in the past that prepares an event to come.
_PLAN_MADE = bounded(
    r"(?:予約|約束|予定|申し?込み?|エントリー|チケット|切符|航空券|席|宿|ホテル|部屋|便)[^、]{0,8}?(?:した|しました|取[っれ]|とっ|とれ|買っ|入[れっ]|立て|でき|押さえ|決ま|決め)"
    r"|申し込[んみ]|応募し|エントリーし|登録し|リスケ|ずら[しれさ]|繰り[上下]げ"
)
_ENGAGEMENTS = rf"(?:{EVENTS}|仕事|用事|シフト|バイト|アポ|残業|転勤|異動)"
# Such an event has been arranged: 取材が入った, but not 泥棒が入った, 手術が決まった, but not 優勝が決まった.
_ARRANGED = bounded(
    rf"{_ENGAGEMENTS}(?:の(?:日程|日時|日|話|依頼))?(?:[がも][^、がをに]{{0,5}}?に?(?:入(?:っ(?!て(?:い|る|た))|り)|決ま(?:っ(?!て(?:い|る|た))|り)|決定し|確定し|組まれ)|[をに]命[じぜ])"
    rf"|(?:{EVENTS}|チケット|席)[がに]?(?:当選|当た[っり])|(?:休み|有給|休暇)が?(?:取れ|とれ|もらえ)"
)
_STANDS = bounded(rf"{_ENGAGEMENTS}[がも](?:入って|決まって)い?(?:る|ます)")
_AT_IT = bounded("^の[^、で]*で")
_AT = rf"^{BESIDE_DAY}(?:から)?(?:に|へ|と)"
_FIXED = bounded(rf"{_AT}(?:決ま|決め|決定|なっ|なり|し(?:た|ま)|設定|変更|変わ|延び|伸び|移[っしさ]|確定|組ま|セット)")
# What is fixed for a day is to come, whatever it is, unless the verb describes a noun: 引き渡しは10月17日になった, but not 10月17日に変更した設定.
_FIXED_FOR = bounded(
    rf"{_AT}(?:(?P<done_on>し(?=た|まし|て)|変更)|決ま|決め|決定|な(?=っ|りまし)|確定|{words.POSTPONED}|延[長びば]|伸び|ずら|ずれ|早[まめ]|取り直|組み直|繰り[上下]げ)"
    r"(?:[ぁ-ん]{0,12}?た(?=\s*(?:$|[、，,)）」』…!？~〜ー]|ので|から|けど|が|し|よ|ね|な[ぁあ]?$|そう|らしい|みたい|ため|と|って|ん[だで]|です$))|(?=\s*(?:$|[、，,)）」』…!？~〜ー]|だ|です|と|らしい)))"
)
_OBJECT = bounded("を[^はが、]*$")
# An event to come is announced, where the day is its own and not that of the message: 12月20日の同窓会の案内が来た.
_ANNOUNCED = bounded(
    "(?:案内|招待[状券]?|お?誘い)[^、]{0,4}(?:[来届頂]|もら|いただ|受け)[^てで、]{0,4}た|(?:招待[さし]|招か|誘わ)[^て、]{0,3}た"
)
_MAYBE_AHEAD = bounded("案内|招待|招か|誘い|誘わ|呼ば|頼ま")
_CALLED_OFF = bounded("延期|中止|変更|キャンセル|なくな|流れ")
_WAS_UNTIL_MOVED = bounded(r"^(?:まで)?(?:だった|でした)(?:が|けど|けれど|のが|のを|のに|もの)(?:.*(?:延|伸び|変|ずれ|なっ|早ま)|[、\s]*$)")
_WAS_INTENDED = bounded("(?:予定|つもり|はず)(?:だった|でした)")
_OF_IT = bounded(rf"^の|^(?:[がに]|\s)?(?:{PLANNED})(?:の|を|、)")
_IT_WAS = bounded(r"(?:は|も|で|では|が)[^、]*$")
_BESIDE = bounded(BESIDE_DAY)
_TAKEN_PART = bounded("に(?:勝|負|出た|行[っき]|参加)")
_SINCE = bounded(r"^(?:以来|から[^、]*(?:(?:て|で)(?:い(?:る|ます|ない|ません)|る|ます|ない)|[がも]な(?:い|かった)|[がも]ありません))")
# A plan that changed: it is unclear whether it was on that day.
_CONTRAST = bounded(r"(?:のに|けど|けれど|(?<=[たいだる])が)[、\s]*(?P<rest>[^。]*)$")
_SEEN = bounded(r"のを[^、]{0,6}(?:見た|見て|見まし|聞いた|聞こえ|手伝っ|忘れ|待っ)")
_RECORD = bounded("^(?:の[^、]*)?(?:議事録|感想|写真|日記|振り返り|反省)")
_LATELY = bounded("先日|この前|このまえ|こないだ|この間|前回|先週|先月|昨日|きのう|さっき|以前|過ぎ")
_NEXT_TIME = bounded("次|次回|今度|来週|来月|もうすぐ|まもなく|楽しみ|待ち遠し")
_IT_HAPPENED = bounded(rf"(?:{_WAS.pattern})(?:の|日|とき|時)(?:は|が)\s*$")
_WILL_HAPPEN = bounded(rf"(?:{_TO_COME.pattern})(?:の|日|とき|時)(?:は|が)\s*$")
_HAPPENS_ON = bounded(rf"(?:{EVENTS})(?:は|が|の日は|の日程は|日程は|日は|も|[、\s:])[、\s]*$")
_PLAIN = bounded(rf"^{BESIDE_DAY}(?:に|から|で|まで)?(?:です|だ|である)?(?:よ|ね|よね|から|ので|そう(?:だ|です)?|らしい|、.*)?\s*$")
_IS_THE_DAY = bounded(
    rf"^{BESIDE_DAY}(?:(?:は|が|に|から|も|、|\s)[^、]{{0,20}}?)?(?:{EVENTS})日?(?:です|だ|である)?(?:よ|ね|よね|から|ので)?\s*$"
)
_PLANS = bounded(PLANNED)

_NOT_PAST = "need|needed|indeed|speed|feed|exceed|hundred|naked|red|bed|wed|shed|united|limited"
_ENGLISH = bounded(
    r"\b(?:(?P<was>(?:was|were) (?:due|going to|supposed to|scheduled|planned|planning)|(?:should|could|would|might) have|had (?:planned|scheduled|booked)|(?:had|missed)(?: an?| my| the)?(?: \w+)? (?:appointment|deadline|reservation)|used to)"
    r"|(?P<plan>(?:(?:was|were|got|been) )?(?:confirmed(?! on\s*$)|arranged|booked|reserved|invited)|(?:got|bought|won)(?: \w+){0,3}? tickets?(?= (?:for|to)\b)|due|deadline|will|won't|would|'ll|shall|going to|gonna|plans?|planned|planning|scheduled?|appointment|upcoming|reservation"
    r"|postponed|rescheduled|(?:moved|pushed|shifted|switched|bumped|delayed|changed|put|set)(?: (?!to\b)[\w']+){0,5}? (?:to|until|for|from)(?=(?: (?:the|[a-z]+day),?)?\s*$)|(?:settled|agreed) on(?=\s*$)|have to|has to|need to|needs to|must|should|supposed to|want to|hope to|let's|remind|remember to|don't forget|todo"
    r"|(?:is|are|it's)(?: on| at| set for)?(?: [a-z]+day,?)?(?=\s*$)|(?:is|are|am|'m|'re) \w+ing(?: \w+ed\b)?|see you|(?:can|could|shall) we|are you free|renews?|ha(?:s|ve) (?:an? )?(?:surgery|exam|appointment|meeting|game|flight|interview|date)|(?:starts?|begins?|ends|opens|closes|expires|leaves|arrives|departs)\b|(?:comes?|arrive|returns?)(?: (?:back|home|over|by|here))?(?=(?: on)?(?: the)?\s*$))"
    rf"|(?P<past>was|were|did|didn't|went|met|had|saw|came|ate|got|took|bought|made|told|said|left|gave|began|became|felt|won|lost|wrote|ran|flew|drove|spoke|heard"
    rf"|broke|fell|found|paid|sent|spent|sold|taught|thought|built|kept|slept|died|(?!(?:{_NOT_PAST})\b)[a-z]{{2,}}ed))\b",
    re.IGNORECASE,
)
_BY = bounded(r"\b(?:by|until|till|before)\s*$", re.IGNORECASE)
_SINCE_IN_ENGLISH = bounded(r"\bsince\s*$", re.IGNORECASE)
_ENGLISH_CLAUSE = bounded(r"[,;:]|\bbut\b|\bwho\b|\bso\b|\bbecause\b", re.IGNORECASE)
# A sentence without a verb that names what is on that day, or what is to be done: dentist on Friday, call mom on Sunday.
_EVENT_ON = bounded(
    r"^\W*(?:(?:an?|the|my|our|his|her|their|[a-z]+'s) )?(?:(?!(?:no|every|each|i|we|he|she|you|they)\b)[a-z]+(?:-[a-z]+)? ){0,2}?(?:dentist|doctor|vet|surgery|exams?|test|interview|meeting|call|concert|gig|wedding|funeral|party|flight|trip|dinner|lunch|brunch"
    r"|haircut|check-?up|match|game|recital|conference|presentation|demo|delivery|inspection|viewing)(?: (?:with|at|in|for|to) [a-z' ]{1,30}?)?(?: on|,|:)?(?: the)?\s*$"
    r"|^\W*(?:please )?(?:call|buy|send|submit|pay|return|pick up|bring|finish|email|mail|order|book|renew)(?: [a-z'][a-z']*){1,6}?(?: on|,|:)?(?: the)?\s*$",
    re.IGNORECASE,
)
_BUT = bounded(r"\b(?:but|however)\b", re.IGNORECASE)
_KANA = bounded("[\u3041-\u30ff]")
_RELATION_PLANNED = bounded(rf"{PLANNED}|due|deadline|schedule|plan|appointment|reserv|expire|until", re.IGNORECASE)


def direction(before: str, after: str) -> Direction | None:
    """Whether a sentence, given its text before and after a day, means the next such day or the last one; None where it shows neither."""
    return None if is_called_off(before, after) else _english(before, after) or _japanese(before, after)


def direction_of_relation(type_: str, other_end: str) -> Direction | None:
    """The same for a day at one end of a relation, which has no sentence: deadlines and plans mean the next one."""
    words = type_.replace("_", " ")
    if _RELATION_PLANNED.search(words) or _PLANS.search(other_end):
        return "next"
    verb = _ENGLISH.search(words)
    return ("next" if verb["plan"] else "last") if verb else first_tense(words)


def direction_of_text(text: str, positions: Iterable[tuple[int, int]]) -> Direction | None:
    """Whether the sentences around the days at `positions`, else the others of the text, are about the future or the past; None where they show
    neither, or both."""
    named = list(positions)
    directions = {direction(*sentence_around(text, start, end)) for start, end in named} - {None}
    if not directions:
        # The day of what is announced stands beside it: 招待状をもらった。5月22日。
        words = {text[start:end] for start, end in named}
        others = (sentence for sentence in _SENTENCE_END.split(text) if not any(map(sentence.__contains__, words)))
        directions = {"next" if words and _ANNOUNCED.search(sentence) else _of_sentence(sentence.strip()) for sentence in others} - {None}
    return directions.pop() if len(directions) == 1 else None


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What the sentence of `text[start:end]` has before and after it."""
    return _SENTENCE_END.split(text[max(start - _REACH, 0) : start])[-1], _SENTENCE_END.split(text[end : end + _REACH])[0]


def _of_sentence(sentence: str) -> Direction | None:
    return None if not sentence or _HABIT.search(sentence) else direction("", sentence) or direction(sentence, "")


def _japanese(before: str, after: str) -> Direction | None:
    whole = after
    if spoken := _SPEECH.search(after):
        after = after[: spoken.start()]
    if _WAS_UNTIL_MOVED.match(after) or _WAS_INTENDED.search(after):
        return None
    if _is_fixed(before, after):
        return "next"
    if _SINCE.match(after):
        return "last"
    tense = first_tense(after)
    if tense == "next" and after.startswith("のこと"):
        return None
    if tense == "next" and _SEEN.search(after):
        return "last"
    if tense == "last":
        tense = _past_or_plan(after)
    tense = tense or _without_a_verb(before, after)
    contrast = _CONTRAST.search(whole) if tense == "next" else None
    return None if contrast and _WAS.search(contrast["rest"]) else tense


def _is_fixed(before: str, after: str) -> bool:
    if _FIXED.match(after) and re.search(f"{PLANNED}|{EVENTS}", before):
        return True
    fixed = _FIXED_FOR.match(after)
    # パスワードを10月17日に変更した says when it was done.
    return fixed is not None and not (fixed["done_on"] and _OBJECT.search(before))


def first_tense(after: str) -> Direction | None:
    """The tense of the first verb that has one."""
    was, comes = _WAS.search(after), _TO_COME.search(after)
    if was and (comes is None or was.start() <= comes.start()):
        return "last"
    return "next" if comes else None


def _past_or_plan(after: str) -> Direction | None:
    """Of a verb in the past: something happened on that day, something was planned for it, or it is unclear."""
    made, was = _PLAN_MADE.search(after), _WAS.search(after)
    if made and was and was.start() >= made.start() and not _CALLED_OFF.search(after):
        return "next"
    arranged = _ARRANGED.search(after)
    if arranged and was and was.start() >= arranged.start() and not _AT_IT.match(after):
        return None if _CALLED_OFF.search(after) else "next"
    if after.startswith("の") and _ANNOUNCED.search(after) and not _AT_IT.match(after):
        return "next" if len(_WAS.findall(after)) == 1 else None
    if _MAYBE_AHEAD.search(after):
        return None
    if _OF_IT.match(_BESIDE.sub("", after, count=1)) and not _TAKEN_PART.search(after):
        return "last" if _IT_WAS.search(after) and not _CALLED_OFF.search(after) else None
    return "last"


def _without_a_verb(before: str, after: str) -> Direction | None:
    if _RECORD.match(after) or _IT_HAPPENED.search(before):
        return "last"
    if _LATELY.search(before):
        return "last"
    here = before.rstrip("、 ").rpartition("、")[2] + " " + after.lstrip("、 ").partition("、")[0]
    if _PLANS.search(here) or _NEXT_TIME.search(here) or _WILL_HAPPEN.search(before) or _STANDS.search(after):
        return "next"
    happens = (_HAPPENS_ON.search(before) and _PLAIN.match(after)) or _IS_THE_DAY.match(after)
    return "next" if happens else None


def _english(before: str, after: str) -> Direction | None:
    """The tense of the last verb before the day in its clause, else of the first behind it, else of those of the whole sentence."""
    if not re.search("[a-z]{2}", before + after, re.IGNORECASE) or _KANA.search(before + after):
        return None
    if _SINCE_IN_ENGLISH.search(before):
        return "last"
    near = _ENGLISH_CLAUSE.split(before)[-1], _ENGLISH_CLAUSE.split(after)[0]
    for left, right in (near, (before, after)):
        verbs = [*reversed(list(_ENGLISH.finditer(left))), *_ENGLISH.finditer(right)]
        if verbs:
            if verbs[0]["plan"] is None:
                return None if _BY.search(left) else "last"
            contrast = _BUT.split(before + " " + after, maxsplit=1)[1:]
            return None if contrast and any(verb["past"] for verb in _ENGLISH.finditer(contrast[0])) else "next"
    return "next" if _BY.search(before) or _EVENT_ON.match(before) else None
