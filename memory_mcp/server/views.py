"""How memories and answers look to a client: plain JSON, without empty fields, times in the configured zone; and the types of answers."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import takewhile
from typing import Annotated, Any, Literal, NotRequired
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.dates.format import Language, ago, language_of
from memory_mcp.domain import Confirmation, Detail, Hit, Memory, Outcome, Recalled, Similar
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.packaged import package
from memory_mcp.language.budget import cut_to_tokens
from memory_mcp.language.names import is_assistant
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.names import pool_of, pool_store
from memory_mcp.personas.registry import Persona
from memory_mcp.server.call import Call, client_language
from memory_mcp.store.memory_rows import confirmations

Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]

# The fields of each memory in a list to choose from.
INDEX_FIELDS = frozenset({"key", "content", "source", "occurred_at", "created_at", "ago", "confirmed_at", "judged", "deleted_at"})
# The length of what a memory replaced.
REPLACED_TOKENS = 12


class PersonaAnswer(TypedDict):
    """An answer about one persona. `persona_note`: that the request named none, where there are several."""

    persona: str
    persona_note: NotRequired[str]


class ReadingAnswer(PersonaAnswer):
    """An answer about a persona that may not exist yet."""

    new_persona: NotRequired[Literal[True]]
    did_you_mean: NotRequired[list[str]]


def omit_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields without None and without empty texts, lists and objects."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


def heading(call: Call, persona: Persona) -> dict[str, Any]:
    """Return what every answer begins with: the persona and, if it doesn't exist yet, personas with similar names."""
    if pool := pool_of(persona.name):
        return {"persona": call.own_name(), "pool": pool} if not call.is_pool_addressed else {"persona": f"@{pool}", "pool": pool}
    if persona.exists:
        return {"persona": persona.name}
    return {"persona": persona.name, "new_persona": True, **omit_empty(did_you_mean=call.near(persona.name))}


def local(moment: datetime | None, zone: ZoneInfo) -> str | None:
    """Return a moment as ISO with the zone's offset, to the second."""
    return None if moment is None else moment.astimezone(zone).isoformat(timespec="seconds")


def memory_view(memory: Memory, text: str, zone: ZoneInfo, now: datetime, language: Language | None = None) -> dict[str, Any]:
    """Return a memory with `text`, which may be a part of its content. `language` is the client's, None the memory's own."""
    return omit_empty(
        key=memory.key,
        content=text,
        source=memory.source,
        role=memory.role if memory.role and (memory.role == "assistant") != is_assistant(memory.source) else None,
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
        expires_at=local(memory.expires_at, zone),
    )


def brief(view: dict[str, Any]) -> dict[str, Any]:
    """Return a memory with one time: when it happened, if that is known, else when it was stored."""
    return {name: value for name, value in view.items() if name != "created_at" or "occurred_at" not in view}


def hit_views(
    hits: Sequence[Hit], persona: Persona, call: Call, language: Language | None, detail: Detail = "full"
) -> list[dict[str, Any]]:
    """Return hits, each with what confirms or changes its memory."""
    unread = [hit for hit in hits if hit.confirmation is None]
    confirmed: dict[str, Mapping[int, Confirmation]] = {}
    for pool in {hit.pool for hit in unread}:
        with call.reading_of(pool_store(pool)) if pool else nullcontext(persona) as store:
            confirmed[pool] = _confirmed(store, [hit for hit in unread if hit.pool == pool], call)
    return [
        _hit_view(hit, hit.confirmation or confirmed[hit.pool].get(hit.memory.id, Confirmation()), call, language, detail) for hit in hits
    ]


def _confirmed(store: Persona, hits: Sequence[Hit], call: Call) -> Mapping[int, Confirmation]:
    with store.database.read_statement() as connection:
        return confirmations(connection, [hit.memory.id for hit in hits], call.now)


def _hit_view(hit: Hit, confirmation: Confirmation, call: Call, language: Language | None, detail: Detail) -> dict[str, Any]:
    """Return a hit with its score, with its metadata if it was fetched by its key, and with the reasons for its score if `detail` is
    `why`.
    """
    memory, zone = hit.memory, call.settings.zone
    view = {
        **memory_view(memory, hit.text, zone, call.now, language),
        **omit_empty(
            confirmed_at=local(confirmation.confirmed_at, zone),
            replaced=what_differs(confirmation.replaced, memory.content, REPLACED_TOKENS) if confirmation.replaced else None,
            judged=confirmation.judged,
        ),
    }
    if view["kind"] == "fact":
        del view["kind"]
    if detail == "index":
        view = {name: value for name, value in brief(view).items() if name in INDEX_FIELDS}
    metadata = dict(hit.memory.metadata) if hit.with_metadata else None
    why = dict(hit.why) if detail == "why" else None
    parts = {name: {"weight": round(weight, 3), "value": round(value, 3)} for name, (weight, value) in hit.parts.items()}
    return {
        **view,
        **omit_empty(metadata=metadata, score=hit.score, why=why, parts=parts, truncated=hit.truncated or None, pool=hit.pool),
    }


def recalled_view(recalled: Recalled, persona: Persona, call: Call, query: str, detail: Detail) -> dict[str, Any]:
    """Return an answer of recall: what ran, what was missing, the relations of the entities in the query, and the hits."""
    language = client_language(call, query)
    return {
        **omit_empty(confidence=recalled.confidence),
        "mode": recalled.mode,
        "reranked": recalled.reranked,
        "degraded": list(recalled.degraded),
        "index_lag": recalled.index_lag,
        "more": recalled.more,
        **model_used(recalled.embedder, recalled.degraded, call.models),
        **omit_empty(
            missing=list(recalled.missing),
            unmatched=list(recalled.unmatched),
            best_score=recalled.best_score,
            relations=list(recalled.relations),
            meant=[{"name": name, "similarity": similarity} for name, similarity in recalled.meant],
        ),
        "hits": hit_views(recalled.hits, persona, call, language, detail),
    }


def model_used(embedder: str | None, degraded: Sequence[str], models: Models) -> dict[str, Any]:
    """Return the model that was used in place of the configured one; where none was, the command that brings one if there is such a
    command.
    """
    is_remediable = "embedder_absent" in degraded and models.fallback_state.state == "absent"
    return omit_empty(embedder=embedder, remedy=package.remedy(models.fallback_state.name) if is_remediable else None)


def similar_view(similar: Similar) -> dict[str, Any]:
    return {"key": similar.key, "similarity": similar.similarity, "content": similar.preview}


def outcome_view(outcome: Outcome) -> dict[str, Any]:
    return {"key": outcome.key, "outcome": outcome.outcome, **omit_empty(reason=outcome.reason)}


def privacy_view(redaction: Redaction) -> dict[str, Any]:
    """Return how much private data the caller sent, by kind; never the data."""
    return omit_empty(redacted=dict(redaction.redacted), flagged=dict(redaction.flagged))


def without_blanks(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context file's tree without the parts that are empty."""
    return omit_empty(**{name: without_blanks(value) if isinstance(value, Mapping) else value for name, value in tree.items()})


def what_differs(text: str, other: str, budget: int) -> str:
    """One line of at most `budget` tokens of `text`, from where it begins to differ from `other`; the beginning of a word that differs
    counts."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))
    while start > 0 and text[start - 1].isascii() and text[start - 1].isalnum():
        start -= 1
    start = start if text[start:].strip() else 0
    return ("…" if start else "") + cut_to_tokens(" ".join(text[start:].split()), budget - (start > 0))
