"""Where candidates come from: each source names its best, and says why when it has nothing to say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import apsw

from memory_mcp.domain import Candidate, Filters, Question, TimeRange
from memory_mcp.encoders.models import Models
from memory_mcp.store import lexical, memories
from memory_mcp.text.tokens import query_tokens

# A question such as 「昨日どうだった？」 shares no word with its answer: the latest memories of the named days are candidates too.
CANDIDATES_PER_NAMED_DATE = 10


@dataclass(frozen=True, slots=True)
class Source:
    """What a source found. `skipped` is the reason when it did not take part although it was configured to."""

    candidates: tuple[Candidate, ...] = ()
    skipped: str | None = None


def from_words(connection: apsw.Connection, question: Question, limit: int) -> Source:
    """The best lexical matches of the query and, where the caller guessed an answer, of that guess."""
    query = query_tokens(" ".join([question.query, question.hypothetical]))
    if query:
        found = lexical.search(connection, query, question.filters, limit)
        return Source(tuple(Candidate(memory_id, lexical=score) for memory_id, score in found))
    scanned = lexical.scan(connection, question.query, question.filters, limit)
    return Source(tuple(Candidate(memory_id, lexical=1.0) for memory_id in scanned))


def from_meaning(question: Question, models: Models) -> Source:
    """The nearest vectors. Without a model there are none; where none is wanted on purpose, that is no degradation."""
    state = models.embedder_state.state
    wanted = question.mode == "semantic" or (question.mode == "auto" and state != "off")
    return Source(skipped=f"embedder_{state}" if wanted else None)


def from_named_dates(connection: apsw.Connection, spans: Sequence[TimeRange], filters: Filters) -> Source:
    """The latest memories of the days that the query names, unless the caller chose the days itself."""
    if filters.date_range:
        return Source()
    found = [
        memory_id
        for span in spans
        for memory_id in memories.ids_in_range(connection, replace(filters, date_range=span), CANDIDATES_PER_NAMED_DATE)
    ]
    return Source(tuple(Candidate(memory_id) for memory_id in dict.fromkeys(found)))


def union(connection: apsw.Connection, question: Question, *sources: Source) -> list[Candidate]:
    """Every candidate once, with every score that a source has for it: one counted as absent would be ranked as worst."""
    merged: dict[int, Candidate] = {}
    for candidate in (candidate for source in sources for candidate in source.candidates):
        known = merged.get(candidate.memory_id, candidate)
        merged[candidate.memory_id] = replace(known, lexical=known.lexical if known.lexical is not None else candidate.lexical)
    unscored = [memory_id for memory_id, candidate in merged.items() if candidate.lexical is None]
    scores = lexical.score(connection, query_tokens(" ".join([question.query, question.hypothetical])), unscored)
    return [
        replace(candidate, lexical=scores.get(memory_id, 0.0)) if candidate.lexical is None else candidate
        for memory_id, candidate in merged.items()
    ]
