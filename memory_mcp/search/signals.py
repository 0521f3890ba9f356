"""The order of an answer: one table of signals, one sum, one sort.

    score = Σ weight · value

Each signal of `SIGNALS`, the table at the end of this file, has a name, a weight for this question, and a value for each candidate. They are
added from the top, and one may depend on the sum of those above it: it takes a share of that sum away, or multiplies it. What each gains:
docs/decisions/0065-one-table-of-signals.md. The caller's settings may have weights of the
persona's own (`store/feedback.py:FITTED`). A row is always a candidate.

    score_all     the only sum: every candidate, hit or not
    supported     which candidates are hits, by what speaks for them, not by their score; a reranker makes no other one a hit
    sorted_rows   the only sort: the hits by their scores, or by time where that is the question
    Order         the sorted hits. Its head, the first of them, is sorted again once a reranker has read it; the rest stays behind it

Afterwards only `page.with_newer` changes a score: what is newer than a hit, and is shown before it, has that hit's score at least.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from memory_mcp import time_limit
from memory_mcp.config.settings import Fusion
from memory_mcp.search.candidates import Candidates, Column, Flags
from memory_mcp.search.meaning import Meaning
from memory_mcp.search.question import ParsedQuestion
from memory_mcp.store.timestamps import from_text
from memory_mcp.tracing import spanned

# The number of other memories of its session that support a memory.
WITNESSES = 5
# For a question for the latest of something (最近, "lately"), what was said just now counts so many times as much as what was said before
# that time.
RECENT_WEIGHT = 3.0
# A short turn that is a question says little. The turn after it answers it, and gets this share of how well that question matches.
ASKING_PENALTY, ANSWER_SHARE = 0.12, 0.15
# Of what is in another language than the question, this share of its meaning counts as its words.
OTHER_LANGUAGE_SHARE = 0.7
# `mode=graph`: the words of the query count once, the nearness of a memory in the graph half as much (docs/graph-search.md#in-a-search).
NEARNESS_WEIGHT = 0.5
# The head has so many times as many as an answer shows.
HEAD_FACTOR = 3
# What was judged as outdated, or as misleading, keeps this share of its score: it is shown first only if nothing else is found.
SUNK_SHARES: Mapping[str, float] = {"stale": 0.1, "hurt": 0.3}
# The least share of the best match's words, and of its nearness, that makes a candidate a hit. The words of others of its session count
# half.
LEAST_WORDS, SESSION_SUPPORT, LEAST_NEARNESS = 0.28, 0.5, 0.5


@dataclass(slots=True)
class Scored:
    """Candidates and their `score`: the sum of the signals that were added so far, of which `values` and `weights` are kept by name.

    `shares` is the lexical score as a share of the best one, of which an assistant's counts `assistant_weight`: its own share may be
    above 1. `meaning_weight` is that of vectors beside words. Where vectors `are_apart`
    from what all texts share, any two texts have a nearness of about 0.
    """

    candidates: Candidates
    parsed: ParsedQuestion
    meaning_weight: float
    are_apart: bool
    score: Column
    shares: Column
    values: dict[str, Column] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    @property
    def fusion(self) -> Fusion:
        return self.parsed.settings.fusion


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: its `weight` for a question, where 0 leaves it out, and its `values` for the candidates. `shown`: its name and its values in an explained answer,
    which leaves out NaN."""

    name: str
    weight: Callable[[Scored], float]
    values: Callable[[Scored], Column]
    shown: tuple[str, Callable[[Scored], Column | Flags]] | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The rows of all hits, best first. The `head` are the best of them, which a cross-encoder reads: `HEAD_FACTOR` times as many as are
    wanted."""

    scored: Scored
    rows: Sequence[int]

    @property
    def _head_size(self) -> int:
        return self.scored.parsed.question.top_k * HEAD_FACTOR

    @property
    def head(self) -> Sequence[int]:
        return self.rows[: self._head_size]

    @property
    def rest(self) -> Sequence[int]:
        return self.rows[self._head_size :]

    @property
    def leading(self) -> list[tuple[int, float]]:
        """The ids of the best with their scores, without those that were judged as outdated or misleading: what they lead to would be
        ranked before them."""
        candidates, score = self.scored.candidates, self.scored.score
        return [(candidates.keys[row][1], float(score[row])) for row in self.head if not candidates.verdicts[row]]

    def sorted_again(self, candidates: Candidates) -> "Order":
        """The order after the reranker: all are scored anew, only the head is sorted again; the rest stays behind it, whatever it scores."""
        again = score_all(candidates, self.scored.parsed, dense_weight=self.scored.meaning_weight, are_apart=self.scored.are_apart)
        return Order(again, [*sorted_rows(again, self.head), *self.rest])


def in_order(candidates: Candidates, parsed: ParsedQuestion, meaning: Meaning, *, in_small_store: bool) -> Order:
    """The hits among the candidates, by the sum of all signals."""
    time_limit.check()
    weight = meaning.scale.weight if parsed.settings.fusion.dense_weight is None else parsed.settings.fusion.dense_weight
    by_meaning_alone = parsed.question.mode == "semantic"
    result = score_all(candidates, parsed, dense_weight=1.0 if by_meaning_alone else weight, are_apart=meaning.centers is not None)
    hits = supported(result, in_small_store=in_small_store)
    return Order(result, sorted_rows(result, np.flatnonzero(hits).tolist()))


@spanned("fuse")
def score_all(candidates: Candidates, parsed: ParsedQuestion, *, dense_weight: float, are_apart: bool) -> Scored:
    """The candidates with their scores."""
    fusion = parsed.settings.fusion
    role = np.where(candidates.is_assistants, fusion.assistant_weight, 1.0)
    shares = candidates.lexical / (float((candidates.lexical * role).max(initial=0.0)) or 1.0)
    meaning_weight = dense_weight if candidates.has_vectors else 0.0
    result = Scored(candidates, parsed, meaning_weight, are_apart, np.zeros(len(candidates)), shares)
    for signal in SIGNALS:
        if weight := signal.weight(result):
            values = signal.values(result)
            result.values[signal.name], result.weights[signal.name] = values, weight
            result.score = result.score + weight * values
    return result


def sorted_rows(scored: Scored, rows: Iterable[int]) -> list[int]:
    """These rows, best first: by score; of equals those of a named date first, then the latest. For a question for the latest memories, or
    for what is to come, by time."""
    if scored.parsed.question.mode == "recent":
        return (
            sorted(rows, key=_by_nearest_time(scored))
            if scored.parsed.time.looks_ahead
            else sorted(rows, key=_by_latest(scored), reverse=True)
        )
    told = (origin.told_at for origin in scored.candidates.origins)
    places = list(zip(scored.score.tolist(), scored.candidates.dates.tolist(), told, strict=True))
    return sorted(rows, key=places.__getitem__, reverse=True)


def supported(scored: Scored, *, in_small_store: bool) -> Flags:
    """The rows that are hits (docs/decisions/0026-support.md). Where the question says so (`are_all_hits`), or there are vectors that are not
    apart from what all texts share, so that all may be near, every candidate is one.

    Otherwise one is a hit because of its words, its nearness, a named date or speaker, or a strong association in the graph (`is_certain`,
    from `LEAST_ASSOCIATION` in graph/query/retrieval.py on), or because it answers a turn that is a hit. A candidate by words shares some word with the question. To a question about what was never
    said, most have no more than that, and are no hits. In a small store one shared word is enough.
    """
    candidates = scored.candidates
    if scored.parsed.are_all_hits or (candidates.has_vectors and not scored.are_apart):
        return np.ones(len(candidates), bool)
    words = candidates.lexical
    least = 0.0 if in_small_store else LEAST_WORDS * float(words.max(initial=0.0))
    by_session = SESSION_SUPPORT / LEAST_WORDS * least * _session_shares(scored)
    hits = candidates.is_certain | (candidates.dates > 0) | candidates.is_named | ((words > 0) & (words + by_session >= least))
    if candidates.has_vectors:
        nearest = float(np.nanmax(candidates.nearness))
        hits |= ~(candidates.nearness < nearest - (1 - LEAST_NEARNESS) * abs(nearest))
    of_question = [row for row, question in _answer_pairs(candidates) if hits[question]]
    hits[of_question] = True
    return hits


def why(scored: Scored, rows: Sequence[int]) -> list[dict[str, Any]]:
    """The values of the signals for each of these candidates, by their names in an explained answer."""
    explained: list[dict[str, Any]] = [{} for _ in rows]
    for name, values in (signal.shown for signal in SIGNALS if signal.shown):
        for into, value in zip(explained, values(scored)[rows].tolist(), strict=True):
            if value is True:
                into[name] = True
            elif value == value and value is not False:  # noqa: PLR0124  NaN is unknown
                into[name] = round(value, 3)
    return explained


def contributions(scored: Scored, rows: Sequence[int]) -> list[dict[str, tuple[float, float]]]:
    """What adds to the score of each of these candidates, or takes from it: the weight and the value of each signal. The sum of
    their products is the score, unless `with_newer` has raised that."""
    columns = {name: (scored.weights[name], values[rows].tolist()) for name, values in scored.values.items()}
    return [
        {name: (weight, values[place]) for name, (weight, values) in columns.items() if weight * values[place]}
        for place in range(len(rows))
    ]


def _words(scored: Scored) -> Column:
    """The share of the best lexical score. A memory in another language than the question can't share its words: a share of its meaning
    counts instead."""
    if not scored.candidates.is_foreign.any():
        return scored.shares
    return np.where(scored.candidates.is_foreign, np.maximum(scored.shares, OTHER_LANGUAGE_SHARE * _meaning(scored)), scored.shares)


def _shown_words(scored: Scored) -> Column:
    return scored.shares * np.where(scored.candidates.is_assistants, scored.fusion.assistant_weight, 1.0)


def _meaning(scored: Scored) -> Column:
    """The nearness, from 0 for the farthest candidate to 1 for the nearest. A memory without a vector counts by its words."""
    nearness = scored.candidates.nearness
    # Where vectors are apart from what all texts share, the farthest of few candidates need not be far from the question.
    low = float(np.nanmin(nearness)) if not scored.are_apart else min(float(np.nanmin(nearness)), 0.0)
    return np.where(np.isnan(nearness), scored.shares, (nearness - low) / ((float(np.nanmax(nearness)) - low) or 1.0))


def _session_shares(scored: Scored) -> Column:
    """For each row the mean share of the best others from its session; fewer than `WITNESSES` count as if the rest had none."""
    if "sessions" in scored.values:
        return scored.values["sessions"]
    shares = _shown_words(scored).tolist()
    by_session = defaultdict(list)
    for row, session in enumerate(scored.candidates.session_ids):
        if session:
            by_session[session].append(row)
    of_others = [0.0] * len(shares)
    for rows in by_session.values():
        best = sorted([share for row in rows if (share := shares[row])], reverse=True)[: WITNESSES + 1] if len(rows) > 1 else ()
        if best:
            every, without_last = sum(best), sum(best[:WITNESSES])
            for row in rows:
                of_others[row] = every - shares[row] if shares[row] >= best[-1] else without_last
    return np.array(of_others) / WITNESSES


def _recency(scored: Scored) -> Column:
    """What a late time adds: nothing before the period that the question is for, up to `RECENT_WEIGHT` − 1 times the score at its end."""
    recent = scored.parsed.time.dates[0]
    ages = [(from_text(origin.told_at) - recent.start) / (recent.end - recent.start) for origin in scored.candidates.origins]
    return scored.score * (RECENT_WEIGHT ** np.clip(np.array(ages, np.float64), 0.0, 1.0) - 1)


def _asking(scored: Scored) -> Column:
    """What a turn loses that is only a question, at most its whole score."""
    asks = np.array([origin.asks for origin in scored.candidates.origins], np.float64)
    return np.where(asks > 0, np.minimum(asks, scored.score / ASKING_PENALTY), 0.0)


def kept_shares(candidates: Candidates) -> Column:
    """The share of its score that each row keeps, less than 1 where a judgement is against it."""
    return np.array([SUNK_SHARES.get(verdict, 1.0) for verdict in candidates.verdicts], np.float64)


def _answer_pairs(candidates: Candidates) -> list[tuple[int, int]]:
    """Pairs of rows: a turn, and the turn before it, which is a question."""
    rows = {key: row for row, key in enumerate(candidates.keys)} if candidates.answers else {}
    return [(rows[turn], rows[before]) for turn, before in candidates.answers.items() if turn in rows and before in rows]


def _answering(scored: Scored) -> Column:
    """What an answer by a person gains by the question before it, if that matches. An answer below a short question changes places with it."""
    candidates, after = scored.candidates, scored.score.copy()
    matched = contribution(scored, "words") + contribution(scored, "meaning")
    for answer, question in sorted(_answer_pairs(candidates)):
        if candidates.is_assistants[answer] or candidates.verdicts[answer]:
            continue
        asks = candidates.origins[question].asks
        role = scored.fusion.assistant_weight if candidates.is_assistants[question] else 1.0
        after[answer] += ANSWER_SHARE * asks * role * matched[question]
        if asks == 1.0 and not candidates.origins[answer].asks and after[question] > after[answer]:
            after[answer], after[question] = after[question], after[answer]
    return after - scored.score


def _if_any(values: Callable[[Scored], Column]) -> Callable[[Scored], Column]:
    """The same values, of which 0 is not shown."""

    def shown(scored: Scored) -> Column:
        column = values(scored)
        return np.where(column == 0, np.nan, column)

    return shown


def contribution(scored: Scored, name: str) -> Column:
    """What a signal added so far to each candidate."""
    return scored.weights[name] * scored.values[name] if name in scored.values else np.zeros(len(scored.candidates))


def _graph_weight(scored: Scored) -> float:
    if scored.parsed.question.mode == "graph":
        return NEARNESS_WEIGHT
    return scored.fusion.graph_weight_dense if scored.candidates.has_vectors else scored.fusion.graph_weight


def _by_latest(scored: Scored) -> Callable[[int], Any]:
    """Sorts the latest first; memories whose text names the date of the question come before those that were only said on it, and in both
    groups people before assistants."""
    candidates = scored.candidates
    return lambda row: (candidates.dates[row], not candidates.is_assistants[row], candidates.origins[row].told_at, candidates.keys[row])


def _by_nearest_time(scored: Scored) -> Callable[[int], Any]:
    """Sorts by the first time of a memory that is to come; of times under way the shortest is first. Memories that only name a longer time
    are last."""
    candidates, start = scored.candidates, min((since for since, _ in scored.parsed.spans), default="")

    def nearest(row: int) -> tuple[float, str, timedelta, Any]:
        times = [(max(time, start), from_text(end) - from_text(time)) for time, end in candidates.times[row] if end > start]
        time, lasts = min(times, default=(candidates.origins[row].happened, timedelta()))
        return -candidates.dates[row], time, lasts, candidates.keys[row]

    return nearest


def _column(name: str) -> Callable[[Scored], Column]:
    """The values of this column of the candidates."""
    return lambda scored: np.asarray(getattr(scored.candidates, name), np.float64)


def _setting(name: str) -> Callable[[Scored], float]:
    """The weight with this name in the settings of the fusion."""
    return lambda scored: float(getattr(scored.fusion, name))


def _added(name: str) -> tuple[str, Callable[[Scored], Column]]:
    """What a signal added, under its own name."""
    return name, _if_any(lambda scored: contribution(scored, name))


_graph, _session_weight = _column("graph"), _setting("session_weight")

SIGNALS: tuple[Signal, ...] = (
    Signal("words", lambda scored: 1 - scored.meaning_weight, _words, ("lexical", _shown_words)),
    Signal(
        "sessions",
        lambda scored: (1 - scored.meaning_weight) * _session_weight(scored),
        _session_shares,
        ("session", _if_any(_session_shares)),
    ),
    Signal("graph", _graph_weight, _graph, ("graph", _if_any(_graph))),
    Signal("meaning", lambda scored: scored.meaning_weight, _meaning, ("dense", _column("dense"))),
    # What an assistant said is long, and repeats a person.
    Signal("assistants", lambda scored: scored.fusion.assistant_weight - 1, lambda scored: scored.candidates.is_assistants * scored.score),
    Signal("named-speakers", _setting("speaker_boost"), _column("is_named"), ("speaker", lambda scored: scored.candidates.is_named)),
    Signal(
        "dates",
        lambda scored: 0.0 if scored.parsed.time.wants_lately else scored.fusion.date_boost,
        _column("dates"),
        ("date", lambda scored: scored.candidates.dates > 0),
    ),
    Signal("recency", lambda scored: float(scored.parsed.time.wants_lately), _recency),
    Signal("freshness", lambda scored: scored.parsed.settings.decay.weight, _column("retention"), _added("freshness")),
    Signal("judged", _setting("judged_weight"), _column("judged"), _added("judged")),
    Signal("asking-penalty", lambda _: -ASKING_PENALTY, _asking),
    Signal(
        "sunk", lambda scored: -float(any(scored.candidates.verdicts)), lambda scored: (1 - kept_shares(scored.candidates)) * scored.score
    ),
    Signal("answers-to-questions", lambda scored: float(bool(scored.candidates.answers)), _answering),
    Signal("reranker", _setting("rerank_weight"), _column("cross_value"), ("rerank", _column("cross_score"))),
)
