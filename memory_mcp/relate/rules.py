"""Which of two short texts is news of the other: it says that what the earlier one says is no longer so.

Three signs: a change is told beside the nouns of the earlier text (「プリウスを手放した」 of 「プリウスに乗ってる」), both are the same words but for one value, or
one denies what the other says. A wrong link misleads, so doubt means no.
"""

from collections.abc import Sequence
from typing import Literal

from memory_mcp.characters import is_japanese
from memory_mcp.language.analysis import Analysis
from memory_mcp.language.tokens import is_single_kanji, jaccard, tokens
from memory_mcp.relate.news import ENDING, EVENT, PAST, POLAR, VALUE, WORDS, News, chains, news

Sign = Literal["plan", "fact"]

LONGEST, ALIKE, ALIKE_WORDS = 120, 0.6, 0.8
PLANS = ("off", "gone", "shift", "cancel", "move")
# What has ended has no further change to tell.
ENDS = frozenset(("off", "gone", "over", "cancel", "end"))


def sign_of_news(text: Analysis, earlier: Analysis) -> Sign | None:
    """What says that because of `text`, told later, what `earlier` says is no longer so: a plan that moved or is off, or anything else; None: nothing."""
    if max(len(text.text), len(earlier.text)) > LONGEST or _is_of_another(text.normalized, earlier.normalized):
        return None
    plain, before = text.sentences, earlier.sentences
    for told in news(text):
        if _names(told.nouns, before) and any(_concerns(told, sentence) for sentence in before):
            return "plan" if told.kind in PLANS else "fact"
    if len(plain) != 1 or len(before) != 1 or any(map(_is_over, (*plain, *before))) or any(word in plain[0] for word in WORDS["now"]):
        return None
    first, second = (ENDING.sub("", each[0]).strip() for each in (plain, before))
    return "fact" if _differ_in_number(first, second) or _differ_in_name(first, second, text.text) or _denies(first, second) else None


def _is_of_another(plain: str, before: str) -> bool:
    return any(person not in plain and any(f"{person}{by}" in before for by in "はがも ") for person in WORDS["people"])


def _concerns(told: News, sentence: str) -> bool:
    """True if a sentence of an earlier text that has the nouns says what has changed."""
    is_other = "?" in sentence or _is_over(sentence) or not any(_has(sentence, noun) for noun in told.nouns)
    ended = {each.lastgroup for each in EVENT.finditer(sentence)} & (ENDS if told.value else ENDS | {told.kind})
    if is_other or ended or not all(day in sentence for day in told.old):
        return False
    types = [each.lastgroup for each in VALUE.finditer(sentence)]
    if new := list(VALUE.finditer(told.value)):
        return any(each.lastgroup in types for each in new) and not all(each[0] in sentence for each in new)
    if told.kind in PLANS:  # a plan for one day
        return not told.value.strip() and (types.count("day") == 1 or ("day" in types and bool(told.old)))
    if told.kind == "weak":
        head = sentence.partition("は")[0]
        return any(noun in head for noun in told.nouns) and _differ_in_name(f"{head}は{told.value}", sentence, "")
    return not told.value or (told.value not in sentence and "day" not in types)


def _names(nouns: frozenset[str], before: Sequence[str]) -> bool:
    """True if some sentences have all these nouns, none only as the owner of something else: 遠足の買い物."""
    subjects = " ".join(sentence.partition(" for ")[0] for sentence in before)
    joined, told = (chain for sentence in before for chain in chains(f"{sentence}。")), {*nouns, *WORDS["generic"]}
    forms = [[form for noun in chain.nouns for form in (noun, noun.lstrip("毎朝晩夜日週月"))] for chain in joined]
    return all(
        (not is_japanese(noun) and _has(subjects, noun)) or any(noun in chain and told & {*chain[-2:]} for chain in forms) for noun in nouns
    )


def _has(text: str, noun: str) -> bool:
    """True if a text has a noun, in any of its forms if it is not Japanese."""
    return noun in text if is_japanese(noun) else set(tokens(text)).issuperset(tokens(noun))


def _is_over(sentence: str) -> bool:
    """True if a sentence tells only what happened."""
    kinds = {each.lastgroup for each in PAST.finditer(sentence)}
    return kinds == {"past"}


def _differ_in_number(first: str, second: str) -> bool:
    """True if two sentences are the same but for one number, day or hour, and say how something is."""
    if VALUE.sub("#", first) != VALUE.sub("#", second) or not any(word in f" {first}" for word in WORDS["state"]):
        return False
    pairs = zip(VALUE.finditer(first), VALUE.finditer(second), strict=True)
    differing = [(one.lastgroup, other.lastgroup) for one, other in pairs if one[0] != other[0]]
    return len(differing) == 1 and len({*differing[0]}) == 1


def _differ_in_name(first: str, second: str, text: str) -> bool:
    """True if two sentences give one thing another name: in Japanese one of the same kind, in English one with a capital."""
    for mark in WORDS["one"]:
        (head, _, value), (same, _, other) = f" {first}".partition(mark), f" {second}".partition(mark)
        if value and other and head == same and not (any(part in head for part in WORDS["many"]) or value in other or other in value):
            if not is_japanese(first):
                return value.split()[0].capitalize() in text and len(value.split()) <= 3
            is_kind = value[-1] == other[-1] or any(joint in head for joint in "のな") or not any(map(is_single_kanji, value + other))
            return is_kind and all([chain[2:] for chain in chains(f"{each}。")] == [(0, len(each))] for each in (value, other))
    return False


def _denies(plain: str, before: str) -> bool:
    """True if one sentence denies what the other says in the same words."""
    both = [text.replace("can't", "can not") for text in (plain, before)]
    if len({sum(each.lastgroup == "no" for each in POLAR.finditer(text)) % 2 for text in both}) == 1:
        return False
    bare = [POLAR.sub("", text) for text in both]
    if not is_japanese(plain):
        words = [{word.removesuffix("s") for word in text.split()} for text in bare]
        return min(map(len, words)) >= 2 and jaccard(*words) >= ALIKE_WORDS
    joined = [[chain for chain in chains(text) if chain.nouns[-1] not in WORDS["generic"]] for text in bare]
    same = all(one.by == other.by or {one.by, other.by} & {"は", "も", "には", ""} for one, other in zip(*joined, strict=False))
    alike = jaccard(*({*tokens(text.translate(dict.fromkeys(map(ord, "がはをも私"))))} for text in bare)) >= ALIKE
    return same and alike and [chain.nouns for chain in joined[0]][:1] == [chain.nouns for chain in joined[1]][:1] != []
