"""Asking a cross-encoder: pairs of like length in chunks of 4 that run side by side, within a deadline, and no pair twice."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from memory_mcp.encoders.batches import batches_by_length
from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.embedding import failure_of, sendable
from memory_mcp.encoders.lanes import Urgency
from memory_mcp.encoders.languages import covers
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.errors import EncoderFailed

# One padded batch makes every pair as long as the longest: chunks of 4 by length take half the CPU and fill all workers.
CHUNK = 4
# Work that ends after its deadline has kept others from ending in time: what is begun shall end, also when it takes longer than guessed.
CAUTION = 1.5

Pair = tuple[str, str]

logger = logging.getLogger(__name__)


class PooledReranker:
    """A `Reranker` over a function from pairs to scores of 0 to 1."""

    def __init__(
        self,
        predict: Callable[[list[Pair]], Sequence[float]],
        name: str,
        pool: ModelPool,
        caches: Caches,
        *,
        fingerprint: str = "",
        languages: tuple[str, ...] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self._predict = predict
        self._identity = f"{name}@{fingerprint}"
        self._pool = pool
        self._caches = caches
        self._languages = languages

    def covers(self, text: str) -> bool:
        """By the table of known models."""
        return covers(self._languages, text)

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """A score for each text; None when they could not be had before `deadline` (of `time.monotonic`).

        Where the line is too long already nothing is begun: under load, work that ends too late would keep others from
        ending in time. With `at_least`, the first texts are scored then, so many as there is time for.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        keys = [digest(self._identity, query, text) for text in texts]
        scores = {key: self._caches.scores.get(key) for key in keys}
        enough = len(texts) if at_least is None else min(at_least, len(texts))
        # Behind others only what is enough: the rest would be what the next one lacks.
        most = len(texts) if deadline is None or self._pool.nothing_waits(Urgency.RERANK) else enough
        for count in range(most, enough - 1, -1):
            wanted = {key: text for key, text in zip(keys[:count], texts, strict=False) if scores[key] is None}
            chunks = list(batches_by_length(wanted, CHUNK))  # the longest first: short ones fill the gaps at the end
            if self._in_time([_weight(query, wanted, chunk) for chunk in chunks], deadline):
                break
        else:
            # One slow moment, which the pace would remember, must not turn everyone away for good: somebody tries.
            if not self._pool.nothing_waits(Urgency.RERANK) or _is_past(deadline):
                return None
        found = self._scored(query, wanted, chunks, deadline)
        if found is None:
            return None
        scores.update(found)
        return [score for key in keys[:count] if (score := scores[key]) is not None]

    def _in_time(self, weights: list[int], deadline: float | None) -> bool:
        """Whether chunks of such weights are likely to be done by then. What is known already takes no time."""
        if deadline is None or not weights:
            return True
        return time.monotonic() + CAUTION * self._pool.expected_seconds(Urgency.RERANK, weights) < deadline

    def _scored(self, query: str, wanted: dict[bytes, str], chunks: list[list[bytes]], deadline: float | None) -> dict[bytes, float] | None:
        jobs = [
            self._pool.submit(
                self._chunk(query, {key: wanted[key] for key in chunk}), Urgency.RERANK, deadline, _weight(query, wanted, chunk)
            )
            for chunk in chunks
        ]
        return self._collected(jobs, deadline)

    def _chunk(self, query: str, texts: dict[bytes, str]) -> Callable[[], dict[bytes, float]]:
        def run() -> dict[bytes, float]:
            asked = sendable(query, self.max_tokens)
            pairs = [(asked, sendable(text, self.max_tokens)) for text in texts.values()]
            scores = [float(score) for score in self._predict(pairs)]
            if not all(math.isfinite(score) for score in scores):
                raise EncoderFailed(f"{self.name} answered with numbers that are none", "its weights are damaged, or its device is")
            found = dict(zip(texts, scores, strict=True))
            for key, score in found.items():
                self._caches.scores.put(key, score)  # also when it comes too late for this call
            return found

        return run

    def _collected(self, jobs: list[Future[dict[bytes, float]]], deadline: float | None) -> dict[bytes, float] | None:
        wait(jobs, None if deadline is None else max(0.0, deadline - time.monotonic()))
        for job in jobs:
            job.cancel()  # what has not begun; done ones are not touched
        if not all(job.done() and not job.cancelled() for job in jobs):
            return None
        found: dict[bytes, float] = {}
        for job in jobs:
            try:
                found.update(job.result())
            except EncoderFailed:
                raise
            except Exception as error:  # whatever a library raises here means that the model could not be asked
                raise EncoderFailed(f"{self.name} could not be asked", failure_of(error)) from error
        return found


def _weight(query: str, wanted: dict[bytes, str], chunk: list[bytes]) -> int:
    """What a chunk costs, in characters once padded."""
    return len(chunk) * (len(query) + max(len(wanted[key]) for key in chunk))


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
