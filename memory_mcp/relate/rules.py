"""Which of two short texts is news of the other: it says that what the earlier one says is no longer so. The words are in `words.toml`.

Three signs: a change is told beside the nouns of the earlier text (「プリウスを手放した」 of 「プリウスに乗ってる」), both are the same words but for one value, or
one denies what the other says. A wrong link misleads, so doubt means no.
"""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from memory_mcp.characters import HAN, KATAKANA, is_japanese
from memory_mcp.language.tokens import is_function_word, is_single_kanji, jaccard, normalise, tokens
from memory_mcp.patterns import bounded

Sign = Literal["plan", "fact"]

LONGEST, ALIKE, ALIKE_WORDS = 120, 0.6, 0.8
_TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS = {name: tuple(words.split() if isinstance(words, str) else words) for name, words in _TABLES["words"].items()}
_PLANS = ("off", "gone", "shift", "cancel", "move")
_NUMERAL = r"(?:\d+|[一二三四五六七八九十]+)"
_KANA = "いきしちりみびぎけせえれめっわまら"  # within and behind nouns of verbs: 打ち合わせ


def _any(parts: Iterable[str], name: str = "") -> str:
    """One expression for all parts, as a group of this name."""
    filled = "|".join(parts).replace("{done}", f"(?:{_TABLES['signs']['done'][0]})").replace("{n}", _NUMERAL)
    return f"(?{f'P<{name}>' if name else ':'}{filled.replace('{kanji}', HAN).replace('{katakana}', KATAKANA)})"


_SIGNS = {name: _any(parts, name) for name, parts in _TABLES["signs"].items()}
_EVENT, _VALUE = (bounded("|".join(_any(parts, kind) for kind, parts in _TABLES[table].items())) for table in ("events", "values"))
_UNSURE, _ENDING = bounded(_SIGNS["unsure"]), bounded(_SIGNS["ending"])
_PAST, _POLAR = bounded(f"{_SIGNS['begun']}|{_SIGNS['past']}"), bounded(f"{_SIGNS['no']}|{_SIGNS['yes']}")
_PHRASE = bounded(
    rf"(?P<noun>(?:[{HAN}]+(?:[{_KANA}]{{1,2}}[{HAN}]+)*(?:[{_KANA}]{{1,2}}(?=[はがをもにへとの、。]|から|$))?|[{KATAKANA}]+|[a-z0-9][a-z0-9.+#&-]*)+)"
    r"(?:さん|ちゃん|くん)?(?P<by>(?:から)?に|から|まで|って|とは|との|も(?!う)|の(?!で|に)|で(?!す|し|き)|と(?!い|き)|[はがをへ、]|(?=[。!]|$))"
)


class News(NamedTuple):
    """What a sentence says has changed: the nouns that name it, the days and hours that it had, and what it has now, if that is said."""

    kind: str
    nouns: frozenset[str]
    old: tuple[str, ...]
    value: str


class Chain(NamedTuple):
    """Nouns joined by の, and the particle behind them."""

    nouns: list[str]
    by: str
    start: int
    end: int


def sign_of_news(text: str, earlier: str) -> Sign | None:
    """What says that because of `text`, told later, what `earlier` says is no longer so: a plan that moved or is off, or anything else; None: nothing."""
    if max(len(text), len(earlier)) > LONGEST or _is_of_another(normalise(text), normalise(earlier)):
        return None
    plain, before = _sentences(text), _sentences(earlier)
    for told in news(text):
        if any(_concerns(told, sentence) for sentence in before):
            return "plan" if told.kind in _PLANS and not told.old else "fact"
    if len(plain) != 1 or len(before) != 1 or any(map(_is_over, (*plain, *before))) or any(word in plain[0] for word in _WORDS["now"]):
        return None
    first, second = (_ENDING.sub("", each[0]).strip() for each in (plain, before))
    return "fact" if _differ_in_number(first, second) or _differ_in_name(first, second, text) or _denies(first, second) else None


def news(text: str) -> Iterator[News]:
    """The changes that a text tells as done."""
    for sentence in _sentences(text):
        start = 0
        for event in _EVENT.finditer(sentence) if not _UNSURE.search(sentence) else ():
            kind, before = str(event.lastgroup), sentence[start : event.start()]
            told = _in_japanese(kind, before) if is_japanese(event[0]) else _in_english(kind, before, sentence[event.end() :])
            if told.nouns:
                yield told
            start = event.end()


def _is_of_another(plain: str, before: str) -> bool:
    return any(person not in plain and any(f"{person}{by}" in before for by in "はがも ") for person in _WORDS["people"])


def _sentences(text: str) -> list[str]:
    marked = normalise(text).replace(". ", "。").replace("!", "。").replace("\n", "。").replace("?", "?。")
    return [part.strip(" .") for part in marked.split("。") if part.strip(" .")]


def _chains(text: str) -> list[Chain]:
    chains: list[Chain] = []
    for phrase in _PHRASE.finditer(text):
        is_joined = chains and chains[-1].by in ("の", "との") and chains[-1].end == phrase.start()
        owners = chains.pop() if is_joined else Chain([], "", phrase.start(), 0)
        chains.append(Chain([*owners.nouns, phrase["noun"]], phrase["by"], owners.start, phrase.end()))
    return chains


