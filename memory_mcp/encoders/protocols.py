"""What an embedding model and a cross-encoder are to the rest of the product."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

State = Literal["off", "absent", "loading", "loaded"]
Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Text to vectors. Queries and stored texts are told apart, because models such as ruri-v3 want a prefix on each."""

    @property
    def name(self) -> str:
        """The model's name as configuration has it."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector, read from the model."""
        ...

    @property
    def generation(self) -> str:
        """What makes two vectors comparable: model, dimension and prefix version. Vectors of different generations never meet."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """How many tokens of a stored text the model reads, beside what it puts around it; it cuts off the rest. None: it does not say."""
        ...

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Where each of the model's tokens is in a text, in characters and in order; an estimate where the model does not tell."""
        ...

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of a text. Where it doesn't, its opinion must not count."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,) and length 1. Goes before bulk work.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimension), each of length 1. Bulk work: gives way to queries.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        ...


class Reranker(Protocol):
    """How well each text answers a query, judged with both in view."""

    @property
    def name(self) -> str:
        """The model's name as configuration has it."""
        ...

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of a text."""
        ...

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """A score from 0 to 1 for each text, larger is better; None when they could not be scored before `deadline`.

        `deadline` is a value of `time.monotonic`. With `at_least`, fewer are scored when it can't be all: so many of the
        first texts as there is time for, and not fewer than that. Scored pairs are remembered, so that the next call is quicker.

        Raises:
            EncoderFailed: the model could not be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelState:
    """Where a configured model stands: `off` on purpose, `absent` (`error` says why), `loading`, or `loaded`."""

    state: State
    name: str | None = None
    dimension: int | None = None
    error: str | None = None
