"""An embedding model and a cross-encoder on another server, and the checks that notice another model there.

Every batch of stored texts contains a probe text, and its vector must stay the same: without that, a server that was started again with
another model would fill the index with vectors that don't compare. What only reads is checked once a minute.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from memory_mcp.encoders.failures import BULK_SECONDS, QUERY_SECONDS
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.model_families import Prefixes
from memory_mcp.encoders.models import PROBE, Vectors
from memory_mcp.encoders.remote.connection import Connection
from memory_mcp.encoders.remote.served import Served, ask
from memory_mcp.encoders.reranking import Pair
from memory_mcp.encoders.spread import spread_of
from memory_mcp.errors import EncoderFailed

CHECK_SECONDS = 60.0
# A model in half precision differs from itself by .0001 between batches and devices; another one, also of the same family, by .1 and more.
SAME_COSINE = 0.99
SAME_SCORE = 0.05
SHORTEST_CHARACTERS = 64
PASSAGES = (PROBE, "。", "The train leaves at nine.")

Result = TypeVar("Result")


class _Remote:
    """What both kinds of models share."""

    def __init__(self, connection: Connection, name: str, role: Role, api: str) -> None:
        self.served: Served = ask(connection, name, role, api)
        self.changed = False
        self._connection = connection
        self._asked = name, role, api
        self._checked_at = time.monotonic()

    def disconnect(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def check(self) -> None:
        """Checks once a minute that the server reports the same model, and that the model returns the same results.

        Raises:
            EncoderFailed: it runs another one. `changed` is true from then on.
        """
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        served = ask(self._connection, *self._asked)
        if served.identity != self.served.identity:
            raise self._is_another(f"{self._connection.url} now runs {served.identity.rstrip('@')}")
        self._probe()

    def _probe(self) -> None:
        raise NotImplementedError

    def _is_another(self, reason: str) -> EncoderFailed:
        self.changed = True
        return EncoderFailed("{} changed while it was used", reason, "", self.served.name)

    def _unusable(self, path: str) -> EncoderFailed:
        return self._connection.failed(
            f"{self._connection.url}{path} answered in another form than {self.served.api}, or not for every text"
        )

    def _in_parts(
        self, path: str, texts: list[str], body: Callable[[list[str]], Any], read: Callable[[Any, int], list[Result]], until: float
    ) -> list[Result]:
        """The results for all texts. What the server finds too much is halved: first the batch, then a text that is alone in it."""
        reply = self._connection.post(path, {**body(texts), **self.served.extra}, until)
        if reply.status == 200:
            try:
                return read(reply.content, len(texts))
            except (LookupError, TypeError, ValueError, OverflowError) as error:
                raise self._unusable(path) from error
        if len(texts) > 1:
            half = len(texts) // 2
            parts = (texts[:half], texts[half:])
            return [result for part in parts for result in self._in_parts(path, part, body, read, until)]
        if len(texts[0]) > SHORTEST_CHARACTERS:
            return self._in_parts(path, [texts[0][: len(texts[0]) // 2]], body, read, until)
        raise self._connection.failed(f"{self._connection.url}{path} answered {reply.status}")


class RemoteEmbeddings(_Remote):
    """An embedding model on another server that has returned a valid vector. Thread-safe."""

    def __init__(self, connection: Connection, name: str, api: str, prefixes_of: Callable[[str], Prefixes]) -> None:
        """`prefixes_of` returns the prefixes for the name of a model.

        Raises:
            EncoderFailed: the server does not answer, runs another model, or does not return vectors.
        """
        super().__init__(connection, name, "embedder", api)
        self._prefixes = prefixes_of(self.served.model)
        probe = self._vectors([PROBE, "。"], QUERY_SECONDS)
        if not (np.isfinite(probe).all() and probe[0].any()):
            raise EncoderFailed("{} can't be used", "it returned NaN, infinity or zeros", "", name)
        self.dimension = int(probe.shape[1])
        self.probe = _unit(probe[0])

    def embed_query(self, text: str) -> Vectors:
        """A vector."""
        return self.embed_queries([text])[0]

    def embed_queries(self, texts: list[str]) -> list[Vectors]:
        """A vector for each query, in one call."""
        self.check()
        return list(self._same_size(self._vectors([_input(self._prefixes.query, text) for text in texts], QUERY_SECONDS)))

    def embed_documents(self, texts: list[str]) -> list[Vectors]:
        """A vector for each text, in one call, with proof that the same model made them."""
        vectors = self._same_size(self._vectors([*(_input(self._prefixes.document, text) for text in texts), PROBE], BULK_SECONDS))
        self._compare(vectors[-1])
        return list(vectors[:-1])

    def _probe(self) -> None:
        self._compare(self._same_size(self._vectors([PROBE], QUERY_SECONDS))[0])

    def _compare(self, probe: Vectors) -> None:
        similarity = float(_unit(probe) @ self.probe)
        if not similarity >= SAME_COSINE:  # nor is NaN the same
            raise self._is_another(f"{self._connection.url} now gives a known text another vector (cosine {similarity:.2f})")

    def _same_size(self, vectors: Vectors) -> Vectors:
        if vectors.shape[1] != self.dimension:
            raise self._is_another(f"its vectors had {self.dimension} numbers and now have {vectors.shape[1]}")
        return vectors

    def _vectors(self, texts: list[str], seconds: float) -> Vectors:
        if self.served.api == "tei":
            path, read = "/embed", _tei_vectors
            rows = self._in_parts(
                path, texts, lambda part: {"inputs": part, "normalize": True, "truncate": True}, read, time.monotonic() + seconds
            )
        else:
            path, read = f"{self.served.root}/embeddings", _openai_vectors
            fixed = {"model": self.served.name, "encoding_format": "float"}
            rows = self._in_parts(path, texts, lambda part: {**fixed, "input": part}, read, time.monotonic() + seconds)
        if len({row.size for row in rows}) != 1:
            raise self._unusable(path)
        return np.stack(rows)


class RemoteCrossEncoder(_Remote):
    """A cross-encoder on another server that has returned valid scores. Calling it with pairs returns a score of 0 to 1 for each."""

    def __init__(self, connection: Connection, name: str, api: str) -> None:
        """Raises:
        EncoderFailed: the server does not answer, runs another model, or does not return scores.
        """
        super().__init__(connection, name, "reranker", api)
        self._gives_logits = False
        raw = self._raw(PROBE, list(PASSAGES))
        self._gives_logits = any(not 0 <= score <= 1 for score in raw)  # llama.cpp, for one
        self.probe = self._scores(PROBE, list(PASSAGES))
        if not all(math.isfinite(score) for score in self.probe):
            raise EncoderFailed("{} can't be used", "it returned NaN or infinity", "", name)

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of the pairs: one call for each query."""
        self.check()
        return self._of_pairs(pairs, QUERY_SECONDS)

    def measured_spread(self, languages: Sequence[str] | None) -> float:
        """The spread of its scores, asked for once, with the patience of bulk work."""
        return spread_of(lambda pairs: self._of_pairs(pairs, BULK_SECONDS), languages)

    def _of_pairs(self, pairs: list[Pair], seconds: float) -> list[float]:
        scores: dict[Pair, float] = {}
        for query in dict.fromkeys(query for query, _ in pairs):
            texts = [text for asked, text in pairs if asked == query]
            scores.update(zip(((query, text) for text in texts), self._scores(query, texts, seconds), strict=True))
        return [scores[pair] for pair in pairs]

    def _probe(self) -> None:
        now = self._scores(PROBE, list(PASSAGES))
        if not all(abs(score - before) <= SAME_SCORE for score, before in zip(now, self.probe, strict=True)):
            raise self._is_another(f"{self._connection.url} now scores a known text differently")

    def _scores(self, query: str, texts: list[str], seconds: float = QUERY_SECONDS) -> list[float]:
        scores = self._raw(query, texts, seconds)
        if self._gives_logits:
            return [1 / (1 + math.exp(-min(max(score, -60.0), 60.0))) for score in scores]
        if any(score < 0 or score > 1 for score in scores):
            raise self._connection.failed(f"{self._connection.url} gave a score that is not from 0 to 1")
        return scores

    def _raw(self, query: str, texts: list[str], seconds: float = QUERY_SECONDS) -> list[float]:
        until = time.monotonic() + seconds
        if self.served.api == "tei":
            fixed: dict[str, Any] = {"query": query, "raw_scores": False, "truncate": True}
            return self._in_parts("/rerank", texts, lambda part: {**fixed, "texts": part}, _tei_scores, until)
        fixed = {"model": self.served.name, "query": query}
        return self._in_parts(
            f"{self.served.root}/rerank", texts, lambda part: {**fixed, "documents": part, "top_n": len(part)}, _cohere_scores, until
        )


