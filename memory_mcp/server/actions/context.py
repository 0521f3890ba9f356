"""The tools get_context and update_context: the context file, the layers of memories, and the time since the last conversation."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NotRequired

from pydantic import Field

from memory_mcp.dates.format import Language, elapsed, language_of
from memory_mcp.dates.resolve import parse_moment
from memory_mcp.domain import STATE_FIELDS, Memory, Recalled
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.language.budget import preview
from memory_mcp.language.labels import label, storable
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.search.context import context
from memory_mcp.search.context import upcoming as still_upcoming
from memory_mcp.search.question import QUERY_LIMIT, shifted, token_budget
from memory_mcp.server.arguments import Arguments, Between, Text, TextOrNone, TextsByName, WholeNumber, Words
from memory_mcp.server.call import Call, client_language
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.views import (
    Count,
    Moment,
    ReadingAnswer,
    brief,
    heading,
    hit_views,
    local,
    memory_view,
    model_used,
    omit_empty,
    privacy_view,
    without_blanks,
)
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.files.persona_context import FILE_NAME, LAST_CONVERSATION, PEOPLE, PERSON_FIELDS, STATE_KEYS, conversation_at
from memory_mcp.store.timestamps import from_text

DEFAULT_TOKENS = 600
FIELD_LIMIT = 2_000
UPCOMING_LIMIT, PREVIEW_CHARACTERS = 50, 200


class ContextArguments(Arguments):
    query: Annotated[Words, Field(description="topic")] = ""
    session_id: Annotated[Text, Field(description="conversation that goes on")] = ""
    max_tokens: WholeNumber = None


class Context(ReadingAnswer):
    memories: Count
    now: Moment
    since_last_conversation: NotRequired[str]
    embedder: NotRequired[str]
    remedy: NotRequired[str]
    unmatched: NotRequired[list[str]]
    hits: list[dict[str, Any]]


@operation(
    needs=["read"],
    tool=Tool("get_context", "Get context", read_only=True, idempotent=True),
    route=Route(
        "GET",
        "/api/context",
        "Return what a conversation begins with: who the persona and the user are, how things stand, what was said lately.",
    ),
    answer=Context,
)
def get_context(call: Call, arguments: ContextArguments) -> Json:
    """Call FIRST in every conversation: who you and the user are, what matters, what is to come, what was said lately."""
    with call.reading() as persona, call.reading_pools() as pools, call.searching():
        budget = token_budget(arguments.max_tokens, DEFAULT_TOKENS)
        topic = Redaction(call.settings.privacy).text(_within(arguments.query, "query", QUERY_LIMIT).strip())
        language = client_language(call, topic)
        layers = context(
            persona,
            topic,
            pools,
            session_id=label(arguments.session_id, "session_id"),
            max_tokens=budget,
            models=call.models,
            settings=call.search_settings(persona),
            now=call.now,
            indexes=call.runtime.indexes,
            deadline=call.rerank_deadline(),
        )
        people, failure = _people_and_state(call, persona, language or language_of(layers.hits[0][1].text if layers.hits else ""))
        counts = persona.database.kept("counts", lambda: _counts(persona))
        views = hit_views([hit for _, hit in layers.hits], persona, call, language)
        days = _upcoming_days(persona, call, [hit.memory for layer, hit in layers.hits if layer == "upcoming"])
        unread = layers.recalled.degraded if layers.recalled else pools.degraded
        degraded = [*unread, *([failure] if failure else [])]
        return {
            **heading(call, persona),
            **counts,
            "now": local(call.now, call.settings.zone),
            **people,
            **omit_empty(degraded=degraded),
            **(_search_of(layers.recalled, call) if layers.recalled else {}),
            "hits": [
                {
                    "_source": layer,
                    **{name: value for name, value in brief(view).items() if name != "score"},
                    **days.get(hit.memory.key, {}),
                }
                for (layer, hit), view in zip(layers.hits, views, strict=True)
            ],
        }


def _search_of(recalled: Recalled, call: Call) -> Json:
    """Return what ran when the topic was searched for."""
    used = model_used(recalled.embedder, recalled.degraded, call)
    return omit_empty(mode=recalled.mode, **used, unmatched=list(recalled.unmatched))


class UpcomingArguments(Arguments):
    limit: Annotated[int, Between(1, UPCOMING_LIMIT)] = UPCOMING_LIMIT


@operation(needs=["read"])
def list_upcoming(call: Call, arguments: UpcomingArguments) -> Json:
    """List what is to come within the days of `context.upcoming_days`, the nearest first."""
    end = shifted(call.now, timedelta(days=call.settings.context.upcoming_days))
    with call.reading() as persona:
        with persona.database.read_briefly() as connection:
            found = (
                []
                if persona.has_expired
                else still_upcoming(connection, call.now, end, call.settings.zone, arguments.limit, characters=PREVIEW_CHARACTERS)
            )
            shown = memories.beginnings(connection, [memory.id for memory in found], PREVIEW_CHARACTERS)
            upcoming = [shown[memory.id] for memory in found]
        days, language = _upcoming_days(persona, call, upcoming), client_language(call)
        return {
            **heading(call, persona),
            "memories": [
                memory_view(memory, preview(memory.content, PREVIEW_CHARACTERS), call.settings.zone, call.now, language)
                | days.get(memory.key, {})
                for memory in upcoming
            ],
        }


def _upcoming_days(persona: Persona, call: Call, upcoming: Sequence[Memory]) -> dict[str, dict[str, str]]:
    """The day on which each of these is next, by the memory's key: a memory of a pool may have the same id."""
    if not upcoming:
        return {}
    with persona.database.read_briefly() as connection:
        named = memory_dates.of_memories(connection, [memory.id for memory in upcoming])
    zone = call.settings.zone
    days: dict[str, dict[str, str]] = {}
    for memory in upcoming:
        spans = [(from_text(start), from_text(end)) for start, end in named.get(memory.id, ())]
        if time := memories.next_time(memory, spans, call.now, zone):
            days[memory.key] = {"upcoming_on": time.astimezone(zone).date().isoformat()}
    return days


