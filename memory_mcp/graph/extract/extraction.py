"""The entities that a text names: marked by its writer, known already, or found by rules; of two that overlap the more trusted one."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from datetime import date

from memory_mcp.characters import EVERY_KANJI, KATAKANA
from memory_mcp.dates.statements import DAY, NamedDay, WrittenDates
from memory_mcp.graph.extract.rules import BEFORE_NAME, HONORIFICS, mentions_by_rules, relatives, small_words
from memory_mcp.language.gazetteer import Candidate, Match
from memory_mcp.language.names import NAME_LIMIT, UNKNOWN_TYPE, Mention, bare, is_invisible, is_polite, without_overlaps
from memory_mcp.language.relation_notation import type_of_word
from memory_mcp.lexicon import words
from memory_mcp.patterns import bounded

# Only the beginning of a long text is searched for names: a pasted book is not an index of names.
TEXT_LIMIT = 20_000
# Without it a text has no marks, and no types need be read for it.
MARK_START = "[["
# As in wikis and note programs: [[田中]], [[田中|Person]], [[田中太郎|田中さん]]; a link to a heading or a block names its note.
_MARK = bounded(r"\[\[(?P<name>[^\[\]|#^\n]{1,300})(?:[#^][^\[\]|\n]{0,300})?(?:\|(?P<after>[^\[\]|\n]{1,300}))?\]\]")
# [[健太]]さん is a person, [[みどり産業]]さん is not.
_HONORIFIC, _NO_PERSON = bounded(HONORIFICS), words("ja", "group_ends")


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

    `types`: what a mark may give as a type. `known`: the known names in the text. `is_question`: an alias of several entities means the one
    mentioned most, instead of none. `stated_on`: the day from which the year of 10月17日 is reckoned. `dates`: those of the text, if read.
    """
    small, known = small_words(text), list(known)
    by_rules = [*_days(dates or WrittenDates(text), stated_on), *mentions_by_rules(text, small)]
    by_rules = [mention for mention in by_rules if len(mention.name) <= NAME_LIMIT]
    marked = [_as_day(mention, text, by_rules) for mention in _marked(text, types)] if MARK_START in text else ()
    of_known = known_mentions(text, known, by_rules, small, is_question=is_question) if known else ()
    return without_overlaps([*marked, *of_known, *by_rules])


def relatives_and_days(text: str) -> list[Mention]:
    """The writer's own relatives and the days that a text names: rules alone recognize them, they are in no gazetteer."""
    return [*relatives(text), *_days(WrittenDates(text))]


def _days(dates: WrittenDates, stated_on: date | None = None) -> Iterator[Mention]:
    for day in dates.days(stated_on):
        yield Mention(day.name, day.type, day.start, day.end, "rule", subtype=day.subtype, aliases=day.aliases)


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
        likely = "Person" if is_person and not name.endswith(_NO_PERSON) else None
        yield Mention(name, type_, match.start(), match.end(), "marked", aliases=aliases, likely=likely)


def _as_day(mark: Mention, text: str, by_rules: Iterable[Mention]) -> Mention:
    """A mark as the day that it names, if it names one: [[8月20日]] is the day that 8月20日 is in its sentence."""
    within = (rule for rule in by_rules if rule.subtype == DAY and mark.start < rule.start and rule.end < mark.end)
    day = next((rule for rule in within if text[rule.start : rule.end] == mark.name), None)
    return replace(day, start=mark.start, end=mark.end, method=mark.method) if day and mark.type in (None, NamedDay.type) else mark


_KANJI, _KATAKANA = bounded(f"[{EVERY_KANJI}]+"), bounded(f"[{KATAKANA}]+")
# What may follow a name of kanji directly: a title, what one does at a place, a verb without its particle.
_MAY_FOLLOW = bounded("|".join((HONORIFICS, *words("ja", "after_name"), f"[{EVERY_KANJI}][ぁ-ん](?<![はがをにでとものへやのか])")))
# 東京タワー and 田中クリニック are other names; 田中コーチ and 札幌ラーメン are not.
_PLACES, _TITLES = words("ja", "katakana_places"), words("ja", "katakana_titles")
_LIKE_A_PLACE = bounded("(?:に|へ|まで)[はも]?(?:行|旅行|出張|引っ?越|住|移住|着[いく]|向か|帰省|遊びに|泊ま)|旅行|出張|出身|在住|観光")
# Types that one name may have, but not one entity: 福島さん and the place, 株式会社ミドリ and ミドリさん. Toyotaさん is still the company.
_EXCLUDED_TYPES = {"Person": {"Location"}, "Location": {"Person"}, "Organization": {"Person", "Location", "Object"}}
# Characters before a name that are read, and of the longest finding of a rule.
_REACH, _LONGEST = 8, 2 * NAME_LIMIT


