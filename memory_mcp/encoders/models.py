"""The two models that a configuration asks for, and why one is not in use.

Nothing here imports torch: a machine without the models must not pay for it.
"""

from dataclasses import dataclass

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.protocols import Embedder, ModelState, Reranker

_NO_LOADER = "this version searches by keyword only: it has no loader for models yet"


@dataclass(frozen=True, slots=True)
class Models:
    """What is loaded now, and the state of both. A call takes one `Models` and keeps it to its end."""

    embedder: Embedder | None
    reranker: Reranker | None
    embedder_state: ModelState
    reranker_state: ModelState


def models_for(settings: Settings) -> Models:
    """The models of this configuration as far as they are there."""
    return Models(None, None, _state(settings.embeddings_model), _state(settings.reranker_model))


def _state(name: str | None) -> ModelState:
    return ModelState("off") if name is None else ModelState("absent", name, error=_NO_LOADER)
