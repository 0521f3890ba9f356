"""What a client sees of memories and answers: plain JSON, without fields that say nothing, times in the configured zone."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.dates.format import Language, ago, language_of
from memory_mcp.domain import Hit, Memory, Outcome, Recalled, Similar
from memory_mcp.personas.registry import Persona
from memory_mcp.server.client_language import client_language
from memory_mcp.server.request_persona import Call
from memory_mcp.text.privacy.redaction import Redaction


def told(**fields: Any) -> dict[str, Any]:
    """The fields that say something: no None, no empty text, list or object."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


def heading(call: Call, persona: Persona) -> dict[str, Any]:
    """What every answer begins with: whose memory it is and, where that persona has none yet, whom the caller may have meant."""
    if persona.exists:
        return {"persona": persona.name}
    return {"persona": persona.name, "new_persona": True, **told(did_you_mean=call.near(persona.name))}


def local(moment: datetime | None, zone: ZoneInfo) -> str | None:
    """ISO with the zone's offset, to the second."""
    return None if moment is None else moment.astimezone(zone).isoformat(timespec="seconds")


def memory_view(memory: Memory, text: str, zone: ZoneInfo, now: datetime, language: Language | None = None) -> dict[str, Any]:
    """A memory with `text` as its content, which may be a part of it. `language`: the client's; None for the memory's own."""
    return told(
        key=memory.key,
        content=text,
        source=memory.source,
        session_id=memory.session_id,
        kind=memory.kind,
        category=memory.category,
        privacy_level=memory.privacy_level if memory.privacy_level != "internal" else None,
        occurred_at=local(memory.occurred_at, zone),
        created_at=local(memory.created_at, zone),
        updated_at=local(memory.updated_at, zone) if memory.updated_at > memory.created_at else None,
        ago=ago(memory.event_time, now, language or language_of(text), zone),
        tags=list(memory.tags),
        importance=memory.importance if memory.importance != 0.5 else None,
        state=dict(memory.state),
        revision=memory.revision if memory.revision > 1 else None,
        supersedes=memory.supersedes,
        superseded_by=memory.superseded_by,
        deleted_at=local(memory.deleted_at, zone),
    )


def hit_view(hit: Hit, call: Call, language: Language | None = None) -> dict[str, Any]:
    """A hit with its score and the reasons for it, and its metadata where it was asked for by its key."""
    view = memory_view(hit.memory, hit.text, call.settings.zone, call.now, language)
    metadata = dict(hit.memory.metadata) if hit.with_metadata else None
    return {**view, **told(metadata=metadata, score=hit.score, why=dict(hit.why), truncated=hit.truncated or None)}


def recalled_view(recalled: Recalled, call: Call, query: str = "") -> dict[str, Any]:
    """An answer of recall: what ran, what was missing, what the graph states of whom the query names, and the hits."""
    language = client_language(call, query)
    return {
        "mode": recalled.mode,
        "reranked": recalled.reranked,
        "degraded": list(recalled.degraded),
        "index_lag": recalled.index_lag,
        "more": recalled.more,
        **told(
            missing=list(recalled.missing),
            best_score=recalled.best_score,
            relations=list(recalled.relations),
            meant=[{"name": name, "similarity": similarity} for name, similarity in recalled.meant],
        ),
        "hits": [hit_view(hit, call, language) for hit in recalled.hits],
    }


def similar_view(similar: Similar) -> dict[str, Any]:
    return {"key": similar.key, "similarity": similar.similarity, "content": similar.preview}


def outcome_view(outcome: Outcome) -> dict[str, Any]:
    return {"key": outcome.key, "outcome": outcome.outcome, **told(reason=outcome.reason)}


def privacy_view(found: Redaction) -> dict[str, Any]:
    """What was private in what the caller sent, by kind: never what it was."""
    return told(redacted=dict(found.redacted), flagged=dict(found.flagged))


def without_blanks(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A context file's tree without the parts that nobody has filled in."""
    return told(**{name: without_blanks(value) if isinstance(value, Mapping) else value for name, value in tree.items()})
