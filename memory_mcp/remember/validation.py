"""The arguments of a write as a `Draft`: validated, and then without private data. Nothing is stored, no persona is created."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.config.settings import Privacy
from memory_mcp.dates.resolve import parse_expiry, parse_moment
from memory_mcp.domain import KINDS, NEVER, PRIVACY_LEVELS, STATE_FIELDS, Draft, Expiry, Kind, Memory, PrivacyLevel, Restored
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LIST_LIMIT, few, json_object, label, labels, storable
from memory_mcp.language.names import LONGEST_IN_NFKC, normalized_length
from memory_mcp.language.privacy.redaction import FLAG_PREFIX, Redaction, relations_redacted
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.store.graph.schema import ENTITY_TYPE_NAMES
from memory_mcp.store.versions import Version
from memory_mcp.tracing import spanned

CONTENT_LIMIT = 200_000
# The key of what an import read: the name of a program, and a digest, which holds nothing.
_DIGEST = re.compile("[a-z][a-z0-9-]{1,30}_[0-9a-f]{24}")
_JSON_COLUMNS = frozenset({"state", "questions"})


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
    restored: Restored | None = None,
    checked_metadata: Mapping[str, Any] | None = None,
) -> Draft:
    """A checked draft. `kind` left out means `conversation` within a session and `fact` otherwise. `checked_metadata` may be of any length.

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
        metadata=checked_metadata or (json_object(metadata, "metadata") if metadata else {}),
        category=label(category, "category"),
        privacy_level=checked_privacy_level(privacy_level) if privacy_level and privacy_level.strip() else "internal",
        relations=tuple(parse_relation(storable(relation, "relations"), ENTITY_TYPE_NAMES) for relation in few(relations, "relations")),
        expires_at=None if expiry == NEVER else expiry,
        restored=restored or Restored(),
    )


def checked_content(content: str) -> str:
    """The content of a memory as it will be stored: not blank, not too long, storable."""
    if not content.strip():
        raise InvalidInput("content is empty", "there is nothing to remember", "Send one self-contained sentence or more")
    if len(content) > CONTENT_LIMIT // LONGEST_IN_NFKC and (length := normalized_length(content)) > CONTENT_LIMIT:
        raise InvalidInput(
            "content has {} characters",
            "one memory holds at most {}",
            "Split it into several memories; POST /api/import takes many at once",
            f"{length:,}",
            f"{CONTENT_LIMIT:,}",
        )
    return storable(content, "content")


def checked_importance(importance: float) -> float:
    """An importance from 0 to 1."""
    if not (math.isfinite(importance) and 0 <= importance <= 1):
        raise InvalidInput(
            "importance is {}",
            "it runs from 0 to 1",
            "Send 0.5 for something ordinary, 0.9 for something that must not be lost",
            f"{importance:g}",
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
    raise InvalidInput("privacy_level is {}", "it is one of {}", "Leave it out for internal", repr(level[:80]), ", ".join(PRIVACY_LEVELS))


def _kind(kind: str) -> Kind:
    for known in KINDS:
        if known == kind and known != "summary":
            return known
    raise InvalidInput("kind is {}", "it is one of fact, conversation, experience, document", "Leave it out if unsure", repr(kind[:80]))


def _state(state: Mapping[str, str]) -> dict[str, str]:
    unknown = [name for name in state if name not in STATE_FIELDS]
    if unknown:
        raise InvalidInput(
            "state has the unknown field {}",
            "it may hold {}",
            "Put anything else into content or tags",
            repr(unknown[0][:80]),
            ", ".join(STATE_FIELDS),
        )
    return {name: storable(value, f"state.{name}") for name, value in state.items() if value}


@spanned("redact")
def redacted(draft: Draft, rules: Privacy) -> tuple[Draft, Redaction]:
    """The draft as it may be stored, and the findings. Redacting a draft again changes nothing.

    Raises:
        InvalidInput: a key contains what may not be stored; keys are referenced and can't be changed.
    """
    redaction = Redaction(rules)
    for key in (draft.restored.key, draft.supersedes):
        check_key(key, rules)
    texts = {
        "content": redaction.after(draft.source, redaction.text(draft.content)),
        "source": redaction.optional(draft.source),
        "session_id": redaction.optional(draft.session_id),
        "category": redaction.optional(draft.category),
        "tags": tuple(dict.fromkeys(redaction.listed(draft.tags))),
        "questions": redaction.texts(draft.questions),
        "state": redaction.tree(draft.state),
        "metadata": redaction.tree(draft.metadata),
        "relations": relations_redacted(draft.relations, redaction),
        "restored": _with_private_feedback(draft.restored, redaction),
    }
    private = replace(draft, **texts) if redaction.redacted else draft
    return replace(private, tags=with_flags(private.tags, redaction.flags)) if redaction.flagged else private, redaction


def _with_private_feedback(restored: Restored, redaction: Redaction) -> Restored:
    if not restored.feedback:
        return restored
    verdicts = (replace(entry, run=redaction.text(entry.run), query=redaction.text(entry.query)) for entry in restored.feedback)
    return replace(restored, feedback=tuple(verdicts))


def check_key(key: str | None, rules: Privacy) -> None:
    """Checks a key.

    Raises:
        InvalidInput: it contains what may not be stored.
    """
    if key and not _DIGEST.fullmatch(key) and Redaction(rules).text(key) != key:
        raise InvalidInput("a key holds what is not stored here", "the rules of `privacy` take it out", "Send another key, or none")


def version_redacted(version: Version, redaction: Redaction) -> Version:
    """An earlier version redacted again: it may be older than the rules."""
    return replace(
        version,
        content=redaction.text(version.content),
        tags=tuple(dict.fromkeys(redaction.texts(version.tags))),
        further={name: _column(name, value, redaction) for name, value in (version.further or {}).items()},
    )


def _column(name: str, value: Any, redaction: Redaction) -> Any:
    """A column of a memory's row, redacted: JSON, a time, or a text."""
    if not isinstance(value, str) or name.endswith("_at"):
        return value
    return json.dumps(redaction.tree(json.loads(value)), ensure_ascii=False) if name in _JSON_COLUMNS else redaction.text(value)


def with_flags(tags: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    """The tags with those of what was flagged; as many as a memory may have."""
    return tuple(dict.fromkeys([*tags, *flags]))[: max(LIST_LIMIT, len(tags))]


def update_flags(memory: Memory, content: str, tags: Sequence[str], rules: Privacy) -> tuple[str, ...]:
    """The tags of a memory with new content: outdated flag tags are removed, new ones are added."""
    redaction = Redaction(rules)
    for text in (content, memory.source, memory.session_id, memory.category, *tags, *memory.questions):
        redaction.optional(text)
    redaction.tree(memory.state)
    redaction.tree(memory.metadata)
    looked_for = {kind for kind in type(rules).model_fields if getattr(rules, kind) != "off"}
    stale = {f"{FLAG_PREFIX}{kind}" for kind in looked_for - redaction.flagged.keys() - redaction.redacted.keys()}
    return with_flags([tag for tag in tags if tag not in stale], redaction.flags)
