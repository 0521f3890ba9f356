"""All that a text names: what its writer marked, what is known already, what the rules tell. Of two that overlap the more trusted stays."""

from collections.abc import Collection, Iterator

from memory_mcp.text.entities import english, japanese
from memory_mcp.text.entities.folding import bare
from memory_mcp.text.entities.known import Gazetteer
from memory_mcp.text.entities.marks import marked
from memory_mcp.text.entities.mention import Mention, without_overlaps
from memory_mcp.text.tokens import is_japanese

# Rules look no further into a text: a book that somebody pastes in is not an index of names.
TEXT_LIMIT = 20_000


def found_in(text: str, types: Collection[str], known: Gazetteer | None = None) -> list[Mention]:
    """The entities that a text names, in its order; several where one is named in several places."""
    read = text[:TEXT_LIMIT]
    return without_overlaps([*marked(read, types), *(mention for _, mention in (known.find(read) if known else ())), *by_rules(read)])


def by_rules(text: str) -> Iterator[Mention]:
    """What the light rules tell, overlaps and all."""
    if is_japanese(text):
        yield from japanese.found(text)
    yield from english.found(text)


def entity_names(mentions: Collection[Mention]) -> dict[str, list[Mention]]:
    """The mentions by the name that they are of, honorifics and width aside, in the order of the first."""
    by_name: dict[str, list[Mention]] = {}
    for mention in mentions:
        by_name.setdefault(bare(mention.name), []).append(mention)
    return by_name
