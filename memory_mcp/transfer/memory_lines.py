"""A memory, and an earlier state of one, as a line of JSON on its way out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_mcp.domain import Memory, Stated, Version
from memory_mcp.store.timestamps import optional_to_text, to_text
from memory_mcp.text.relation_notation import told
from memory_mcp.transfer.besides import VERSION

# A line with vectors that would be longer is written without: vectors can be made again, and an import takes 2 MiB at once.
LINE_WITH_VECTORS_BYTES = 1024 * 1024


def line_of(memory: Memory, stated: Sequence[Stated] = (), further: Mapping[str, Any] | None = None) -> str:
    """A memory, with the relations that it states, as a JSON line. `further` fields are left out where they would make it too long."""
    row = row_of(memory, stated)
    if further:
        whole = json.dumps({**row, **further}, ensure_ascii=False)
        if len(whole.encode()) <= LINE_WITH_VECTORS_BYTES:
            return whole
    return json.dumps(row, ensure_ascii=False)


def row_of(memory: Memory, stated: Sequence[Stated] = ()) -> dict[str, Any]:
    """A memory as the object of its line: fields in the order of `FIELDS`, unset ones left out, times in UTC."""
    values = {
        "key": memory.key,
        "content": memory.content,
        "created_at": to_text(memory.created_at),
        "updated_at": to_text(memory.updated_at),
        "tags": list(memory.tags) or None,
        "occurred_at": optional_to_text(memory.occurred_at),
        "importance": memory.importance,
        "source": memory.source,
        "session_id": memory.session_id,
        "kind": memory.kind,
        "state": dict(memory.state) or None,
        "questions": list(memory.questions) or None,
        "relations": [text for text in dict.fromkeys(map(told, stated)) if text] or None,
        "revision": memory.revision,
        "supersedes": memory.supersedes,
        "deleted_at": optional_to_text(memory.deleted_at),
        "usage_count": memory.usage_count or None,
        "last_used_at": optional_to_text(memory.last_used_at),
        "metadata": dict(memory.metadata) or None,
        "category": memory.category,
        "privacy_level": memory.privacy_level,
    }
    return {name: value for name, value in values.items() if value is not None}


def line_of_version(version: Version) -> str:
    """An earlier state of a memory as a JSON line."""
    return json.dumps(row_of_version(version), ensure_ascii=False)


def row_of_version(version: Version) -> dict[str, Any]:
    """The same as the object of its line, unset fields left out."""
    values = {
        VERSION: version.key,
        "revision": version.revision,
        "content": version.content,
        "tags": list(version.tags) or None,
        "importance": version.importance,
        "updated_at": to_text(version.updated_at),
        "reason": version.reason,
        "category": version.category,
        "privacy_level": version.privacy_level,
    }
    return {name: value for name, value in values.items() if value is not None}
