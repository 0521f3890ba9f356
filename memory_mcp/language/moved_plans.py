"""What tells that a plan moved or is off, in Japanese and English: 「歯医者は火曜に変更になった」, "Emi can't make it".

Texts are sentences, normalized (`tokens.normalise`), with `DAY` for each day that they name. The words are in `dates/change_words.py`;
here is what only plans have (行けなくなった, 休講, "can't make it"), and what a sentence says it of.
"""

import re
from typing import NamedTuple

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA, is_japanese
from memory_mcp.dates import change_words as words
from memory_mcp.dates.changed_plans import TIME_OF_DAY
from memory_mcp.language.tokens import is_function_word, tokens
from memory_mcp.patterns import bounded

DAY = "\ue000"
_DAY_AND_TIME = bounded(rf"{DAY}{TIME_OF_DAY}(?:(?: at)? \d{{1,2}}(?::\d\d)? ?[ap]m)?")

_TO = "(?:に|へ|まで)"
_CANNOT = rf"(?:なく{words.BECAME}|ない|ません)"
# Each of these begins with a character or a set of some, which is fast.
_EVENT = bounded(
    rf"{DAY}{_TO}(?:{words.MOVED_TO})|{words.OFF}|変更(?=[でにしさ、][^。{DAY}]{{0,8}}{DAY})"
    rf"|お?休[み講診校園](?=に?{words.BECAME}|だって|らしい|です|{words.ENDS})|[無な]く(?<=[{HAN}{KATAKANA}はがもり][無な]く){words.BECAME}"
    rf"|[行い]け{_CANNOT}|[来観見出帰乗泊][まら]?れ{_CANNOT}|[会遊][えべ]{_CANNOT}|参加でき{_CANNOT}|出席でき{_CANNOT}"
    rf"|やめ(?<=[はをも]やめ)(?:{words.DONE}|る(?:こと)?に|に(?:し|な))"
)
_NOT_TOLD = bounded(
    r"[^。]{0,10}?(?:かも|なら(?!な?かった?から)|[たっ]たら|れば|場合|可能性|かどうか|しよう|したい|おそれ|恐れ|かな|撤回|取り消|だったら|予報|心配|どうする|じゃな|ではな)|.*[?？]$"
)
_IF = bounded(rf"(?:なら|たら|れば|[るい]と|場合(?:は)?|次第では?|(?:(?<!\d)時|際|雨の日)に?は)、?(?:{DAY}{_TO})?$")
_REVIVED = bounded(
    rf"や(?:っぱり?|はり)(?![^。]*(?:{words.CALLED_OFF}|{words.POSTPONED}|やめ|なくな|行けな))|復活|再開|撤回|(?:[行来]|でき|開催)[^。]{{0,3}}る(?:こと|よう)になった|元の[^。]{{0,4}}に戻"
    r"|\b(?:after all|back on|is on again|can make it)\b"
)
_EVERY = bounded(rf"毎[日週月年朝晩{DAY}]|毎|隔週|\b(?:every|each|weekly)\b")

