"""The `core` toolset: the six tools that every client sees. Each opens the persona of its request, calls one verb, and shows the answer.

Plain functions: fastmcp runs them on worker threads, so that nothing here blocks the event loop.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastmcp.dependencies import Depends
from pydantic import Field

from memory_mcp.dates.iso import is_iso
from memory_mcp.domain import Remembered
from memory_mcp.errors import InvalidInput
from memory_mcp.remember import validation
from memory_mcp.remember.forget import forget as forget_memories
from memory_mcp.remember.pipeline import remember as remember_draft
from memory_mcp.remember.pipeline import unknown_predecessor
from memory_mcp.remember.revise import Revision, private, relations_left
from memory_mcp.remember.revise import revise as revise_memory
from memory_mcp.search.pipeline import recall as recall_memories
from memory_mcp.search.questions import question
from memory_mcp.server import context_views
from memory_mcp.server.client_language import client_language
from memory_mcp.server.mcp_tools.arguments import (
    DateRange,
    Flag,
    Number,
    Object,
    ScopedTool,
    Text,
    TextList,
    TextListOrNone,
    TextOrNone,
    TextsByName,
    WholeNumber,
    tool_of,
)
from memory_mcp.server.refusals import answering
from memory_mcp.server.request_persona import Call, current_call
from memory_mcp.server.views import heading, local, memory_view, outcome_view, privacy_view, recalled_view, similar_view, told
from memory_mcp.text.labels import label, labels
from memory_mcp.text.low_value import low_value
from memory_mcp.text.privacy.redaction import Redaction

KEYS_LIMIT = 100
# So many relations a note tells.
RELATIONS_SHOWN = 5


@answering
def get_context(
    query: Annotated[Text, Field(description="topic at hand")] = "", max_tokens: WholeNumber = None, call: Call = Depends(current_call)
) -> dict[str, Any]:
    """Call FIRST in every conversation: who you and the user are, how things stand, what was said lately."""
    with call.reading() as persona:
        return context_views.context_view(call, persona, query, max_tokens)


@answering
def remember(
    content: Annotated[Text, Field(description="one self-contained sentence or more")],
    source: Annotated[Text, Field(description="who said it")] = "",
    session_id: Text = "",
    kind: Annotated[Text, Field(description="fact, conversation or experience")] = "",
    tags: TextList = [],
    importance: Annotated[Number, Field(description="0..1")] = None,
    occurred_at: Annotated[Text, Field(description="when it happened: ISO or 昨日")] = "",
    questions: Annotated[TextList, Field(description="questions this answers")] = [],
    state: Annotated[TextsByName, Field(description="emotion, physical_state, mental_state, environment, relationship_status")] = {},
    supersedes: Annotated[Text, Field(description="key of the memory this replaces")] = "",
    category: Text = "",
    privacy_level: Annotated[Text, Field(description="public, internal, private or secret")] = "",
    metadata: Object = {},
    relations: Annotated[TextList, Field(description="A > works_on > B")] = [],
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Store what should outlive this chat: facts, preferences, promises, events, changes of mind. Call as soon as one comes up."""
    draft = validation.draft(
        content,
        now=call.now,
        zone=call.settings.zone,
        source=source,
        session_id=session_id,
        kind=kind,
        tags=tags,
        importance=importance,
        occurred_at=occurred_at,
        questions=questions,
        state=state,
        supersedes=supersedes,
        category=category,
        privacy_level=privacy_level,
        metadata=metadata,
        relations=relations,
    )
    with call.reading() as persona:
        before = heading(call, persona)
        if draft.supersedes and not persona.exists:  # told here, since to open a persona for writing makes it exist
            raise unknown_predecessor(draft.supersedes)
    with call.writing() as persona:
        stored = remember_draft(persona, draft, now=call.now, zone=call.settings.zone, privacy=call.settings.privacy)
        noted = context_views.note_conversation(persona, call, draft.state) if stored.stored else None
    return {
        **before,
        "key": stored.key,
        "stored": stored.stored,
        "indexed": "queued" if stored.stored and (call.models.embedder or call.models.earlier) else "now",
        "similar": [similar_view(similar) for similar in stored.similar] if "read" in call.admission.scopes else [],
        **told(
            occurred_at=None if is_iso(occurred_at) else local(draft.occurred_at, call.settings.zone),
            note=_note_of(stored, supersedes),
            low_value=low_value(draft.content),
            degraded=[noted] if noted else None,
            redacted=dict(stored.redacted),
            flagged=dict(stored.flagged),
        ),
    }


def _note_of(stored: Remembered, supersedes: str) -> str | None:
    """What a writer should know of how it was stored, if anything."""
    if stored.rivals:
        return f"{supersedes} was replaced before, by {', '.join(stored.rivals)}: both are current now; forget the one that is not true"
    if stored.stored:
        return None
    added = f"; relations that it did not state yet were added to it: {stored.related}" if stored.related else ""
    return f"this very write is stored already; revise changes it{added}"


