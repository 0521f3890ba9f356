"""How the server and a persona are doing, for /ready, /api/stats and the memory:// resources."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp import __version__
from memory_mcp.encoders.models import Models
from memory_mcp.jobs.chore_worker import ChoreStatus
from memory_mcp.jobs.index_worker import IndexStatus
from memory_mcp.personas.registry import Persona
from memory_mcp.server.auth import Admission
from memory_mcp.server.call import Call
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.views import Count, Moment, ReadingAnswer, heading, local, omit_empty
from memory_mcp.store import memories


class Health(TypedDict):
    status: Literal["ok"]
    version: str
    instance: NotRequired[str]


class ModelState(TypedDict):
    state: str


class IndexState(TypedDict):
    lag: Count


class ChoreState(TypedDict):
    enabled: bool
    due: Count
    failing: list[str]


class Readiness(TypedDict):
    ready: Literal[True]
    version: NotRequired[str]
    mode: NotRequired[Literal["hybrid", "keyword"]]
    degraded: NotRequired[list[str]]
    models: NotRequired[Annotated[dict[str, ModelState], Field(json_schema_extra={"required": ["embedder", "reranker"]})]]
    index_lag: NotRequired[Count]
    index: NotRequired[IndexState]
    chores: NotRequired[dict[str, ChoreState]]
    config_error: NotRequired[str | None]
    config_warnings: NotRequired[list[str]]
    restart_pending: NotRequired[list[str]]
    calls_without_persona: NotRequired[dict[str, Count]]
    started_at: NotRequired[Moment | None]


def readiness(runtime: Runtime, admission: Admission) -> dict[str, Any]:
    """Return what works now, per model; what is wrong with config.json; which edits wait for a restart; what the index still lacks.

    `index_lag` counts memories that have no vector yet although a model is there; without one nothing lags. A token for some
    personas learns about those alone, and only one with the scope `admin` about config.json, because its errors quote it, and about calls
    that name no persona.
    """
    settings = runtime.config.current()
    models = runtime.models_for(settings)
    index = runtime.index.status() if runtime.index and models.loaded else None
    shown = index_view(index, settings.zone, admission) if index else {"lag": 0}
    configuration = {
        "config_error": runtime.config.error,
        "config_warnings": list(runtime.config.warnings),
        "restart_pending": runtime.config.restart_pending,
        **omit_empty(calls_without_persona=dict(runtime.unnamed_calls)),
    }
    return {
        "ready": True,
        "version": __version__,
        "mode": "hybrid" if models.loaded else "keyword",
        "degraded": models.degraded(),
        "models": models_view(models),
        "index_lag": shown["lag"],
        **omit_empty(index=shown if index else None),
        **({"chores": chores_view(runtime.chores.status(), settings.zone, admission)} if runtime.chores else {}),
        **(configuration if "admin" in admission.scopes else {}),
        "started_at": local(runtime.started_at, settings.zone),
    }


def models_view(models: Models) -> dict[str, Any]:
    """Return the state of both models, and that of the embedders that are there in place of the configured one."""
    states = {"embedder": models.embedder_state, "reranker": models.reranker_state, "fallback": models.fallback_state}
    view = {role: omit_empty(**asdict(state)) for role, state in states.items() if role != "fallback" or state.state != "off"}
    previous = models.earlier
    return {**view, **({"previous": {"state": "loaded", "name": previous.name, "dimension": previous.dimension}} if previous else {})}


def index_view(index: IndexStatus, zone: ZoneInfo, admission: Admission) -> dict[str, Any]:
    """Return the state of the indexes: what waits, the progress of a change of models, what fails."""
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
    """Return the state of each background task: whether it is on, when it last finished, and the personas that it fails for."""
    return {
        name: {
            "enabled": chore.enabled,
            "due": len(admission.among(chore.due)),
            **omit_empty(last_done=local(chore.last_done, zone)),
            "failing": admission.among(chore.failing),
            **omit_empty(last_error=chore.last_error if admission.personas is None else None),
        }
        for name, chore in chores.items()
    }


class StoredCounts(TypedDict):
    """How many memories a persona has; those in the trash are not among `memories`."""

    memories: Count
    superseded: Count
    in_trash: Count


class Statistics(ReadingAnswer, StoredCounts):
    by_kind: dict[str, Count]
    first: Moment | None
    last: Moment | None
    database_bytes: Count


def statistics(call: Call, persona: Persona) -> dict[str, Any]:
    """Return how much a persona remembers, and over which period."""
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
