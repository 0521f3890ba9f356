"""What an embedding model and a cross-encoder are to the rest of the product, and which of them are loaded.

Nothing here imports torch: a machine without models must not pay for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

State = Literal["off", "absent", "loading", "loaded"]
Vectors = npt.NDArray[np.float32]

# The languages in which it is measured what the vectors of a model are like (`encoders.centers`).
CENTERED = ("ja", "en")

# A loaded model must answer this before it is used.
PROBE = "今日は誰と話しましたか。 Whom did I talk to today?"


@dataclass(frozen=True, slots=True)
class Centers:
    """What all statements of a language share, and all questions: a row for each language of `CENTERED`, of shape (languages, dimension). `known`: whether the
    vectors nearest to it count. Those of a language that the model does not know say nothing. But where it may know a third language, they may be of that.
    `spread`: the standard deviation of the nearness of a question to what does not answer it.
    `weight`: what the vectors count beside the words."""

    statements: Vectors
    questions: Vectors
    known: tuple[bool, ...]
    spread: float
    weight: float = 0.5

    def among(self, languages: Sequence[str] | None) -> "Centers":
        """Those of a model that knows these languages (`ja`, `en`, `zh`, …; None: nobody says which)."""
        codes = None if languages is None else {language.lower()[:2] for language in languages}
        may_know_others = codes is None or not codes <= {*CENTERED}
        return replace(self, known=tuple(is_known or may_know_others for is_known in self.known))

    def limited(self, languages: Sequence[str]) -> "Centers | None":
        """Those of a model that is to be used in these languages; None if none of them has a center."""
        codes = {language.lower()[:2] for language in languages}
        known = tuple(is_known or code in codes for code, is_known in zip(CENTERED, self.known, strict=True))
        return None if codes.isdisjoint(CENTERED) else replace(self, known=known).among(languages)


class Embedder(Protocol):
    """Text to vectors. Queries and stored texts have a method each, because models such as ruri-v3 want a different prefix on each."""

    name: str
    """The model's name in the configuration."""
    dimension: int
    """The length of a vector, read from the model."""
    generation: str
    """What makes two vectors comparable: model, dimension and prefix version. Vectors of different generations are never compared."""
    centers: Centers | None
    """The centers for comparing its vectors, the persona's own taking over as they grow; None if they are compared as they are."""
    max_tokens: int | None
    """How many tokens of a stored text the model reads, without prefix and special tokens; it cuts off the rest. None: unknown."""
    texts_at_once: int
    """How many stored texts of a sentence or two it embeds side by side: fewer in one `embed_documents` leave it idle."""

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """(start, end) of each of the model's tokens in a text, in characters and in order; an estimate if its tokenizer gives no offsets."""

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of a text. If it doesn't, its scores must not count."""

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,) and length 1. Has priority over bulk work.

        Raises:
            EncoderFailed: the model failed.
        """

    def embed_documents(self, texts: Sequence[str], *, is_awaited: bool = False) -> Vectors:
        """Vectors of shape (len(texts), dimension), each of length 1. Bulk work: queries have priority, unless a call waits for it (`is_awaited`).

        Raises:
            EncoderFailed: the model failed.
        """


class Reranker(Protocol):
    """Scores how well each text answers a query, reading both together."""

    name: str
    """The model's name in the configuration."""
    spread: float
    """How far apart the logits of its scores usually lie among the passages of one question (`encoders.spread`)."""

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of a text."""

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """A score from 0 to 1 for each text, larger is better; None if they could not be scored before `deadline`.

        `deadline` is a value of `time.monotonic`. With `at_least`, a shorter list is allowed: as many of the first texts as there is
        time for, but no fewer than that. Scores are cached, so that the next call is faster.

        Raises:
            EncoderFailed: the model failed.
        """


@dataclass(frozen=True, slots=True)
class Replacement:
    """An embedder that answers in place of the configured one: why, as a word of `degraded`, and its name."""

    reason: str
    name: str


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of a configured model: `off` (configured as null), `absent` (`error` gives the reason), `loading`, or `loaded`.

    `guessed` names the prefixes and languages of a loaded model that are not known for certain, `backend` what runs it, if the configuration
    does not.
    """

    state: State
    name: str | None = None
    dimension: int | None = None
    error: str | None = None
    guessed: str | None = None
    backend: str | None = None


OFF = ModelState("off")


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded models and their states. A call takes one `Models` and keeps it until it ends.

    While the configured embedder is absent, the `fallback` that `embeddings_fallback` names is used instead. After a change, the `earlier`
    embedder keeps answering for a persona until all of that persona's vectors exist in the new generation.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    embedder_state: ModelState
    reranker_state: ModelState
    earlier: Embedder | None = None
    fallback: Embedder | None = None
    fallback_state: ModelState = OFF

    @property
    def loaded(self) -> tuple[Embedder, ...]:
        """The loaded embedders. Indexes are made for the first."""
        return tuple(model for model in (self.embedder, self.fallback, self.earlier) if model)

    @property
    def target(self) -> Embedder | None:
        """The embedder for which indexes are made."""
        return next(iter(self.loaded), None)

    def of_generation(self, generation: str | None) -> Embedder | None:
        """The loaded embedder that makes vectors of this generation."""
        return next((model for model in self.loaded if model.generation == generation), None)

    def replaced(self, embedder: Embedder | None) -> Replacement | None:
        """What an answer says of an embedder that answers in place of the configured one; None of the configured one."""
        if embedder is None or (self.embedder and self.embedder.generation == embedder.generation):
            return None
        is_fallback = self.fallback is not None and self.fallback.generation == embedder.generation
        return Replacement("embedder_fallback" if is_fallback else "embedder_previous", embedder.name)

    def why_none(self, serving: str | None) -> str:
        """Why no loaded embedder makes vectors of the generation that serves a persona."""
        if self.embedder_state.state != "loaded":
            return f"embedder_{self.awaited}"
        return "nothing_embedded_yet" if serving is None else "reembedding"

    @property
    def awaited(self) -> State:
        """The state of the embedder that is to answer: `loading` also while the fallback of an absent one is being loaded."""
        state = self.embedder_state.state
        return "loading" if state == "absent" and self.fallback_state.state == "loading" else state

    def degraded(self) -> list[str]:
        """What answers lack of what is configured, in the words of their `degraded`; of some personas only, while their indexes are made."""
        states = {"embedder": self.awaited, "reranker": self.reranker_state.state}
        lacking = [
            f"{role}_{state}"
            for role, state in states.items()
            if state in ("absent", "loading") and not (role == "embedder" and self.loaded)
        ]
        return [*(replaced.reason for replaced in map(self.replaced, self.loaded) if replaced), *lacking]
