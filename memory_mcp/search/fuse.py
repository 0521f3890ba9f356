"""The fusion formula: one score out of several.

    role·(a·minmax(nearness) + (1−a)·(share + the session term) + the graph term) + the date term + the speaker term + the question term + freshness + judged,    share = bm25/max(bm25)

over the union of the candidates, with both scores for every one of them. Where the latest of something is asked for, its age weighs the match instead of the date term (docs/decisions/0022-time-and-roles.md). Why no reciprocal ranks, and what else was tried: docs/decisions/0005-fusion.md; dates, speakers and sessions: docs/decisions/0010-dates-speakers-sessions.md; vectors, questions and answers: docs/decisions/0025-what-vectors-count.md; the graph: docs/graph.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import apsw

from memory_mcp.config.settings import Decay, Fusion
from memory_mcp.domain import Candidate, Origin, TimeRange
from memory_mcp.encoders.model_families import USUAL
from memory_mcp.language.forgetting_curve import forgetting_curve
from memory_mcp.store import feedback, memory_usage
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.tracing import spanned

# The number of other memories of its session that support a memory.
WITNESSES = 5
# Too much happens in a named time of more than a month, such as a year, for it to decide: it counts this share.
DECISIVE, LONG_TIME_SHARE = timedelta(days=35), 0.5
_LONGEST_DAY = timedelta(hours=25)  # on which clocks go back
# Where the latest of something is asked for (最近, "lately"), what was told now counts so many times as much as what was told before that time.
RECENT_WEIGHT = 3.0
# A short turn that asks something says little. The turn after it answers it: it gets this share of how well that question matches.
ASKING_PENALTY, ANSWER_SHARE = 0.12, 0.15
# Of what is in another language than the question, this share of its meaning counts as its words.
OTHER_LANGUAGE_SHARE = 0.7
# What was judged as outdated, or as misleading, keeps this share of its score: it stands behind what else answers, and is found where nothing does.
SUNK_SHARES: Mapping[str, float] = {"stale": 0.1, "hurt": 0.3}


class Judged(NamedTuple):
    """What the judgements of a memory add to its score, and the one that stands against it, if one does."""

    added: float = 0.0
    verdict: str = ""


NOT_JUDGED = Judged()


@dataclass(frozen=True, slots=True)
class Hints:
    """The dates and speakers that the query names; and by candidate id: its origin, the `times` that its text names, its share from the
    graph, what `decay` and judgements add, and the turn before it, if that asks something. What these `assistants` said counts less.
    `are_apart`: nearness is that of vectors apart from what all share. `is_recent`: the query asks for the latest of something; its date
    is the time that this means. `of_telling`: it asks for what was said on its date."""

    dates: Sequence[TimeRange]
    speakers: Collection[str]
    origins: Mapping[int, Origin]
    assistants: Collection[str] = frozenset()
    times: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    graph: Mapping[int, float] = field(default_factory=dict)
    freshness: Mapping[int, float] = field(default_factory=dict)
    judged: Mapping[int, Judged] = field(default_factory=dict)
    questions: Mapping[int, int] = field(default_factory=dict)
    are_apart: bool = False
    is_recent: bool = False
    of_telling: bool = False

    def is_assistants(self, origin: Origin) -> bool:
        """Whether what this is the origin of counts less: a person may have an assistant's name."""
        return origin.source in self.assistants and origin.role != "user"


@spanned("fuse")
def fuse(candidates: Sequence[Candidate], settings: Fusion, hints: Hints, dense_weight: float = USUAL.weight) -> list[Candidate]:
    """The candidates with their scores, best first; of equals the one that was told later.

    A candidate without a vector is scored by its words alone.
    """
    origins = [hints.origins[candidate.memory_id] for candidate in candidates]
    role_weights = [settings.assistant_weight if hints.is_assistants(origin) else 1.0 for origin in origins]
    lexical = [(candidate.lexical or 0.0) * role for candidate, role in zip(candidates, role_weights, strict=True)]
    nearness = [candidate.nearness for candidate in candidates if candidate.nearness is not None]
    weight = dense_weight if nearness else 0.0
    top = max(lexical, default=0.0) or 1.0
    # Apart from what all share, any two texts have a nearness of about 0: of few candidates the last one need not be far from the question.
    low = min([*nearness, 0.0] if hints.are_apart else nearness, default=0.0)
    span = max(nearness, default=0.0) - low or 1.0
    shares = [words / top for words in lexical]
    graph_weight = settings.graph_weight_dense if nearness else settings.graph_weight
    named = [
        (to_text(date.start), to_text(date.end), 1.0 if date.end - date.start <= DECISIVE else LONG_TIME_SHARE) for date in hints.dates
    ]
    session_shares = _session_shares(shares, origins)
    session_weight, speaker_boost = settings.session_weight, settings.speaker_boost
    matches: dict[int, float] = {}
    asked_of = set(hints.questions.values())
    for candidate, share, session_share, origin, role in zip(candidates, shares, session_shares, origins, role_weights, strict=True):
        # A share has the weight of its role already.
        meaning = share if candidate.nearness is None else role * (candidate.nearness - low) / span
        # A memory in another language than the question can't have its words.
        own_words = max(share, OTHER_LANGUAGE_SHARE * meaning) if candidate.in_other_language else share
        words = own_words + role * session_weight * session_share
        candidate.lexical_share, candidate.session_share = share, session_share
        if named:
            times = hints.times.get(candidate.memory_id, ())
            candidate.date_share = max(
                counts * _date_share(since, until, origin, times, of_telling=hints.of_telling) for since, until, counts in named
            )
        if hints.is_recent:
            candidate.recency = _recency(from_text(origin.told_at), hints.dates[0])
        candidate.by_named_speaker = origin.source in hints.speakers
        candidate.freshness = hints.freshness.get(candidate.memory_id, 0.0)
        judgement = hints.judged.get(candidate.memory_id, NOT_JUDGED)
        candidate.judged, candidate.verdict = judgement
        candidate.kept = SUNK_SHARES.get(candidate.verdict, 1.0)
        candidate.graph_share = hints.graph.get(candidate.memory_id, 0.0)
        associated = role * graph_weight * candidate.graph_share
        matched = weight * meaning + (1 - weight) * words + speaker_boost * candidate.by_named_speaker + associated
        candidate.score = _timed(matched, candidate, settings) + candidate.freshness + candidate.judged
        if origin.asks:  # a turn that only asks
            candidate.score = max(candidate.score - ASKING_PENALTY * origin.asks, 0.0)
        candidate.score *= candidate.kept
        if candidate.memory_id in asked_of:
            matches[candidate.memory_id] = weight * meaning + (1 - weight) * own_words
    if matches:
        _raise_answers(candidates, hints, matches)
    return best_first(candidates, hints.origins)


