"""How the layers of a context share its budget: the topic first, but no layer and no long memory at the cost of all others."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from memory_mcp.domain import Hit
from memory_mcp.search.page import LEAST_TEXT_TOKENS, WORTH_CUTTING_TOKENS, cut_to, labels_cost
from memory_mcp.text.budget import estimate_tokens

Layer = Literal["recent", "semantic", "summary"]
Layered = tuple[Layer, Hit]

# While others wait, one hit gets a quarter of the budget, and the topic three quarters; where a quarter is too little to show anything, the
# first of the others has what shows it at least shortened.
LARGEST_SHARE, KEPT_SHARE = 4, 4
LEAST_SHOWN = 100


def shared(layered: Sequence[Layered], max_tokens: int, words: Sequence[str]) -> tuple[Layered, ...]:
    """As many of these whole hits, in order, as fit; at least one. Of one that is cut its best part is shown, where it is known: where most of `words` are.

    What nobody needs goes to those that were cut, in order.
    """
    largest = max(max_tokens // LARGEST_SHARE, LEAST_SHOWN) if len(layered) > 1 else max_tokens
    topical, latest, summaries = (_places(layered, layer) for layer in ("semantic", "recent", "summary"))
    others = [place for pair in zip_longest(latest, summaries) for place in pair if place is not None]
    if max_tokens // KEPT_SHARE >= LEAST_SHOWN:
        kept = min(max_tokens // KEPT_SHARE, sum(min(_cost(layered[place][1]), largest) for place in others))
    else:
        kept = _kept_for_one(layered[topical[0]][1], layered[others[0]][1], max_tokens) if topical and others else 0
    shown = _Shown(layered, words)
    shown.fill(topical, max_tokens - kept, largest)
    shown.widen(max_tokens - kept)
    half_of_the_rest = max((max_tokens - shown.spent) // 2, LEAST_SHOWN)
    shown.fill(others[:1], max_tokens, min(largest, half_of_the_rest), LEAST_TEXT_TOKENS)
    shown.fill(others, max_tokens, min(largest, half_of_the_rest))
    shown.fill(topical, max_tokens, largest)
    shown.widen(max_tokens)
    return tuple((layer, _showing(hit, shown.texts[place])) for place, (layer, hit) in enumerate(layered) if place in shown.texts)


@dataclass(slots=True)
class _Shown:
    """What is shown so far, by its place among the hits, and what that costs."""

    layered: Sequence[Layered]
    words: Sequence[str]
    texts: dict[int, str] = field(default_factory=dict)
    spent: int = 0

    def fill(self, places: Sequence[int], limit: int, largest: int, least: int = WORTH_CUTTING_TOKENS) -> None:
        """Takes these in, in order, at most `largest` of each, until of the next not even `least` of its text would fit within `limit`."""
        for place in places:
            hit = self.layered[place][1]
            room = min(limit - self.spent, largest) - labels_cost(hit.memory)
            if place in self.texts:
                continue
            if self.texts and room < min(estimate_tokens(hit.text), least):
                break
            self.texts[place] = cut_to(hit, max(room, 1 if self.texts else LEAST_TEXT_TOKENS), self.words)
            self.spent += labels_cost(hit.memory) + estimate_tokens(self.texts[place])

    def widen(self, limit: int) -> None:
        """Gives what is left up to `limit` to those that were cut, in order."""
        for place in sorted(self.texts):
            hit, before = self.layered[place][1], estimate_tokens(self.texts[place])
            if self.texts[place] != hit.text and limit > self.spent:
                self.texts[place] = cut_to(hit, before + limit - self.spent, self.words)
                self.spent += estimate_tokens(self.texts[place]) - before


def _places(layered: Sequence[Layered], wanted: str) -> list[int]:
    return [place for place, (layer, _) in enumerate(layered) if layer == wanted]


def _kept_for_one(topical: Hit, other: Hit, max_tokens: int) -> int:
    """What of a small budget is kept for a hit that is not of the topic; 0 where the two don't fit."""
    room = max_tokens - labels_cost(topical.memory) - min(estimate_tokens(topical.text), LEAST_TEXT_TOKENS)
    least, enough = (
        labels_cost(other.memory) + min(estimate_tokens(other.text), text) for text in (LEAST_TEXT_TOKENS, WORTH_CUTTING_TOKENS)
    )
    return max(least, min(enough, room // 2)) if room >= least else 0


def _cost(hit: Hit) -> int:
    return labels_cost(hit.memory) + estimate_tokens(hit.text)


def _showing(hit: Hit, text: str) -> Hit:
    return replace(hit, text=text, truncated=text != hit.memory.content)
