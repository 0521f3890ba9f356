"""Candidates from the words and the named dates of a query, and the union of all sources."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import apsw

from memory_mcp.domain import Candidate, Filters, Question, TimeRange
from memory_mcp.language.spellings import spelled_otherwise
from memory_mcp.language.synonyms import Synonyms, synonyms
from memory_mcp.language.tokens import is_grammar, is_unspaced, query_phrases, query_tokens, tokens, weighed_query_tokens
from memory_mcp.search.meaning import Meaning, similarities
from memory_mcp.search.other_scripts import as_synonyms
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.token_frequencies import TokenCounts
from memory_mcp.tracing import spanned

# A question such as 「昨日の夕飯は？」 may share no word with its answer: the latest memories of the named days are candidates too.
CANDIDATES_PER_NAMED_DATE = 10


def terms_of(
    connection: apsw.Connection, counts: TokenCounts, question: Question, limit: int, *, beside_vectors: bool = False
) -> bm25_index.Terms:
    """What to look for by words: the query without its dates and, where the caller guessed an answer, that guess. With a `limit` of 0, where only known
    memories are scored, words of the same sound are none of it."""
    meant = synonyms(question.query)
    return bm25_index.Terms(
        search_tokens(question, meant, beside_vectors=beside_vectors),
        query_phrases(question.query),
        meant,
        as_synonyms(connection, counts.stored, question.query) if limit else (),
        whole_words(question.query, meant),
    )


@spanned("lexical")
def from_words(
    connection: apsw.Connection,
    counts: TokenCounts,
    query: str,
    terms: bm25_index.Terms,
    filters: Filters,
    limit: int,
    others: Sequence[int] = (),
) -> dict[int, float]:
    """The best lexical matches, and those of `others` that match: by id, with their BM25 score. Of a query without tokens those that have it as it is."""
    if not terms.tokens:
        return dict.fromkeys(bm25_index.scan(connection, query, filters, limit), 1.0)
    return dict(bm25_index.search(connection, terms, filters, limit, others, counts))


@spanned("dates")
def from_named_dates(
    connection: apsw.Connection, spans: Sequence[TimeRange], filters: Filters, limit: int = CANDIDATES_PER_NAMED_DATE
) -> list[int]:
    """The latest memories of the days that the query names, within the caller's date range; if it names none, those of that range."""
    chosen = filters.date_range
    if chosen and not spans:
        return memories.ids_in_range(connection, filters, limit)
    wanted = [replace(chosen, start=max(span.start, chosen.start), end=min(span.end, chosen.end)) for span in spans] if chosen else spans
    memory_ids = [
        memory_id
        for span in wanted
        if span.start < span.end
        for memory_id in memories.ids_in_range(connection, replace(filters, date_range=span), limit)
    ]
    return list(dict.fromkeys(memory_ids))


def from_written_dates(connection: apsw.Connection, days: Sequence[str], years: Sequence[str], filters: Filters, limit: int) -> list[int]:
    """Memories that have a day of the query as it is written, and no time: 「記念日は12月10日」 is of no certain year, 「金曜は燃えるゴミの日」 of no
    certain week; and those that have its year, which is no time of its own, too long to be one."""
    found = _with_phrases(connection, days, filters, limit)
    timed = memory_dates.of_memories(connection, found)
    of_years = _with_phrases(connection, years, filters, limit)
    return list(dict.fromkeys([*of_years, *(memory_id for memory_id in found if memory_id not in timed)]))


def _with_phrases(connection: apsw.Connection, spellings: Sequence[str], filters: Filters, limit: int) -> list[int]:
    phrases = list(dict.fromkeys(" ".join(tokens(spelling)) for spelling in spellings))
    return [memory_id for memory_id, _ in bm25_index.search(connection, bm25_index.Terms(phrases), filters, limit)] if phrases else []


def union(connection: apsw.Connection, meaning: Meaning, words: Mapping[int, float], *others: Iterable[int]) -> list[Candidate]:
    """Every candidate once, with both scores: a missing score would rank it last.

    `words` has the lexical score of all that match. Only a memory that has no vector yet has no cosine.
    """
    scores = {memory_id: 0.0 for source in others for memory_id in source} | dict(words)
    dense = similarities(connection, meaning, list(scores))
    candidates = []
    for memory_id, score in scores.items():
        candidate = Candidate(memory_id, lexical=score)
        if near := dense.get(memory_id):
            candidate.dense, candidate.nearness, candidate.best_chunk = near.cosine, near.nearness, near.chunk
            candidate.in_other_language, candidate.vector = near.in_other_language, near.vector
        candidates.append(candidate)
    return candidates


def shown_tokens(query: str) -> list[str]:
    """The tokens by which the part of a long memory is chosen that an answer shows: those of the query, then those of its synonyms."""
    meant = (token for each in synonyms(query) for other in each.others for token in other.split())
    return list(dict.fromkeys([*query_tokens(query), *meant]))


def search_tokens(question: Question, meant: Sequence[Synonyms], *, beside_vectors: bool = False) -> list[str]:
    """The tokens to search, and the phrases of other spellings. `meant`: the known words of the query. The guessed answer may be wrong, so the tokens of
    the query count twice (docs/decisions/0016-questions-and-guesses.md). Beside vectors each token counts once (docs/decisions/0053-one-word-one-weight.md).
    """
    known_words = {each.word for each in meant}
    asked, guess = (
        query_tokens(text) if beside_vectors else weighed_query_tokens(text, known_words)
        for text in (question.query, question.hypothetical)
    )
    known = set(asked)
    guessed = [token for token in guess if token not in known]
    others = [phrase for phrase in spelled_otherwise(question.query) if phrase not in known] if asked else []
    return asked * 2 + guessed + others if guessed else asked + others


def whole_words(query: str, meant: Sequence[Synonyms]) -> list[str]:
    """The words of a Japanese query, as phrases of tokens: those that are known, and those in Latin letters; of any other query none."""
    found = query_tokens(query)
    if not any(map(is_unspaced, found)):
        return []
    in_japanese = [each.word for each in meant if is_unspaced(each.word) and not is_grammar(each.word)]
    return in_japanese + [token for token in found if not is_unspaced(token)]