def _in_japanese(kind: str, before: str) -> News:
    topics: list[str] = []
    nouns: list[str] = []
    value, end = "", 0
    for chain in [*_chains(before), Chain([], "", len(before), len(before))]:
        if before[end : chain.start].rstrip("、").endswith(_WORDS["background"]):
            nouns = []
        end, is_time = chain.end, _VALUE.fullmatch("".join(chain.nouns)) and (not chain.by or chain.nouns[0][0] in "今来先")
        is_value = chain.by in ("に", "からに", "へ", "まで") or (kind == "weak" and not chain.by)
        if chain.nouns and end == len(before) and kind != "gone" and is_value:
            value = "の".join(chain.nouns)
        elif chain.by == "で":  # a reason, with what it is said of
            nouns = []
        elif chain.by in ("は", "も", "って", "とは", "、"):
            topics += chain.nouns
        elif (chain.by in ("が", "を", "から", "") or kind == "gone") and not is_time:
            nouns += chain.nouns
    days = tuple(part for part in (*topics, *nouns) if _VALUE.fullmatch(part))
    return News(kind, frozenset((*topics, *nouns)) - {*days, *_WORDS["generic"]}, days, value)


def _in_english(kind: str, before: str, after: str) -> News:
    object_, _, value = after.partition(" to ")
    parts = [*object_.partition(" from ")[::2], value]
    for stop in _WORDS["stops"]:
        parts = [part.partition(stop)[0] for part in parts]
    named = " ".join((before.rpartition(",")[2].rpartition(" and ")[2], *parts[:2]))
    days = tuple(each[0] for each in _VALUE.finditer(named))
    words = {token for word in named.split() if not is_function_word(word.strip(",")) for token in tokens(word)}
    return News(kind, frozenset(words) - {*_WORDS["generic"]} - {token for day in days for token in tokens(day)}, days, parts[2])


def _concerns(told: News, sentence: str) -> bool:
    """True if a sentence of an earlier text says what has changed."""
    if "?" in sentence or _is_over(sentence) or not all(day in sentence for day in told.old) or not _names(told.nouns, sentence):
        return False
    types = [each.lastgroup for each in _VALUE.finditer(sentence)]
    if new := list(_VALUE.finditer(told.value)):
        return any(each.lastgroup in types for each in new) and not all(each[0] in sentence for each in new)
    if told.kind in _PLANS:  # a plan for one day
        return not told.value.strip() and (types.count("day") == 1 or ("day" in types and bool(told.old)))
    if told.kind == "weak":
        return any(_differ_in_name(f"{noun}は{told.value}", sentence[sentence.find(noun) :], "") for noun in told.nouns)
    return not told.value or (told.value not in sentence and "day" not in types)


def _names(nouns: frozenset[str], sentence: str) -> bool:
    """True if a sentence has all these nouns, none only as the owner of something else: 遠足の買い物."""
    words, told = {*tokens(sentence.partition(" for ")[0])}, {*nouns, *_WORDS["generic"]}
    chains = [[form for noun in chain.nouns for form in (noun, noun.lstrip("毎朝晩夜日週月"))] for chain in _chains(f"{sentence}。")]
    return all((noun.isascii() and noun in words) or any(noun in chain and told & {*chain[-2:]} for chain in chains) for noun in nouns)


def _is_over(sentence: str) -> bool:
    """True if a sentence tells only what happened."""
    kinds = {each.lastgroup for each in _PAST.finditer(sentence)}
    return kinds == {"past"}


def _differ_in_number(first: str, second: str) -> bool:
    """True if two sentences are the same but for one number, day or hour, and say how something is."""
    if _VALUE.sub("#", first) != _VALUE.sub("#", second) or not any(word in f" {first}" for word in _WORDS["state"]):
        return False
    pairs = zip(_VALUE.finditer(first), _VALUE.finditer(second), strict=True)
    differing = [(one.lastgroup, other.lastgroup) for one, other in pairs if one[0] != other[0]]
    return len(differing) == 1 and len({*differing[0]}) == 1


def _differ_in_name(first: str, second: str, text: str) -> bool:
    """True if two sentences give one thing another name: in Japanese one of the same kind, in English one with a capital."""
    for mark in _WORDS["one"]:
        (head, _, value), (same, _, other) = f" {first}".partition(mark), f" {second}".partition(mark)
        if value and other and head == same and not (any(part in head for part in _WORDS["many"]) or value in other or other in value):
            if not is_japanese(first):
                return value.split()[0].capitalize() in text and len(value.split()) <= 3
            is_kind = value[-1] == other[-1] or any(joint in head for joint in "のな") or not any(map(is_single_kanji, value + other))
            return is_kind and all([chain[2:] for chain in _chains(f"{each}。")] == [(0, len(each))] for each in (value, other))
    return False


def _denies(plain: str, before: str) -> bool:
    """True if one sentence denies what the other says in the same words."""
    both = [text.replace("can't", "can not") for text in (plain, before)]
    if len({sum(each.lastgroup == "no" for each in _POLAR.finditer(text)) % 2 for text in both}) == 1:
        return False
    bare = [_POLAR.sub("", text) for text in both]
    if not is_japanese(plain):
        words = [{word.removesuffix("s") for word in text.split()} for text in bare]
        return min(map(len, words)) >= 2 and jaccard(*words) >= ALIKE_WORDS
    chains = [[chain for chain in _chains(text) if chain.nouns[-1] not in _WORDS["generic"]] for text in bare]
    same = all(one.by == other.by or {one.by, other.by} & {"は", "も", ""} for one, other in zip(*chains, strict=False))
    alike = jaccard(*({*tokens(text.translate(dict.fromkeys(map(ord, "がはをも私"))))} for text in bare)) >= ALIKE
    return same and alike and [chain.nouns for chain in chains[0]][:1] == [chain.nouns for chain in chains[1]][:1] != []
