"""Embedding texts with a model: through the worker pool, in small batches, with a cache."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.failures import CircuitBreaker, call_error
from memory_mcp.encoders.model_families import UNKNOWN, Traits
from memory_mcp.encoders.models import PROBE, Centers, Vectors
from memory_mcp.encoders.pooled import MAX_CHARACTERS, Pooled, batches_by_length, model_input
from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.language.budget import estimated_spans

# Larger batches don't fit the core's cache: a batch of 8 is a third faster per text than one of 32.
BATCH = 8

Result = TypeVar("Result")
EmbedMany = Callable[[list[str]], Sequence[Sequence[float] | Vectors]]
TokenSpans = Callable[[str], Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known about a loaded embedding model. `max_tokens` is None if the model has no known limit. `measure` tries again to find out what is not known
    because the model failed."""

    name: str
    dimension: int
    generation: str
    traits: Traits = UNKNOWN
    max_tokens: int | None = None
    centers: Centers | None = None
    measure: "Callable[[], Identity] | None" = None


class TextModel(Protocol):
    """What makes the vectors: any LangChain `Embeddings`, or an exported model."""

    def embed_query(self, text: str) -> Sequence[float] | Vectors:
        """One vector."""

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float] | Vectors]:
        """One vector for each text."""


def probed_dimension(model: TextModel, name: str) -> int:
    """The length of the vectors, found by embedding a query and a text.

    Raises:
        EncoderFailed: the model does not return vectors.
    """
    query = np.asarray(model.embed_query(PROBE), np.float32)
    texts = np.asarray(model.embed_documents([PROBE, "。"]), np.float32)
    if query.ndim != 1 or not query.size or texts.shape != (2, query.size):
        raise EncoderFailed(
            "{} can't be used", "it returned arrays of shape {} and {} instead of vectors", "", name, query.shape, texts.shape
        )
    if not (np.isfinite(query).all() and np.isfinite(texts).all() and query.any()):
        raise EncoderFailed("{} can't be used", "it returned NaN, infinity or zeros: its weights are damaged", "", name)
    return int(query.size)


