"""An embedder and a reranker without a model. They pass the same contract tests as the real ones (tests/encoders/test_embedder.py, test_reranker.py).

Texts are similar if they share tokens, and only then.
"""

import hashlib
import math
import threading
import time
from collections.abc import Sequence

import numpy as np

from memory_mcp.encoders.languages import covers
from memory_mcp.encoders.models import Centers, Vectors
from memory_mcp.encoders.spread import USUAL_SPREAD
from memory_mcp.errors import EncoderFailed
from memory_mcp.language.tokens import tokens


class HashingEmbedder:
    """Adds 1 or -1 in one dimension for each token. Deterministic across processes.

    `failing` can be changed at any time; `latency_seconds` is added to each call; with a `gate`, calls wait until it is set.
    `queries_asked` and `documents_asked` count texts.
    """

    def __init__(
        self,
        dimension: int = 64,
        name: str = "hashing",
        *,
        languages: Sequence[str] | None = None,
        max_tokens: int | None = None,
        latency_seconds: float = 0.0,
        failing: bool = False,
        gate: threading.Event | None = None,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.generation = f"{name}:{dimension}:plain"
        self.max_tokens = max_tokens
        self.failing = failing
        self.latency_seconds = latency_seconds
        self.gate = gate
        self.queries_asked = 0
        self.documents_asked = 0
        self.centers: Centers | None = None
        self.texts_at_once = 1
        self._languages = languages
        self._counting = threading.Lock()

    def covers(self, text: str) -> bool:
        """Decided by the languages passed to the constructor."""
        return covers(self._languages, text)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """A token for each character."""
        return [(index, index + 1) for index in range(len(text))]

    def embed_query(self, text: str) -> Vectors:
        """A vector of length 1.

        Raises:
            EncoderFailed: while `failing`.
        """
        _wait_or_fail(self.gate, self.latency_seconds, self.failing, self.name)
        with self._counting:
            self.queries_asked += 1
        return self._vector(text)

    def embed_documents(self, texts: Sequence[str], *, is_awaited: bool = False) -> Vectors:
        """The same vectors as for queries.

        Raises:
            EncoderFailed: while `failing`.
        """
        _wait_or_fail(self.gate, self.latency_seconds, self.failing, self.name)
        with self._counting:
            self.documents_asked += len(texts)
        return np.stack([self._vector(text) for text in texts]) if texts else np.empty((0, self.dimension), np.float32)

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, np.float32)
        for token in tokens(text):
            number = int.from_bytes(hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest())
            vector[number // 2 % self.dimension] += 1 if number % 2 else -1
        length = float(np.linalg.norm(vector))
        if not length:  # no token, or signs that cancel out
            vector[0] = length = 1.0
        return vector / np.float32(length)


class OverlapReranker:
    """Scores a text by the tokens that it shares with the query. `scores` overrides single texts."""

    def __init__(
        self,
        name: str = "overlap",
        *,
        languages: Sequence[str] | None = None,
        scores: dict[str, float] | None = None,
        latency_seconds: float = 0.0,
        failing: bool = False,
        gate: threading.Event | None = None,
    ) -> None:
        self.name = name
        self.scores = dict(scores or {})
        self.failing = failing
        self.short_of_time = False
        self.longest_in_time: int | None = None
        self.latency_seconds = latency_seconds
        self.gate = gate
        self.pairs_asked = 0
        self._languages = languages
        self._counting = threading.Lock()
        self.spread = USUAL_SPREAD

    def covers(self, text: str) -> bool:
        """Decided by the languages passed to the constructor."""
        return covers(self._languages, text)

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """0 to 1 for each text, or None when the deadline has passed or the latency would pass it.

        With `short_of_time`, only `at_least` of them, if the caller allows that. A text of more than `longest_in_time`
        characters counts as too slow.

        Raises:
            EncoderFailed: while `failing`.
        """
        if deadline is not None and time.monotonic() + self.latency_seconds >= deadline and texts:
            return None
        _wait_or_fail(self.gate, self.latency_seconds, self.failing, self.name)
        texts = texts[:at_least] if self.short_of_time else texts
        if deadline is not None and self.longest_in_time is not None and any(len(text) > self.longest_in_time for text in texts):
            return None
        with self._counting:
            self.pairs_asked += len(texts)
        query_tokens = set(tokens(query))
        return [self._score(query_tokens, text) for text in texts]

    def _score(self, query_tokens: set[str], text: str) -> float:
        if text in self.scores:
            return self.scores[text]
        text_tokens = set(tokens(text))
        if not query_tokens or not text_tokens:
            return 0.0
        return len(query_tokens & text_tokens) / math.sqrt(len(query_tokens) * len(text_tokens))


def _wait_or_fail(gate: threading.Event | None, latency_seconds: float, failing: bool, name: str) -> None:
    if gate:
        gate.wait()
    if latency_seconds:
        time.sleep(latency_seconds)
    if failing:
        raise EncoderFailed("the model {} failed", "its attribute `failing` is set", "", name)
