"""What was done: the recorded operations of a persona, and the events of the server. Never the text of a memory."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.errors import InvalidInput, NotAllowed
from memory_mcp.server.actions.tokens import visible
from memory_mcp.server.arguments import Arguments, Between, NoArguments, Text, WholeNumber, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Moment, ReadingAnswer, heading, local, omit_empty
from memory_mcp.store import operations
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.operations import Done
from memory_mcp.store.timestamps import from_text

PAGE, PAGE_LIMIT = 50, 500
EVENTS = 100
# The fields of an operation that callers without the scope `read` see: counts, names of rules and of personas.
_FACTS = frozenset({"rule", "by", "from_revision", "from", "to", "taken", "known", "erased_before", "memories", "in_trash", "made_at"})
# These quote callers.
_WORDS = frozenset({"reason", "into"})
_EVENT_FACTS = ("reason", "token", "client", "asked", "why", "persona", "suppressed", "made", "revoked", "settings")


class OperationsArguments(Arguments):
    operation: Annotated[Text, http("Only operations of this kind, one of `kinds`.")] = ""
    before: Annotated[WholeNumber, http("`next` of the page before.")] = None
    limit: Annotated[int, Between(1, PAGE_LIMIT), http("How many.")] = PAGE


class Recorded(TypedDict):
    """`through`: mcp, http, import or dashboard; without it the server did it by itself. `error`: the kind of an error."""

    what: str
    at: Moment
    key: NotRequired[str]
    through: NotRequired[str]
    token: NotRequired[str]
    token_name: NotRequired[str]
    error: NotRequired[str]
    facts: NotRequired[dict[str, Any]]


class Operations(ReadingAnswer):
    operations: list[Recorded]
    kinds: list[str]
    next: NotRequired[Annotated[int, Field(ge=1)]]


@operation(needs=["admin"], route=Route("GET", "/api/operations"), answer=Operations)
def list_operations(call: Call, arguments: OperationsArguments) -> Json:
    """List what was done to a persona's memories, when, through which entry point and with which token, the latest first."""
    tokens = read_tokens(call.runtime.personas.directory) or {}
    names = {token.id: token.name for token in visible(call, tokens).values()}
    with call.reading() as persona, persona.database.read() as connection:
        entries = operations.latest(connection, arguments.limit + 1, arguments.before, arguments.operation.strip() or None)
        shown = entries[: arguments.limit]
        following = shown[-1].id if len(entries) > len(shown) else None
        return {
            **heading(call, persona),
            "operations": [_recorded(call, done, names) for done in shown],
            "kinds": operations.kinds(connection),
            **omit_empty(next=following),
        }


def _recorded(call: Call, done: Done, names: dict[str, str]) -> Json:
    through, _, token = done.caller.partition(" ")
    visible = _FACTS | _WORDS if "read" in call.admission.scopes else _FACTS
    facts = {name: value for name, value in done.metadata.items() if name in visible and value not in (None, "", [], {})}
    further = omit_empty(key=done.key, through=through, token=token, token_name=names.get(token), error=done.error, facts=facts)
    return {"what": done.operation, "at": local(done.timestamp, call.settings.zone), **further}


class Event(TypedDict):
    """A refused call, or a change of tokens or settings. `reason` is one of docs/security.md#logs."""

    what: str
    at: Moment
    reason: NotRequired[str]
    token: NotRequired[str]
    client: NotRequired[str]
    asked: NotRequired[str]
    why: NotRequired[str]
    persona: NotRequired[str]
    suppressed: NotRequired[int]
    made: NotRequired[str]
    revoked: NotRequired[str]
    settings: NotRequired[list[str]]


class Events(TypedDict):
    events: list[Event]


@operation(needs=["admin"], route=Route("GET", "/api/events", of_persona=False), answer=Events)
def list_events(call: Call, _arguments: NoArguments) -> Json:
    """List the calls that were lately refused, and who changed tokens and settings; for a token of all personas."""
    if call.admission.personas is not None:
        call.admission.note("scope", asked="the events of the server")
        raise NotAllowed("these events are the whole server's", "this token is for some personas", "Use a token for all personas")
    events = operations.latest_events(call.runtime.personas.directory, EVENTS)
    return {"events": [_event(call, event) for event in events]}


def _event(call: Call, event: Json) -> Json:
    try:
        at = local(from_text(event["timestamp"]), call.settings.zone)
    except ValueError as error:
        raise InvalidInput("the log of operations can't be read", "a line of it has no time", "See memory_operations.log") from error
    return {"what": event["operation"], "at": at, **omit_empty(**{name: event.get(name) for name in _EVENT_FACTS})}
