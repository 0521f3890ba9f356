"""Whether a sentence is about a day to come or one that is past: 10月17日に会う, 10月17日に会った, due on 10月17日; and which a question asks for.

The first verb behind the day decides, in English the last one before it; then words for plans, which are in the lexicon. The rules know a
few endings and words: a sentence without them shows neither.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from memory_mcp.characters import KANJI, is_japanese
from memory_mcp.dates.spans import WEEKDAY_NAMES
from memory_mcp.lexicon import any_of, words
from memory_mcp.patterns import bounded

Direction = Literal["next", "last"]

PLANNED, EVENTS = any_of(words("ja", "planned")), any_of(words("ja", "events"))
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
_RECALLED = ("っけ", "予定", "約束", "締切", "締め切り", "用事")
_PLANS, _LATELY, _BY = words("ja", "planned", "coming"), words("ja", "lately"), ("by", "until", "till", "before")
_IN_ENGLISH = bounded("[^\u3041-\u30ff]*?[A-Za-z]{2}[^\u3041-\u30ff]*")
_FIRST_VERB = bounded(rf"(?P<was>{_WAS})|(?P<comes>{_TO_COME})")
# What was done for a day to come: 予約した, 面接が入った, 10月17日に決まった.
_ARRANGED = bounded(
    r"(?:予約|約束|予定|申し?込み?|エントリー|チケット|切符|航空券|席|宿|ホテル|部屋|有給|休暇)[^、]{0,8}?(?:した|しま|し、|取[っれ]|とっ|とれ|買っ|入[れっ]|立て|でき|押さえ|決|当た)"
    rf"|申し込[んみ]|応募し|当選し|(?:{EVENTS}|仕事|用事|シフト|アポ)(?:[がも][^、がをに]{{0,5}}?(?:入っ(?!てい)|入り|決|組まれ)|[をに]命)"
)
_BESIDE_DAY = rf"(?:\s?[(（][^)）]*[)）]|の?[{WEEKDAY_NAMES}]曜日?)?(?:の?\s?(?:午前|午後|朝|昼|夕方|夜))?(?:の?\s?\d{{1,2}}(?:時半?|:\d\d)(?:\d{{1,2}}分)?)?"
_FIXED = bounded(rf"{_BESIDE_DAY}(?:から)?[にへ](?:決[まめ定]|な(?:っ(?!て)|り)|変更|確定|延期|延[びば]|ずら|移し|取り直|して?もら)")
# Something was to be, and was not or may not have been; and what was done about an event, which does not say when that is.
_UNCLEAR = bounded(
    r"(?:予定|つもり|はず)(?:だった|でした|で(?=[、し]))|(?:だった|でした)(?:が|けど|のを?に?|もの)|^のこと|中止|延期に?$|キャンセル|誘われ|招待|案内"
)
_ABOUT_IT = bounded(r"^の(?!\s?[朝昼夕夜晩午])[^はがも、]*を")
_HAPPENS_ON = bounded(rf"(?:{EVENTS})(?:は|が|の日は|日は|も|[、\s:])[、\s]*$")
_PLAIN_END = r"(?:です|だ)?(?:よ|ね|から|ので)?\s*"
_PLAIN = bounded(rf"^{_BESIDE_DAY}(?:に|から|で|まで)?{_PLAIN_END}(?:$|、)")
_IS_THE_DAY = bounded(rf"^{_BESIDE_DAY}(?:(?:は|が|に|から|も|、|\s)[^、]{{0,20}}?)?(?:{EVENTS})日?{_PLAIN_END}$")
_SINCE = bounded(r"^(?:以来|から[^、]*[てで]い?(?:る|ます|ない))")

_ENGLISH = bounded(
    r"\b(?:(?P<was>(?:was|were) (?:due|going to|supposed to|scheduled|planned)|(?:should|could|would) have|had (?:planned|scheduled|booked|an?)|used to)"
    r"|(?P<plan>(?:(?:was|were|got|been) )?(?:confirmed(?! on\s*$)|arranged|booked|reserved|invited)"
    r"|(?:got|bought|won)(?: \w+){0,3}? tickets?(?= (?:for|to)\b)"
    r"|(?:moved|pushed|shifted|switched|changed|put|set|settled)(?: (?!to\b)[\w']+){0,5}? (?:to|until|for)(?=(?: (?:the|[a-z]+day),?)?\s*$)"
    r"|(?:settled|agreed) on(?=\s*$)|(?:is|are|it's)(?: on| at| set for)?(?: [a-z]+day,?)?(?=\s*$)|(?:is|are|am|'m|'re) \w+ing(?: \w+ed\b)?"
    rf"|{any_of(words('en', 'planned', 'plan_phrases'))}"
    r"|ha(?:s|ve) (?:(?:an?|the|my|our) )?(?:surgery|exam|appointment|meeting|game|flight|interview|date)"
    r"|(?:starts?|begins?|ends|opens|closes|expires|leaves|arrives|departs)\b)"
    rf"|(?P<past>{any_of(words('en', 'past'))}|(?!(?:{any_of(words('en', 'not_past'))})\b)[a-z]{{2,}}ed))\b",
)
# A sentence without a verb: dentist on Friday, Friday dentist.
ENGLISH_EVENTS = any_of(words("en", "events"))
_EVENT_ON = bounded(
    rf"\b(?:{ENGLISH_EVENTS})(?: (?:with|at|in|for|to) [a-z' ]{{1,30}}?)?(?: on|,|:)?(?: the)?\s*\0|^\s*\0(?:,|:)?(?: at)?\s(?:\d[\d:]*(?: ?[ap]m)? )?(?:{ENGLISH_EVENTS})\b",
)
_ENGLISH_CLAUSE = bounded(r"[,;:]|\b(?:but|who|so|because)\b")
_HABIT = bounded(rf"{any_of(words('ja', 'habits'))}|\b(?:{any_of(words('en', 'habits'))})\b")
# What asks for plans in a question.
_ANYTHING_ON = r"(?: (?:on|happening|planned|up|scheduled|due|the plan|going on|coming up))*(?: for| on)?(?: the)?\s*$"
_PLAN_ASKED = bounded(
    rf"{any_of(words('ja', 'plans_asked'))}|ひま$|(?:何|なに|なん)(?:か|かは|が|も|の予定が)?(?:ある|あります|あった|ありました)|{PLANNED}"
    rf"|\b(?:what(?:'s| is| do (?:i|we) have| have (?:i|we) got){_ANYTHING_ON}|anything{_ANYTHING_ON}|(?:am|are) (?:i|we|you) (?:free|busy|available)"
    rf"|(?:{any_of(words('en', 'plans_asked'))})\b)"
)


def direction(before: str, after: str) -> Direction | None:
    """Whether a sentence, given its text before and after a day, means the next such day or the last one; None where it shows neither."""
    if _IN_ENGLISH.fullmatch(before + after):
        return _english(before.casefold(), after.casefold())
    told = _SPEECH.split(after, maxsplit=1)[0]
    if _FIXED.match(told) and not before.endswith("を"):
        return "next"
    if _SINCE.match(told):
        return "last"
    verb, arranged = _FIRST_VERB.search(told), _ARRANGED.search(told)
    if verb is None:
        return _without_a_verb(before, told)
    if verb["was"]:
        return (
            "next" if arranged and arranged.start() <= verb.start() else None if _UNCLEAR.search(told) or _ABOUT_IT.match(told) else "last"
        )
    return None if _UNCLEAR.search(told) else "next"


def is_habit(sentence: str) -> bool:
    """Whether a sentence says what is so whenever such a day comes."""
    return _HABIT.search(sentence) is not None


def direction_of_text(text: str, positions: Iterable[tuple[int, int]]) -> Direction | None:
    """Whether the sentences around the days at `positions`, else the others of the text, are about the future or the past; None where they
    show neither, or both."""
    named = list(positions)
    directions = {direction(*sentence_around(text, start, end)) for start, end in named} - {None}
    if not directions:
        days = {text[start:end] for start, end in named}
        others = [sentence.strip() for sentence in _SENTENCE_END.split(text) if not any(map(sentence.__contains__, days))]
        directions = {direction("", sentence) or direction(sentence, "") for sentence in others if sentence and not is_habit(sentence)} - {
            None
        }
    return directions.pop() if len(directions) == 1 else None


def asked_directions(before: str, after: str) -> Iterator[Direction]:
    """Which days a question means with a day of the week or month alone: the last one, the coming one, or, as 「金曜って何かあったっけ」, either."""
    whole = f"{before}\0{after}"
    if is_habit(whole):
        return
    japanese = is_japanese(whole)
    is_planned = _PLAN_ASKED.search(whole.replace("\0", " " if not japanese else "\0")) is not None
    verb = _FIRST_VERB.search(after) if japanese else None
    told = direction(before, after) if not japanese else None if verb is None else "last" if verb["was"] else "next"
    if told == "last" and (japanese or not is_planned):
        yield "last"
        if is_planned and any(word in after for word in _RECALLED):
            yield "next"
    elif is_planned or (told == "next" and not japanese):
        yield "next"


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What the sentence of `text[start:end]` has before and after it."""
    return _SENTENCE_END.split(text[max(start - _REACH, 0) : start])[-1], _SENTENCE_END.split(text[end : end + _REACH])[0]


def _without_a_verb(before: str, after: str) -> Direction | None:
    if any(word in before for word in _LATELY):
        return "last"
    if _UNCLEAR.search(after):
        return None
    here = before.rstrip("、 ").rpartition("、")[2] + " " + after.lstrip("、 ").partition("、")[0]
    happens = (_HAPPENS_ON.search(before) and _PLAIN.match(after)) or _IS_THE_DAY.match(after)
    return "next" if happens or any(word in here for word in _PLANS) else None


def _english(before: str, after: str) -> Direction | None:
    """The tense of the last verb before the day in its clause, else of the first behind it, else of those of the whole sentence."""
    preposition = before.rsplit(maxsplit=1)[-1] if before.split() else ""
    if preposition == "since":
        return "last"
    near = _ENGLISH_CLAUSE.split(before)[-1], _ENGLISH_CLAUSE.split(after)[0]
    for left, right in (near, (before, after)):
        if verb := next(iter([*reversed(list(_ENGLISH.finditer(left))), *_ENGLISH.finditer(right)]), None):
            return "next" if verb["plan"] else None if preposition in _BY and left else "last"
    return "next" if preposition in _BY or _EVENT_ON.search(f"{before}\0{after}") else None
