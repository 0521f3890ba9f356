"""How the server and a persona are doing, for /ready, /api/stats and the memory:// resources."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp import __version__
from memory_mcp.encoders.models import Models
from memory_mcp.jobs.chore_worker import ChoreStatus
from memory_mcp.jobs.index_worker import IndexStatus
from memory_mcp.personas.registry import Persona
from memory_mcp.server.auth import Admission
from memory_mcp.server.request_persona import Call
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.views import heading, local, told
from memory_mcp.store import memories


def readiness(runtime: Runtime, admission: Admission) -> dict[str, Any]:
    """What works now, per model; what is wrong with config.json; which edits wait for a restart; what the index still lacks.

    `index_lag` counts memories that have no vector yet although a model is there; without one nothing lags. A token for some
    personas hears of those alone, and only one with the scope `admin` of config.json, whose errors quote it.
    """
    settings = runtime.config.current()
    models = runtime.models_for(settings)
    answers = models.embedder or models.earlier
    index = runtime.index.status() if runtime.index and answers else None
    shown = index_view(index, settings.zone, admission) if index else {"lag": 0}
    configuration = {
        "config_error": runtime.config.error,
        "config_warnings": list(runtime.config.warnings),
        "restart_pending": runtime.config.restart_pending,
    }
    return {
        "ready": True,
        "version": __version__,
        "mode": "hybrid" if answers else "keyword",
        "models": models_view(models),
        "index_lag": shown["lag"],
        **told(index=shown if index else None),
        **({"chores": chores_view(runtime.chores.status(), settings.zone, admission)} if runtime.chores else {}),
        **(configuration if "admin" in admission.scopes else {}),
        "started_at": local(runtime.started_at, settings.zone),
    }


def models_view(models: Models) -> dict[str, Any]:
    """The state of both models."""
    return {"embedder": told(**asdict(models.embedder_state)), "reranker": told(**asdict(models.reranker_state))}


def index_view(index: IndexStatus, zone: ZoneInfo, admission: Admission) -> dict[str, Any]:
    """How the indexes are doing: what waits, how far a change of model has come, what fails."""
    if admission.personas is None:
        return {**asdict(index), "last_rebuild": local(index.last_rebuild, zone)}
    waiting = {name: index.waiting[name] for name in admission.among(index.waiting)}
    return {
        "lag": sum(waiting.values()),
        "waiting": waiting,
        "re_embedding": {name: asdict(index.re_embedding[name]) for name in admission.among(index.re_embedding)},
        "failing": admission.among(index.failing),
    }


def chores_view(chores: Mapping[str, ChoreStatus], zone: ZoneInfo, admission: Admission) -> dict[str, Any]:
    """How upkeep is doing, by chore: whether it is on, when it was last done to its end, for whom it fails."""
    return {
        name: {
            "enabled": chore.enabled,
            "due": len(admission.among(chore.due)),
            **told(last_done=local(chore.last_done, zone)),
            "failing": admission.among(chore.failing),
            **told(last_error=chore.last_error if admission.personas is None else None),
        }
        for name, chore in chores.items()
    }


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