def _timed(score: float, candidate: Candidate, settings: Fusion) -> float:
    """A score with what the time that the query asks for does to it: a named date adds to it, and where the latest is wanted, the later multiplies it."""
    return score + settings.date_boost * candidate.date_share if candidate.recency is None else score * RECENT_WEIGHT**candidate.recency


def _raise_answers(candidates: Sequence[Candidate], hints: Hints, matches: Mapping[int, float]) -> None:
    """Raises the scores of the answers that people gave to a question that matches. An answer below a short question takes its place."""
    by_id = {candidate.memory_id: candidate for candidate in candidates}
    for candidate in candidates:
        question, origin = hints.questions.get(candidate.memory_id), hints.origins[candidate.memory_id]
        if question is not None and question in matches and not hints.is_assistants(origin) and not candidate.verdict:
            asks = hints.origins[question].asks
            candidate.score += ANSWER_SHARE * asks * matches[question]
            if asks == 1.0 and not origin.asks and by_id[question].score > candidate.score:
                candidate.score, by_id[question].score = by_id[question].score, candidate.score


def freshness(connection: apsw.Connection, memory_ids: Sequence[int], decay: Decay, now: datetime) -> Mapping[int, float]:
    """For each of these memories `decay.weight` x its retention; nothing, and no query, while the weight is 0."""
    if not decay.weight:
        return {}
    found = memory_usage.usage(connection, memory_ids)
    return {
        memory_id: decay.weight * forgetting_curve(touched, importance, uses, now, decay.half_life_days)
        for memory_id, (touched, importance, uses) in found.items()
    }


def judged(connection: apsw.Connection, memory_ids: Sequence[int], weight: float) -> Mapping[int, Judged]:
    """For each of these memories that was judged, what that adds, less than `weight` in both directions, and what stands against it. Nothing, and no
    query, while the weight is 0."""
    if not weight:
        return {}
    found = feedback.judgements(connection, memory_ids)
    return {memory_id: Judged(weight * balance, verdict) for memory_id, (balance, verdict) in found.items()}


def best_first(candidates: Iterable[Candidate], origins: Mapping[int, Origin]) -> list[Candidate]:
    """By their scores; of equals those of a named date, then the one that was told later."""
    return sorted(
        candidates, key=lambda candidate: (candidate.score, candidate.date_share, origins[candidate.memory_id].told_at), reverse=True
    )


def _date_share(since: str, until: str, origin: Origin, times: Sequence[tuple[str, str]], *, of_telling: bool) -> float:
    """1 for a memory of this named date, also of a day that it begins within, as today from now on, if that was told before. Half for one whose text
    names a longer time, such as its month, or that was told on it, without a date of its own, while its text names another date. 1 for what was told on
    it where the query asks for that: 「昨日言ってた結婚式」."""
    if of_telling and since <= origin.told_at < until:
        return 1.0
    if any(end <= until and (since <= start or _is_day_under_way(since, start, end, origin)) for start, end in times):
        return 1.0
    if since <= origin.happened < until:
        return 0.5 if times and not origin.is_dated else 1.0
    return 0.5 * any(start < until and end > since for start, end in times)


def _recency(told_at: datetime, recent: TimeRange) -> float:
    """Where in this time it was told, from 0 at its start or before to 1 at its end."""
    return min(max((told_at - recent.start) / (recent.end - recent.start), 0.0), 1.0)


def _is_day_under_way(moment: str, start: str, end: str, origin: Origin) -> bool:
    return origin.told_at < start < moment < end and from_text(end) - from_text(start) <= _LONGEST_DAY


def _session_shares(shares: Sequence[float], origins: Sequence[Origin]) -> list[float]:
    """For each candidate the mean share of the best others from its session; fewer than `WITNESSES` count as if the rest had none."""
    by_session = defaultdict(list)
    for share, origin in zip(shares, origins, strict=True):
        if share and origin.session_id:
            by_session[origin.session_id].append(share)
    best = {session: sorted(of_session, reverse=True)[: WITNESSES + 1] for session, of_session in by_session.items()}
    return [
        _sum_of_others(best[origin.session_id], share) / WITNESSES if origin.session_id in best else 0.0
        for share, origin in zip(shares, origins, strict=True)
    ]


def _sum_of_others(best: Sequence[float], own: float) -> float:
    """The sum of the best shares of a session without its own."""
    own_is_among = own >= best[-1]
    return sum(best[:-1] if not own_is_among and len(best) > WITNESSES else best) - (own if own_is_among else 0.0)