_OPENING = bounded(
    r"^(?:(?:でも|だけど|けど|やっぱり?|やはり|結局|急に|急遽|そういえば|あと|ちなみに|実は|なんか|さっき|残念(?:ながら|だけど)?|ごめん|悲報|え[ー、]|あ[ー、]|それと|例の)、?)+"
)
_REASON = bounded(
    rf"^.*(?:て(?=[{HAN}{KATAKANA}])|ので|ず(?=、?$)|ため(?:に)?|せいで|によ(?:り|って)|で(?!き|ん|す)|から(?!あげ))(?=[^、]*$)"
)
_BACKGROUND = bounded(r"(?:[てし]|けど|んだが|のに|から|ので|たが)$")
_TOPIC_END = bounded(r"(?<=.)(?:には|は)")
_BEFORE_EVENT = bounded(r"^.*(?:[てし]|ず)$")
_CALLING = bounded(r"([^、。]*?)(?:さん)?から[^、]{0,6}?(?:電話|連絡|メール|line)")
# What may change about a plan that takes place.
_ASPECT = bounded(
    r"場所|会場|部屋|会議室|時間|時刻|集合|開始|開演|開場|終了|メニュー|席|値段|会費|料金|費用|幹事|持ち物|担当|服装|人数|行き先|内容|方法|司会|講師|先生|講演者|出演者|曲|議題|店|"
    r"\b(?:venue|place|location|room|time|menu|seats?|price|fee|topic|agenda|speaker|start)\b"
)
_GENERIC = frozenset(f"{words.CALLED_OFF}|{words.POSTPONED}".split("|")) | frozenset(
    "予定 予約 約束 件 話 私 僕 俺 自分 結局 急 急遽 突然 今回 次回 次 今度 今朝 先程 連絡 日程 日 日付 分 方 参加 出席 全部 残念 本当 例 今日 一旦 正式 都合 発表 実 当日 本番 "
    "変更 雨天 先方 相手 無事 多分 普通 皆 楽 時 回 日取 前 後".split()
)
_GENERIC_END = bounded(r"(?<=.)(?:予約|予定|約束|当日|本番|参加|日程)$")
_CHUNK = bounded(
    rf"[{HAN}]+(?:(?!しい)[いきしちひみりぎじびえけせねめれっ]{{1,2}}[{HAN}]+)*(?P<stem>[{HIRAGANA}])?|[{KATAKANA}]{{2,}}|[a-z0-9][a-z0-9&.]*"
)
_PARTICLES = "はがをにでともへのやか"
# Behind a noun of the plan: it is only a part of what is planned, 遠足の買い物.
_PART_OF = bounded(
    rf"の(?!予定|予約|約束|日|件|試合|大会|練習|レッスン|授業|教室|会|公演|体験|診察|検査|点検|{DAY})[^\W、。]|(?:用|前)の|[をにで]?(?:買|準備)|までに|のため"
)
# A noun of kanji is whole where no other kanji follows, but for these. Compiled once: the set of all kanji takes a millisecond.
_OF_KANJI = bounded(f"[{HAN}]+")
_BEHIND_KANJI = bounded(rf"(?=予約|予定|約束|当日|開催|参加)|(?![{HAN}])")

_CANT_COME = bounded(r"(?:can't|cannot|can not|couldn't|won't be able to) (?:make (?:it|the|our|my)|come|go|attend|join)")
_ENGLISH_EVENT = bounded(
    rf"\b(?:{words.ENGLISH_OFF}|fell through|not happening|backed out|bailed(?: on)?|(?:is|was) off|(?:ha[ds]|have|decided) to (?:cancel|call off|reschedule|postpone)"
    rf"|{_CANT_COME.pattern}|{words.ENGLISH_PUT_OFF}|(?:{words.ENGLISH_MOVED})\b(?=[^.]*\b(?:to|until|till)\b[^.]{{0,12}}{DAY}))\b"
)
# The same where the days are not marked yet.
_MAY_TELL = bounded(f"{_EVENT.pattern}|{_REVIVED.pattern}|{_ENGLISH_EVENT.pattern}".replace(DAY, ""))
_ENGLISH_NOT_TOLD = bounded(r"\b(?:not|might|may|could|if|unless|should|never|whether|hope|hopefully)\b|n't\b|\?")
_CLAUSE = bounded(r"[,;:]|\b(?:and|but|because|so|since|as|after|that)\b")
_OBJECT_END = bounded(rf"{_CLAUSE.pattern}|{DAY}|\b(?:due|until|till|from|now|then|on|to(?= (?:the )?{DAY}))\b")
_NEXT_CLAUSE = bounded(r"[,;.]|\bnow\b|\binstead\b")
_ENGLISH_GENERIC = frozenset(
    "appointment plan reserv book event thing date unfortun just also sad final today realli got get gets ask asked tonight oh well it'll".split()
)
_TAKES_PLACE = frozenset("at tonight until this next arrives arriving starts begins takes happens comes coming opens".split())
_FOR = bounded(r"(?:for|before|until|about) (?:the |my |our |his |her |an? )?$")


