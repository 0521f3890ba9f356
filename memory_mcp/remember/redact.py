"""The first step of every write: redacts private data or flags the memory, before anything is stored."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Memory
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LIST_LIMIT
from memory_mcp.language.privacy.redaction import FLAG_PREFIX, Redaction, relations_redacted
from memory_mcp.store.versions import Version
from memory_mcp.tracing import spanned

_JSON_COLUMNS = frozenset({"state", "questions"})


@spanned("redact")
def redacted(draft: Draft, rules: Privacy) -> tuple[Draft, Redaction]:
    """The draft as it may be stored, and the findings. Redacting a draft again changes nothing.

    Raises:
        InvalidInput: a key contains what may not be stored; keys are referenced and can't be changed.
    """
    redaction = Redaction(rules)
    for key in (draft.restored.key, draft.supersedes):
        check_key(key, rules)
    private = replace(
        draft,
        content=redaction.after(draft.source, redaction.text(draft.content)),
        source=redaction.optional(draft.source),
        session_id=redaction.optional(draft.session_id),
        category=redaction.optional(draft.category),
        tags=tuple(dict.fromkeys(redaction.listed(draft.tags))),
        questions=redaction.texts(draft.questions),
        state=redaction.tree(draft.state),
        metadata=redaction.tree(draft.metadata),
        relations=relations_redacted(draft.relations, redaction),
        restored=replace(
            draft.restored,
            feedback=tuple(
                replace(entry, run=redaction.text(entry.run), query=redaction.text(entry.query)) for entry in draft.restored.feedback
            ),
        ),
    )
    return replace(private, tags=with_flags(private.tags, redaction.flags)), redaction


def check_key(key: str | None, rules: Privacy) -> None:
    """Checks a key.

    Raises:
        InvalidInput: it contains what may not be stored.
    """
    if key and Redaction(rules).text(key) != key:
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
