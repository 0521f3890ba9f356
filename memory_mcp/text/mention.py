"""One entity as a text names it, and which of two that overlap is kept."""

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Method = Literal["marked", "stated", "known", "rule", "dictionary", "model"]

# What an entity is when nothing tells: something one speaks of.
UNKNOWN_TYPE = "Concept"
# How far a finding is trusted, 0 to 1, and the order in which findings that overlap are kept.
TRUST: dict[Method, float] = {"marked": 1.0, "stated": 1.0, "known": 0.9, "model": 0.8, "dictionary": 0.6, "rule": 0.6}


@dataclass(frozen=True, slots=True)
class Mention:
    """`text[start:end]` names an entity. `name` is what it is called, `type` one of the entity types, None where nothing tells it.

    `likely` is the type that it has where nobody has told one; `aliases` are further names that the text itself gives; `entity` is the
    number of the one that is meant, where that is known.
    """

    name: str
    type: str | None
    start: int
    end: int
    method: Method
    subtype: str | None = None
    aliases: tuple[str, ...] = ()
    likely: str | None = None
    entity: int | None = None

    @property
    def confidence(self) -> float:
        return TRUST[self.method]


def without_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """The more trusted of two that overlap, and of two that are trusted alike the longer; in the order of the text."""
    kept: list[Mention] = []  # in the order of the text: only the two beside it can overlap with another one
    for mention in sorted(mentions, key=lambda one: (-one.confidence, one.start - one.end, one.start)):
        place = bisect(kept, mention.start, key=lambda one: one.start)
        beside = kept[max(place - 1, 0) : place + 1]
        if all(mention.end <= other.start or mention.start >= other.end for other in beside):
            kept.insert(place, mention)
    return kept
