"""The two models that a configuration asks for: what is loaded, and why the rest is not.

Nothing here imports torch: a machine without the models must not pay for it.
"""

from dataclasses import dataclass

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.protocols import Embedder, ModelState, Reranker


@dataclass(frozen=True, slots=True)
class Models:
    """What is loaded now, and the state of both. A call takes one `Models` and keeps it to its end.

    After a change of `embeddings_model` the `earlier` one goes on answering for a persona until all of that persona's vectors
    exist in the new generation.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    embedder_state: ModelState
    reranker_state: ModelState
    earlier: Embedder | None = None

    def of_generation(self, generation: str | None) -> Embedder | None:
        """The loaded embedder whose vectors these are."""
        return next((known for known in (self.embedder, self.earlier) if known and known.generation == generation), None)


def models_for(settings: Settings) -> Models:
    """What is there before anything has been loaded: nothing, on purpose or not."""
    return Models(None, None, _unloaded(settings.embeddings_model), _unloaded(settings.reranker_model))


def _unloaded(name: str | None) -> ModelState:
    return ModelState("off") if name is None else ModelState("absent", name, error="it has not been loaded")
