"""Reranking with a cross-encoder: pairs of similar length in small batches that run in parallel, within a deadline, with a cache."""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import islice

from memory_mcp.encoders.batches import MAX_CHARACTERS, batches_by_length
from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.embedding import model_input
from memory_mcp.encoders.failures import CircuitBreaker, LogThrottle, call_error
from memory_mcp.encoders.languages import covers
from memory_mcp.encoders.model_families import UNKNOWN, Traits
from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

# A padded batch makes every pair as long as the longest: small batches by length take half the CPU time and occupy all workers.
BATCH_PAIRS, MIN_BATCH_PAIRS = 4, 2
# Work that ends after its deadline delays others past theirs, so an estimate must leave room for error.
SAFETY_FACTOR = 1.5

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """At most `pairs` pairs and `characters` are in a batch, and every `worth` pairs are worth one more batch."""

    pairs: int = BATCH_PAIRS
    worth: int = MIN_BATCH_PAIRS
    characters: int = MAX_CHARACTERS


class PooledReranker:
    """A `Reranker` that calls a function from pairs to scores of 0 to 1 through the worker pool."""

    def __init__(
        self,
        predict: Callable[[list[Pair]], Sequence[float]],
        name: str,
        pool: ModelPool,
        caches: Caches,
        *,
        fingerprint: str = "",
        traits: Traits = UNKNOWN,
        max_tokens: int | None = None,
        limits: BatchLimits = BatchLimits(),
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self._predict = predict
        self._identity = f"{name}@{fingerprint}"
        self._pool = pool
        self._caches = caches
        self.traits = traits
        self._limits = limits
        self._breaker = breaker or CircuitBreaker()
        self._log = LogThrottle()
        self.backend: str | None = None
        self.improvable: Callable[[], bool] | None = None

    def covers(self, text: str) -> bool:
        """Decided by the model's own languages."""
        return covers(self.traits.languages, text)

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """A score for each text; None if they can't be had before `deadline` (of `time.monotonic`).

        If the queue is too long already, nothing is started: under load, work that ends too late would delay others past their
        deadlines. With `at_least`, as many of the first texts are scored then as there is time for.

        Raises:
            EncoderFailed: the model failed.
        """
        keys = [digest(self._identity, query, text) for text in texts]
        scores = {key: self._caches.scores.get(key) for key in keys}
        uncached = [(key, text) if scores[key] is None else None for key, text in zip(keys, texts, strict=True)]
        count = self._affordable(query, uncached, deadline, at_least)
        if count is None:
            return None
        wanted = dict(filter(None, uncached[:count]))
        if wanted:
            self._breaker.check(self.name)
        new_scores = self._scored(query, wanted, deadline)
        if new_scores is None:
            return None
        scores.update(new_scores)
        return [score for key in keys[:count] if (score := scores[key]) is not None]

    def _affordable(
        self, query: str, uncached: Sequence[tuple[bytes, str] | None], deadline: float | None, at_least: int | None
    ) -> int | None:
        """How many of the first texts there is time for; None if that is fewer than `at_least`, or than all. Cached ones (None) take no time."""
        minimum = len(uncached) if at_least is None else min(at_least, len(uncached))
        first_in_line = self._pool.queue_is_empty(Urgency.RERANK)
        if not self._in_time(query, uncached[:minimum], deadline):
            # One slow moment, which the measured pace includes, must not refuse every call from then on: a first call tries.
            return minimum if first_in_line and not _is_past(deadline) else None
        if not first_in_line and deadline is not None:
            return minimum  # others wait: more than the minimum would take their time
        # More pairs may take less time if they fill the workers evenly, so try the largest count first.
        larger = range(len(uncached), minimum, -1)
        return next((count for count in larger if self._in_time(query, uncached[:count], deadline)), minimum)

    def _in_time(self, query: str, uncached: Sequence[tuple[bytes, str] | None], deadline: float | None) -> bool:
        """Whether these are likely to be scored by the deadline."""
        texts = dict(filter(None, uncached))
        if deadline is None or not texts:
            return True
        if _is_past(deadline):
            return False
        weights = [_weight(query, texts, batch) for batch in self._batches(texts)]
        return time.monotonic() + SAFETY_FACTOR * self._pool.expected_seconds(Urgency.RERANK, weights) < deadline

    def _scored(self, query: str, texts: dict[bytes, str], deadline: float | None) -> dict[bytes, float] | None:
        jobs = [
            self._pool.submit(
                self._score_batch(query, {key: texts[key] for key in batch}), Urgency.RERANK, deadline, _weight(query, texts, batch)
            )
            for batch in self._batches(texts)
        ]
        return self._collected(jobs, deadline)

    def _batches(self, texts: dict[bytes, str]) -> list[list[bytes]]:
        """The keys in batches, longest texts first, so that short ones fill the gaps at the end. If no other call waits, all workers
        get equal batches: five pairs as 3 and 2 take .75 of the time of 4 and 1.
        """
        workers = self._pool.workers if self._pool.queue_is_empty(Urgency.RERANK) else 1
        rounds = math.ceil(len(texts) / (workers * self._limits.pairs))
        equal_batches = _equal_parts(
            sorted(texts, key=lambda key: -len(texts[key])), min(workers * rounds, math.ceil(len(texts) / self._limits.worth))
        )
        fit = all(len(texts[batch[0]]) * len(batch) <= self._limits.characters for batch in equal_batches)
        return equal_batches if fit else list(batches_by_length(texts, self._limits.pairs, self._limits.characters))

    def _score_batch(self, query: str, texts: dict[bytes, str]) -> Callable[[], dict[bytes, float]]:
        def run() -> dict[bytes, float]:
            shortened = model_input(query, self.max_tokens)
            pairs = [(shortened, model_input(text, self.max_tokens)) for text in texts.values()]
            values = [float(score) for score in self._predict(pairs)]
            if not all(math.isfinite(value) for value in values):
                raise EncoderFailed(f"{self.name} returned NaN or infinity", "its weights are damaged, or its device is")
            scores = dict(zip(texts, values, strict=True))
            for key, score in scores.items():
                self._caches.scores.put(key, score)  # also if it is too late for this call
            return scores

        return run

    def _collected(self, jobs: list[Future[dict[bytes, float]]], deadline: float | None) -> dict[bytes, float] | None:
        wait(jobs, None if deadline is None else max(0.0, deadline - time.monotonic()))
        for job in jobs:
            job.cancel()  # those that have not started; finished jobs are unaffected
        if not all(job.done() and not job.cancelled() for job in jobs):
            return None
        scores: dict[bytes, float] = {}
        for job in jobs:
            failure = job.exception()
            if failure is not None:
                error = self._encoder_failed(failure)
                self._log.warn(error)
                raise error
            scores.update(job.result())
        return scores

    def _encoder_failed(self, failure: BaseException) -> EncoderFailed:
        if isinstance(failure, EncoderFailed):
            return failure
        # Libraries raise any class here, and each means that the model failed.
        error = EncoderFailed(f"{self.name} failed", call_error(failure))
        error.__cause__ = failure
        return error


def _equal_parts(keys: Sequence[bytes], count: int) -> list[list[bytes]]:
    """The keys, in order, in `count` parts whose sizes differ by one at most; larger parts come first."""
    size, remainder = divmod(len(keys), max(count, 1))
    rest = iter(keys)
    return [list(islice(rest, size + (part < remainder))) for part in range(count)]


def _weight(query: str, texts: dict[bytes, str], batch: list[bytes]) -> int:
    """The cost of a batch: its characters after padding."""
    return len(batch) * (len(query) + max(len(texts[key]) for key in batch))


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
