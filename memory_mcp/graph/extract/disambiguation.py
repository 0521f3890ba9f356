"""Which entity a text means by a known name: none where it is part of a longer name, else the one that fits the surrounding words, then the
one mentioned most."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from memory_mcp.characters import HIRAGANA, KANJI
from memory_mcp.graph.extract.english_rules import small_words
from memory_mcp.graph.extract.word_boundaries import is_after_a_word, is_of_a_title, is_whole_name
from memory_mcp.language.gazetteer import Candidate, Match
from memory_mcp.language.mention import UNKNOWN_TYPE, Mention
from memory_mcp.language.names import bare
from memory_mcp.patterns import bounded

_GOING = "行|旅行|出張|引っ?越|住|移住|転勤|赴任|帰省|着[いく]|向か|出かけ|出掛け|遊びに|泊ま|滞在|戻"
_LIKE_A_PLACE = bounded(
    f"[都道府県市]?(?:(?:に|へ|まで)(?:は|も|また)?(?:{_GOING})|へ(?:の旅|の出張)|(?:旅行|出張|出身|在住|観光|土産|方面|行き|滞在|支店|市内)|で(?:暮ら|生まれ|育))"
)
_LIKE_A_PERSON = bounded(
    "(?:に|と)(?:は|も|また)?(?:会|聞|話|相談|電話|メール|連絡|頼|貸|返|渡|誘|怒|叱|褒|謝|結婚|付き合|喧嘩|けんか|教わ|紹介)|から(?:聞|電話|メール|連絡|借り|教わ|誘)|"
    "が(?:言|話|笑|怒|泣|歌|結婚|来)|の誕生日|の(?:お)?[父母兄姉]"
)
# Types that one name may have, but not one entity: 福島さん and the place, 株式会社ミドリ and ミドリさん. Toyotaさん is still the company.
_EXCLUDED_TYPES = {"Person": {"Location"}, "Location": {"Person"}, "Organization": {"Person", "Location", "Object"}}
_SURNAME_AND_KANA = bounded(f"[{KANJI}]{{1,4}}[{HIRAGANA}\u30a1-\u30fa]")
# Capitalized words at the beginning of a sentence are no part of a name: Happy Birthday Caroline.
_BEGINS_A_SENTENCE = bounded(r"(?:^|[.!?:\n。！？「『（(\"“])[\s\"“'(]*(?:[A-Z][a-z']*\s+){0,3}$")
# Characters before a name in which the beginning of its sentence is looked for.
_REACH = 60


def disambiguated(text: str, known: Iterable[Match], by_rules: Sequence[Mention], *, is_question: bool = False) -> Iterator[Mention]:
    """A mention for each known name that means an entity, of two that begin at one offset the longer. `by_rules`: what the rules found.

    An alias that several entities share means none of them in a statement, and the one mentioned most in a question.
    """
    free, rules_around = 0, _rules_containing(by_rules)
    small = frozenset() if is_question else small_words(text)
    for match in sorted(known, key=lambda match: (match.start, -match.end)):
        fitting = [candidate for candidate in match.candidates if is_whole_name(text, match.start, match.end, candidate.type)]
        rules = rules_around(match)
        if match.start < free or not fitting or any(_is_part_of_another(text, match, rule) for rule in rules):
            continue
        if not rules and _is_written_small(text[match.start : match.end], fitting, small):
            continue
        free = match.end
        same = (rule for rule in rules if rule.type and _names_the_same(text, match, rule))
        rule = max(same, key=lambda rule: rule.end - rule.start, default=None)
        choice = _choice(text, match, fitting, rule)
        if choice and (len(choice) == 1 or choice[0].is_own or is_question):
            entity = choice[0]
            likely = _type_by_rule(text, match, rule) if rule and entity.type == UNKNOWN_TYPE else None
            yield Mention(entity.name, entity.type, match.start, match.end, "known", likely=likely, entity=entity.entity)


def _is_written_small(written: str, candidates: Sequence[Candidate], small: Set[str]) -> bool:
    """Whether a text that has capitals writes a name that has one as an everyday word. A tool's name, and a further name, may be written so."""
    return written.casefold() in small and not any(
        candidate.name.islower() or candidate.type == "Technology" or not candidate.is_own for candidate in candidates
    )


