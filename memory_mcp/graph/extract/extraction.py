"""The entities that a text names: marked by its writer, known already, or found by rules; of two that overlap the more trusted one."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from datetime import date

from memory_mcp.characters import EVERY_KANJI, KATAKANA
from memory_mcp.dates.statements import DAY, NamedDay, WrittenDates
from memory_mcp.graph.extract.rules import BEFORE_NAME, HONORIFICS, mentions_by_rules, relatives, small_words
from memory_mcp.language.entity_types import type_of_word
from memory_mcp.language.gazetteer import Candidate, Match
from memory_mcp.language.names import NAME_LIMIT, UNKNOWN_TYPE, Mention, bare, is_invisible, is_polite, without_overlaps
from memory_mcp.patterns import bounded

# Only the beginning of a long text is searched for names: a pasted book is not an index of names.
TEXT_LIMIT = 20_000
# Without it a text has no marks, and no types need be read for it.
MARK_START = "[["
# As in wikis and note programs: [[田中]], [[田中|Person]], [[田中太郎|田中さん]]; a link to a heading or a block names its note.
_MARK = re.compile(r"\[\[(?P<name>[^\[\]|#^\n]{1,300})(?:[#^][^\[\]|\n]{0,300})?(?:\|(?P<after>[^\[\]|\n]{1,300}))?\]\]")
# [[健太]]さん is a person, [[みどり産業]]さん is not.
_HONORIFIC = re.compile(HONORIFICS)
_NO_PERSON = re.compile("(?:社|店|屋|部|課|局|会|所|院|園|校|大学|産業|工業|商事|銀行|組合|チーム|グループ)$")


def extract_mentions(
    text: str,
    types: Collection[str],
    known: Iterable[Match] = (),
    *,
    is_question: bool = False,
    stated_on: date | None = None,
    dates: WrittenDates | None = None,
) -> list[Mention]:
    """The mentions in a text, in its order.

    `types`: what a mark may give as a type. `known`: the known names in the text. `is_question`: an alias that several entities share
    means the one mentioned most, instead of none. `stated_on`: the day from which the year of 10月17日 is reckoned. `dates`: those of the
    text, if it was read for them already.
    """
    small, known = small_words(text), list(known)
    days = days_named(dates or WrittenDates(text), stated_on)
    by_rules = [*days, *(mention for mention in mentions_by_rules(text, small) if len(mention.name) <= NAME_LIMIT)]
    marked = [_as_day(mention, text, by_rules) for mention in _marked(text, types)] if MARK_START in text else ()
    of_known = known_mentions(text, known, by_rules, small, is_question=is_question) if known else ()
    return without_overlaps([*marked, *of_known, *by_rules])


def days_named(dates: WrittenDates, stated_on: date | None = None) -> Iterator[Mention]:
    """The days and months that a text names."""
    for day in dates.days(stated_on):
        yield Mention(day.name, day.type, day.start, day.end, "rule", subtype=day.subtype, aliases=day.aliases)


def relatives_and_days(text: str) -> list[Mention]:
    """The writer's own relatives and the days that a text names: rules alone recognize them, they are in no gazetteer."""
    return [*relatives(text), *days_named(WrittenDates(text))]


def likely_type(name: str) -> str | None:
    """The type that the name itself shows: 京都大学 is an Organization. None where it shows none."""
    whole = (mention for mention in mentions_by_rules(name, frozenset()) if bare(mention.name) == bare(name))
    return next((mention.type for mention in whole if mention.type), None)


def _marked(text: str, types: Collection[str]) -> Iterator[Mention]:
    """The marked entities. What follows the bar is a type if one has that name, else another name of the entity."""
    for match in _MARK.finditer(text):
        name, after = match["name"].strip(), (match["after"] or "").strip()
        if is_invisible(name) or len(name) > NAME_LIMIT:
            continue
        type_ = type_of_word(after, types) if after else None
        aliases = (after,) if not is_invisible(after) and type_ is None and after != name and len(after) <= NAME_LIMIT else ()
        is_person = _HONORIFIC.match(text, match.end()) or any(map(is_polite, (name, *aliases)))
        likely = "Person" if is_person and not _NO_PERSON.search(name) else None
        yield Mention(name, type_, match.start(), match.end(), "marked", aliases=aliases, likely=likely)


def _as_day(mark: Mention, text: str, by_rules: Iterable[Mention]) -> Mention:
    """A mark as the day that it names, if it names one: [[8月20日]] is the day that 8月20日 is in its sentence."""
    if mark.type not in (None, NamedDay.type):
        return mark
    within = (rule for rule in by_rules if rule.subtype == DAY and mark.start < rule.start and rule.end < mark.end)
    day = next((rule for rule in within if text[rule.start : rule.end] == mark.name), None)
    return replace(day, start=mark.start, end=mark.end, method=mark.method) if day else mark


