"""The `compat` toolset: the names, arguments and answers that instructions written for older memory servers expect.

Each is a `core` tool under another name: it calls that tool and puts the answer into the older words. Nothing is stored,
searched or forgotten here in a way of its own. `recall` kept its name, so that there is none of it here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastmcp.dependencies import Depends
from fastmcp.tools import ToolResult
from pydantic import Field

from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.search.questions import TOKENS_FLOOR, TOKENS_LIMIT
from memory_mcp.server import context_views
from memory_mcp.server.compat_views import frame, heading_of, older_memory, persona_context, specified_memory
from memory_mcp.server.mcp_tools import core
from memory_mcp.server.mcp_tools.arguments import DateRange, Flag, Number, ScopedTool, Text, TextList, TextsByName, WholeNumber, tool_of
from memory_mcp.server.refusals import answering
from memory_mcp.server.request_persona import Call, current_call
from memory_mcp.server.status import statistics
from memory_mcp.server.views import heading, told
from memory_mcp.text.budget import cut_to_tokens
from memory_mcp.text.privacy.redaction import Redaction

LIST_LENGTH, LIST_TOKENS = 50, 4_000
READ_TOKENS = 4_000
ECHO_TOKENS = 1_500
ANY_TAGS_LIMIT = 10


@answering
def ingest(
    text: Annotated[Text, Field(description="what to keep")],
    source: Annotated[Text, Field(description="who said it")] = "you",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Keep a note when the user asks to remember something. The older name of remember."""
    said_by = source or "you"
    stored = _answer(core.remember(text, source=said_by, call=call))
    kept = Redaction(call.settings.privacy)
    shown = cut_to_tokens(kept.text(text), ECHO_TOKENS)
    return {**stored, "text": shown, "source": kept.text(said_by), **told(truncated=shown != kept.text(text) or None)}


