"""The entities that a text names: marked by its writer, known already, or found by rules; of two that overlap the more trusted one."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date

from memory_mcp.dates.mentions import DAY, NamedDay, days
from memory_mcp.graph.extract.known_names import known_mentions
from memory_mcp.graph.extract.rules import HONORIFICS, mentions_by_rules, small_words
from memory_mcp.language.entity_types import type_of_word
from memory_mcp.language.gazetteer import Match
from memory_mcp.language.mention import Mention, without_overlaps
from memory_mcp.language.names import NAME_LIMIT, bare, is_invisible, is_polite

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
    text: str, types: Collection[str], known: Iterable[Match] = (), *, is_question: bool = False, stated_on: date | None = None
) -> list[Mention]:
    """The mentions in a text, in its order.

    `types`: what a mark may give as a type. `known`: the known names in the text. `is_question`: an alias that several entities share
    means the one mentioned most, instead of none. `stated_on`: the day from which the year of 10月17日 is reckoned.
    """
    small, known = small_words(text), list(known)
    by_rules = [*days_named(text, stated_on), *(mention for mention in mentions_by_rules(text, small) if len(mention.name) <= NAME_LIMIT)]
    marked = [_as_day(mention, text, by_rules) for mention in _marked(text, types)] if MARK_START in text else ()
    of_known = known_mentions(text, known, by_rules, small, is_question=is_question) if known else ()
    return without_overlaps([*marked, *of_known, *by_rules])


def days_named(text: str, stated_on: date | None = None) -> Iterator[Mention]:
    """The days and months that a text names."""
    for day in days(text, stated_on):
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
        likely = "Person" if is_person and not _NO_PERSON.search(name) else None
        yield Mention(name, type_, match.start(), match.end(), "marked", aliases=aliases, likely=likely)


def _as_day(mark: Mention, text: str, by_rules: Iterable[Mention]) -> Mention:
    """A mark as the day that it names, if it names one: [[8月20日]] is the day that 8月20日 is in its sentence."""
    if mark.type not in (None, NamedDay.type):
        return mark
    within = (rule for rule in by_rules if rule.subtype == DAY and mark.start < rule.start and rule.end < mark.end)
    day = next((rule for rule in within if text[rule.start : rule.end] == mark.name), None)
    return replace(day, start=mark.start, end=mark.end, method=mark.method) if day else mark
