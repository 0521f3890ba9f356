"""Validates the arguments of a write and makes them a `Draft`. Nothing is stored, no persona is created."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.dates.resolve import parse_expiry, parse_moment
from memory_mcp.domain import KINDS, NEVER, PRIVACY_LEVELS, STATE_FIELDS, Draft, Expiry, Kind, PrivacyLevel
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import few, json_object, label, labels
from memory_mcp.language.names import normalized_length
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.language.unstorable import storable
from memory_mcp.store.graph.schema import ENTITY_TYPE_NAMES

CONTENT_LIMIT = 200_000


def draft(
    content: str,
    *,
    now: datetime,
    zone: ZoneInfo,
    source: str | None = None,
    session_id: str | None = None,
    kind: str | None = None,
    tags: Sequence[str] = (),
    importance: float | None = None,
    occurred_at: str | None = None,
    questions: Sequence[str] = (),
    state: Mapping[str, str] | None = None,
    supersedes: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    category: str | None = None,
    privacy_level: str | None = None,
    relations: Sequence[str] = (),
    expires_at: str | None = None,
) -> Draft:
    """A checked draft. `kind` left out means `conversation` within a session and `fact` otherwise.

    Raises:
        InvalidInput: an argument can't be stored; names it.
    """
    expiry = checked_expiry(expires_at, now, zone) if expires_at and expires_at.strip() else NEVER
    return Draft(
        content=checked_content(content),
        source=label(source, "source"),
        session_id=label(session_id, "session_id"),
        kind=_kind(kind.strip().casefold()) if kind and kind.strip() else ("conversation" if session_id else "fact"),
        tags=labels(tags, "tags"),
        importance=checked_importance(importance if importance is not None else 0.5),
        occurred_at=parse_moment(occurred_at, now, zone, content) if occurred_at else None,
        questions=tuple(storable(question, "questions").strip() for question in few(questions, "questions") if question.strip()),
        state=_state(state or {}),
        supersedes=label(supersedes, "supersedes"),
        metadata=json_object(metadata or {}, "metadata"),
        category=label(category, "category"),
        privacy_level=checked_privacy_level(privacy_level) if privacy_level and privacy_level.strip() else "internal",
        relations=tuple(parse_relation(storable(relation, "relations"), ENTITY_TYPE_NAMES) for relation in few(relations, "relations")),
        expires_at=None if expiry == NEVER else expiry,
    )


def checked_content(content: str) -> str:
    """The content of a memory as it will be stored: not blank, not too long, storable."""
    if not content.strip():
        raise InvalidInput("content is empty", "there is nothing to remember", "Send one self-contained sentence or more")
    if (length := normalized_length(content)) > CONTENT_LIMIT:
        raise InvalidInput(
            f"content has {length:,} characters",
            f"one memory holds at most {CONTENT_LIMIT:,}",
            "Split it into several memories; POST /api/import takes many at once",
        )
    return storable(content, "content")


def checked_importance(importance: float) -> float:
    """An importance from 0 to 1."""
    if not (math.isfinite(importance) and 0 <= importance <= 1):
        raise InvalidInput(
            f"importance is {importance:g}",
            "it runs from 0 to 1",
            "Send 0.5 for something ordinary, 0.9 for something that must not be lost",
        )
    return float(importance)


def checked_expiry(text: str, now: datetime, zone: ZoneInfo) -> Expiry:
    """A moment to come, or `never`."""
    return NEVER if text.strip().casefold() == NEVER else parse_expiry(text, now, zone)


def checked_privacy_level(level: str) -> PrivacyLevel:
    """One of the four levels."""
    wanted = level.strip().casefold()
    for known in PRIVACY_LEVELS:
        if known == wanted:
            return known
    raise InvalidInput(f"privacy_level is {level[:80]!r}", f"it is one of {', '.join(PRIVACY_LEVELS)}", "Leave it out for internal")


def _kind(kind: str) -> Kind:
    for known in KINDS:
        if known == kind and known != "summary":
            return known
    raise InvalidInput(f"kind is {kind[:80]!r}", "it is one of fact, conversation, experience, document", "Leave it out if unsure")


def _state(state: Mapping[str, str]) -> dict[str, str]:
    unknown = [name for name in state if name not in STATE_FIELDS]
    if unknown:
        raise InvalidInput(
            f"state has the unknown field {unknown[0][:80]!r}",
            f"it may hold {', '.join(STATE_FIELDS)}",
            "Put anything else into content or tags",
        )
    return {name: storable(value, f"state.{name}") for name, value in state.items() if value}
