"""get_context and update_context as a client sees them: the context file, the layers of memories, and the time between."""

from collections.abc import Mapping
from typing import Any

from memory_mcp.dates.format import Language, elapsed, language_of
from memory_mcp.dates.resolve import parse_moment
from memory_mcp.domain import STATE_FIELDS
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.personas.registry import Persona
from memory_mcp.search.context import context
from memory_mcp.search.questions import QUERY_LIMIT, token_budget
from memory_mcp.server.client_language import client_language
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, hit_view, local, told, without_blanks
from memory_mcp.store import memories
from memory_mcp.store.files.persona_context import FILE_NAME, LAST_CONVERSATION, PEOPLE, PERSON_FIELDS, STATE_KEYS, conversation_at
from memory_mcp.text.privacy.redaction import Redaction
from memory_mcp.text.unstorable import storable

DEFAULT_TOKENS = 800
FIELD_LIMIT = 2_000


def context_view(call: Call, persona: Persona, query: str, max_tokens: int | None) -> dict[str, Any]:
    """Who, how many, when, how things stand, and the layered memories."""
    budget = token_budget(max_tokens, DEFAULT_TOKENS)
    topic = Redaction(call.settings.privacy).text(_within(query, "query", QUERY_LIMIT).strip())
    language = client_language(call, topic)
    found = context(
        persona,
        topic,
        max_tokens=budget,
        models=call.models,
        settings=call.settings,
        now=call.now,
        indexes=call.runtime.indexes,
        deadline=call.rerank_deadline(),
    )
    spoken = language or language_of(found.hits[0][1].text if found.hits else "")
    who, unreadable = _who(call, persona, spoken)
    with persona.database.read() as connection:
        counts = memories.counts(connection)
    degraded = [*(found.recalled.degraded if found.recalled else ()), *([unreadable] if unreadable else [])]
    return {
        **heading(call, persona),
        **counts,
        "now": local(call.now, call.settings.zone),
        **who,
        **told(degraded=degraded, mode=found.recalled.mode if found.recalled else None),
        "hits": [{"_source": layer, **_brief(hit_view(hit, call, language))} for layer, hit in found.hits],
    }


def note_conversation(persona: Persona, call: Call, state: Mapping[str, str]) -> str | None:
    """After a memory was stored: the two spoke just now, and things stand as `state` says. Returns what kept it from being noted."""
    try:
        private = Redaction(call.settings.privacy).tree(state)
        persona.context.update({**{STATE_KEYS[name]: value for name, value in private.items()}, **_spoke_now(call)})
    except StoreError as error:
        return f"context_not_updated: {error}"
    return None


def checked_changes(state: Mapping[str, str | None], user_info: Mapping[str, str], persona_info: Mapping[str, str]) -> dict[str, Any]:
    """What update_context is to set, by the context file's names. None leaves a field as it is, an empty text clears it.

    Raises:
        InvalidInput: nothing is to be set, or something can't be.
    """
    people = {"user_info": user_info, "persona_info": persona_info}
    for name, person in people.items():
        unknown = [part for part in person if part not in PERSON_FIELDS]
        if unknown:
            raise InvalidInput(
                f"{name} has the unknown field {unknown[0][:80]!r}",
                f"it may hold {', '.join(PERSON_FIELDS)}",
                "Use remember for anything else",
            )
    changes: dict[str, Any] = {
        STATE_KEYS[name]: _within(said, name, FIELD_LIMIT).strip() for name in STATE_FIELDS if (said := state.get(name)) is not None
    }
    changes |= {
        name: {part: _within(value, f"{name}.{part}", FIELD_LIMIT).strip() for part, value in person.items()}
        for name, person in people.items()
        if person
    }
    if not changes:
        raise InvalidInput("nothing to update", "no argument was given", "Send at least one, such as emotion")
    return changes


def update(persona: Persona, call: Call, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the changes. Returns, for each field, what it was and what it is."""
    before, after = persona.context.update({**changes, **_spoke_now(call)})
    ours = {file_name: name for name, file_name in STATE_KEYS.items()}
    return {ours.get(name, name): {"before": _shown(before[name]), "after": _shown(after[name])} for name in changes}


def _shown(value: Any) -> Any:
    return without_blanks(value) if isinstance(value, Mapping) else value


def _within(value: str, name: str, limit: int) -> str:
    if len(value) > limit:
        raise InvalidInput(f"{name} has {len(value):,} characters", f"{limit:,} are the limit", "Say it in a sentence")
    return storable(value, name)


def _spoke_now(call: Call) -> dict[str, str]:
    return conversation_at(call.now.astimezone(call.settings.zone))


def _who(call: Call, persona: Persona, language: Language) -> tuple[dict[str, Any], str | None]:
    """The context file as the client sees it, and what is wrong with it where it can't be read."""
    try:
        file = persona.context.read()
    except StoreError as error:
        return {}, f"context_unreadable: {error}"
    state = {name: file[file_name] for name, file_name in STATE_KEYS.items()}
    last = file[LAST_CONVERSATION] or None
    since = _since(last, call, language)
    # Somebody wrote it by hand; the next memory that is stored puts it right.
    unreadable = f"context_unreadable: {LAST_CONVERSATION} in {FILE_NAME} is no time" if last and not since else None
    last = last if since else None
    people = {name: without_blanks(file[name]) for name in PEOPLE}
    return told(last_conversation_time=last, since_last_conversation=since, state=without_blanks(state), **people), unreadable


def _since(last: Any, call: Call, language: Language) -> str | None:
    """How long ago that was; None where the file, which anyone may have edited, tells no time."""
    try:
        return elapsed(parse_moment(last, call.now, call.settings.zone), call.now, language) if isinstance(last, str) and last else None
    except InvalidInput:
        return None


def _brief(view: dict[str, Any]) -> dict[str, Any]:
    """A hit without what only a search needs to explain."""
    return {name: value for name, value in view.items() if name not in ("score", "why", "created_at" if "occurred_at" in view else "")}
