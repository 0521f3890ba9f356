"""How the server and a persona are doing, for /ready, /api/stats and the memory:// resources."""

from dataclasses import asdict
from typing import Any

from memory_mcp import __version__
from memory_mcp.encoders.models import Models
from memory_mcp.personas.registry import Persona
from memory_mcp.server.request_persona import Call
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.views import heading, local, told
from memory_mcp.store import memories


def readiness(runtime: Runtime) -> dict[str, Any]:
    """What works now, per model; what is wrong with config.json; which edits wait for a restart.

    `index_lag` counts memories that have no vector yet although a model is there; without one nothing lags.
    """
    settings = runtime.config.current()
    return {
        "ready": True,
        "version": __version__,
        "mode": "keyword",
        "models": models_view(runtime.models_for(settings)),
        "index_lag": 0,
        "config_error": runtime.config.error,
        "config_warnings": list(runtime.config.warnings),
        "restart_pending": runtime.config.restart_pending,
        "started_at": local(runtime.started_at, settings.zone),
    }


def models_view(models: Models) -> dict[str, Any]:
    """The state of both models."""
    return {"embedder": told(**asdict(models.embedder_state)), "reranker": told(**asdict(models.reranker_state))}


def statistics(call: Call, persona: Persona) -> dict[str, Any]:
    """How much a persona remembers, and from when to when."""
    zone = call.settings.zone
    with persona.database.read() as connection:
        counts, span, kinds = memories.counts(connection), memories.span(connection), memories.counts_by_kind(connection)
    first, last = span or (None, None)
    return {
        **heading(call, persona),
        **counts,
        "by_kind": kinds,
        "first": local(first, zone),
        "last": local(last, zone),
        "database_bytes": persona.database.size_bytes(),
    }