class PooledEmbedder(Pooled):
    """An `Embedder` that calls a model through the worker pool."""

    def __init__(
        self,
        model: TextModel,
        identity: Identity,
        pool: ModelPool,
        caches: Caches,
        breaker: CircuitBreaker | None = None,
        embed_queries: EmbedMany | None = None,
        token_spans: TokenSpans = estimated_spans,
        batch: int = BATCH,
        characters: int = MAX_CHARACTERS,
        *,
        owns_pool: bool = False,
    ) -> None:
        """Without a `breaker`, calls wait without a limit, as a local model deserves.

        One call embeds at most `batch` stored texts, of `characters` in all.

        `embed_queries` embeds several queries in one call, if the model can do that: waiting queries then share a call.
        `token_spans` gives the offsets of the model's tokens in a text.
        """
        super().__init__(model, identity.name, pool, caches, identity.traits, breaker, owns_pool=owns_pool)
        self.dimension, self.generation = identity.dimension, identity.generation
        self.centers, self.max_tokens, self._measure = identity.centers, identity.max_tokens, identity.measure
        self.texts_at_once = batch * pool.workers
        self._embed_queries = embed_queries
        self._token_spans = token_spans
        self._batch_limits = batch, characters
        self._under_way: dict[bytes, Future[Any]] = {}
        self._documents_under_way: dict[bytes, Future[Any]] = {}

    @property
    def is_measured(self) -> bool:
        """Whether the model answered when it was measured."""
        return self._measure is None

    def measure(self) -> bool:
        """Measures the model, if it has not been. Returns whether it has been now. Slow."""
        if self._measure:
            found = self._measure()
            self.centers, self.traits, self._measure = found.centers, found.traits, found.measure
        return self.is_measured

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Token offsets from the model's tokenizer, or else an estimate."""
        return self._token_spans(model_input(text, None))

    def embed_query(self, text: str) -> Vectors:
        """A vector of length 1.

        Raises:
            EncoderFailed: the model failed.
        """
        key = digest(self.generation, text)
        cached = self._caches.query_vectors.get(key)
        if cached is not None:
            return cached
        self._breaker.check(self.name)
        job = self._query_job(key, text)
        try:
            vector: Vectors = self._checked([self._result(job, Urgency.QUERY)])[0]
        except EncoderFailed as error:
            with self._guard:
                self._under_way.pop(key, None)
            if not isinstance(error.__cause__, CancelledError):
                self._log.warn(error)
            raise
        self._caches.query_vectors.put(key, vector)
        with self._guard:
            self._under_way.pop(key, None)
        return vector

    def _query_job(self, key: bytes, text: str) -> Future[Any]:
        """The job that embeds a query: the one that another call waits for, if there is one."""
        with self._guard:
            job = self._under_way.get(key)
            cached = self._caches.query_vectors.get(key)
            if job is None and cached is not None:  # another call ended just now
                job = Future()
                job.set_result(cached)
            elif job is None or (job.done() and (job.cancelled() or job.exception())):
                shortened = model_input(text, self.max_tokens)
                if self._embed_queries:
                    job = self._pool.submit_item(self._embed_queries, shortened, Urgency.QUERY)
                else:
                    job = self._pool.submit(lambda: self._model.embed_query(shortened), Urgency.QUERY)
                self._under_way[key] = job
            return job

    def embed_documents(self, texts: Sequence[str], *, is_awaited: bool = False) -> Vectors:
        """Vectors of length 1, in the order of the texts. Batches hold texts of similar length and run in parallel; if they are awaited by a call, with
        the urgency of queries. A text that another call embeds at the same time is embedded once.

        Raises:
            EncoderFailed: the model failed.
        """
        urgency = Urgency.QUERY if is_awaited else Urgency.BULK
        keys = [digest(self.generation, text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))
        vectors, own, elsewhere = self._taken(text_of)
        try:
            vectors |= self._embedded({key: text_of[key] for key in own}, urgency)
        finally:
            with self._guard:
                for key, job in own.items():
                    job.set_result(vectors.get(key))
                    del self._documents_under_way[key]
        for key, job in elsewhere.items():
            if (vector := self._awaited(job, urgency)) is not None:
                vectors[key] = vector
        vectors |= self._embedded({key: text for key, text in text_of.items() if key not in vectors}, urgency)
        return np.stack([vectors[key] for key in keys]) if keys else np.empty((0, self.dimension), np.float32)

    def _taken(self, keys: Iterable[bytes]) -> tuple[dict[bytes, Vectors], dict[bytes, Future[Any]], dict[bytes, Future[Any]]]:
        """The vectors of texts that are known; a job for each of the others, which is this call's; and the jobs of those that another call embeds
        now. A job has no result where it failed."""
        vectors: dict[bytes, Vectors] = {}
        own: dict[bytes, Future[Any]] = {}
        elsewhere: dict[bytes, Future[Any]] = {}
        with self._guard:
            for key in keys:
                if (vector := self._caches.document_vectors.get(key)) is not None:
                    vectors[key] = vector
                elif job := self._documents_under_way.get(key):
                    elsewhere[key] = job
                else:
                    own[key] = self._documents_under_way[key] = Future()
        return vectors, own, elsewhere

    def _awaited(self, job: Future[Any], urgency: Urgency) -> Vectors | None:
        """What another call makes of its text; None if that fails or takes longer than this call may."""
        try:
            vector: Vectors | None = job.result(self._breaker.limit(urgency))
        except TimeoutError:
            return None
        return vector

    def _embedded(self, texts: Mapping[bytes, str], urgency: Urgency) -> dict[bytes, Vectors]:
        """The vectors of these texts by the model, in batches."""
        batches = list(batches_by_length(texts, *self._batch_limits))
        if batches:
            self._breaker.check(self.name)
        jobs = [self._pool.submit(self._batch([texts[key] for key in batch]), urgency) for batch in batches]
        vectors: dict[bytes, Vectors] = {}
        try:
            for batch, job in zip(batches, jobs, strict=True):
                for key, vector in zip(batch, self._checked(self._result(job, urgency)), strict=True):
                    vectors[key] = vector
                    self._caches.document_vectors.put(key, vector)
        finally:
            for job in jobs:
                job.cancel()  # after a failure the rest is useless; finished jobs are unaffected
        return vectors

    def _batch(self, texts: list[str]) -> Callable[[], Sequence[Sequence[float] | Vectors]]:
        return lambda: self._model.embed_documents([model_input(text, self.max_tokens) for text in texts])

    def _result(self, job: Future[Result], urgency: Urgency) -> Result:
        limit_seconds = self._breaker.limit(urgency)
        try:
            failure = job.exception(limit_seconds)
        except CancelledError as error:
            raise EncoderFailed("{} failed", "the server is shutting down", "", self.name) from error
        except TimeoutError as error:
            raise self._failed(f"it did not answer within {limit_seconds:g} seconds") from error
        if failure is None or isinstance(failure, EncoderFailed):
            return job.result()
        raise self._failed(call_error(failure)) from failure  # libraries raise any class, and each means that the model failed

    def _failed(self, reason: str) -> EncoderFailed:
        self._breaker.failed(reason)
        return EncoderFailed("{} failed", reason, "", self.name)

    def _checked(self, raw: object) -> Vectors:
        """The vectors scaled to length 1, read-only because caches share them."""
        vectors: npt.NDArray[np.float32] = np.asarray(raw, np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            dimension = vectors.shape[1] if vectors.ndim == 2 else 0
            raise EncoderFailed(
                "{} changed while it was used", "its vectors had {} numbers and now have {}", "", self.name, self.dimension, dimension
            )
        if not np.isfinite(vectors).all():
            raise EncoderFailed("{} returned NaN or infinity", "its weights are damaged, or its device is", "", self.name)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.where(lengths > 0, vectors / np.maximum(lengths, np.float32(1e-12)), _zero_replacement(self.dimension))
        vectors.setflags(write=False)
        return vectors


def _zero_replacement(dimension: int) -> Vectors:
    """A unit vector that replaces a zero vector: some models return zeros for an empty text."""
    vector = np.zeros(dimension, np.float32)
    vector[0] = 1
    return vector