def _input(prefix: str, text: str) -> str:
    return prefix + text.replace("\n", " ")  # as for models that run here


def _unit(vector: Vectors) -> Vectors:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def _tei_vectors(content: Any, count: int) -> list[Vectors]:
    return _rows(content, count)


def _openai_vectors(content: Any, count: int) -> list[Vectors]:
    return _rows(_by_index(content["data"], "embedding", count), count)


def _tei_scores(content: Any, count: int) -> list[float]:
    return [_number(score) for score in _by_index(content, "score", count)]


def _cohere_scores(content: Any, count: int) -> list[float]:
    return [_number(score) for score in _by_index(content["results"], "relevance_score", count)]


def _rows(rows: Any, count: int) -> list[Vectors]:
    if not isinstance(rows, list) or len(rows) != count:
        raise ValueError
    vectors = [np.asarray(row, np.float32) for row in rows]
    if any(vector.ndim != 1 or not vector.size for vector in vectors):
        raise ValueError
    return vectors


def _by_index(entries: Any, key: str, count: int) -> list[Any]:
    """The values in the order of the texts: exactly one for each."""
    values = {entry["index"]: entry[key] for entry in entries}
    if len(entries) != count or values.keys() != set(range(count)):
        raise ValueError
    return [values[index] for index in range(count)]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)
