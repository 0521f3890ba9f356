"""All that a text names: what its writer marked, what is known already, what the rules tell. Of two that overlap the more trusted stays."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date

from memory_mcp.characters import is_japanese
from memory_mcp.dates.mentions import days
from memory_mcp.graph.extract import english_rules
from memory_mcp.graph.extract.annotations import marked
from memory_mcp.graph.extract.disambiguation import meant, with_surnames
from memory_mcp.graph.extract.japanese_people import kin, people
from memory_mcp.graph.extract.japanese_places import places, things
from memory_mcp.graph.extract.word_boundaries import stands_alone
from memory_mcp.text.gazetteer import Called
from memory_mcp.text.mention import Mention, without_overlaps
from memory_mcp.text.names import bare

# Names are looked for no further into a text: a book that somebody pastes in is not an index of names.
TEXT_LIMIT = 20_000


def found_in(
    text: str, types: Collection[str], called: Iterable[Called] = (), *, is_asked: bool = False, said_on: date | None = None
) -> list[Mention]:
    """The entities that a text names, in its order; several where one is named in several places. `called`: the known names in it;
    `is_asked`: a further name of several is the one's who is mentioned most; `said_on`: when that was said, which tells the year of 10月17日."""
    called = list(called)
    told = list(with_surnames(text, called, _by_rules(text, said_on)))
    return without_overlaps([*marked(text, types), *meant(text, called, told, is_asked=is_asked), *told])


def likely_type(name: str) -> str | None:
    """The type that a name itself tells: 京都大学 is an Organization. None where it tells nothing."""
    told = (mention for mention in _by_rules(name) if bare(mention.name) == bare(name))
    return next((mention.type for mention in told if mention.type), None)


def _by_rules(text: str, said_on: date | None = None) -> Iterator[Mention]:
    """What the light rules tell, overlaps and all. A place whose name goes on is another: 東京タワー is not 東京."""
    if is_japanese(text):
        for mention in _japanese(text):
            if mention.type != "Location" or stands_alone(text, mention.start, mention.end, "Location"):
                yield mention
    for day in days(text, said_on):
        yield Mention(day.name, day.type, day.start, day.end, "rule", subtype=day.subtype, aliases=day.aliases)
    yield from english_rules.found(text)


def _japanese(text: str) -> Iterator[Mention]:
    """What the rules for Japanese find; mentions may overlap."""
    yield from people(text)
    yield from kin(text)
    yield from places(text)
    yield from things(text)
