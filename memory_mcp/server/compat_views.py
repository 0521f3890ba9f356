"""Answers of the core tools in the words of older servers: other names for the fields, and the fields that those always had."""

from collections.abc import Mapping
from typing import Any

from memory_mcp.server.views import told
from memory_mcp.store.files.persona_context import LAST_CONVERSATION, PEOPLE, PERSON_FIELDS, STATE_KEYS

HEADING = ("persona", "new_persona", "did_you_mean")
SEARCHED = ("mode", "reranked", "degraded", "more", "best_score")


def heading_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Whose memory an answer is about."""
    return {name: answer[name] for name in HEADING if name in answer}


def frame(found: Mapping[str, Any], query: str) -> dict[str, Any]:
    """What a search says beside its memories."""
    return {**heading_of(found), "query": query, **{name: found[name] for name in SEARCHED if name in found}}


def older_memory(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A memory with every column of the older `memories` table, and what else is known of it."""
    known = {name: value for name, value in hit.items() if name not in ("why", *HEADING)}
    return {**known, "updated_at": hit.get("updated_at", hit["created_at"]), "tags": hit.get("tags", [])}


def specified_memory(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A memory by the column names of the specification that has `search_memories`."""
    renamed = {"id": hit["key"], "raw_text": hit["content"], "importance_score": hit.get("importance", 0.5)}
    return {**renamed, **{name: value for name, value in older_memory(hit).items() if name not in ("key", "content", "importance")}}


def persona_context(found: Mapping[str, Any]) -> dict[str, Any]:
    """The context in the form of `persona_context.json`, made from what get_context answers; blank where nobody has said."""
    state = found.get("state", {})
    return {
        **heading_of(found),
        **{name: {**dict.fromkeys(PERSON_FIELDS, ""), **found.get(name, {})} for name in PEOPLE},
        **{file_name: state.get(name, "") for name, file_name in STATE_KEYS.items()},
        LAST_CONVERSATION: found.get(LAST_CONVERSATION),
        **told(since_last_conversation=found.get("since_last_conversation"), degraded=found.get("degraded")),
    }
