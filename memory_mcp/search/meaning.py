"""The query as vectors, and the memories with near vectors: the candidates that need a model."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw
import numpy as np

from memory_mcp.domain import Filters, Question
from memory_mcp.encoders.model_families import Scale, scale_of
from memory_mcp.encoders.models import Centers, Models, Replacement, Vectors
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.vectors import chunks, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.vectors.nearness import apart, nearest_rows, normalised
from memory_mcp.tracing import spanned

# A memory may have several vectors: the number of chunks requested for each candidate.
CHUNKS_PER_CANDIDATE = 3
# A question is nearer to questions than to any statement. This share of what a memory's own questions exceed its content by counts:
# all of it would rank memories that were stored with questions before the others (docs/decisions/0016-questions-and-guesses.md).
QUESTION_WEIGHT = 0.5
# How much of the turn before a short turn is part of it: 「うん、好き」 means what was asked.
PREVIOUS_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Meaning:
    """The query as vectors of the generation that serves this persona, and its index.

    Without an index `skipped` is the reason, unless no model is wanted. `generation` is that of the vectors, present or future.
    `replaced` says that its model is not the configured one. The vectors are compared apart from the `centers`.
    """

    vectors: tuple[Vectors, ...] = ()
    index: VectorIndex | None = None
    skipped: str | None = None
    generation: str | None = None
    centers: Centers | None = None
    replaced: Replacement | None = None
    is_statement: bool = False

    @property
    def scale(self) -> Scale:
        """What the nearness of the vectors means."""
        return scale_of(self.centers)

    def own_centers(self) -> Vectors | None:
        """What the statements of this persona share, by language."""
        return self.index.means_near(self.centers.statements) if self.index and self.centers else None

    def apart(self, vectors: Vectors, own: Vectors | None) -> Vectors:
        """The rows without what the texts of their language share, each of length 1; of length 0 in a language that the model does not know."""
        return vectors if self.centers is None or own is None else apart(vectors, own, self.centers.known)

    def stored(self, chunk_ids: Collection[int], own: Vectors | None) -> tuple[list[int], Vectors, Vectors]:
        """Those of the chunks that are in a language which the model knows, their vectors, and these apart from their centers."""
        if self.index is None:
            return [], np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
        chunks, vectors = self.index.reconstruct(chunk_ids)
        vectors_apart = self.apart(vectors, own)
        rows = np.flatnonzero(vectors_apart.any(axis=1))
        return [chunks[row] for row in rows], vectors[rows], vectors_apart[rows]

    def turned(self, own: Vectors | None) -> Vectors:
        """The vectors of the query and of the guess, apart from what questions and statements share."""
        if self.centers is None or own is None:
            return np.stack(self.vectors)
        if self.is_statement:
            return self.apart(np.stack(self.vectors), own)
        query, *guesses = self.vectors
        language = self.language
        center = self.centers.questions[language] + own[language] - self.centers.statements[language]
        return np.concatenate([normalised((query - center)[None]), *(self.apart(guess[None], own) for guess in guesses)])

    @property
    def language(self) -> int:
        """The row of the query's language among those that the model knows."""
        if self.centers is None:
            return 0
        known = np.flatnonzero(self.centers.known)
        return int(known[nearest_rows(self.vectors[0][None], self.centers.questions[known])[0]])


@spanned("embed")
def meaning_of(persona: Persona, question: Question, models: Models, indexes: IndexCache | None) -> Meaning:
    """Embeds the query and the guessed answer. No database connection is held meanwhile."""
    state = models.embedder_state.state
    unwanted = question.mode not in ("auto", "semantic", "graph") or (state == "off" and question.mode != "semantic")
    if unwanted or (models.loaded and not persona.exists):
        return Meaning(replaced=None if unwanted else models.replaced(models.target))
    with persona.database.read_statement() as connection:
        serving = stored_vectors.serving_generation(connection)
    embedder = models.of_generation(serving) or (models.target if serving is None else None)
    if embedder is None or indexes is None:
        return Meaning(skipped=models.why_none(serving))
    replaced = models.replaced(embedder)
    if not embedder.covers(question.query):
        return Meaning(skipped="embedder_language", replaced=replaced)
    index = indexes.get(persona.database, embedder.generation)
    if index is None or not index.count:
        return Meaning(skipped="nothing_embedded_yet", generation=embedder.generation, replaced=replaced)
    try:
        vectors = [embedder.embed_query(question.query)]
        if question.hypothetical:
            vectors.append(embedder.embed_documents([question.hypothetical], is_awaited=True)[0])
    except EncoderFailed:
        return Meaning(skipped="embedder_failed", generation=embedder.generation, replaced=replaced)
    return Meaning(tuple(vectors), index, None, embedder.generation, embedder.centers, replaced)


