"""Divides the token budget of a context among its layers: what matters most, then the topic, but without crowding out the others."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal, get_args

from memory_mcp.domain import Hit
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.search.page import HIT_OVERHEAD_TOKENS, LEAST_TEXT_TOKENS, WORTH_CUTTING_TOKENS, cut_to, labels_cost

Layer = Literal["core", "semantic", "summary", "upcoming", "recent"]
# The order in which they are shown.
ORDER: tuple[Layer, ...] = get_args(Layer)
Layered = tuple[Layer, Hit]

# What matters most gets at most half of the budget. One hit gets at most a quarter of the budget while others follow, and the topic three quarters;
# where a quarter is too little to show anything, the first of the others gets what shows it shortened.
CORE_SHARE, LARGEST_SHARE, KEPT_SHARE = 2, 4, 4
# What a summary costs at most, besides its labels.
SUMMARY_TOKENS = 80
LEAST_SHOWN = HIT_OVERHEAD_TOKENS + WORTH_CUTTING_TOKENS


def shared(layered: Sequence[Layered], max_tokens: int, words: Sequence[str]) -> tuple[Layered, ...]:
    """As many of these hits, in order, as fit; at least one. A cut hit shows its best part, where most of `words` are.

    What is left over goes to the hits that were cut, in order.
    """
    largest = max(max_tokens // LARGEST_SHARE, LEAST_SHOWN) if len(layered) > 1 else max_tokens
    core, topical, latest, summaries, upcoming = (
        _indexes(layered, layer) for layer in ("core", "semantic", "recent", "summary", "upcoming")
    )
    others = [index for indexes in zip_longest(latest, summaries, upcoming) for index in indexes if index is not None]
    # Of a small budget the first of the others gets what shows its beginning, unless the topic would then have nothing.
    least = labels_cost(layered[others[0]][1].memory) + LEAST_TEXT_TOKENS if others else 0
    kept = min(max(max_tokens // KEPT_SHARE, least), sum(min(_cost(layered[index][1]), largest) for index in others))
    if topical and max_tokens - kept < labels_cost(layered[topical[0]][1].memory) + LEAST_TEXT_TOKENS:
        kept = 0
    shown = _Shown(layered, words)
    shown.fill(core, max_tokens // CORE_SHARE, largest)
    shown.fill(topical, max_tokens - kept, largest)
    shown.widen(max_tokens - kept)
    half_of_the_rest = max((max_tokens - shown.spent) // 2, LEAST_SHOWN)
    shown.fill(others[:1], max_tokens, min(largest, half_of_the_rest), LEAST_TEXT_TOKENS)
    shown.fill(others, max_tokens, min(largest, half_of_the_rest))
    shown.fill(topical, max_tokens, largest)
    shown.widen(max_tokens)
    return tuple((layer, _showing(hit, shown.texts[index])) for index, (layer, hit) in enumerate(layered) if index in shown.texts)


@dataclass(slots=True)
class _Shown:
    """The texts shown so far, by index of the hit, and their cost."""

    layered: Sequence[Layered]
    words: Sequence[str]
    texts: dict[int, str] = field(default_factory=dict)
    spent: int = 0

    def fill(self, indexes: Sequence[int], limit: int, largest: int, least: int = WORTH_CUTTING_TOKENS) -> None:
        """Adds these hits in order, at most `largest` tokens of each, until not even `least` tokens of the next would fit within `limit`."""
        for index in indexes:
            layer, hit = self.layered[index]
            room = min(limit - self.spent, largest) - labels_cost(hit.memory)
            room = min(room, SUMMARY_TOKENS) if layer == "summary" else room
            if index in self.texts:
                continue
            if self.texts and room < min(estimate_tokens(hit.text), least):
                break
            self.texts[index] = cut_to(hit, max(room, 1 if self.texts else LEAST_TEXT_TOKENS), self.words)
            self.spent += labels_cost(hit.memory) + estimate_tokens(self.texts[index])

    def widen(self, limit: int) -> None:
        """Gives the rest up to `limit` to the hits that were cut, in order."""
        for index in sorted(self.texts):
            (layer, hit), before = self.layered[index], estimate_tokens(self.texts[index])
            if self.texts[index] != hit.text and limit > self.spent and layer != "summary":
                self.texts[index] = cut_to(hit, before + limit - self.spent, self.words)
                self.spent += estimate_tokens(self.texts[index]) - before


def _indexes(layered: Sequence[Layered], wanted: str) -> list[int]:
    return [index for index, (layer, _) in enumerate(layered) if layer == wanted]


def _cost(hit: Hit) -> int:
    return labels_cost(hit.memory) + estimate_tokens(hit.text)


def _showing(hit: Hit, text: str) -> Hit:
    return replace(hit, text=text, truncated=text != hit.memory.content)
