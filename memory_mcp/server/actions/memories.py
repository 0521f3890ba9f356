"""Storing, finding, correcting and forgetting memories: the tools remember, recall, revise and forget."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.dates.resolve import is_iso, parse_moment
from memory_mcp.domain import NEVER, Confidence, Expiry, Remembered, Similar
from memory_mcp.errors import InvalidInput
from memory_mcp.language.budget import line_cost, preview
from memory_mcp.language.labels import label, labels, storable
from memory_mcp.language.low_value import low_value
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.names import key_in
from memory_mcp.personas.registry import Persona
from memory_mcp.remember import validation
from memory_mcp.remember.forget import forget as forget_memories
from memory_mcp.remember.pipeline import remember as remember_draft
from memory_mcp.remember.revise import Revision, private, relations_left, unknown_predecessor
from memory_mcp.remember.revise import expire_session as expire_session_of
from memory_mcp.remember.revise import revise as revise_memory
from memory_mcp.search.pipeline import recall as recall_memories
from memory_mcp.search.question import question
from memory_mcp.search.related import related as related_memories
from memory_mcp.search.stores import in_pool
from memory_mcp.server.actions.context import note_conversation
from memory_mcp.server.arguments import (
    Arguments,
    DateRange,
    Flag,
    Number,
    Object,
    Text,
    TextList,
    TextListOrNone,
    TextsByName,
    WholeNumber,
    Words,
    http,
    require_keys,
)
from memory_mcp.server.call import Call, client_language
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.views import (
    Count,
    Moment,
    PersonaAnswer,
    ReadingAnswer,
    heading,
    local,
    memory_view,
    omit_empty,
    outcome_view,
    privacy_view,
    recalled_view,
    similar_view,
)
from memory_mcp.wording import clauses, sentence

# How many relations a note names.
RELATIONS_SHOWN = 5
# What is shown of the memories that are near to a new one: so many characters of each, fewer where all would cost more tokens.
RELATED_CHARACTERS, RELATED_TOKENS = (40, 32, 24, 16), 120


class RememberArguments(Arguments):
    content: Annotated[Words, Field(description="self-contained sentences"), http("One self-contained sentence or more.")]
    source: Annotated[Text, Field(description="who said it")] = ""
    session_id: Text = ""
    kind: Annotated[Text, http("Fact, conversation or experience.")] = ""
    tags: TextList = []
    importance: Annotated[
        Number, Field(description="0..1; 0.8: never forget"), http("0..1; what must never be forgotten has 0.8 or more.")
    ] = None
    occurred_at: Annotated[
        Text, Field(description="when it was or will be: 昨日"), http("When it happened, or is to happen: ISO, 昨日.")
    ] = ""
    questions: Annotated[TextList, Field(description="that it answers"), http("Questions that this answers.")] = []
    state: Annotated[TextsByName, Field(description="as in update_context")] = {}
    supersedes: Annotated[Text, Field(description="key of what it replaces")] = ""
    category: Text = ""
    privacy_level: Annotated[Text, http("Public, internal, private or secret.")] = ""
    metadata: Object = {}
    relations: Annotated[TextList, Field(description="A > works_on > B")] = []
    expires_at: Annotated[Text, Field(description="then forget: 30d"), http("Forget it then: 30d, 来週.")] = ""
    pool: Annotated[Text, Field(description="share it in this pool")] = ""


class RelatedMemory(TypedDict):
    key: str
    content: str


class Stored(ReadingAnswer):
    key: str
    stored: bool
    indexed: Literal["queued", "now"]
    similar: list[dict[str, Any]]
    related: NotRequired[list[RelatedMemory]]


@operation(
    needs=["write"],
    tool=Tool("remember", "Remember", idempotent=True),
    route=Route("POST", "/api/memories", "Store a memory."),
    answer=Stored,
)
def remember(call: Call, arguments: RememberArguments) -> Json:
    """Store what should outlive this chat, as soon as it comes up: facts, preferences, promises, plans, changes of mind. Is one in
    `related` no longer true, revise it, or call again with supersedes.
    """
    target = call.within(arguments.pool.strip()) if arguments.pool.strip() else call
    supersedes = target.locate(arguments.supersedes.strip())[1] if target.pool else arguments.supersedes
    fields = arguments.model_dump(exclude={"pool"}) | {"supersedes": supersedes}
    draft = validation.draft(**fields, now=call.now, zone=call.settings.zone)
    with target.reading() as persona:
        head = heading(target, persona)
        if draft.supersedes and not persona.exists:  # before opening the persona for writing, which would create it
            raise unknown_predecessor(draft.supersedes)
    with target.writing() as persona:
        stored = remember_draft(persona, draft, now=call.now, zone=call.settings.zone, privacy=call.settings.privacy)
        context_failure = note_conversation(persona, call, draft.state) if stored.stored and not target.pool else None
        may_read = "read" in call.admission.scopes
        related = _related(target, persona, stored) if may_read and stored.stored else []
    stored = _as_seen(stored, target.foreign_pool)
    return {
        **head,
        "key": stored.key,
        "stored": stored.stored,
        "indexed": "queued" if stored.stored and call.models.loaded else "now",
        "similar": [similar_view(similar) for similar in stored.similar] if may_read else [],
        **omit_empty(
            related=related,
            occurred_at=None if is_iso(arguments.occurred_at) else local(draft.occurred_at, call.settings.zone),
            expires_at=local(stored.expires_at, call.settings.zone),
            note=_note_of(stored, arguments.supersedes),
            low_value=low_value(draft.content),
            degraded=[context_failure] if context_failure else None,
            redacted=dict(stored.redacted),
            flagged=dict(stored.flagged),
        ),
    }


def _as_seen(stored: Remembered, pool: str) -> Remembered:
    """What was stored, with the keys by which personas know the memories of a pool."""
    if not pool:
        return stored

    def of_pool(similar: Sequence[Similar]) -> tuple[Similar, ...]:
        return tuple(replace(memory, key=key_in(pool, memory.key)) for memory in similar)

    return replace(
        stored,
        key=key_in(pool, stored.key),
        similar=of_pool(stored.similar),
        rivals=tuple(key_in(pool, key) for key in stored.rivals),
    )


def _related(target: Call, persona: Persona, stored: Remembered) -> list[dict[str, str]]:
    """Return current memories near to the stored one, by the keys that the caller uses, in few tokens."""
    near = related_memories(
        persona,
        stored.key,
        {similar.key for similar in stored.similar},
        models=target.models,
        zone=target.settings.zone,
        now=target.now,
        indexes=target.runtime.indexes,
    )
    shown = [in_pool(target.foreign_pool, memory) for memory in near]
    for characters in RELATED_CHARACTERS:
        views = [{"key": memory.key, "content": preview(memory.content, characters)} for memory in shown]
        if line_cost(json.dumps(views, ensure_ascii=False)) <= RELATED_TOKENS:
            return views
    return views[:1]  # long keys, of a pool with a long name


def _note_of(stored: Remembered, supersedes: str) -> str | None:
    """Say what a writer should know of how the memory was stored, if anything."""
    if stored.rivals:
        return sentence(
            "{} was replaced before, by {}: both are current now; forget the one that is not true", supersedes, ", ".join(stored.rivals)
        )
    if stored.stored:
        return None
    known = "this very write is stored already; revise changes it"
    if not stored.added_relations:
        return known
    return clauses([known, sentence("relations that it did not state yet were added to it: {}", stored.added_relations)])


class RecallArguments(Arguments):
    query: Annotated[Words, Field(description="question or words, with dates: 昨日")] = ""
    top_k: WholeNumber = None
    mode: Annotated[Text, Field(description="recent, keyword, semantic, graph"), http("Auto, keyword, semantic, graph or recent.")] = ""
    tags: TextList = []
    date_range: Annotated[DateRange, Field(description="先週, 2025-10-01.."), http("先週, 2025-10-01..2025-10-17.")] = ""
    min_importance: Number = None
    hypothetical: Words = ""
    keys: TextList = []
    detail: Annotated[Text, Field(description="index or why"), http("Full, index or why.")] = ""
    max_tokens: WholeNumber = None
    category: Text = ""
    session_id: Text = ""
    kind: Text = ""
    source: Text = ""


class Recollection(ReadingAnswer):
    confidence: NotRequired[Confidence]
    mode: str
    reranked: bool
    degraded: list[str]
    index_lag: Count
    more: Count
    embedder: NotRequired[str]
    remedy: NotRequired[str]
    unmatched: NotRequired[list[str]]
    hits: list[dict[str, Any]]


@operation(
    needs=["read"],
    tool=Tool("recall", "Recall", read_only=True, idempotent=True),
    route=Route("GET", "/api/recall", "Search memories by meaning, words and dates, or fetch some by their keys."),
    answer=Recollection,
)
def recall(call: Call, arguments: RecallArguments) -> Json:
    """Search memories, or fetch keys. Call before you answer about the user, the past, or anything you may have been told. At
    confidence "nothing like it", or `unmatched` (in no memory): rephrase, or guess the answer in `hypothetical`; else say you don't know."""
    asked = question(**vars(arguments), settings=call.settings, now=call.now)
    with call.reading() as persona, call.reading_pools() as pools, call.searching():
        recalled = recall_memories(
            persona,
            asked,
            pools,
            models=call.models,
            settings=call.search_settings(persona),
            now=call.now,
            indexes=call.runtime.indexes,
            deadline=call.rerank_deadline(),
        )
        if asked.detail != "index":  # an index of one line each is a list to choose from, which is no use yet
            call.note_use(persona, [hit.memory.key for hit in recalled.hits if not hit.pool], asked.query)
        return {**heading(call, persona), **recalled_view(recalled, persona, call, arguments.query, asked.detail)}


