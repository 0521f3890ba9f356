"""A mention of an entity in a text, and which of two overlapping mentions is kept."""

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Method = Literal["marked", "stated", "known", "rule", "dictionary", "model"]

# The type of an entity of which nothing shows a type.
UNKNOWN_TYPE = "Concept"
# Confidence by method, 0 to 1; of overlapping mentions the more trusted one is kept.
TRUST: dict[Method, float] = {"marked": 1.0, "stated": 1.0, "known": 0.9, "model": 0.8, "dictionary": 0.6, "rule": 0.6}


@dataclass(frozen=True, slots=True)
class Mention:
    """`text[start:end]` names an entity with this name and type (None: unknown).

    `likely` is its type unless one is stated elsewhere, `aliases` are further names that the text gives, `entity` is its row id where it is
    known already.
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
    """Of overlapping mentions the most trusted one, of equally trusted ones the longest; in the order of the text."""
    kept: list[Mention] = []  # sorted by start: only the two neighbors can overlap with a new one
    for mention in sorted(mentions, key=lambda mention: (-mention.confidence, mention.start - mention.end, mention.start)):
        index = bisect(kept, mention.start, key=lambda other: other.start)
        neighbors = kept[max(index - 1, 0) : index + 1]
        if all(mention.end <= other.start or mention.start >= other.end for other in neighbors):
            kept.insert(index, mention)
    return kept