def _rules_containing(by_rules: Sequence[Mention]) -> Callable[[Match], list[Mention]]:
    """For a match the findings of the rules that contain it, in their order. A long text has thousands of both, so they are bisected."""
    order = sorted(range(len(by_rules)), key=lambda index: by_rules[index].start)
    starts = [by_rules[index].start for index in order]
    longest = max((rule.end - rule.start for rule in by_rules), default=0)

    def containing(match: Match) -> list[Mention]:
        near = order[bisect_left(starts, match.end - longest) : bisect_right(starts, match.start)]
        return [by_rules[index] for index in sorted(near) if by_rules[index].end >= match.end]

    return containing


def _type_by_rule(text: str, match: Match, rule: Mention) -> str | None:
    """The type that a rule gives an entity of unknown type. Words around a Latin name alone (from Oscar, in Oscar) are too uncertain."""
    is_longer = (rule.start, rule.end) != (match.start, match.end)
    is_certain = is_longer or rule.type not in ("Person", "Location") or not text[match.start : match.end].isascii()
    return rule.type if is_certain and rule.type == _likely_type(text, match.end, rule) else None


def with_surnames(text: str, known: Iterable[Match], by_rules: Iterable[Mention]) -> Iterator[Mention]:
    """What the rules found, with a known surname joined to the kana name that follows it: 榎本トキさん is one person."""
    surnames = {match.end: match.start for match in known if any(candidate.type == "Person" for candidate in match.candidates)}
    for mention in by_rules:
        start = surnames.get(mention.start)
        if mention.type == "Person" and mention.subtype is None and start is not None and _SURNAME_AND_KANA.match(text, start):
            surname = text[start : mention.start]
            aliases = tuple(surname + alias for alias in mention.aliases)
            yield replace(mention, name=surname + mention.name, start=start, aliases=aliases)
        else:
            yield mention


def _choice(text: str, match: Match, fitting: Sequence[Candidate], rule: Mention | None) -> Sequence[Candidate]:
    """The candidates that may be meant, the likeliest first; none where the rule shows a new entity of that name."""
    likely = _likely_type(text, match.end, rule)
    types = {candidate.type for candidate in fitting}
    if rule and rule.type and rule.type == likely and types <= _EXCLUDED_TYPES.get(likely, set()):
        is_longer = (rule.start, rule.end) != (match.start, match.end)
        if is_longer or (likely == "Location" and _LIKE_A_PLACE.match(text, match.end)):
            return ()
    of_type = [candidate for candidate in fitting if candidate.type == likely]
    of_type = of_type or [candidate for candidate in fitting if likely and candidate.type == UNKNOWN_TYPE] or list(fitting)
    return [candidate for candidate in of_type if candidate.is_own] or of_type


def _likely_type(text: str, end: int, rule: Mention | None) -> str | None:
    """The type that the words around a name suggest."""
    if rule and rule.type == "Person":
        return "Person"
    if _LIKE_A_PLACE.match(text, end):
        return "Location"
    if _LIKE_A_PERSON.match(text, end):
        return "Person"
    return rule.type if rule else None


def _names_the_same(text: str, match: Match, rule: Mention) -> bool:
    if not rule.start <= match.start < match.end <= rule.end:
        return False
    written, name = bare(text[match.start : match.end]), bare(rule.name)
    same = {name, name.removesuffix("社")} if any(candidate.type == rule.type for candidate in match.candidates) else {name}
    return written in same or (rule.start, rule.end) == (match.start, match.end)


def _is_part_of_another(text: str, match: Match, rule: Mention) -> bool:
    """Whether the rule found a longer name of another entity: 東京大学 is not 東京, and 田中花子 not 田中."""
    if not rule.start <= match.start < match.end <= rule.end or _names_the_same(text, match, rule):
        return False
    before, after = text[rule.start : match.start], text[match.end : rule.start + len(rule.name)]
    if rule.type == "Person" and not before and is_of_a_title(after):
        return False
    if before.isascii() and before and match.end == rule.end:
        return not _BEGINS_A_SENTENCE.search(text[max(rule.start - _REACH, 0) : rule.start])
    return not (before and not after and is_after_a_word(text, match.start))