def _counts(persona: Persona) -> dict[str, int]:
    with persona.database.read() as connection:
        return memories.counts(connection)


class UpdateContextArguments(Arguments):
    emotion: TextOrNone = None
    physical_state: TextOrNone = None
    mental_state: TextOrNone = None
    environment: TextOrNone = None
    relationship_status: TextOrNone = None
    user_info: Annotated[TextsByName, Field(description="name, nickname, preferred_address")] = {}
    persona_info: Annotated[TextsByName, Field(description="your own, and description: who you are")] = {}


class ContextChanged(ReadingAnswer):
    changed: dict[str, Any]


@operation(
    needs=["read", "write"],
    tool=Tool("update_context", "Update context", idempotent=True),
    route=Route("PATCH", "/api/context", "Note how the persona, the user or their relationship changed."),
    answer=ContextChanged,
)
def update_context(call: Call, arguments: UpdateContextArguments) -> Json:
    """Note how you, the user or your relationship changed: mood, body, place, names. Empty clears."""
    redaction = Redaction(call.settings.privacy)
    state = {name: getattr(arguments, name) for name in STATE_FIELDS}
    changes = redaction.tree(checked_changes(state, arguments.user_info, arguments.persona_info))
    with call.reading() as persona:
        head = heading(call, persona)
    with call.writing() as persona:
        return {**head, "changed": _update(persona, call, changes), **privacy_view(redaction)}


def note_conversation(persona: Persona, call: Call, state: Mapping[str, str]) -> str | None:
    """Note in the context file the time of a conversation and its `state`, after a memory was stored. Return what failed, if anything."""
    try:
        private = Redaction(call.settings.privacy).tree(state)
        persona.context.update({**{STATE_KEYS[name]: value for name, value in private.items()}, **_spoke_now(call)})
    except StoreError as error:
        return f"context_not_updated: {error}"
    return None


def checked_changes(state: Mapping[str, str | None], user_info: Mapping[str, str], persona_info: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes of update_context by the names of the context file. None leaves a field as it is, an empty text clears it.

    Raises:
        InvalidInput: nothing changes, or a field is unknown or too long.
    """
    people = {"user_info": user_info, "persona_info": persona_info}
    for name, person in people.items():
        unknown = [part for part in person if part not in PERSON_FIELDS[name]]
        if unknown:
            raise InvalidInput(
                "{} has the unknown field {}",
                "it may hold {}",
                "Use remember for anything else",
                name,
                repr(unknown[0][:80]),
                ", ".join(PERSON_FIELDS[name]),
            )
    changes: dict[str, Any] = {
        STATE_KEYS[name]: _within(text, name, FIELD_LIMIT).strip() for name in STATE_FIELDS if (text := state.get(name)) is not None
    }
    changes |= {
        name: {part: _within(value, f"{name}.{part}", FIELD_LIMIT).strip() for part, value in person.items()}
        for name, person in people.items()
        if person
    }
    if not changes:
        raise InvalidInput("nothing to update", "no argument was given", "Send at least one, such as emotion")
    return changes


def _update(persona: Persona, call: Call, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Make the changes. Return each field before and after."""
    before, after = persona.context.update({**changes, **_spoke_now(call)})
    ours = {file_name: name for name, file_name in STATE_KEYS.items()}
    return {ours.get(name, name): {"before": _shown(before[name]), "after": _shown(after[name])} for name in changes}


def _shown(value: Any) -> Any:
    return without_blanks(value) if isinstance(value, Mapping) else value


def _within(value: str, name: str, limit: int) -> str:
    if len(value) > limit:
        raise InvalidInput("{} has {} characters", "{} are the limit", "Say it in a sentence", name, f"{len(value):,}", f"{limit:,}")
    return storable(value, name)


def _spoke_now(call: Call) -> dict[str, str]:
    return conversation_at(call.local_now)


def _people_and_state(call: Call, persona: Persona, language: Language) -> tuple[dict[str, Any], str | None]:
    """Return the context file as the client sees it, and what is wrong with it if it can't be read."""
    try:
        file = persona.context.read()
    except StoreError as error:
        return {}, f"context_unreadable: {error}"
    state = {name: file[file_name] for name, file_name in STATE_KEYS.items()}
    last = file[LAST_CONVERSATION] or None
    since = _since(last, call, language)
    # It was edited by hand; the next stored memory corrects it.
    unreadable = f"context_unreadable: {LAST_CONVERSATION} in {FILE_NAME} is no time" if last and not since else None
    last = last if since else None
    people = {name: without_blanks(file[name]) for name in PEOPLE}
    return omit_empty(last_conversation_time=last, since_last_conversation=since, state=without_blanks(state), **people), unreadable


def _since(last: Any, call: Call, language: Language) -> str | None:
    """Return how long ago that was; None where the file, which may have been edited by hand, holds no time."""
    try:
        return elapsed(parse_moment(last, call.now, call.settings.zone), call.now, language) if isinstance(last, str) and last else None
    except InvalidInput:
        return None