@answering
def recall(
    query: Annotated[Text, Field(description="question or words; dates such as 昨日 count")] = "",
    top_k: Annotated[WholeNumber, Field(description="1..50")] = None,
    mode: Annotated[Text, Field(description="auto, keyword, semantic, graph or recent")] = "",
    tags: Annotated[TextList, Field(description="carries all of these")] = [],
    date_range: Annotated[DateRange, Field(description="2025-10-01..2025-10-17, a day, or 先週")] = "",
    min_importance: Number = None,
    hypothetical: Annotated[Text, Field(description="a guessed answer, to search by")] = "",
    keys: Annotated[TextList, Field(description="fetch these")] = [],
    detail: Annotated[Text, Field(description="full or index")] = "",
    max_tokens: WholeNumber = None,
    category: Text = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Search long-term memory. Call before you answer about the user, the past, or anything you may have been told."""
    asked = question(
        settings=call.settings,
        now=call.now,
        query=query,
        top_k=top_k,
        mode=mode,
        tags=tags,
        date_range=date_range,
        min_importance=min_importance,
        hypothetical=hypothetical,
        keys=keys,
        detail=detail,
        max_tokens=max_tokens,
        category=category,
    )
    with call.reading() as persona:
        answer = recall_memories(
            persona,
            asked,
            models=call.models,
            settings=call.settings,
            now=call.now,
            indexes=call.runtime.indexes,
            deadline=call.rerank_deadline(),
        )
        if asked.detail == "full":  # one line of each is a list to choose from
            call.note_use(persona, answer.hits)
        return {**heading(call, persona), **recalled_view(answer, call, query)}


@answering
def revise(
    key: Text,
    content: Text = "",
    tags: Annotated[TextListOrNone, Field(description="[] takes all away")] = None,
    importance: Annotated[Number, Field(description="0..1")] = None,
    restore: Annotated[Flag, Field(description="bring it back from the trash")] = False,
    reason: Text = "",
    category: Text = "",
    privacy_level: Text = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Correct a memory in place; the earlier text is kept. For a change in the world, remember with supersedes instead."""
    revision = Revision(
        content=validation.checked_content(content) if content else None,
        tags=labels(tags, "tags") if tags is not None else None,
        importance=validation.checked_importance(importance) if importance is not None else None,
        category=label(category, "category"),
        privacy_level=validation.checked_privacy_level(privacy_level) if privacy_level.strip() else None,
        restore=restore,
        reason=label(reason, "reason"),
    )
    _, found = private(revision, call.settings.privacy)
    with call.changing() as persona:
        memory = revise_memory(persona, key, revision, now=call.now.astimezone(call.settings.zone), privacy=call.settings.privacy)
        view = memory_view(memory, memory.content, call.settings.zone, call.now, client_language(call, content))
        left = relations_left(persona, memory) if content else []
        return {**heading(call, persona), **view, "revision": memory.revision, **told(note=_note_of_relations(left)), **privacy_view(found)}


def _note_of_relations(left: Sequence[str]) -> str | None:
    if not left:
        return None
    more = f" and {len(left) - RELATIONS_SHOWN} more" if len(left) > RELATIONS_SHOWN else ""
    return f"the relations that it states stay: {', '.join(left[:RELATIONS_SHOWN])}{more}; unrelate takes back what holds no more"


@answering
def forget(keys: TextList, reason: Text = "", dry_run: Flag = False, call: Call = Depends(current_call)) -> dict[str, Any]:
    """Put memories in the trash when the user asks; revise with restore=true brings them back."""
    if not 0 < len(keys) <= KEYS_LIMIT:
        raise InvalidInput(f"keys has {len(keys)} entries", f"forget takes 1 to {KEYS_LIMIT}", "Take the keys from a recall")
    with call.changing() as persona:
        outcomes = forget_memories(
            persona, keys, reason=label(reason, "reason"), dry_run=dry_run, now=call.now, privacy=call.settings.privacy
        )
        return {**heading(call, persona), "outcomes": [outcome_view(outcome) for outcome in outcomes]}


@answering
def update_context(
    emotion: Annotated[TextOrNone, Field(description="an empty text clears this or any other")] = None,
    physical_state: TextOrNone = None,
    mental_state: TextOrNone = None,
    environment: TextOrNone = None,
    relationship_status: TextOrNone = None,
    user_info: Annotated[TextsByName, Field(description="name, nickname, preferred_address")] = {},
    persona_info: Annotated[TextsByName, Field(description="the same of yourself")] = {},
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Note how you, the user or your relationship changed: mood, body, place, names."""
    state = {
        "emotion": emotion,
        "physical_state": physical_state,
        "mental_state": mental_state,
        "environment": environment,
        "relationship_status": relationship_status,
    }
    found = Redaction(call.settings.privacy)
    changes = found.tree(context_views.checked_changes(state, user_info, persona_info))
    with call.reading() as persona:
        before = heading(call, persona)
    with call.writing() as persona:
        return {**before, "changed": context_views.update(persona, call, changes), **privacy_view(found)}


def tools() -> list[ScopedTool]:
    """The toolset, in the order in which clients list it."""
    return [
        tool_of(get_context, title="Get context", needs=["read"], read_only=True, idempotent=True),
        tool_of(remember, title="Remember", needs=["write"], idempotent=True),
        tool_of(recall, title="Recall", needs=["read"], read_only=True, idempotent=True),
        tool_of(revise, title="Revise a memory", needs=["read", "write"]),
        tool_of(forget, title="Forget", needs=["delete"], destructive=True, idempotent=True),
        tool_of(update_context, title="Update context", needs=["read", "write"], idempotent=True),
    ]