class ExplainArguments(Arguments):
    query: Annotated[Words, Field(description="what was asked")]
    mode: Text = ""
    top_k: WholeNumber = None


@operation(needs=["read"], tool=Tool("explain_recall", "Why memories are recalled", read_only=True, idempotent=True, app="why"))
def explain_recall(call: Call, arguments: ExplainArguments) -> Json:
    """Why a question finds the memories that it finds, part by part of their scores. For a user who asks how you know."""
    return recall(call, RecallArguments(**vars(arguments), detail="why"))


class ReviseArguments(Arguments):
    key: Text
    content: Words = ""
    tags: TextListOrNone = None
    importance: Number = None
    restore: Flag = False
    reason: Text = ""
    category: Text = ""
    privacy_level: Text = ""
    expires_at: Annotated[Text, Field(description="never: keep it")] = ""


class CorrectArguments(ReviseArguments):
    """What the route takes besides: a model that heard it wrong stores it again."""

    source: Annotated[Text, http("Who said it, if that was wrong.")] = ""
    occurred_at: Annotated[Text, http("When it happened, or is to happen, if that was wrong: ISO, 昨日.")] = ""
    supersedes: Annotated[Text, http("The key of an earlier memory that this one replaces; `nothing`: it replaces none any more.")] = ""


