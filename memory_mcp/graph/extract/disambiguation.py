"""Whom a text means by a known name: nobody where it is a part of a longer one, else by what stands around it, then who is mentioned most."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from memory_mcp.characters import HIRAGANA, KANJI
from memory_mcp.graph.extract.word_boundaries import is_after_a_word, is_of_a_title, stands_alone
from memory_mcp.text.gazetteer import Called, Candidate
from memory_mcp.text.mention import UNKNOWN_TYPE, Mention
from memory_mcp.text.names import bare

_GOING = "行|旅行|出張|引っ?越|住|移住|転勤|赴任|帰省|着[いく]|向か|出かけ|出掛け|遊びに|泊ま|滞在|戻"
_LIKE_A_PLACE = re.compile(
    f"[都道府県市]?(?:(?:に|へ|まで)(?:は|も|また)?(?:{_GOING})|へ(?:の旅|の出張)|(?:旅行|出張|出身|在住|観光|土産|方面|行き|滞在|支店|市内)|で(?:暮ら|生まれ|育))"
)
_LIKE_A_PERSON = re.compile(
    "(?:に|と)(?:は|も|また)?(?:会|聞|話|相談|電話|メール|連絡|頼|貸|返|渡|誘|怒|叱|褒|謝|結婚|付き合|喧嘩|けんか|教わ|紹介)|から(?:聞|電話|メール|連絡|借り|教わ|誘)|"
    "が(?:言|話|笑|怒|泣|歌|結婚|来)|の誕生日|の(?:お)?[父母兄姉]"
)
# Of one name, but surely not the same: 福島さん and the place, 株式会社ミドリ and ミドリさん. Toyota that is called さん is a company yet.
_ANOTHER = {"Person": {"Location"}, "Location": {"Person"}, "Organization": {"Person", "Location", "Object"}}
_SURNAME_AND_KANA = re.compile(f"[{KANJI}]{{1,4}}[{HIRAGANA}\u30a1-\u30fa]")
# Words with a capital at the beginning of a sentence are no part of a name: Happy Birthday Caroline.
_BEGINS_A_SENTENCE = re.compile(r"(?:^|[.!?:\n。！？「『（(\"“])[\s\"“'(]*(?:[A-Z][a-z']*\s+){0,3}$")
# So far back a text is looked at for where its sentence begins.
_REACH = 60


def meant(text: str, called: Iterable[Called], told: Sequence[Mention], *, is_asked: bool = False) -> Iterator[Mention]:
    """Each entity that the text names by a known name, the longer of two that begin at one place; `told` is what the rules find.

    A further name of several names none of them, for what is put down; where somebody asks (`is_asked`), the one mentioned most.
    """
    free, around = 0, _holding(told)
    for one in sorted(called, key=lambda found: (found.start, -found.end)):
        fitting = [who for who in one.candidates if stands_alone(text, one.start, one.end, who.type)]
        rules = around(one)
        if one.start < free or not fitting or any(_is_a_part(text, one, rule) for rule in rules):
            continue
        free = one.end
        alike = (rule for rule in rules if rule.type and _names_the_same(text, one, rule))
        rule = max(alike, key=lambda found: found.end - found.start, default=None)
        choice = _choice(text, one, fitting, rule)
        if choice and (len(choice) == 1 or choice[0].is_own or is_asked):
            who = choice[0]
            likely = _told_by(text, one, rule) if rule and who.type == UNKNOWN_TYPE else None
            yield Mention(who.name, who.type, one.start, one.end, "known", likely=likely, entity=who.entity)


def _holding(told: Sequence[Mention]) -> Callable[[Called], list[Mention]]:
    """For each known name those findings of the rules that hold it, in their order: a long text has thousands of both."""
    places = sorted(range(len(told)), key=lambda place: told[place].start)
    starts = [told[place].start for place in places]
    longest = max((rule.end - rule.start for rule in told), default=0)

    def holding(one: Called) -> list[Mention]:
        near = places[bisect_left(starts, one.end - longest) : bisect_right(starts, one.start)]
        return [told[place] for place in sorted(near) if told[place].end >= one.end]

    return holding


def _told_by(text: str, called: Called, rule: Mention) -> str | None:
    """The type that a rule tells of what is known without one. Only words around a name (from Oscar, in Oscar) are no certain sign."""
    tells_more = (rule.start, rule.end) != (called.start, called.end)
    is_certain = tells_more or rule.type not in ("Person", "Location") or not text[called.start : called.end].isascii()
    return rule.type if is_certain and rule.type == _likely(text, called.end, rule) else None


def with_surnames(text: str, called: Iterable[Called], told: Iterable[Mention]) -> Iterator[Mention]:
    """What the rules find, with a known surname taken into the name of kana that follows it: 榎本トキさん is one person."""
    surnames = {one.end: one.start for one in called if any(who.type == "Person" for who in one.candidates)}
    for mention in told:
        start = surnames.get(mention.start)
        if mention.type == "Person" and mention.subtype is None and start is not None and _SURNAME_AND_KANA.match(text, start):
            surname = text[start : mention.start]
            aliases = tuple(surname + alias for alias in mention.aliases)
            yield replace(mention, name=surname + mention.name, start=start, aliases=aliases)
        else:
            yield mention


def _choice(text: str, called: Called, fitting: Sequence[Candidate], rule: Mention | None) -> Sequence[Candidate]:
    """Who may be meant, the likeliest first; nobody where it is somebody new of that name, as the rule tells."""
    likely = _likely(text, called.end, rule)
    types = {who.type for who in fitting}
    if rule and rule.type and rule.type == likely and types <= _ANOTHER.get(likely, set()):
        tells_more = (rule.start, rule.end) != (called.start, called.end)
        if tells_more or (likely == "Location" and _LIKE_A_PLACE.match(text, called.end)):
            return ()
    of_type = [who for who in fitting if who.type == likely] or [who for who in fitting if likely and who.type == UNKNOWN_TYPE] or fitting
    return [who for who in of_type if who.is_own] or of_type


def _likely(text: str, end: int, rule: Mention | None) -> str | None:
    """The type that what stands around a name speaks for."""
    if rule and rule.type == "Person":
        return "Person"
    if _LIKE_A_PLACE.match(text, end):
        return "Location"
    if _LIKE_A_PERSON.match(text, end):
        return "Person"
    return rule.type if rule else None


def _names_the_same(text: str, called: Called, rule: Mention) -> bool:
    if not rule.start <= called.start < called.end <= rule.end:
        return False
    written, name = bare(text[called.start : called.end]), bare(rule.name)
    same = {name, name.removesuffix("社")} if any(who.type == rule.type for who in called.candidates) else {name}
    return written in same or (rule.start, rule.end) == (called.start, called.end)


def _is_a_part(text: str, called: Called, rule: Mention) -> bool:
    """Whether the rule tells a longer name, which is another one: 東京大学 is not 東京, and 田中花子 not 田中."""
    if not rule.start <= called.start < called.end <= rule.end or _names_the_same(text, called, rule):
        return False
    before, after = text[rule.start : called.start], text[called.end : rule.start + len(rule.name)]
    if rule.type == "Person" and not before and is_of_a_title(after):
        return False
    if before.isascii() and before and called.end == rule.end:
        return not _BEGINS_A_SENTENCE.search(text[max(rule.start - _REACH, 0) : rule.start])
    return not (before and not after and is_after_a_word(text, called.start))
