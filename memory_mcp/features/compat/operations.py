"""The tools of older memory servers: their names, arguments and answers, as instructions written for them expect.

Each calls a core operation and renames the fields of its answer. Nothing is stored, searched or forgotten here in a way of its own.
`recall` kept its name and has no older one here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.language.budget import cut_to_tokens
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.search.question import TOKENS_FLOOR, TOKENS_LIMIT
from memory_mcp.server.actions import context, memories
from memory_mcp.server.actions.context import ContextArguments, UpdateContextArguments
from memory_mcp.server.actions.memories import ForgetArguments, RecallArguments, RememberArguments, ReviseArguments
from memory_mcp.server.arguments import (
    Arguments,
    DateRange,
    Flag,
    NoArguments,
    Number,
    Object,
    Text,
    TextList,
    TextsByName,
    WholeNumber,
    Words,
)
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Tool, operation
from memory_mcp.server.status import statistics
from memory_mcp.server.views import heading, omit_empty
from memory_mcp.store.files.persona_context import LAST_CONVERSATION, NAMES, PEOPLE, STATE_KEYS

LIST_LENGTH, LIST_TOKENS = 50, 4_000
READ_TOKENS = 4_000
ECHO_TOKENS = 1_500
ANY_TAGS_LIMIT = 10
HEADING = ("persona", "new_persona", "did_you_mean")
SEARCH_FIELDS = ("mode", "reranked", "degraded", "embedder", "remedy", "more", "best_score", "unmatched")


class IngestArguments(Arguments):
    text: Annotated[Words, Field(description="what to keep")]
    source: Annotated[Text, Field(description="who said it")] = "you"
    occurred_at: Annotated[Text, Field(description="when it happened: ISO or 昨日")] = ""
    created_at: Annotated[Text, Field(description="another name for occurred_at")] = ""


@operation(needs=["write"], tool=Tool("ingest", "Ingest", idempotent=True))
def ingest(call: Call, arguments: IngestArguments) -> Json:
    """Keep a note when the user asks to remember something. The older name of remember."""
    source = arguments.source or "you"
    occurred_at = arguments.occurred_at or arguments.created_at
    stored = memories.remember(call, RememberArguments(content=arguments.text, source=source, occurred_at=occurred_at))
    redaction = Redaction(call.settings.privacy)
    text = redaction.text(arguments.text)
    shown = cut_to_tokens(text, ECHO_TOKENS)
    return {**stored, "text": shown, "source": redaction.text(source), **omit_empty(truncated=shown != text or None)}


class SaveMemoryArguments(Arguments):
    content: Annotated[Words, Field(description="what to keep")] = ""
    raw_text: Annotated[Words, Field(description="another name for content")] = ""
    session_id: Text = ""
    importance_score: Annotated[Number, Field(description="0..1")] = None
    category: Annotated[Text, Field(description="also kept as a tag")] = ""
    tags: TextList = []
    created_at: Annotated[Text, Field(description="when it happened: ISO or 昨日")] = ""
    # These go into the metadata.
    user_id: Annotated[Text, Field(description="noted; the persona is the server's")] = ""
    device_id: Text = ""
    summary_text: Text = ""
    micro_summary: Text = ""
    relation_labels: TextList = []
    latitude: Number = None
    longitude: Number = None
    raw_audio: Text = ""
    extra_data: Object = {}


NOTED = ("user_id", "device_id", "summary_text", "micro_summary", "relation_labels", "latitude", "longitude", "raw_audio")


@operation(needs=["write"], tool=Tool("save_memory", "Save memory", idempotent=True))
def save_memory(call: Call, arguments: SaveMemoryArguments) -> Json:
    """Save a memory. The older name of remember."""
    stored = memories.remember(
        call,
        RememberArguments(
            content=arguments.content or arguments.raw_text,
            session_id=arguments.session_id,
            importance=arguments.importance_score,
            category=arguments.category,
            tags=[*arguments.tags, *([arguments.category] if arguments.category else [])],
            occurred_at=arguments.created_at,
            metadata={
                **arguments.extra_data,
                **{name: getattr(arguments, name) for name in NOTED if getattr(arguments, name) not in (None, "", [])},
            },
        ),
    )
    return {**stored, "id": stored["key"]}


class SearchMemoriesArguments(Arguments):
    query: Words = ""
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None
    tags: TextList = []
    date_range: Annotated[DateRange, Field(description="2025-10-01..2025-10-17, a day, or 先週")] = ""
    min_importance: Number = None
    category: Text = ""
    session_id: Annotated[Text, Field(description="of this conversation only")] = ""
    mode: Annotated[Text, Field(description="hybrid, semantic_only, graph_only, entity_focused or temporal")] = ""
    # Old instructions send these three.
    user_id: Annotated[Text, Field(description="no effect: the persona is the server's")] = ""
    threshold: Annotated[Number, Field(description="no effect")] = None
    max_depth: Annotated[WholeNumber, Field(description="no effect")] = None


@operation(needs=["read"], tool=Tool("search_memories", "Search memories", read_only=True, idempotent=True))
def search_memories(call: Call, arguments: SearchMemoriesArguments) -> Json:
    """Search memories by meaning and words. The older name of recall."""
    asked = {name: value for name, value in vars(arguments).items() if name in RecallArguments.model_fields}
    wanted = arguments.mode.strip().casefold()
    # The latest first is an order here, not a search.
    mode = ("auto" if wanted in ("", "temporal") else wanted) if arguments.query.strip() else "recent"
    answer = memories.recall(call, RecallArguments(**{**asked, "mode": mode}))
    hits = sorted(answer["hits"], key=_happened, reverse=True) if wanted == "temporal" else answer["hits"]
    return {**_search_heading(answer, arguments.query, call), "memories": [_specified_memory(hit) for hit in hits]}


@operation(needs=["read"], tool=Tool("build_context", "Build context", read_only=True, idempotent=True))
def build_context(call: Call, arguments: ContextArguments) -> Json:
    """Build the short-term context of a conversation. The older name of get_context."""
    return context.get_context(call, arguments)


class CreateMemoryArguments(Arguments):
    content: Annotated[Words, Field(description="User is …")]
    emotion_type: Annotated[Text, Field(description="joy, sadness, neutral, …")] = ""
    context_tags: TextList = []
    physical_state: Text = ""
    mental_state: Text = ""
    environment: Text = ""
    user_info: Annotated[TextsByName, Field(description="name, nickname, preferred_address")] = {}
    persona_info: Annotated[TextsByName, Field(description="the same of yourself")] = {}
    relationship_status: Text = ""


@operation(needs=["write"], tool=Tool("create_memory", "Create memory", idempotent=True))
def create_memory(call: Call, arguments: CreateMemoryArguments) -> Json:
    """Create a memory, and note how things stand. The older name of remember with update_context."""
    user_info, persona_info = arguments.user_info, arguments.persona_info
    state = {
        "emotion": arguments.emotion_type,
        "physical_state": arguments.physical_state,
        "mental_state": arguments.mental_state,
        "environment": arguments.environment,
        "relationship_status": arguments.relationship_status,
    }
    if user_info or persona_info:  # refuse what can't be noted before anything is stored
        context.checked_changes({}, user_info, persona_info)
    stored = memories.remember(call, RememberArguments(content=arguments.content, tags=arguments.context_tags, state=state))
    unwritable = any(reason.startswith("context_not_updated") for reason in stored.get("degraded", ()))
    if (user_info or persona_info) and not unwritable:
        context.update_context(call, UpdateContextArguments(user_info=user_info, persona_info=persona_info))
    word = "Saved" if stored["stored"] else "Already saved"
    return {**stored, "result": f"{word}: '{stored['key']}' (persona: {stored['persona']})"}


class ReadMemoryArguments(Arguments):
    key: Text
    max_tokens: WholeNumber = None


@operation(needs=["read"], tool=Tool("read_memory", "Read memory", read_only=True, idempotent=True))
def read_memory(call: Call, arguments: ReadMemoryArguments) -> Json:
    """Read one memory by its key. The older name of recall with keys."""
    answer = _present(arguments.key, READ_TOKENS if arguments.max_tokens is None else arguments.max_tokens, call)
    return {**_heading_of(answer), **_older_memory(answer["hits"][0])}


class UpdateMemoryArguments(Arguments):
    key: Text
    content: Words


@operation(needs=["read", "write"], tool=Tool("update_memory", "Update memory"))
def update_memory(call: Call, arguments: UpdateMemoryArguments) -> Json:
    """Change what a memory says; its date stays and its earlier text is kept. The older name of revise."""
    key = arguments.key.strip()
    _present(key, TOKENS_FLOOR, call)
    revised = memories.revise(call, ReviseArguments(key=key, content=arguments.content))
    return {**_heading_of(revised), **_older_memory(revised), "result": f"Updated: '{key}' (persona: {revised['persona']})"}


class DeleteMemoryArguments(Arguments):
    key: Text


@operation(needs=["delete"], tool=Tool("delete_memory", "Delete memory", destructive=True, idempotent=True))
def delete_memory(call: Call, arguments: DeleteMemoryArguments) -> Json:
    """Put one memory in the trash when the user asks. The older name of forget."""
    key = arguments.key.strip()
    forgotten = memories.forget(call, ForgetArguments(keys=[key]))
    (outcome,) = forgotten["outcomes"]
    if outcome["outcome"] == "not_found":
        raise _unknown(key)
    word = "Deleted" if outcome["outcome"] == "forgotten" else "Already deleted"
    return {**_heading_of(forgotten), **outcome, "result": f"{word}: '{key}' (persona: {forgotten['persona']})"}


class ListMemoryArguments(Arguments):
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None
    max_tokens: WholeNumber = None


@operation(needs=["read"], tool=Tool("list_memory", "List memory", read_only=True, idempotent=True))
def list_memory(call: Call, arguments: ListMemoryArguments) -> Json:
    """List the latest memories, and how many there are. The older name of recall with mode=recent."""
    answer = memories.recall(
        call,
        RecallArguments(
            mode="recent",
            top_k=LIST_LENGTH if arguments.top_k is None else arguments.top_k,
            max_tokens=LIST_TOKENS if arguments.max_tokens is None else arguments.max_tokens,
        ),
    )
    with call.reading() as persona:
        total = statistics(call, persona)["memories"]
    listed = [_older_memory(hit) for hit in answer["hits"]]
    note = "search_memory with a date_range shows earlier ones" if total > len(listed) else None
    return {**_heading_of(answer), "total": total, "more": total - len(listed), **omit_empty(note=note), "memories": listed}


class SearchMemoryArguments(Arguments):
    query: Words = ""
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None
    tags: TextList = []
    tag_match_mode: Annotated[Text, Field(description="any or all of the tags")] = "any"
    date_range: Annotated[DateRange, Field(description="2025-10-01..2025-10-31, 今日, 先週")] = ""
    # Old instructions send these two.
    fuzzy_match: Annotated[Flag, Field(description="no effect: near words always count")] = False
    fuzzy_threshold: Annotated[Number, Field(description="no effect")] = None
    keyword: Annotated[Words, Field(description="another name for query")] = ""


@operation(needs=["read"], tool=Tool("search_memory", "Search memory", read_only=True, idempotent=True))
def search_memory(call: Call, arguments: SearchMemoryArguments) -> Json:
    """Search memories by words, tags and dates. The older name of recall with mode=keyword."""
    match, top_k, date_range = arguments.tag_match_mode, arguments.top_k, arguments.date_range
    if match not in ("", "any", "all"):
        raise InvalidInput("tag_match_mode is {}", "it is any or all", "Leave it out if unsure", repr(match[:80]))
    query = arguments.query if arguments.query.strip() else arguments.keyword
    mode = "keyword" if query.strip() else "recent"
    tags = list(dict.fromkeys(tag for tag in arguments.tags if tag.strip()))
    if len(tags) > 1 and match != "all":
        most = call.settings.reranker_top_n if top_k is None else top_k
        answer = _with_any_tag(tags, most, {"query": query, "mode": mode, "date_range": date_range}, call)
    else:
        answer = memories.recall(call, RecallArguments(query=query, top_k=top_k, mode=mode, tags=tags, date_range=date_range))
    return {**_search_heading(answer, query, call), "memories": [_older_memory(hit) for hit in answer["hits"]]}


class RagArguments(Arguments):
    query: Words
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None


@operation(needs=["read"], tool=Tool("search_memory_rag", "Search memory (RAG)", read_only=True, idempotent=True))
def search_memory_rag(call: Call, arguments: RagArguments) -> Json:
    """Search memories by meaning, in a question's own words. The older name of recall."""
    answer = memories.recall(call, RecallArguments(query=arguments.query, top_k=arguments.top_k))
    return {**_search_heading(answer, arguments.query, call), "memories": [_older_memory(hit) for hit in answer["hits"]]}


