"""Asking a cross-encoder: pairs of like length in small chunks that run side by side, within a deadline, and no pair twice."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from itertools import islice

from memory_mcp.encoders.batches import CHARACTERS, batches_by_length
from memory_mcp.encoders.cache import Caches, digest
from memory_mcp.encoders.embedding import failure_of, sendable
from memory_mcp.encoders.languages import covers
from memory_mcp.encoders.log_throttle import Complaints
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.errors import EncoderFailed

# One padded batch makes every pair as long as the longest: small chunks by length take half the CPU and fill all workers. So many pairs are
# in one at most, and so many are worth a further one.
CHUNK, WORTH_A_CHUNK = 4, 2
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
        self._complaints = Complaints()

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
        unknown = [(key, text) if scores[key] is None else None for key, text in zip(keys, texts, strict=True)]
        count = self._affordable(query, unknown, deadline, at_least)
        if count is None:
            return None
        wanted = dict(filter(None, unknown[:count]))
        found = self._scored(query, wanted, deadline)
        if found is None:
            return None
        scores.update(found)
        return [score for key in keys[:count] if (score := scores[key]) is not None]

    def _affordable(
        self, query: str, unknown: Sequence[tuple[bytes, str] | None], deadline: float | None, at_least: int | None
    ) -> int | None:
        """How many of the first texts there is time for; None where that is fewer than `at_least`, or than all. What is known already (None) takes none."""
        enough = len(unknown) if at_least is None else min(at_least, len(unknown))
        alone = self._pool.nothing_waits(Urgency.RERANK)
        if not self._in_time(query, unknown[:enough], deadline):
            # One slow moment, which the pace would remember, must not turn everyone away for good: somebody tries.
            return enough if alone and not _is_past(deadline) else None
        if not alone and deadline is not None:
            return enough  # behind others only what is enough: the rest would be what the next one lacks
        # More pairs may take less time, where they are shared out better: the most first.
        more = range(len(unknown), enough, -1)
        return next((count for count in more if self._in_time(query, unknown[:count], deadline)), enough)

    def _in_time(self, query: str, unknown: Sequence[tuple[bytes, str] | None], deadline: float | None) -> bool:
        """Whether these are likely to be done by then."""
        wanted = dict(filter(None, unknown))
        if deadline is None or not wanted:
            return True
        if _is_past(deadline):
            return False
        weights = [_weight(query, wanted, chunk) for chunk in self._chunks(wanted)]
        return time.monotonic() + CAUTION * self._pool.expected_seconds(Urgency.RERANK, weights) < deadline

    def _scored(self, query: str, wanted: dict[bytes, str], deadline: float | None) -> dict[bytes, float] | None:
        jobs = [
            self._pool.submit(
                self._chunk(query, {key: wanted[key] for key in chunk}), Urgency.RERANK, deadline, _weight(query, wanted, chunk)
            )
            for chunk in self._chunks(wanted)
        ]
        return self._collected(jobs, deadline)

    def _chunks(self, wanted: dict[bytes, str]) -> list[list[bytes]]:
        """What is asked in one call each, the longest first: short ones fill the gaps at the end. Where nobody else waits, all workers get
        as much: five pairs as 3 and 2 take .75 of the time of 4 and 1.
        """
        workers = self._pool.workers if self._pool.nothing_waits(Urgency.RERANK) else 1
        rounds = math.ceil(len(wanted) / (workers * CHUNK))
        shared_out = _shared_out(
            sorted(wanted, key=lambda key: -len(wanted[key])), min(workers * rounds, math.ceil(len(wanted) / WORTH_A_CHUNK))
        )
        fit = all(len(wanted[chunk[0]]) * len(chunk) <= CHARACTERS for chunk in shared_out)
        return shared_out if fit else list(batches_by_length(wanted, CHUNK))

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
            failure = job.exception()
            if failure is not None:
                error = self._as_ours(failure)
                self._complaints.tell(error)
                raise error
            found.update(job.result())
        return found

    def _as_ours(self, failure: BaseException) -> EncoderFailed:
        if isinstance(failure, EncoderFailed):
            return failure
        # Whatever a library raises here means that the model could not be asked.
        error = EncoderFailed(f"{self.name} could not be asked", failure_of(failure))
        error.__cause__ = failure
        return error


def _shared_out(keys: Sequence[bytes], count: int) -> list[list[bytes]]:
    """The keys in their order, in so many parts of as many; what is left over goes to the first ones."""
    size, left_over = divmod(len(keys), max(count, 1))
    rest = iter(keys)
    return [list(islice(rest, size + (place < left_over))) for place in range(count)]


def _weight(query: str, wanted: dict[bytes, str], chunk: list[bytes]) -> int:
    """What a chunk costs, in characters once padded."""
    return len(chunk) * (len(query) + max(len(wanted[key]) for key in chunk))


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
