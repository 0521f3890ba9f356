"""The models of a server that has loaded none."""

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models, ModelState


def unloaded_models(settings: Settings) -> Models:
    return Models(None, None, _state(settings.embeddings_model), _state(settings.reranker_model))


def _state(name: str | None) -> ModelState:
    return ModelState("off") if name is None else ModelState("absent", name, error="it has not been loaded")