@answering
def save_memory(
    content: Annotated[Text, Field(description="what to keep")] = "",
    raw_text: Annotated[Text, Field(description="another name for content")] = "",
    session_id: Text = "",
    importance_score: Annotated[Number, Field(description="0..1")] = None,
    category: Annotated[Text, Field(description="also kept as a tag")] = "",
    tags: TextList = [],
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Save a memory. The older name of remember."""
    labels = [*tags, *([category] if category else [])]
    text = content or raw_text
    stored = _answer(core.remember(text, session_id=session_id, importance=importance_score, category=category, tags=labels, call=call))
    return {**stored, "id": stored["key"]}


@answering
def search_memories(
    query: Text = "",
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None,
    tags: TextList = [],
    date_range: Annotated[DateRange, Field(description="2025-10-01..2025-10-17, a day, or 先週")] = "",
    min_importance: Number = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Search memories by meaning and words. The older name of recall."""
    mode = "auto" if query.strip() else "recent"
    found = _answer(core.recall(query, top_k=top_k, mode=mode, tags=tags, date_range=date_range, min_importance=min_importance, call=call))
    return {**_frame(found, query, call), "memories": [specified_memory(hit) for hit in found["hits"]]}


@answering
def build_context(query: Text = "", max_tokens: WholeNumber = None, call: Call = Depends(current_call)) -> dict[str, Any]:
    """Build the short-term context of a conversation. The older name of get_context."""
    return _answer(core.get_context(query, max_tokens=max_tokens, call=call))


@answering
def create_memory(
    content: Annotated[Text, Field(description="User is …")],
    emotion_type: Annotated[Text, Field(description="joy, sadness, neutral, …")] = "",
    context_tags: TextList = [],
    physical_state: Text = "",
    mental_state: Text = "",
    environment: Text = "",
    user_info: Annotated[TextsByName, Field(description="name, nickname, preferred_address")] = {},
    persona_info: Annotated[TextsByName, Field(description="the same of yourself")] = {},
    relationship_status: Text = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Create a memory, and note how things stand. The older name of remember with update_context."""
    state = {
        "emotion": emotion_type,
        "physical_state": physical_state,
        "mental_state": mental_state,
        "environment": environment,
        "relationship_status": relationship_status,
    }
    if user_info or persona_info:  # what can't be noted is refused before anything is stored
        context_views.checked_changes({}, user_info, persona_info)
    stored = _answer(core.remember(content, tags=context_tags, state=state, call=call))
    unwritable = any(reason.startswith("context_not_updated") for reason in stored.get("degraded", ()))
    if (user_info or persona_info) and not unwritable:
        core.update_context(user_info=user_info, persona_info=persona_info, call=call)
    word = "Saved" if stored["stored"] else "Already saved"
    return {**stored, "result": f"{word}: '{stored['key']}' (persona: {stored['persona']})"}


@answering
def read_memory(key: Text, max_tokens: WholeNumber = None, call: Call = Depends(current_call)) -> dict[str, Any]:
    """Read one memory by its key. The older name of recall with keys."""
    found = _present(key, READ_TOKENS if max_tokens is None else max_tokens, call)
    return {**heading_of(found), **older_memory(found["hits"][0])}


@answering
def update_memory(key: Text, content: Text, call: Call = Depends(current_call)) -> dict[str, Any]:
    """Change what a memory says; its date stays and its earlier text is kept. The older name of revise."""
    key = key.strip()
    _present(key, TOKENS_FLOOR, call)
    revised = _answer(core.revise(key, content=content, call=call))
    return {**heading_of(revised), **older_memory(revised), "result": f"Updated: '{key}' (persona: {revised['persona']})"}


@answering
def delete_memory(key: Text, call: Call = Depends(current_call)) -> dict[str, Any]:
    """Put one memory in the trash when the user asks. The older name of forget."""
    key = key.strip()
    forgotten = _answer(core.forget([key], call=call))
    (outcome,) = forgotten["outcomes"]
    if outcome["outcome"] == "not_found":
        raise _unknown(key)
    word = "Deleted" if outcome["outcome"] == "forgotten" else "Already deleted"
    return {**heading_of(forgotten), **outcome, "result": f"{word}: '{key}' (persona: {forgotten['persona']})"}


@answering
def list_memory(
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None,
    max_tokens: WholeNumber = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """List the latest memories, and how many there are. The older name of recall with mode=recent."""
    found = _answer(
        core.recall(
            mode="recent",
            top_k=LIST_LENGTH if top_k is None else top_k,
            max_tokens=LIST_TOKENS if max_tokens is None else max_tokens,
            call=call,
        )
    )
    with call.reading() as persona:
        total = statistics(call, persona)["memories"]
    listed = [older_memory(hit) for hit in found["hits"]]
    rest = "search_memory with a date_range shows earlier ones" if total > len(listed) else None
    return {**heading_of(found), "total": total, "more": total - len(listed), **told(note=rest), "memories": listed}


@answering
def search_memory(
    query: Text = "",
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None,
    tags: TextList = [],
    tag_match_mode: Annotated[Text, Field(description="any or all of the tags")] = "any",
    date_range: Annotated[DateRange, Field(description="2025-10-01..2025-10-31, 今日, 先週")] = "",
    fuzzy_match: Annotated[Flag, Field(description="no effect: near words always count")] = False,  # noqa: ARG001  old instructions send it
    fuzzy_threshold: Annotated[Number, Field(description="no effect")] = None,  # noqa: ARG001
    keyword: Annotated[Text, Field(description="another name for query")] = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Search memories by words, tags and dates. The older name of recall with mode=keyword."""
    if tag_match_mode not in ("", "any", "all"):
        raise InvalidInput(f"tag_match_mode is {tag_match_mode[:80]!r}", "it is any or all", "Leave it out if unsure")
    asked = query if query.strip() else keyword
    mode = "keyword" if asked.strip() else "recent"
    wanted = list(dict.fromkeys(tag for tag in tags if tag.strip()))
    if len(wanted) > 1 and tag_match_mode != "all":
        most = call.settings.reranker_top_n if top_k is None else top_k
        found = _with_any_tag(wanted, most, {"query": asked, "mode": mode, "date_range": date_range}, call)
    else:
        found = _answer(core.recall(asked, top_k=top_k, mode=mode, tags=wanted, date_range=date_range, call=call))
    return {**_frame(found, asked, call), "memories": [older_memory(hit) for hit in found["hits"]]}


@answering
def search_memory_rag(
    query: Text, top_k: Annotated[WholeNumber, Field(description="1..50")] = None, call: Call = Depends(current_call)
) -> dict[str, Any]:
    """Search memories by meaning, in a question's own words. The older name of recall."""
    found = _answer(core.recall(query, top_k=top_k, call=call))
    return {**_frame(found, query, call), "memories": [older_memory(hit) for hit in found["hits"]]}


@answering
def get_persona_context(call: Call = Depends(current_call)) -> dict[str, Any]:
    """Who you and the user are, and how things stand, without memories. The older name of get_context."""
    return persona_context(_answer(core.get_context(call=call)))


@answering
def rebuild_vector_store(call: Call = Depends(current_call)) -> dict[str, Any]:
    """Ask for a rebuild of the vector index, when searches miss what is stored."""
    index = call.runtime.index
    with call.reading() as persona:
        if index is None or call.models.embedder_state.state == "off":
            said = "There is no vector index to rebuild: this server searches by words alone, and that index is always up to date."
        elif not persona.exists:
            said = "There is nothing to rebuild: this persona has no memories yet."
        else:
            index.request_rebuild(persona.name)
            return {**heading(call, persona), "requested": True, "result": "A rebuild was requested. Searching goes on meanwhile."}
        return {**heading(call, persona), "requested": False, "result": said}


def tools() -> list[ScopedTool]:
    """The toolset, grouped by the server that each name comes from."""
    return [
        tool_of(ingest, title="Ingest", needs=["write"], idempotent=True),
        tool_of(save_memory, title="Save memory", needs=["write"], idempotent=True),
        tool_of(search_memories, title="Search memories", needs=["read"], read_only=True, idempotent=True),
        tool_of(build_context, title="Build context", needs=["read"], read_only=True, idempotent=True),
        tool_of(create_memory, title="Create memory", needs=["write"], idempotent=True),
        tool_of(read_memory, title="Read memory", needs=["read"], read_only=True, idempotent=True),
        tool_of(update_memory, title="Update memory", needs=["read", "write"]),
        tool_of(delete_memory, title="Delete memory", needs=["delete"], destructive=True, idempotent=True),
        tool_of(list_memory, title="List memory", needs=["read"], read_only=True, idempotent=True),
        tool_of(search_memory, title="Search memory", needs=["read"], read_only=True, idempotent=True),
        tool_of(search_memory_rag, title="Search memory (RAG)", needs=["read"], read_only=True, idempotent=True),
        tool_of(get_persona_context, title="Get persona context", needs=["read"], read_only=True, idempotent=True),
        tool_of(rebuild_vector_store, title="Rebuild vector store", needs=["admin"], idempotent=True),
    ]


def _answer(result: ToolResult) -> dict[str, Any]:
    """What a core tool answered, as an object."""
    return result.structured_content or {}


def _frame(found: Mapping[str, Any], query: str, call: Call) -> dict[str, Any]:
    """What a search says beside its memories, with the question as it was searched."""
    return frame(found, Redaction(call.settings.privacy).text(query))


def _unknown(key: str) -> MemoryNotFound:
    return MemoryNotFound(f"no memory has the key {key}", "", "Take the key from list_memory or search_memory")


def _present(key: str, max_tokens: int, call: Call) -> dict[str, Any]:
    """The answer of a recall that fetched this memory.

    Raises:
        MemoryNotFound: this persona has no such memory, or has it in the trash, which older servers didn't have.
    """
    found = _answer(core.recall(keys=[key], max_tokens=max_tokens, call=call))
    if not found["hits"]:
        raise _unknown(key)
    if "deleted_at" in found["hits"][0]:
        raise MemoryNotFound(f"{key} is in the trash", "it was deleted", "Send revise with restore=true to bring it back")
    return found


def _with_any_tag(tags: Sequence[str], top_k: int, asked: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """The answer of a recall for memories with at least one of the tags: a search for each, the best of all fetched together."""
    if len(tags) > ANY_TAGS_LIMIT:
        raise InvalidInput(f"tags has {len(tags)} entries", f"{ANY_TAGS_LIMIT} are the limit with tag_match_mode=any", "Send fewer")
    answers = [_answer(core.recall(**asked, top_k=top_k, tags=[tag], detail="index", max_tokens=TOKENS_LIMIT, call=call)) for tag in tags]
    hits = sorted((hit for answer in answers for hit in answer["hits"]), key=_score_and_time, reverse=True)
    best: dict[str, dict[str, Any]] = {}
    for hit in hits:
        best.setdefault(hit["key"], hit)
    if not best:
        return answers[0]
    fetched = _answer(core.recall(keys=list(best)[:top_k], call=call))
    shown = [{**hit, "score": best[hit["key"]]["score"]} for hit in fetched["hits"]]
    more = len(best) - len(shown) + max(answer["more"] for answer in answers)
    return {**answers[0], "more": more, "hits": shown}


def _score_and_time(hit: Mapping[str, Any]) -> tuple[float, datetime]:
    return hit["score"], datetime.fromisoformat(hit.get("occurred_at") or hit["created_at"])