def known_mentions(
    text: str, known: Iterable[Match], by_rules: Iterable[Mention], small: Set[str], *, is_question: bool = False
) -> Iterator[Mention]:
    """A mention for each known name that means an entity, of two that begin at one offset the longer. `small`: the everyday words."""
    ordered = sorted(by_rules, key=lambda rule: rule.start)
    free, starts = 0, [rule.start for rule in ordered]
    for match in sorted(known, key=lambda match: (match.start, -match.end)):
        fitting = [candidate for candidate in match.candidates if _is_whole_name(text, match.start, match.end, candidate.type)]
        near = ordered[bisect_left(starts, match.end - _LONGEST) : bisect_right(starts, match.start)]
        rules = [rule for rule in near if rule.end >= match.end]
        if match.start < free or not fitting or not all(_is_same(match, rule, text) for rule in rules):
            continue
        if not rules and text[match.start : match.end].casefold() in small and not any(map(_may_be_small, fitting)):
            continue
        free = match.end
        rule = max((rule for rule in rules if rule.type), key=lambda rule: rule.end - rule.start, default=None)
        choice = _choice(text, match, fitting, rule)
        if choice and (len(choice) == 1 or choice[0].is_own or is_question):
            entity = choice[0]
            likely = rule.type if rule and entity.type == UNKNOWN_TYPE else None
            yield Mention(entity.name, entity.type, match.start, match.end, "known", likely=likely, entity=entity.entity)


def _is_whole_name(text: str, start: int, end: int, type_: str) -> bool:
    """True if `text[start:end]` may be the whole name of an entity of this type, and not a part of a longer one."""
    name = text[start:end]
    if not _KANJI.match(name[-1]):
        return True
    katakana = _KATAKANA.match(text, end)
    if katakana and (katakana[0].endswith(_PLACES) or (type_ != "Location" and not katakana[0].startswith(_TITLES))):
        return False
    if not (2 <= len(name) <= 3 and _KANJI.fullmatch(name)):  # 田中 in 田中花子 and 山田中学校 is a part of another name
        return True
    before = _KANJI.findall(near := text[max(start - _REACH, 0) : start])
    if before and near.endswith(before[-1]) and not BEFORE_NAME.fullmatch(before[-1]):
        return False
    return _KANJI.match(text, end) is None or _MAY_FOLLOW.match(text, end) is not None


def _may_be_small(candidate: Candidate) -> bool:
    """True if a name may be written as an everyday word is: that of a tool, and an alias."""
    return candidate.name.islower() or candidate.type == "Technology" or not candidate.is_own


def _is_same(match: Match, rule: Mention, text: str) -> bool:
    """True if a rule found the known name itself, and not a longer one that contains it: 東京大学 is not 東京, 田中花子 not 田中."""
    return bare(text[match.start : match.end]) == bare(rule.name) or (rule.start, rule.end) == (match.start, match.end)


def _choice(text: str, match: Match, fitting: Sequence[Candidate], rule: Mention | None) -> Sequence[Candidate]:
    """The candidates that may be meant, the likeliest first; none where the rule shows a new entity of that name."""
    likely = rule.type if rule else "Location" if _LIKE_A_PLACE.match(text, match.end) else None
    if rule and {candidate.type for candidate in fitting} <= _EXCLUDED_TYPES.get(str(likely), set()):
        return ()
    of_type = [candidate for candidate in fitting if candidate.type == likely]
    of_type = of_type or [candidate for candidate in fitting if likely and candidate.type == UNKNOWN_TYPE] or list(fitting)
    return [candidate for candidate in of_type if candidate.is_own] or of_type
