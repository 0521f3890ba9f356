"""What a persona's experiences advise for a task: what to try and what to beware of, the best first, within a budget of tokens.

    rank = similarity · lower bound of the success rate · ½^(days without use / half-life) · (1 + what judgements say / 2)

The lower bound is Wilson's (1927) for 95 %: one of one is worth less than 18 of 20. Whether steps are advised at all depends on the rate itself.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memory_mcp.config.settings import Settings
from memory_mcp.features.experience.matches import Match
from memory_mcp.features.experience.settings import Advising
from memory_mcp.language.budget import cut_to_tokens, estimate_tokens
from memory_mcp.store.feedback import Counts

TOKENS = 600
# Tokens of an answer besides what it advises.
ENVELOPE_TOKENS = 60
# The longest part of an experience that is shown whole where there are others.
PART_TOKENS = 120
# How many are named that may be about the same, and the longest title of one.
MOST_NEAR, TITLE_TOKENS = 3, 40
_Z = 1.96
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try, what to beware of, and what may be about the same, as JSON objects with the keys of their memories. `left_out`: how many did not fit."""

    to_try: tuple[Mapping[str, Any], ...] = ()
    beware: tuple[Mapping[str, Any], ...] = ()
    near: tuple[Mapping[str, Any], ...] = ()
    left_out: int = 0

    @property
    def keys(self) -> list[str]:
        return [entry["key"] for entry in (*self.to_try, *self.beware, *self.near)]


def lower_bound(worked: float, tried: int) -> float:
    """The lower end of Wilson's score interval of a success rate, 0 without tries."""
    if not tried:
        return 0.0
    rate, square = worked / tried, _Z * _Z
    center, width = rate + square / (2 * tried), _Z * math.sqrt(rate * (1 - rate) / tried + square / (4 * tried * tried))
    return max((center - width) / (1 + square / tried), 0.0)


def advice(matched: Sequence[Match], *, settings: Settings, now: datetime, limit: int, max_tokens: int = TOKENS) -> Advice:
    """The advice of the experiences that were compared with a task, at most `limit` of each kind."""
    sure = [match for match in matched if match.is_sure or (match.is_named and not is_advised(match, settings))]
    near = _near(matched, sure, limit)
    ranked = sorted(sure, key=lambda match: (rank(match, settings, now), match.similarity), reverse=True)
    to_try = [match for match in ranked if is_advised(match, settings)][:limit]
    beware = [match for match in ranked if not is_advised(match, settings)]
    # What still holds comes before what has worked since.
    beware = sorted(beware, key=lambda match: (is_superseded(match), -_danger(match, settings, now)))[:limit]
    left = max_tokens - ENVELOPE_TOKENS - sum(map(_cost, near))
    shown: dict[str, Mapping[str, Any]] = {}
    # The best of each kind, then the second, as far as they fit.
    for match in sorted((*to_try, *beware), key=lambda match: to_try.index(match) if match in to_try else beware.index(match)):
        entry = _tried_view(match, settings, now) if match in to_try else _pitfall_view(match)
        entry = entry if shown else _cut(entry, left)
        cost = _cost(entry)
        if cost <= left:
            shown[match.memory.key] = entry
            left -= cost
    kinds = [[shown[match.memory.key] for match in matches if match.memory.key in shown] for matches in (to_try, beware)]
    return Advice(tuple(kinds[0]), tuple(kinds[1]), tuple(near), len(sure) - len(shown))


def near_view(match: Match) -> dict[str, Any]:
    """An experience that may be about the same."""
    return {
        "key": match.memory.key,
        "title": cut_to_tokens(match.experience.task, TITLE_TOKENS),
        "similarity": round(match.similarity, 2),
    }


def _near(matched: Sequence[Match], sure: Sequence[Match], limit: int) -> list[dict[str, Any]]:
    """The most similar of those that may be about the task, one of each task."""
    known = {match.experience.task for match in sure}
    near = {match.experience.task: match for match in reversed(matched) if match.is_near and match.experience.task not in known}
    ordered = sorted(near.values(), key=lambda match: match.similarity, reverse=True)
    return [near_view(match) for match in ordered[: min(limit, MOST_NEAR)]]