# 田中 in 田中花子 and 山田中学校 is a part of another name; longer names count everywhere.
_SHORT = bounded(f"[{EVERY_KANJI}]{{2,3}}")
_KANJI_BEFORE, _STARTS_WITH_KANJI = bounded(f"[{EVERY_KANJI}]+$"), bounded(f"[{EVERY_KANJI}]")
# What may follow a name of kanji directly: a title, what one does at a place, a verb without its particle.
_MAY_FOLLOW = bounded(
    f"{HONORIFICS}|[総経営人技]\\w[部課]|家(?![具電族庭財屋])|[夫兄姉親][妻弟妹子]|行|旅行|出[張身]|在住|観光|方面|滞在|[都道府県市区町村](?!民|立|役|場)|経由"
    f"|以[外来降前後]|[{EVERY_KANJI}][ぁ-ん](?<![はがをにでとものへやのか])"
)
# 東京タワー and 田中クリニック are other names; 田中コーチ and 札幌ラーメン are not.
_GOES_ON = bounded(f"[{KATAKANA}]+")
_GOES_ON_AS_A_PLACE = bounded("(?:タワー|ツリー|ドーム|ランド|ホテル|センター|ホール|ビル|パーク|スタジアム)$")
_TITLE_IN_KATAKANA = bounded("(?:サン|クン|チャン|コーチ|リーダー|ママ|パパ|ファミリー)")
_LIKE_A_PLACE = bounded("(?:に|へ|まで)[はも]?(?:行|旅行|出張|引っ?越|住|移住|着[いく]|向か|帰省|遊びに|泊ま)|旅行|出張|出身|在住|観光")
# Types that one name may have, but not one entity: 福島さん and the place, 株式会社ミドリ and ミドリさん. Toyotaさん is still the company.
_EXCLUDED_TYPES = {"Person": {"Location"}, "Location": {"Person"}, "Organization": {"Person", "Location", "Object"}}
# Characters before a name that are read.
_REACH = 8


def known_mentions(
    text: str, known: Iterable[Match], by_rules: Sequence[Mention], small: Set[str], *, is_question: bool = False
) -> Iterator[Mention]:
    """A mention for each known name that means an entity, of two that begin at one offset the longer. `by_rules`: what the rules found.
    `small`: the text's everyday words.

    An alias that several entities share means none of them in a statement, and the one mentioned most in a question.
    """
    free, rules_around = 0, _rules_containing(by_rules)
    for match in sorted(known, key=lambda match: (match.start, -match.end)):
        fitting = [candidate for candidate in match.candidates if _is_whole_name(text, match.start, match.end, candidate.type)]
        rules = rules_around(match)
        if match.start < free or not fitting or not all(_is_same(match, rule, text) for rule in rules):
            continue
        if not rules and _is_everyday_word(text[match.start : match.end], fitting, small):
            continue
        free = match.end
        rule = max((rule for rule in rules if rule.type and _is_same(match, rule, text)), key=_length, default=None)
        choice = _choice(text, match, fitting, rule)
        if choice and (len(choice) == 1 or choice[0].is_own or is_question):
            entity = choice[0]
            likely = rule.type if rule and entity.type == UNKNOWN_TYPE else None
            yield Mention(entity.name, entity.type, match.start, match.end, "known", likely=likely, entity=entity.entity)


def _is_whole_name(text: str, start: int, end: int, type_: str) -> bool:
    """Whether `text[start:end]` may be the whole name of an entity of this type, and not a part of a longer one."""
    name = text[start:end]
    if not _STARTS_WITH_KANJI.match(name[-1]):
        return True
    katakana = _GOES_ON.match(text, end)
    if katakana and (_GOES_ON_AS_A_PLACE.search(katakana[0]) or (type_ != "Location" and not _TITLE_IN_KATAKANA.match(katakana[0]))):
        return False
    if not _SHORT.fullmatch(name):
        return True
    before = _KANJI_BEFORE.search(text[max(start - _REACH, 0) : start])
    if before and not BEFORE_NAME.fullmatch(before[0]):
        return False
    return _STARTS_WITH_KANJI.match(text, end) is None or _MAY_FOLLOW.match(text, end) is not None


def _is_everyday_word(written: str, candidates: Sequence[Candidate], small: Set[str]) -> bool:
    """Whether a name is written as the text writes an everyday word. A tool's name, and an alias, may be written so."""
    return written.casefold() in small and not any(
        candidate.name.islower() or candidate.type == "Technology" or not candidate.is_own for candidate in candidates
    )


def _rules_containing(by_rules: Sequence[Mention]) -> Callable[[Match], list[Mention]]:
    """For a match the findings of the rules that contain it. A long text has thousands of both, so they are bisected."""
    ordered = sorted(by_rules, key=lambda rule: rule.start)
    starts, longest = [rule.start for rule in ordered], max(map(_length, ordered), default=0)

    def containing(match: Match) -> list[Mention]:
        near = ordered[bisect_left(starts, match.end - longest) : bisect_right(starts, match.start)]
        return [rule for rule in near if rule.end >= match.end]

    return containing


def _length(mention: Mention) -> int:
    return mention.end - mention.start


def _is_same(match: Match, rule: Mention, text: str) -> bool:
    """Whether a rule found the known name itself, and not a longer one that contains it: 東京大学 is not 東京, 田中花子 not 田中."""
    return bare(text[match.start : match.end]) == bare(rule.name) or (rule.start, rule.end) == (match.start, match.end)


def _choice(text: str, match: Match, fitting: Sequence[Candidate], rule: Mention | None) -> Sequence[Candidate]:
    """The candidates that may be meant, the likeliest first; none where the rule shows a new entity of that name."""
    likely = rule.type if rule else "Location" if _LIKE_A_PLACE.match(text, match.end) else None
    if rule and {candidate.type for candidate in fitting} <= _EXCLUDED_TYPES.get(str(likely), set()):
        return ()
    of_type = [candidate for candidate in fitting if candidate.type == likely]
    of_type = of_type or [candidate for candidate in fitting if likely and candidate.type == UNKNOWN_TYPE] or list(fitting)
    return [candidate for candidate in of_type if candidate.is_own] or of_type
