"""Which experiences of a persona are about a task like this one: by meaning and words where a model is loaded, else by words.

What a model says is in `likeness`. What stands in a task of the words of `when` or of a sign warns.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import apsw

from memory_mcp.characters import is_japanese
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Filters, Memory
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.models import Embedder, Models, Replacement, Vectors
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.errors import EncoderFailed
from memory_mcp.features.experience import likeness
from memory_mcp.features.experience.settings import Advising
from memory_mcp.language.tokens import is_grammar, normalise, query_tokens
from memory_mcp.personas.names import key_in, pool_of
from memory_mcp.personas.registry import Persona
from memory_mcp.store import feedback, memories
from memory_mcp.store.experience_text import Experience, read
from memory_mcp.store.feedback import Counts
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import chunks, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.tracing import spanned

KIND = Filters(kind="experience")
# How many experiences are compared, of each source.
CANDIDATES = 20
VERB_WEIGHT = 0.5
# From which similarity of words two tasks are the same, and may be, whatever a model says.
SAME_BY_WORDS, MAYBE_BY_WORDS = 0.99, 0.6
BY_WORDS: Literal["words"] = "words"
LEAST_BY_WORDS, NEAR_BY_WORDS = 0.43, 0.2
# A piece of the content and the task of most experiences.
_VECTORS_OF_EACH = 2
_ALTERNATIVES = re.compile(r"[,;/\n、，；／。]|\bor\b|または|もしくは")


@dataclass(frozen=True, slots=True)
class Match:
    """An experience and how similar its task is, from 0 to 1 on the scale of what judged it: a model or the words. `is_sure`: similar enough; `is_near`:
    perhaps; `is_named`: its `when` or its sign stands in the task."""

    memory: Memory
    experience: Experience
    counts: Counts
    similarity: float
    by: Literal["meaning", "words"]
    is_sure: bool
    is_near: bool
    is_named: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """The experiences compared with a task, the most similar first. `skipped`: why no model compared them, unless none is wanted. `replaced` says
    that the model that did is not the configured one."""

    all: tuple[Match, ...] = ()
    skipped: str | None = None
    replaced: Replacement | None = None

    @property
    def sure(self) -> list[Match]:
        """Those that are similar enough."""
        return [match for match in self.all if match.is_sure]


@dataclass(frozen=True, slots=True)
class _Vector:
    """A task as a vector of the generation that serves the persona, apart from what ordinary ones share, with the index to compare it with."""

    apart: Vectors
    index: VectorIndex
    embedder: Embedder
    ordinary: likeness.Ordinary


@spanned("experience")
def matches(persona: Persona, task: str, *, models: Models, settings: Settings, indexes: IndexCache | None) -> Matches:
    """The experiences of this persona whose tasks are most like this one."""
    if not persona.exists:
        return Matches()
    with on_behalf_of(persona.name):
        vector, skipped = _embedded(persona, task, models, indexes)
    with persona.database.read_briefly() as connection:
        by_words = [
            id_ for id_, _ in bm25_index.search(connection, bm25_index.Terms(query_tokens(task)), KIND, CANDIDATES, counts=persona.words)
        ]
        by_meaning = _similar_tasks(connection, vector) if vector else {}
        nearest = sorted(by_meaning, key=by_meaning.__getitem__, reverse=True)[:CANDIDATES]
        known = memories.by_ids(connection, dict.fromkeys([*nearest, *by_words]))
        counted = feedback.counts(connection, known)
    least = _least(settings, vector.embedder.name if vector else None)
    asked, held = _words(task), frozenset(_content(task))
    matched = [_match(memory, asked, held, by_meaning, counted.get(id_, Counts()), least) for id_, memory in known.items()]
    ordered = tuple(sorted(filter(None, matched), key=lambda match: match.similarity, reverse=True))
    return Matches(ordered, skipped, models.replaced(vector.embedder) if vector else None)


def of_pool(match: Match, store: str) -> Match:
    """An experience of a pool, with a key that names the pool."""
    return replace(match, memory=replace(match.memory, key=key_in(pool_of(store), match.memory.key)))


def word_similarity(task: str, other: str) -> float:
    """The cosine of the words of two tasks, without grammar."""
    return _cosine(_words(task), _words(other))


def _cosine(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    shared = sum(math.sqrt(first[word] * second[word]) for word in first.keys() & second.keys())
    return shared / math.sqrt(sum(first.values()) * sum(second.values())) if shared else 0.0


def _match(
    memory: Memory,
    asked: Mapping[str, float],
    held: frozenset[str],
    by_meaning: Mapping[int, float],
    counted: Counts,
    least: Mapping[str, float],
) -> Match | None:
    experience = read(memory.content)
    if not (experience.steps or experience.is_pitfall or experience.lesson or counted.tried) or memory.superseded_by:
        return None
    words = max((_cosine(asked, _words(text)) for text in experience.matched_by), default=0.0)
    is_by_words = memory.id not in by_meaning or words >= max(SAME_BY_WORDS, by_meaning[memory.id])
    by: Literal["meaning", "words"] = BY_WORDS if is_by_words else "meaning"
    similarity = words if is_by_words else by_meaning[memory.id]
    near = similarity >= (NEAR_BY_WORDS if is_by_words else likeness.NEAR) or words >= MAYBE_BY_WORDS
    named = any(map(held.issuperset, _conditions(experience, near)))
    return Match(memory, experience, counted, similarity, by, similarity >= least[by], near, named)


def _conditions(experience: Experience, near: bool) -> Iterator[Sequence[str]]:
    """The words of each condition in `when` and of each sign of a failure. A sign of one word, such as error, stands in tasks of every kind, and counts only
    in those that are near."""
    for text, least in ((experience.when, 1), (experience.sign, 1 if near else 2)):
        for condition in _ALTERNATIVES.split(text):
            if len(words := _content(condition)) >= least:
                yield words


def _least(settings: Settings, model: str | None) -> dict[str, float]:
    limits = settings.of(Advising).similar_from
    named = next((least for name, least in limits.items() if model and own_name(name) == own_name(model)), likeness.SURE)
    return {"meaning": named, BY_WORDS: limits.get(BY_WORDS, LEAST_BY_WORDS)}


def _embedded(persona: Persona, task: str, models: Models, indexes: IndexCache | None) -> tuple[_Vector | None, str | None]:
    """The task as a vector; else why there is none, if a model is wanted."""
    state = models.embedder_state.state
    if state == "off" or indexes is None:
        return None, None
    with persona.database.read_briefly() as connection:
        serving = stored_vectors.serving_generation(connection)
    embedder = models.of_generation(serving)
    if embedder is None:
        return None, None if state == "loaded" and serving is None else models.why_none(serving)
    if not embedder.covers(task):
        return None, "embedder_language"
    index = indexes.get(persona.database, embedder.generation)
    if index is None or not index.count:
        return None, "nothing_embedded_yet"
    try:
        ordinary = likeness.ordinary(embedder)
        return _Vector(ordinary.apart(embedder.embed_query(task)[None], are_asked=True)[0], index, embedder, ordinary), None
    except EncoderFailed:
        return None, "embedder_failed"


def _similar_tasks(connection: apsw.Connection, task: _Vector) -> dict[int, float]:
    """Experience → the chance that it is about the task, by the most similar of the texts that it is matched by, and by its content."""
    among = chunks.passing_filters(connection, KIND)
    nearest = [chunk for chunk, _ in task.index.search(task.apart, CANDIDATES * 3, among)]
    owners = chunks.pieces_and_questions(connection, chunks.owners(connection, nearest).values())
    known, vectors = task.index.reconstruct(owners)
    if not known:
        return {}
    found = likeness.evidence(task.ordinary, task.apart, vectors, [owners[chunk] for chunk in known], len(among) // _VECTORS_OF_EACH)
    return {experience: task.ordinary.chance(evidence) for experience, evidence in found.items()}


def _words(task: str) -> dict[str, float]:
    """The words of a task and what each counts. Verbs are those of many tasks, and count half: the first word of an English one, what follows the last を
    of a Japanese one."""
    done_to, _, what = normalise(task).rpartition("を")
    if done_to and what:
        objects, verbs = _content(done_to), _content(what)
    else:
        words = _content(task)
        first = 0 if is_japanese(task) or len(words) == 1 else 1
        objects, verbs = words[first:], words[:first]
    return dict.fromkeys(_parts(verbs), VERB_WEIGHT) | dict.fromkeys(_parts(objects), 1.0)


def _content(text: str) -> Sequence[str]:
    words: Sequence[str] = query_tokens(text)
    return [word for word in words if not is_grammar(word)] or words


def _parts(words: Sequence[str]) -> Iterator[str]:
    """The words, and the triples of letters of Latin ones, which a family shares: reconcile, reconciliation."""
    for word in words:
        yield word
        if word.isascii():
            edged = f" {word} "
            yield from (edged[start : start + 3] for start in range(len(word)))