@operation(needs=["read"], tool=Tool("get_persona_context", "Get persona context", read_only=True, idempotent=True))
def get_persona_context(call: Call, _arguments: NoArguments) -> Json:
    """Who you and the user are, and how things stand, without memories. The older name of get_context."""
    answer = context.get_context(call, ContextArguments())
    state = answer.get("state", {})
    return {
        **_heading_of(answer),
        **{name: {**dict.fromkeys(NAMES, ""), **answer.get(name, {})} for name in PEOPLE},
        **{file_name: state.get(name, "") for name, file_name in STATE_KEYS.items()},
        LAST_CONVERSATION: answer.get(LAST_CONVERSATION),
        **omit_empty(since_last_conversation=answer.get("since_last_conversation"), degraded=answer.get("degraded")),
    }


@operation(needs=["admin"], tool=Tool("rebuild_vector_store", "Rebuild vector store", idempotent=True))
def rebuild_vector_store(call: Call, _arguments: NoArguments) -> Json:
    """Ask for a rebuild of the vector index, when searches miss what is stored."""
    index = call.runtime.index
    with call.reading() as persona:
        if index is None or call.models.embedder_state.state == "off":
            result = "There is no vector index to rebuild: this server searches by words alone, and that index is always up to date."
        elif not persona.exists:
            result = "There is nothing to rebuild: this persona has no memories yet."
        else:
            index.request_rebuild(persona.name)
            return {**heading(call, persona), "requested": True, "result": "A rebuild was requested. Searching goes on meanwhile."}
        return {**heading(call, persona), "requested": False, "result": result}


