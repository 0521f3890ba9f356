"""Reranking with a cross-encoder: pairs of similar length in small batches that run in parallel, within a deadline, with a cache."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import islice

from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.failures import CircuitBreaker, call_error
from memory_mcp.encoders.model_families import UNKNOWN, Traits
from memory_mcp.encoders.pooled import MAX_CHARACTERS, Pooled, batches_by_length, model_input
from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.encoders.spread import USUAL_SPREAD
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

# A padded batch makes every pair as long as the longest: small batches by length take half the CPU time and occupy all workers.
BATCH_PAIRS, MIN_BATCH_PAIRS = 4, 2
# Work that ends after its deadline delays others past theirs, so an estimate must leave room for error.
SAFETY_FACTOR = 1.5

# Where all is expected to take more than this share of the time left, what is shown goes first, and counts if the rest comes too late.
TIGHT_FACTOR = 4.0

Pair = tuple[str, str]


@dataclass(slots=True, eq=False)
class _UnderWay:
    """A batch that is being scored, and how many calls wait for it."""

    future: Future[dict[bytes, float]]
    keys: tuple[bytes, ...]
    deadline: float | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """At most `pairs` pairs and `characters` are in a batch, and every `worth` pairs are worth one more batch. Where other calls leave one worker at
    most, a batch has up to `pairs_in_line` pairs, if that is more."""

    pairs: int = BATCH_PAIRS
    worth: int = MIN_BATCH_PAIRS
    characters: int = MAX_CHARACTERS
    pairs_in_line: int = 0


class PooledReranker(Pooled):
    """A `Reranker` that calls a function from pairs to scores of 0 to 1 through the worker pool."""

    def __init__(
        self,
        predict: Callable[[list[Pair]], Sequence[float]],
        name: str,
        pool: ModelPool,
        caches: Caches,
        *,
        spread: float = USUAL_SPREAD,
        fingerprint: str = "",
        traits: Traits = UNKNOWN,
        max_tokens: int | None = None,
        limits: BatchLimits = BatchLimits(pairs_in_line=2 * BATCH_PAIRS),
        breaker: CircuitBreaker | None = None,
        owns_pool: bool = False,
    ) -> None:
        super().__init__(predict, name, pool, caches, traits, breaker, owns_pool=owns_pool)
        self.max_tokens, self.spread = max_tokens, spread
        self._identity = f"{name}@{fingerprint}"
        self._limits = limits
        self._under_way: dict[bytes, _UnderWay] = {}

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """A score for each text; None if they can't be had before `deadline` (of `time.monotonic`).

        If the queue is too long already, nothing is started: under load, work that ends too late would delay others past their
        deadlines. With `at_least`, as many of the first texts are scored then as there is time for.

        Raises:
            EncoderFailed: the model failed.
        """
        keys = [digest(self._identity, query, text) for text in texts]
        scores = {key: self._caches.scores.get(key) for key in keys}
        # What another call has asked for just now takes no time either.
        uncached = [
            (key, text) if scores[key] is None and key not in self._under_way else None for key, text in zip(keys, texts, strict=True)
        ]
        count = self._affordable(query, uncached, deadline, at_least)
        if count is None:
            return None
        wanted = {key: text for key, text in zip(keys[:count], texts, strict=False) if scores[key] is None}
        if wanted:
            self._breaker.check(self.name)
        minimum = count if at_least is None else min(at_least, count)
        is_tight = minimum < count and not self._in_time(query, uncached[:count], deadline, TIGHT_FACTOR)
        first = set(keys[:minimum]) if is_tight else set(keys[:count])
        computed = self._scored(query, wanted, first, deadline)
        if computed is None:
            return None
        scores.update(computed)
        enough = count if all(scores[key] is not None for key in keys[:count]) else minimum
        return [score for key in keys[:enough] if (score := scores[key]) is not None]

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

    def _in_time(
        self, query: str, uncached: Sequence[tuple[bytes, str] | None], deadline: float | None, factor: float = SAFETY_FACTOR
    ) -> bool:
        """Whether these are likely to be scored by the deadline, even if they take `factor` times as long as expected."""
        texts = dict(filter(None, uncached))
        if deadline is None or not texts:
            return True
        if _is_past(deadline):
            return False
        weights = [_weight(query, texts, batch) for batch in self._batches(texts)]
        return time.monotonic() + factor * self._pool.expected_seconds(Urgency.RERANK, weights) < deadline

    def _scored(self, query: str, texts: dict[bytes, str], first: set[bytes], deadline: float | None) -> dict[bytes, float] | None:
        """The scores by the deadline; None if those of `first`, which are asked for before the others, are not all among them."""
        parts = [{key: text for key, text in texts.items() if (key in first) is is_first} for is_first in (True, False)]
        jobs = [job for part in parts for job in self._jobs(query, part, deadline)]
        wait([job.future for job in jobs], None if deadline is None else max(0.0, deadline - time.monotonic()))
        self._leave(jobs)
        scores: dict[bytes, float] = {}
        for job in jobs:
            if not job.future.done() or job.future.cancelled():
                continue
            failure = job.future.exception()
            if failure is not None:
                error = self._encoder_failed(failure)
                self._log.warn(error)
                raise error
            scores |= job.future.result()
        missing = {key: text for key, text in texts.items() if key in first and key not in scores}
        given_up = {key for job in jobs if _is_earlier(job.deadline, deadline) for key in job.keys}
        if missing and missing.keys() <= given_up and not _is_past(deadline):  # the calls that had begun them had less time than this one
            more = self._scored(query, missing, first, deadline)
            return None if more is None else scores | more
        return None if missing else scores

    def _jobs(self, query: str, texts: dict[bytes, str], deadline: float | None) -> list[_UnderWay]:
        """The jobs that score these texts: those that other calls have begun, and new ones for the rest."""
        with self._guard:
            jobs = list({id(job): job for key in texts if (job := self._under_way.get(key))}.values())
            missing = {key: text for key, text in texts.items() if key not in self._under_way}
            for batch in self._batches(missing):
                work = self._score_batch(query, {key: missing[key] for key in batch})
                future = self._pool.submit(work, Urgency.RERANK, deadline, _weight(query, missing, batch))
                job = _UnderWay(future, tuple(batch), deadline)
                self._under_way.update(dict.fromkeys(batch, job))
                jobs.append(job)
            for job in jobs:
                job.waiting += 1
        return jobs

    def _leave(self, jobs: Iterable[_UnderWay]) -> None:
        """Forgets jobs that have ended, and cancels those that have not started and that no other call waits for."""
        with self._guard:
            for job in jobs:
                job.waiting -= 1
                if job.waiting <= 0:
                    job.future.cancel()
                    for key in job.keys:
                        if self._under_way.get(key) is job:
                            del self._under_way[key]

    def _batches(self, texts: dict[bytes, str]) -> list[list[bytes]]:
        """The keys in batches, longest texts first, so that short ones fill the gaps at the end. The workers that other calls leave get equal batches:
        five pairs as 3 and 2 take .75 of the time of 4 and 1. If that is one at most, what is shown is one batch: one half alone by the deadline is work
        for nothing.
        """
        free = self._pool.free_workers(Urgency.RERANK)
        is_shared = free > 1 or free == self._pool.workers
        workers, pairs = (free, self._limits.pairs) if is_shared else (1, max(self._limits.pairs, self._limits.pairs_in_line))
        rounds = math.ceil(len(texts) / (workers * pairs))
        equal_batches = _equal_parts(
            sorted(texts, key=lambda key: -len(texts[key])), min(workers * rounds, math.ceil(len(texts) / self._limits.worth))
        )
        fit = all(len(texts[batch[0]]) * len(batch) <= self._limits.characters for batch in equal_batches)
        return equal_batches if fit else list(batches_by_length(texts, pairs, self._limits.characters))

    def _score_batch(self, query: str, texts: dict[bytes, str]) -> Callable[[], dict[bytes, float]]:
        def run() -> dict[bytes, float]:
            shortened = model_input(query, self.max_tokens)
            pairs = [(shortened, model_input(text, self.max_tokens)) for text in texts.values()]
            values = [float(score) for score in self._model(pairs)]
            if not all(math.isfinite(value) for value in values):
                raise EncoderFailed("{} returned NaN or infinity", "its weights are damaged, or its device is", "", self.name)
            scores = dict(zip(texts, values, strict=True))
            for key, score in scores.items():
                self._caches.scores.put(key, score)  # also if it is too late for this call
            return scores

        return run

    def _encoder_failed(self, failure: BaseException) -> EncoderFailed:
        if isinstance(failure, EncoderFailed):
            return failure
        # Libraries raise any class here, and each means that the model failed.
        error = EncoderFailed("{} failed", "{}", "", self.name, call_error(failure))
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


def _is_earlier(first: float | None, second: float | None) -> bool:
    return first is not None and (second is None or first < second)


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
