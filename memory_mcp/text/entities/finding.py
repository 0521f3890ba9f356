"""All that a text names: what its writer marked, what is known already, what the rules tell. Of two that overlap the more trusted stays."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date

from memory_mcp.text.entities import english, japanese
from memory_mcp.text.entities.marks import marked
from memory_mcp.text.entities.mention import Mention, without_overlaps
from memory_mcp.text.tokens import is_japanese

# Names are looked for no further into a text: a book that somebody pastes in is not an index of names.
TEXT_LIMIT = 20_000


def found_in(text: str, types: Collection[str], known: Iterable[Mention] = (), said_on: date | None = None) -> list[Mention]:
    """The entities that a text names, in its order; several where one is named in several places. `known`: what is known already in it;
    `said_on`: when that was said, which tells the year of 10月17日."""
    return without_overlaps([*marked(text, types), *known, *_by_rules(text, said_on)])


def _by_rules(text: str, said_on: date | None) -> Iterator[Mention]:
    """What the light rules tell, overlaps and all."""
    if is_japanese(text):
        yield from japanese.found(text, said_on)
    yield from english.found(text)