def _heading_of(answer: Mapping[str, Any]) -> Json:
    """Return the part of an answer that names the persona."""
    return {name: answer[name] for name in HEADING if name in answer}


def _search_heading(answer: Mapping[str, Any], query: str, call: Call) -> Json:
    """Return the fields of a search's answer other than its memories, and the query as it was searched."""
    searched = {name: answer[name] for name in SEARCH_FIELDS if name in answer}
    return {**_heading_of(answer), "query": Redaction(call.settings.privacy).text(query), **searched}


def _older_memory(hit: Mapping[str, Any]) -> Json:
    """Return a memory with every column of the older `memories` table, and what else is known of it."""
    known = {name: value for name, value in hit.items() if name not in HEADING}
    return {**known, "updated_at": hit.get("updated_at", hit["created_at"]), "tags": hit.get("tags", [])}


def _specified_memory(hit: Mapping[str, Any]) -> Json:
    """Return a memory with the column names of the specification that has `search_memories`."""
    renamed = {"id": hit["key"], "raw_text": hit["content"], "importance_score": hit.get("importance", 0.5)}
    return {**renamed, **{name: value for name, value in _older_memory(hit).items() if name not in ("key", "content", "importance")}}


def _unknown(key: str) -> MemoryNotFound:
    return MemoryNotFound("no memory has the key {}", "", "Take the key from list_memory or search_memory", key)


