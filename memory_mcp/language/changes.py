"""What tells that something changed, in Japanese and English: 「会議は火曜になった」, "Sold the Civic". Texts are normalized (`tokens.normalise`) but for `tells_change`.

The words by which plans change as well are in `dates/change_words.py`; those of all else (引っ越した, 退職, sold) are here.
"""

import re

from memory_mcp.characters import HAN, KATAKANA, is_japanese
from memory_mcp.dates import change_words as words
from memory_mcp.language.amounts import asked_amount
from memory_mcp.language.tokens import normalise
from memory_mcp.patterns import bounded

LONGEST = 120

# What happened: became, changed, ended, moved, went up or down; nouns of such events; what was decided, and what is no longer so.
_EVENT = bounded(
    rf"(?:[亡な]くな[っり]|[にくと]な[っり]|ような[っり]|{words.MOVES}|[替代換]わ|[替換]え|やめ|辞め|別れ|増え|壊れ|捨て|[上下]げ(?<![しちりいみ][上下]げ)|越し|減ら|増や|手放|戻|壊し|治[っり]|直っ|減|上がっ|下がっ|"
    rf"売[っり]|譲[っりら]){words.BEHIND_STEM}(?:{words.HAPPENED}|ます)|死んだ|天国に"
    rf"|(?:変更|{words.CALLED_OFF}|{words.POSTPONED}|移行|移転|移籍|異動|転勤|転職|退職|就職|入社|転校|進学|卒業|退部|退会|解約|離婚|結婚|再婚|引退|転居|改名|完治|処分|交代|"
    r"廃止|撤回)(?=[しさに。、!届だ]|で(?!き)|$)"
    rf"|ことに(?:し|な)|を[^。]{{1,20}}にし{words.HAPPENED}|では?なく|じゃなく|もう[^。、]{{0,14}}(?:な[いく]|ません|いない)|"
    rf"\b(?:no longer|(?:(?:got|was|were|is|has been) )?(?:{words.ENGLISH_MOVED}|{words.ENGLISH_PUT_OFF}|{words.ENGLISH_OFF}|swapped|migrated|replaced|renamed|extended|"
    r"upgraded|downgraded|raised|lowered|promoted|transferred|divorced|married|engaged|retired|hired)|"
    r"became|turned|quit|stopped|dropped|left|gave (?:up|away|my|our|the|his|her)|sold|got rid of|went (?:up|down)|"
    r"(?:split|broke) up|joined|resigned|rewrote|passed away|died|recovered|healed)\b"
)
# Since when something is so: these days, from this month on.
_SINCE = bounded(
    r"(?:今|いま|これから|今後|最近|近頃|この頃|このごろ|今度)(?:で|から)?[は、]|[今先来](?:月|週|年|年度|学期)から|新し[いく]|"
    r"\b(?:now|any ?more|these days|nowadays|lately|from now on|instead|since|new|gone)\b"
)
_ASKS_BEFORE = bounded(
    r"以前|昔|(?:^|[、。\s])前[はに]|もともと|元々|元は|最初|当時|\b(?:used to|before|previously|formerly|originally|at first|back then)\b"
)
_ASKS_STILL = bounded(
    r"まだ|もう(?!すぐ|一|少)|今も|今どう|どうなっ|その後|結局|[見み]つかっ|\b(?:still|any ?more|yet|what happened (?:to|with)|in the end|(?:turn|end)(?:ed)? (?:out|up)|how did [^?]* go)\b"
)
# A question for a time or an amount, and what an answer to it has.
_ASKS_TIME = bounded(r"いつ|何[曜時日月]|何年(?!生)|締め?切り?|期限|\b(?:when|what (?:time|day|date)|due|deadline)\b")
_TIME = bounded(
    r"[月火水木金土日]曜|\d+[時日月]|[明昨]日|来[週月年]|\b(?:(?:mon|tues?|wednes|thurs?|fri|satur|sun)days?|\d{1,2}(?::\d\d| ?[ap]m)|noon|midnight|"
    r"tomorrow|next \w+|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d|at \w+)\b"
)
_TIME_BEFORE = bounded(rf"(?:{_TIME.pattern}|半|から|まで)[^。、]{{0,3}}$")
_END = bounded(r"[。！？!?;]|\.\s")
# What asks for a state, and words of the events that begin or end it: who moved lives elsewhere.
_STATES = tuple(
    (bounded(asked), bounded("|".join([*japanese.split(), *(rf"\b{word}\b" for word in english)])), (*japanese.split(), *english))
    for asked, japanese, english in (
        (r"住[んむみ]|暮ら|\b(?:live|lives|living)\b", "越し 転居 移住", ("moved", "relocated")),
        (
            r"働|勤|仕事|職場|会社|部署|職業|\b(?:works?|working|job|employer)\b",
            "辞め 退職 転職 入社 就職 異動 転勤",
            ("quit", "joined", "hired", "resigned", "retired", "transferred"),
        ),
        (r"付き合|彼女|彼氏|恋人|旦那|\b(?:dating|girlfriend|boyfriend)\b", "別れ 離婚", ("split up", "broke up", "divorced")),
        (r"乗[っるり]|\b(?:drive|drives|driving)\b", "買い替え 買い換え 乗り換え 手放", ("sold", "traded")),
        (
            r"使[っうい]|やって|\b(?:use|uses|using)\b",
            "買い替え 買い換え 乗り換え 切り替え 移行 に変え に替え にした やめ",
            ("switched", "migrated", "moved", "replaced"),
        ),
        (r"通[っういえ]|習[っうい]", "やめ 辞め 変え 替え", ()),
        (r"飼[っうい]", "亡くな 死ん 天国 手放 譲", ()),
    )
)
# Compiled once: the set of all kanji takes a millisecond.
_OF_WORD = bounded(rf"[{HAN}{KATAKANA}\d]")
# What ends a thing that is named just before, and just after it.
_ENDED_AFTER = bounded(
    r"から[^。、]{1,20}[にへ][^。、]{0,6}(?:[変替換]|移|なった|した)|では?なく|じゃなく|の代わり|[^\W。、]{0,4}[、をはもとが]{0,2}[^\W。、]{0,6}?"
    r"(?:やめ|辞め|手放|売[っり]|捨て|別れ|卒業|解約|退会|退職|離婚|壊[れし]|亡くな|死ん|引退|治っ|完治|いなくな|なくな|処分|譲|異動|転校|転職)|"
    r"(?:'s)?(?: [\w']+){0,3} (?:split up|broke|broken|died|passed away|retired|resigned|left|quit|gone|no longer|any ?more)\b"
)
_ENDED_BEFORE = bounded(
    rf"\b(?:no|from|sold|quit|left|stopped|dropped|gave (?:up|away)|got rid of|replaced|instead of|no longer|no more|{words.ENGLISH_OFF}|broke up with|"
    r"divorced)(?: [\w']+){0,3} $"
)