class MovedPlan(NamedTuple):
    """What a sentence says has moved or is off. `nouns`: what it names, the last of them is what it is about; `old`: the places of the days, among those of the sentence, that it no longer has. `is_off`: no new day is named. `person`: only a person is
    named, who can't come."""

    nouns: tuple[str, ...]
    old: tuple[int, ...]
    is_off: bool
    person: bool = False


def moved_plan(sentence: str) -> MovedPlan | None:
    """What a sentence says has moved or is off, if it says so as something that is settled."""
    plain = _DAY_AND_TIME.sub(DAY, sentence)
    return _in_japanese(plain) if is_japanese(plain) else _in_english(plain)


def may_tell_move(text: str) -> bool:
    """Whether a text has a word by which plans move, are off, or take place after all."""
    return _MAY_TELL.search(text.casefold().replace("\u2019", "'")) is not None


def revives(text: str) -> bool:
    """Whether a text says that something takes place after all."""
    return _REVIVED.search(text) is not None


def is_regular(text: str) -> bool:
    """Whether a text tells of something that comes again and again."""
    return _EVERY.search(text) is not None


def is_planned(noun: str, text: str) -> bool:
    """Whether a text names this as what it plans, rather than as a part of that: 遠足 in 20日に遠足, not in 遠足の買い物."""
    if is_japanese(noun):
        return any(not _PART_OF.match(text, end) for _, end in _places(noun, text))
    return any(_ends_phrase(text[end:]) and not _FOR.search(text[:start]) for start, end in _places(noun, text))


def is_with(person: str, text: str) -> bool:
    """Whether what a text plans is with this person alone, or that they come."""
    name = re.escape(person)
    japanese = rf"{name}(?:さん|ちゃん|くん|君)?(?:と(?![^。]*と)|が[^、。]*来)"
    english = rf"\bwith (?:my )?{name}\b(?! and)|\b{name} (?:is |are )?(?:visit|com|arriv|stay)(?:ing|es?|s)\b"
    return re.search(japanese if is_japanese(person) else english, text) is not None


def names(noun: str, text: str) -> bool:
    """Whether a text has this noun."""
    return bool(_places(noun, text))


def nouns_of(text: str) -> list[str]:
    """The nouns of a plan, by which memories about it are found."""
    text = re.sub(rf"{DAY}[にはのもへ]?", " ", text)
    if not is_japanese(text):
        return list(dict.fromkeys(noun for noun in _english_nouns(text) if len(noun) > 2))
    chunks, stems = _chunks(text)
    return list(dict.fromkeys(chunks or stems or _in_hiragana(text)))


def _places(noun: str, text: str) -> list[tuple[int, int]]:
    """Where a text has a noun as a whole word."""
    whole = re.escape(noun)
    if re.fullmatch(f"[{KATAKANA}]+", noun):
        whole = rf"(?<![{KATAKANA}]){whole}(?![{KATAKANA}])"
    elif not is_japanese(noun):
        whole = rf"(?<![a-z0-9]){whole}[a-z']*"
    places = [place.span() for place in re.finditer(whole, text)]
    return [(start, end) for start, end in places if _BEHIND_KANJI.match(text, end)] if _OF_KANJI.fullmatch(noun) else places


def _in_japanese(plain: str) -> MovedPlan | None:
    event = _EVENT.search(plain)
    if not event or _NOT_TOLD.match(plain, event.end()) or _IF.search(plain[: event.start()]):
        return None
    before = plain[: event.start()]
    old = tuple(range(before.count(DAY)))
    is_off = DAY not in plain[event.start() :]
    nouns = _topic(_OPENING.sub("", before))
    cannot_come = event[0].startswith("来") and len(nouns) == 1
    return MovedPlan(tuple(nouns), old, is_off, person=cannot_come) if nouns else None


