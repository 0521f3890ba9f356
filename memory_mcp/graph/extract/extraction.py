"""All entities that a text names: annotated by its writer, known already, or found by rules. Of two that overlap the more trusted one is kept."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date

from memory_mcp.characters import is_japanese
from memory_mcp.dates.mentions import DAY, NamedDay, days
from memory_mcp.graph.extract.annotations import ANNOTATION_START, annotated
from memory_mcp.graph.extract.disambiguation import disambiguated, with_surnames
from memory_mcp.graph.extract.english_rules import english_mentions, has_latin
from memory_mcp.graph.extract.japanese_people import people, relatives
from memory_mcp.graph.extract.japanese_places import places, things
from memory_mcp.graph.extract.word_boundaries import is_whole_name
from memory_mcp.language.gazetteer import Match
from memory_mcp.language.mention import Mention, without_overlaps
from memory_mcp.language.names import NAME_LIMIT, bare

# Only the beginning of a long text is searched for names: a pasted book is not an index of names.
TEXT_LIMIT = 20_000


def extract_mentions(
    text: str, types: Collection[str], known: Iterable[Match] = (), *, is_question: bool = False, stated_on: date | None = None
) -> list[Mention]:
    """The mentions in a text, in its order.

    `types`: what an annotation may give as a type. `known`: the known names in the text. `is_question`: an alias that several entities share
    means the one mentioned most, instead of none. `stated_on`: the day from which the year of 10月17日 is reckoned.
    """
    known = list(known)
    by_rules = [mention for mention in _by_rules(text, stated_on) if len(mention.name) <= NAME_LIMIT]
    annotations = [_as_day(mention, text, by_rules) for mention in annotated(text, types)] if ANNOTATION_START in text else ()
    if not known:
        return without_overlaps([*annotations, *by_rules])
    by_rules = list(with_surnames(text, known, by_rules))
    return without_overlaps([*annotations, *disambiguated(text, known, by_rules, is_question=is_question), *by_rules])


def _as_day(annotation: Mention, text: str, by_rules: Iterable[Mention]) -> Mention:
    """An annotation as the day that it names, if it names one: [[8月20日]] is the day that 8月20日 is in its sentence."""
    if annotation.type not in (None, NamedDay.type):
        return annotation
    within = (rule for rule in by_rules if rule.subtype == DAY and annotation.start < rule.start and rule.end < annotation.end)
    day = next((rule for rule in within if text[rule.start : rule.end] == annotation.name), None)
    return replace(day, start=annotation.start, end=annotation.end, method=annotation.method) if day else annotation


def relatives_and_days(text: str) -> list[Mention]:
    """The writer's own relatives and the days that a text names: rules alone recognize them, they are in no gazetteer."""
    if not (any(relatives(text)) or any(days(text, None))):
        return []  # nearly every question
    return [mention for mention in extract_mentions(text, ()) if mention.subtype in ("family", "day")]


def likely_type(name: str) -> str | None:
    """The type that the name itself shows: 京都大学 is an Organization. None where it shows none."""
    whole = (mention for mention in _by_rules(name) if bare(mention.name) == bare(name))
    return next((mention.type for mention in whole if mention.type), None)


def _by_rules(text: str, stated_on: date | None = None) -> Iterator[Mention]:
    """What the rules find, overlaps included. A place whose name goes on is another place: 東京タワー is not 東京."""
    if is_japanese(text):
        for mention in (*people(text), *relatives(text), *places(text), *things(text)):
            if mention.type != "Location" or is_whole_name(text, mention.start, mention.end, "Location"):
                yield mention
    for day in days(text, stated_on):
        yield Mention(day.name, day.type, day.start, day.end, "rule", subtype=day.subtype, aliases=day.aliases)
    if has_latin(text):
        yield from english_mentions(text)