def _present(key: str, max_tokens: int, call: Call) -> Json:
    """Return the answer of a recall that fetched this memory.

    Raises:
        MemoryNotFound: this persona has no such memory, or has it in the trash, which older servers didn't have.
    """
    answer = memories.recall(call, RecallArguments(keys=[key], max_tokens=max_tokens))
    if not answer["hits"]:
        raise _unknown(key)
    if "deleted_at" in answer["hits"][0]:
        raise MemoryNotFound("{} is in the trash", "it was deleted", "Send revise with restore=true to bring it back", key)
    return answer


def _with_any_tag(tags: Sequence[str], top_k: int, search: Mapping[str, Any], call: Call) -> Json:
    """Return the answer of a recall for memories with at least one of the tags: it searches for each, and fetches the best of all."""
    if len(tags) > ANY_TAGS_LIMIT:
        raise InvalidInput("tags has {} entries", "{} are the limit with tag_match_mode=any", "Send fewer", len(tags), ANY_TAGS_LIMIT)
    answers = [
        memories.recall(call, RecallArguments(**search, top_k=top_k, tags=[tag], detail="index", max_tokens=TOKENS_LIMIT)) for tag in tags
    ]
    hits = sorted((hit for answer in answers for hit in answer["hits"]), key=lambda hit: (hit["score"], _happened(hit)), reverse=True)
    best: dict[str, Json] = {}
    for hit in hits:
        best.setdefault(hit["key"], hit)
    if not best:
        return answers[0]
    fetched = memories.recall(call, RecallArguments(keys=list(best)[:top_k]))
    shown = [{**hit, "score": best[hit["key"]]["score"]} for hit in fetched["hits"]]
    more = len(best) - len(shown) + max(answer["more"] for answer in answers)
    return {**answers[0], "more": more, "hits": shown}


def _happened(hit: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(hit.get("occurred_at") or hit["created_at"])
