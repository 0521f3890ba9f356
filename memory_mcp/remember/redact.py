"""The first step of every write: what is private goes, or the memory is marked, before anything of it can reach the disk."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Memory
from memory_mcp.errors import InvalidInput
from memory_mcp.store.versions import Version
from memory_mcp.text.labels import LIST_LIMIT
from memory_mcp.text.privacy.redaction import FLAG_PREFIX, Redaction, relations_redacted

_JSON_COLUMNS = frozenset({"state", "questions"})


def redacted(draft: Draft, rules: Privacy) -> tuple[Draft, Redaction]:
    """The draft as it may be stored, and what was found in it. A draft that has been through here comes out as it went in.

    Raises:
        InvalidInput: a key holds what may not be stored. A key is what others point at, and can't be changed.
    """
    found = Redaction(rules)
    for key in (draft.restored.key, draft.supersedes):
        check_key(key, rules)
    private = replace(
        draft,
        content=found.text(draft.content),
        source=found.optional(draft.source),
        session_id=found.optional(draft.session_id),
        category=found.optional(draft.category),
        tags=tuple(dict.fromkeys(found.texts(draft.tags))),
        questions=found.texts(draft.questions),
        state=found.tree(draft.state),
        metadata=found.tree(draft.metadata),
        relations=relations_redacted(draft.relations, found),
    )
    return replace(private, tags=marked(private.tags, found.flagged)), found


def check_key(key: str | None, rules: Privacy) -> None:
    """Refuses a key that holds what may not be stored.

    Raises:
        InvalidInput: it does.
    """
    if key and Redaction(rules).text(key) != key:
        raise InvalidInput("a key holds what is not stored here", "the rules of `privacy` take it out", "Send another key, or none")


def version_redacted(version: Version, found: Redaction) -> Version:
    """An earlier state as it may come back: it may be from before the rules."""
    return replace(
        version,
        content=found.text(version.content),
        tags=tuple(dict.fromkeys(found.texts(version.tags))),
        further={name: _column(name, value, found) for name, value in (version.further or {}).items()},
    )


def _column(name: str, value: Any, found: Redaction) -> Any:
    """A column of a memory's row as it is stored: JSON, a time, or a text."""
    if not isinstance(value, str) or name.endswith("_at"):
        return value
    return json.dumps(found.tree(json.loads(value)), ensure_ascii=False) if name in _JSON_COLUMNS else found.text(value)


def marked(tags: Sequence[str], kinds: Iterable[str]) -> tuple[str, ...]:
    """The tags, with a mark for each kind behind them; as many as a memory may have."""
    return tuple(dict.fromkeys([*tags, *(f"{FLAG_PREFIX}{kind}" for kind in sorted(kinds))]))[: max(LIST_LIMIT, len(tags))]


def marked_anew(memory: Memory, content: str, tags: Sequence[str], rules: Privacy) -> tuple[str, ...]:
    """The tags of a memory that will say something else: marks of what is no longer in it go, those of what is new come."""
    found = Redaction(rules)
    for text in (content, memory.source, memory.session_id, memory.category, *tags, *memory.questions):
        found.optional(text)
    found.tree(memory.state)
    found.tree(memory.metadata)
    looked_for = {kind for kind in type(rules).model_fields if getattr(rules, kind) != "off"}
    stale = {f"{FLAG_PREFIX}{kind}" for kind in looked_for - found.flagged.keys() - found.redacted.keys()}
    return marked([tag for tag in tags if tag not in stale], found.flagged)