@spanned("meaning")
def from_meaning(connection: apsw.Connection, meaning: Meaning, filters: Filters, limit: int) -> list[int]:
    """The memories nearest to any of the vectors, the nearest first."""
    if meaning.index is None:
        return []
    among = chunks.passing_filters(connection, filters) if filters else None
    wanted = limit * CHUNKS_PER_CANDIDATE
    own = meaning.own_centers()
    turned = meaning.turned(own)
    found = {chunk for vector in turned for chunk, _ in meaning.index.search(vector, wanted, among)}
    known, _, vectors_apart = meaning.stored(found, own)
    if not known:
        return []
    nearness = (vectors_apart @ turned.T).max(axis=1)
    nearest = [known[row] for row in np.argsort(-nearness, kind="stable")]
    memory_ids: dict[int, None] = {}
    for start in range(0, len(nearest), limit):  # nearly always the first ones are of as many memories
        chunk_ids = nearest[start : start + limit]
        owners = chunks.owners(connection, chunk_ids)
        memory_ids.update((owners[chunk], None) for chunk in chunk_ids if chunk in owners)
        if len(memory_ids) >= limit:
            break
    return list(memory_ids)[:limit]


class Similarity(NamedTuple):  # a recall makes some two hundred, and a frozen dataclass takes three times as long
    """The cosine, the nearness and the nearest chunk of a memory, and whether that is in another language than the query."""

    cosine: float
    nearness: float
    chunk: int | None
    in_other_language: bool


# Of a memory without a vector.
NOT_NEAR = Similarity(float("nan"), float("nan"), None, in_other_language=False)


def similarities(connection: apsw.Connection, meaning: Meaning, memory_ids: list[int]) -> dict[int, Similarity]:
    """How similar each of these memories is. A memory without vectors is left out, and one in a language that the model does not know.

    The cosine is the mean with the vectors of the query and of the guess. Nearness is the same between vectors apart from their centers, a
    short turn with `PREVIOUS_SHARE` of the short turn before it. Both are raised by `QUESTION_WEIGHT` of what the memory's own questions
    exceed its content by.
    """
    if meaning.index is None:
        return {}
    previous = adjacent_turns(connection, memory_ids, "before")
    owners = chunks.pieces_and_questions(connection, {*memory_ids, *previous.values()})
    own = meaning.own_centers()
    known, vectors, vectors_apart = meaning.stored(owners, own)
    if not known:
        return {}
    pieces, questions = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for row, chunk in enumerate(known):
        memory_id, is_question = owners[chunk]
        (questions if is_question else pieces)[memory_id].append(row)
    cosines = (vectors @ np.mean(meaning.vectors, axis=0)).tolist()
    nearness = _with_previous(vectors_apart, pieces, previous, meaning.turned(own).mean(axis=0)).tolist()
    foreign = set(_in_other_languages(meaning, vectors, own))
    similar = {}
    for memory_id in memory_ids:
        if rows := pieces.get(memory_id):
            nearest, asked = max(rows, key=cosines.__getitem__), questions.get(memory_id, rows)
            cosine, near = (_raised(values, rows, asked) for values in (cosines, nearness))
            similar[memory_id] = Similarity(cosine, near, known[nearest], in_other_language=nearest in foreign)
    return similar


def _in_other_languages(meaning: Meaning, vectors: Vectors, own: Vectors | None) -> Iterable[int]:
    """The rows whose language is another than the query's; none where the languages of vectors are not known."""
    if meaning.centers is None or own is None:
        return ()
    return map(int, np.flatnonzero(nearest_rows(vectors, own) != meaning.language))


def _with_previous(vectors: Vectors, pieces: Mapping[int, Sequence[int]], previous: Mapping[int, int], query: Vectors) -> Vectors:
    """How near each row is to the query, a short turn, of one piece, together with a part of the short turn before."""
    nearness: Vectors = vectors @ query
    short = {memory_id: rows[0] for memory_id, rows in pieces.items() if len(rows) == 1}
    pairs = [(short[turn], short[before]) for turn, before in previous.items() if turn in short and before in short]
    if pairs:
        turns, befores = map(list, zip(*pairs, strict=True))
        nearness[turns] = normalised(vectors[turns] + PREVIOUS_SHARE * vectors[befores]) @ query
    return nearness


def _raised(values: Sequence[float], rows: Sequence[int], questions: Sequence[int]) -> float:
    """The best value of the rows of a content, raised by that of its questions."""
    by_content, by_question = (max(map(values.__getitem__, each)) for each in (rows, questions))
    return by_content + QUESTION_WEIGHT * max(by_question - by_content, 0.0)
