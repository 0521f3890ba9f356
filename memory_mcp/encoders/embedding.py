"""Asking an embedding model: through the pool, in small batches, and not twice for one text."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from memory_mcp.encoders.batches import batches_by_length
from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.failures import Patience
from memory_mcp.encoders.languages import covers
from memory_mcp.encoders.log_throttle import Complaints
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.encoders.protocols import Vectors
from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.encoders.token_spans import Spans
from memory_mcp.errors import EncoderFailed
from memory_mcp.text.budget import estimated_spans

# Larger batches leave the core's cache: 8 are a third faster for each text than 32.
BATCH = 8
MOST_CHARACTERS_PER_TOKEN = 8  # on average over a text; English has four, Japanese two

Result = TypeVar("Result")
EmbedMany = Callable[[list[str]], Sequence[Sequence[float] | Vectors]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of an embedding model once it is loaded. `max_tokens` is None where the model does not say."""

    name: str
    dimension: int
    generation: str
    languages: tuple[str, ...] | None = None
    max_tokens: int | None = None


class TextModel(Protocol):
    """What embeds: any LangChain `Embeddings`, or an exported model."""

    def embed_query(self, text: str) -> Sequence[float] | Vectors:
        """One vector."""
        ...

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float] | Vectors]:
        """One for each text."""
        ...


class PooledEmbedder:
    """An `Embedder` over a model."""

    def __init__(
        self,
        model: TextModel,
        identity: Identity,
        pool: ModelPool,
        caches: Caches,
        patience: Patience | None = None,
        embed_queries: EmbedMany | None = None,
        token_spans: Spans = estimated_spans,
    ) -> None:
        """The pool is not the embedder's own. Without `patience` it waits as long as it takes, which a local model is worth.

        `embed_queries` embeds several queries in one call, where the model can: those that wait are put together then.
        `token_spans` tells where the model's tokens are in a text.
        """
        self._model = model
        self._embed_queries = embed_queries
        self._identity = identity
        self._pool = pool
        self._caches = caches
        self._patience = patience or Patience()
        self._token_spans = token_spans
        self._complaints = Complaints()

    @property
    def name(self) -> str:
        """As configuration has it."""
        return self._identity.name

    @property
    def dimension(self) -> int:
        """As the model answered."""
        return self._identity.dimension

    @property
    def generation(self) -> str:
        """Model, dimension and prefix version."""
        return self._identity.generation

    @property
    def max_tokens(self) -> int | None:
        """How many tokens of a text the model reads, beside what it puts around it. None where it does not say."""
        return self._identity.max_tokens

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """By the model's tokenizer, else by an estimate."""
        return self._token_spans(sendable(text, None))

    def covers(self, text: str) -> bool:
        """By the table of known models."""
        return covers(self._identity.languages, text)

    def embed_query(self, text: str) -> Vectors:
        """A vector of length 1.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        key = digest(self.generation, text)
        known = self._caches.query_vectors.get(key)
        if known is not None:
            return known
        self._patience.check(self.name)
        sent = sendable(text, self.max_tokens)
        if self._embed_queries:
            job = self._pool.submit_item(self._embed_queries, sent, Urgency.QUERY)
        else:
            job = self._pool.submit(lambda: self._model.embed_query(sent), Urgency.QUERY)
        try:
            vector: Vectors = self._checked([self._result(job, Urgency.QUERY)])[0]
        except EncoderFailed as error:
            if not isinstance(error.__cause__, CancelledError):
                self._complaints.tell(error)
            raise
        self._caches.query_vectors.put(key, vector)
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of length 1, in the order of the texts. Batches hold texts of like length, and run side by side.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        keys = [digest(self.generation, text) for text in texts]
        vectors = {key: self._caches.document_vectors.get(key) for key in keys}
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if vectors[key] is None}
        batches = list(batches_by_length(wanted, BATCH))
        if batches:
            self._patience.check(self.name)
        jobs = [self._pool.submit(self._batch([wanted[key] for key in batch]), Urgency.BULK) for batch in batches]
        try:
            for batch, job in zip(batches, jobs, strict=True):
                for key, vector in zip(batch, self._checked(self._result(job, Urgency.BULK)), strict=True):
                    vectors[key] = vector
                    self._caches.document_vectors.put(key, vector)
        finally:
            for job in jobs:
                job.cancel()  # after a failure the rest would be work for nobody; what is done is not touched
        found = [vectors[key] for key in keys]
        return np.stack([vector for vector in found if vector is not None]) if found else np.empty((0, self.dimension), np.float32)

    def _batch(self, texts: list[str]) -> Callable[[], Sequence[Sequence[float] | Vectors]]:
        return lambda: self._model.embed_documents([sendable(text, self.max_tokens) for text in texts])

    def _result(self, job: Future[Result], urgency: Urgency) -> Result:
        limit_seconds = self._patience.limit(urgency)
        try:
            failure = job.exception(limit_seconds)
        except CancelledError as error:
            raise EncoderFailed(f"{self.name} could not be asked", "the server is shutting down") from error
        except TimeoutError as error:
            raise self._failed(f"it did not answer within {limit_seconds:g} seconds") from error
        if failure is None or isinstance(failure, EncoderFailed):
            return job.result()
        raise self._failed(failure_of(failure)) from failure  # whatever a library raises means that the model could not be asked

    def _failed(self, why: str) -> EncoderFailed:
        self._patience.failed(why)
        return EncoderFailed(f"{self.name} could not be asked", why)

    def _checked(self, raw: object) -> Vectors:
        """The vectors at length 1, read-only because caches share them."""
        vectors: npt.NDArray[np.float32] = np.asarray(raw, np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            answered = vectors.shape[1] if vectors.ndim == 2 else 0
            raise EncoderFailed(
                f"{self.name} changed while it was used", f"its vectors had {self.dimension} numbers and now have {answered}"
            )
        if not np.isfinite(vectors).all():
            raise EncoderFailed(f"{self.name} answered with numbers that are none", "its weights are damaged, or its device is")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.where(lengths > 0, vectors / np.maximum(lengths, np.float32(1e-12)), _anywhere(self.dimension))
        vectors.setflags(write=False)
        return vectors


def sendable(text: str, max_tokens: int | None) -> str:
    """A text as tokenizers take it. Half a surrogate pair would make the whole batch fail, and what is far beyond the limit
    would be tokenized for nothing before it is cut off.
    """
    within = text[: max_tokens * MOST_CHARACTERS_PER_TOKEN] if max_tokens else text
    return within.encode("utf-8", "replace").decode("utf-8")


def failure_of(error: BaseException) -> str:
    """Why a model could not be asked, without what it was asked: a library's error may quote the text, and this goes into the log
    and into what other personas are told of the server. The words are told where they are of a device, a disk or a network.
    """
    kind, words = type(error).__name__, first_line(error)
    logger.debug("a model could not be asked", exc_info=error)
    return f"{kind}: {words}" if isinstance(error, OSError | MemoryError | RuntimeError) and words.isascii() else kind


def first_line(error: BaseException) -> str:
    """The first line of what an error says, without its full stop."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "it did not say why")


def _anywhere(dimension: int) -> Vectors:
    """Where a text goes of which the model says nothing at all: some models answer an empty text with zeros."""
    vector = np.zeros(dimension, np.float32)
    vector[0] = 1
    return vector