class Corrected(PersonaAnswer):
    key: str
    content: str
    revision: Annotated[int, Field(ge=1)]


@operation(needs=["read", "write"], tool=Tool("revise", "Revise a memory"))
def revise(call: Call, arguments: ReviseArguments) -> Json:
    """Correct what was stored wrong; the earlier text is kept. What has changed since: remember with supersedes."""
    return _corrected(call, arguments)


@operation(
    needs=["read", "write"],
    route=Route("PATCH", "/api/memory", "Correct a memory, or bring it back from the trash; its earlier text is kept."),
    answer=Corrected,
)
def correct(call: Call, arguments: CorrectArguments) -> Json:
    """Correct a memory, also who said it and when it happened; or bring it back from the trash. Its earlier state is kept."""
    return _corrected(call, arguments, arguments.source, arguments.occurred_at, arguments.supersedes)


def _corrected(call: Call, arguments: ReviseArguments, source: str = "", occurred_at: str = "", supersedes: str = "") -> Json:
    content, tags, importance, privacy_level = arguments.content, arguments.tags, arguments.importance, arguments.privacy_level
    revision = Revision(
        content=validation.checked_content(content) if content else None,
        tags=labels(tags, "tags") if tags is not None else None,
        importance=validation.checked_importance(importance) if importance is not None else None,
        category=label(arguments.category, "category"),
        privacy_level=validation.checked_privacy_level(privacy_level) if privacy_level.strip() else None,
        expires_at=_expiry(call, arguments.expires_at),
        source=label(source, "source"),
        occurred_at=_moment(call, occurred_at, content),
        restore=arguments.restore,
        reason=label(arguments.reason, "reason"),
    )
    _, redaction = private(revision, call.settings.privacy)
    now = call.local_now
    target, key = call.locate(arguments.key)
    if supersedes.strip():
        of_earlier, earlier = target.locate(supersedes.strip())
        if of_earlier.pool != target.pool:
            raise unknown_predecessor(supersedes.strip())
        revision = replace(revision, supersedes=earlier)
    with target.changing() as persona:
        memory = revise_memory(persona, key, revision, now=now, privacy=call.settings.privacy)
        note = _note_of_relations(relations_left(persona, memory) if content else [])
        memory = in_pool(target.foreign_pool, memory)
        view = memory_view(memory, memory.content, call.settings.zone, call.now, client_language(call, content))
        return {**heading(target, persona), **view, "revision": memory.revision, **omit_empty(note=note), **privacy_view(redaction)}