def _topic(before: str) -> list[str]:
    before = re.sub(rf"{DAY}(?:から|より|の|は|に|、|も)?", "", before)
    *clauses, last = before.split("、")
    parts = [part for clause in clauses if not _BACKGROUND.search(clause) for part in _TOPIC_END.split(clause)]
    *topics, rest = _TOPIC_END.split(last)
    told = [cut for part in (*parts, *topics, _BEFORE_EVENT.sub("", rest)) if (cut := _REASON.sub("", part))]
    if _ASPECT.search(" ".join(told)):
        return []
    if len(told) > 1 and told[-1].endswith("が") and not re.search(r"[をが]", " ".join(told[:-1])):
        told = told[:-1]  # ネットは工事が延期
    chunks, stems = _chunks(" ".join(told))
    if not chunks and (calling := _CALLING.search(before)):  # 歯医者から電話があって
        chunks, _ = _chunks(calling[1])
    return chunks or stems or _in_hiragana(" ".join(told))


def _in_hiragana(text: str) -> list[str]:
    return re.findall(rf"(?<![{HIRAGANA}{HAN}{KATAKANA}])お?([{HIRAGANA}]{{2,}}?)(?=[{_PARTICLES}]?(?:[{HAN}{KATAKANA}\s、。]|$))", text)


def _chunks(text: str) -> tuple[list[str], list[str]]:
    """The nouns of a text, and its kanji that are stems of verbs or adjectives."""
    chunks: list[str] = []
    stems: list[str] = []
    for found in _CHUNK.finditer(text):
        word = found[0].removesuffix(found["stem"] or "")
        word = _GENERIC_END.sub("", word)
        if word in _GENERIC or word.isdigit():
            continue
        is_stem = found["stem"] and len(word) == 1 and found["stem"] not in _PARTICLES + "さちく"
        (stems if is_stem else chunks).append(word)
    return chunks, stems


def _in_english(plain: str) -> MovedPlan | None:
    event = _ENGLISH_EVENT.search(plain)
    subject = _CLAUSE.split(plain[: event.start()])[-1] if event else ""
    if not event or _ENGLISH_NOT_TOLD.search(subject) or plain.rstrip().endswith("?"):
        return None
    following = plain[event.end() :]
    object_ = _OBJECT_END.split(following)[0]
    is_person = _CANT_COME.fullmatch(event[0]) is not None
    nouns = [*_english_nouns(subject), *_english_nouns(object_)]
    if not nouns or _ASPECT.search(f"{subject} {object_}"):
        return None
    of_plan = _NEXT_CLAUSE.split(following)[0]
    to_day = None if is_person else re.search(rf"\b(?:to|until|till|for)\b[^{DAY}]{{0,12}}{DAY}", of_plan)
    old = range(plain[: event.start()].count(DAY) + of_plan[: to_day.start() if to_day else None].count(DAY))
    is_off = len(old) == plain.count(DAY)
    return MovedPlan(tuple(nouns), tuple(old), is_off, person=is_person and not _english_nouns(object_))


def _english_nouns(text: str) -> list[str]:
    found = [word.removesuffix("'s") for word in re.findall(r"[a-z][a-z']*", text)]
    return [word for word in found if not is_function_word(word) and not _ENGLISH_GENERIC & {word, *tokens(word)}]


def _ends_phrase(after: str) -> bool:
    word = re.match(rf"\s*(?:(?:appointment|reservation|plans?|date|booking)\s*)?(?:([a-z']+)|[{DAY}.,;!]|$|\W)", after)
    return word is not None and (word[1] is None or is_function_word(word[1]) or word[1] in _TAKES_PLACE)
