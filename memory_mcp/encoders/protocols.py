"""What an embedding model and a cross-encoder are to the rest of the product."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

State = Literal["off", "absent", "loading", "loaded"]


class Embedder(Protocol):
    """Text to vectors. Queries and stored texts are told apart, because models such as ruri-v3 want a prefix on each."""

    name: str
    dimension: int

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """A vector of shape (dimension,) and length 1."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Vectors of shape (len(texts), dimension), each of length 1."""
        ...


class Reranker(Protocol):
    """How well each text answers a query, judged with both in view."""

    name: str

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, larger is better."""
        ...


@dataclass(frozen=True, slots=True)
class ModelState:
    """Where a configured model stands: `off` on purpose, `absent` (`error` says why), `loading`, or `loaded`."""

    state: State
    name: str | None = None
    dimension: int | None = None
    error: str | None = None