def _moment(call: Call, text: str, content: str) -> datetime | None:
    """When what a memory tells is said to have been; None where that stays as it is."""
    return parse_moment(text.strip(), call.now, call.settings.zone, content) if text.strip() else None


def _expiry(call: Call, text: str) -> Expiry | None:
    """When memories that exist are to expire; None where none is given. To forget later needs the same scope as to forget now."""
    if not text.strip():
        return None
    expires_at = validation.checked_expiry(text, call.now, call.settings.zone)
    if expires_at != NEVER:
        call.admission.require(["delete"], "expires_at of a memory that exists")
    return expires_at


class ExpireSessionArguments(Arguments):
    session_id: Text
    expires_at: Annotated[Text, http("The time from which its memories are not found; `never` takes it away.")]


class ExpiringSession(PersonaAnswer):
    session_id: str
    memories: Count
    expires_at: NotRequired[Moment]


@operation(needs=["write"], route=Route("POST", "/api/session/expire"), answer=ExpiringSession)
def expire_session(call: Call, arguments: ExpireSessionArguments) -> Json:
    """Set when all memories that a session has now expire."""
    expires_at = _expiry(call, arguments.expires_at)
    if expires_at is None:
        raise InvalidInput("expires_at is empty", "", "Send a time to come, or never")
    session_id = Redaction(call.settings.privacy).text(storable(arguments.session_id.strip(), "session_id"))
    with call.changing() as persona:
        changed = expire_session_of(persona, session_id, expires_at, now=call.now)
    until = None if expires_at == NEVER else local(expires_at, call.settings.zone)
    return {"persona": persona.name, "session_id": session_id, "memories": changed, **omit_empty(expires_at=until)}


def _note_of_relations(relations: Sequence[str]) -> str | None:
    """Name the relations that a memory stated before its revision and that stay."""
    if not relations:
        return None
    more = f" and {len(relations) - RELATIONS_SHOWN} more" if len(relations) > RELATIONS_SHOWN else ""
    return f"the relations that it states stay: {', '.join(relations[:RELATIONS_SHOWN])}{more}; unrelate takes back what holds no more"


class ForgetArguments(Arguments):
    keys: TextList
    reason: Text = ""
    dry_run: Flag = False


class ForgetOutcome(TypedDict):
    key: str
    outcome: Literal["forgotten", "would_forget", "already_forgotten", "not_found"]
    reason: NotRequired[str]


class Forgotten(ReadingAnswer):
    outcomes: list[ForgetOutcome]


@operation(
    needs=["delete"],
    tool=Tool("forget", "Forget", destructive=True, idempotent=True),
    route=Route("DELETE", "/api/memories", "Put memories in the trash."),
    answer=Forgotten,
)
def forget(call: Call, arguments: ForgetArguments) -> Json:
    """Put memories in the trash, if the user asks; revise with restore=true brings them back."""
    require_keys(arguments.keys, "forget")
    answers = [_forgotten(target, keys, arguments) for target, keys in call.group_by_store(arguments.keys)]
    return {**answers[0], "outcomes": [outcome for answer in answers for outcome in answer["outcomes"]]}


def _forgotten(target: Call, keys: Sequence[str], arguments: ForgetArguments) -> Json:
    """Put memories of one store in the trash."""
    with target.changing() as persona:
        head = heading(target, persona)
        outcomes = forget_memories(
            persona,
            keys,
            reason=label(arguments.reason, "reason"),
            dry_run=arguments.dry_run,
            now=target.now,
            privacy=target.settings.privacy,
        )
    pool = target.foreign_pool
    shown = [replace(outcome, key=key_in(pool, outcome.key)) for outcome in outcomes] if pool else outcomes
    return {**head, "outcomes": [outcome_view(outcome) for outcome in shown]}