def tells_change(content: str) -> bool:
    """Whether a text, as it was written, tells that something changed, or since when it is so. A long one tells of other things, too."""
    if len(content) > LONGEST:
        return False
    text = normalise(content)
    return (_EVENT.search(text) or _SINCE.search(text)) is not None


def asks_before(question: str) -> bool:
    """Whether a question asks how something was."""
    return _ASKS_BEFORE.search(question) is not None


def about_change(text: str) -> str:
    """The part of a text that says what changed: what stands before the event in its sentence. Where it only tells since when it is so, in Japanese
    the rest of the text, in English what is new."""
    event = _EVENT.search(text)
    told = _END.split(text[: event.start()])[-1] if event else text
    if event or is_japanese(text):
        return _SINCE.sub(" ", told)
    return " ".join(re.findall(r"\bnew (\w+)", text))


def asks_still(question: str) -> bool:
    """Whether a question asks if something is still so, or what became of it."""
    return _ASKS_STILL.search(question) is not None


def asks_time(question: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_TIME.search(question) is not None


def has_asked_value(question: str, text: str) -> bool | None:
    """Whether a text has a time or an amount, if the question asks for one; None if it asks for something else."""
    asked = [value for value in (_TIME if asks_time(question) else None, asked_amount(question)) if value]
    return any(value.search(text) for value in asked) if asked else None


def changes_time(text: str) -> bool:
    """Whether what a text tells a change of is a time: 「火曜になった」."""
    return any(_TIME_BEFORE.search(text[: event.start()]) for event in _EVENT.finditer(text))


def ends(text: str, thing: str) -> bool:
    """Whether a text tells that something is no longer: 「プリウスを手放した」. English words are stems."""
    if is_japanese(thing):  # not at the end of a longer word, as 月 in 十月
        places = [place.span() for place in re.finditer(re.escape(thing), text)]
        named = [(start, end) for start, end in places if not start or not _OF_WORD.match(text, start - 1)]
    else:
        named = [place.span() for place in re.finditer(rf"\b{re.escape(thing)}[a-z]*", text)]
    return any(_ENDED_AFTER.match(text, end) or _ENDED_BEFORE.search(text[:start]) for start, end in named)


def states_changed(question: str, text: str) -> list[str]:
    """The words of a question for a state that the text tells a change of."""
    return [asked[0] for state, event, _ in _STATES if (asked := state.search(question)) and event.search(text)]


def events_of_states(question: str) -> list[str]:
    """Words of what may have changed the states that a question asks for."""
    return [word for state, _, words in _STATES if state.search(question) for word in words]


def changes_another_state(question: str, text: str) -> bool:
    """Whether a text tells the change of a state, and the question asks for another one only."""
    told = {state for state, event, _ in _STATES if event.search(text)}
    asked = {state for state, _, _ in _STATES if state.search(question)}
    return bool(told and asked and told.isdisjoint(asked))