def rank(match: Match, settings: Settings, now: datetime) -> float:
    """The value by which advice is ordered."""
    return match.similarity * bound_of(match.counts) * _recency(match, settings, now) * (1 + match.counts.balance / 2)


def bound_of(counts: Counts) -> float:
    """The lower bound of the success rate of an experience."""
    return lower_bound(counts.of("worked") + counts.of("partly") / 2, counts.tried)


def is_superseded(match: Match) -> bool:
    """Whether an experience was contradicted or judged as stale after its last success; for a pitfall, after its last failure."""
    seen = "failed" if match.experience.is_pitfall else "worked"
    return match.counts.is_over(seen, ("contradicted", "stale"))


def is_advised(match: Match, settings: Settings) -> bool:
    """Whether an experience is a way to do its task that may be tried again."""
    return not match.experience.is_pitfall and match.counts.rate >= settings.of(Advising).success_from and not is_superseded(match)


def _danger(match: Match, settings: Settings, now: datetime) -> float:
    seen = max(match.counts.of("failed"), 1)
    return match.similarity * (match.experience.severity or 3) * seen / (seen + 1) * _recency(match, settings, now)


def _recency(match: Match, settings: Settings, now: datetime) -> float:
    last = match.counts.last_tried or match.memory.updated_at
    return math.exp2(-max((now - last) / _DAY, 0.0) / settings.of(Advising).half_life_days)


def _tried_view(match: Match, settings: Settings, now: datetime) -> dict[str, Any]:
    experience, counts = match.experience, match.counts
    view = {
        "key": match.memory.key,
        "title": experience.task,
        "steps": list(experience.steps),
        "strategy": experience.strategy,
        "when": experience.when,
        "not_when": experience.not_when,
        "lesson": experience.lesson,
    }
    last = counts.last_tried
    numbers = {"tried": counts.tried, "worked": counts.of("worked"), "lower_bound": round(bound_of(counts), 2)}
    dated = {"last": f"{last.astimezone(settings.zone):%Y-%m-%d}"} if last else {}
    return {**_filled(view), **numbers, **dated, "why": _why(match, _recency(match, settings, now))}


def _pitfall_view(match: Match) -> dict[str, Any]:
    experience, counts = match.experience, match.counts
    is_pitfall = experience.is_pitfall
    seen = {"seen": max(counts.of("failed"), 1)} if is_pitfall else {"tried": counts.tried, "worked": counts.of("worked")}
    view = {
        "key": match.memory.key,
        "title": experience.task,
        "when": experience.when,
        "sign": experience.sign,
        "what_happened": experience.lesson,
        "steps": list(experience.steps),
        "instead": experience.instead,
        "severity": experience.severity or None,
        **seen,
        "superseded": is_superseded(match) or None,
    }
    return {**_filled(view), "why": _why(match)}


def _why(match: Match, recency: float = 1.0) -> str:
    parts = [f"{match.by} {match.similarity:.2f}"]
    parts += [f"recency {recency:.2f}"] if recency < 0.995 else []
    parts += [f"judged {match.counts.balance:+.2f}"] if match.counts.balance else []
    return ", ".join(parts)


def _cut(entry: dict[str, Any], budget: int) -> dict[str, Any]:
    """An entry with fewer steps and shorter texts, if it alone would cost more than the budget. `recall` with its key shows the whole."""
    if _cost(entry) <= budget:
        return entry
    cut = {name: cut_to_tokens(value, PART_TOKENS) if isinstance(value, str) else value for name, value in entry.items()}
    steps = list(cut.pop("steps", []))
    while steps and _cost({**cut, "steps": steps, "truncated": True}) > budget:
        steps.pop()
    return {**cut, **({"steps": steps} if steps else {}), "truncated": True}


def _cost(entry: Mapping[str, Any]) -> int:
    return estimate_tokens(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))) + 1


def _filled(view: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if value not in (None, "", [])}
