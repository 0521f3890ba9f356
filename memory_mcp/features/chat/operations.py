"""Conversations of a persona, as the chat room and `memory-mcp chat` store them: list, read, go on, rename, delete, export."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import ConversationNotFound, InvalidInput
from memory_mcp.language.labels import UNSTORABLE, label, labels, storable
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.server.answers import Blocks, joined, streamed
from memory_mcp.server.arguments import Arguments, Between, Flag, ObjectList, OneOf, Text, TextList, WholeNumber, http
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.operation import JSON, Json, Route, operation
from memory_mcp.server.views import Count, Moment, PersonaAnswer, ReadingAnswer, heading, local, omit_empty
from memory_mcp.store import conversations, erasure
from memory_mcp.store.operations import Operation
from memory_mcp.store.timestamps import from_text, to_text

PAGE, PAGE_LIMIT = 50, 200
TURNS, TURNS_LIMIT = 50, 200
NUMBER_LIMIT = 1_000_000
TITLE_CHARACTERS = 60
# An exported turn must fit into a line of an import.
TURN_LIMIT_BYTES = 1024 * 1024
MARKDOWN = "text/markdown"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ListArguments(Arguments):
    after: Annotated[Text, http("`next` of the page before.")] = ""
    limit: Annotated[int, Between(1, PAGE_LIMIT), http("How many.")] = PAGE


class ConversationView(TypedDict):
    """`members`: the personas of a group."""

    id: str
    title: str
    created_at: Moment
    updated_at: Moment
    turns: Count
    members: NotRequired[list[str]]


class Conversations(ReadingAnswer):
    conversations: list[ConversationView]
    next: NotRequired[str]


@operation(needs=["read"], route=Route("GET", "/api/conversations"), answer=Conversations)
def list_conversations(call: Call, arguments: ListArguments) -> Json:
    """List the conversations of a persona, the latest first, page by page."""
    after = _position(arguments.after) if arguments.after.strip() else None
    with call.reading() as persona, persona.database.read() as connection:
        page = conversations.page(connection, arguments.limit + 1, after)
        shown = page[: arguments.limit]
        following = f"{to_text(shown[-1].updated_at)}/{shown[-1].id}" if len(page) > len(shown) else None
        return {**heading(call, persona), "conversations": [_view(call, known) for known in shown], **omit_empty(next=following)}


def _position(text: str) -> tuple[str, str]:
    moment, _, identity = text.strip().partition("/")
    try:
        return to_text(from_text(moment)), identity
    except ValueError:
        raise InvalidInput("after is {}", "it is `next` of the page before", "Leave it out for the first page", repr(text[:80])) from None


class IdArguments(Arguments):
    id: Annotated[Text, http("The id of the conversation.", minLength=1)]


class ReadArguments(IdArguments):
    after: Annotated[int, Between(0, NUMBER_LIMIT), http("`next` of the page before.")] = 0
    before: Annotated[WholeNumber, http("Instead of `after`: the last turns before this number.")] = None
    limit: Annotated[int, Between(1, TURNS_LIMIT), http("How many turns.")] = TURNS


class TurnView(TypedDict):
    """`messages` as they were stored; `recalled` and `stored` are keys of memories."""

    number: Annotated[int, Field(ge=1)]
    ended_at: Moment
    model: str
    messages: list[dict[str, Any]]
    recalled: NotRequired[list[str]]
    stored: NotRequired[list[str]]


class OneConversation(ReadingAnswer):
    conversation: ConversationView
    turns: list[TurnView]
    next: NotRequired[Count]
    earlier: NotRequired[Count]


@operation(needs=["read"], route=Route("GET", "/api/conversation"), answer=OneConversation)
def read_conversation(call: Call, arguments: ReadArguments) -> Json:
    """Return a conversation with its turns in order, page by page. A page of long turns has fewer than `limit`."""
    with call.reading() as persona, persona.database.read() as connection:
        known = _known(conversations.by_id(connection, arguments.id), arguments.id)
        answer = {**heading(call, persona), "conversation": _view(call, known)}
        if arguments.before is not None:
            last, has_earlier = conversations.last_page(connection, known.id, arguments.before, arguments.limit)
            earlier = last[0].number if has_earlier else None
            return {**answer, "turns": [_turn_view(call, turn) for turn in last], **omit_empty(earlier=earlier)}
        shown, has_more = conversations.turns_page(connection, known.id, arguments.after, arguments.limit)
        following = shown[-1].number if has_more else None
        return {**answer, "turns": [_turn_view(call, turn) for turn in shown], **omit_empty(next=following)}


class TurnArguments(IdArguments):
    number: Annotated[int, Between(1, NUMBER_LIMIT), http("The number of the turn, from 1.")]
    model: Annotated[Text, http("Who answered: `vendor:name`.")]
    messages: Annotated[ObjectList, http("The messages in order, each an object with `role` and `text`.", minItems=1)]
    recalled: Annotated[TextList, http("The keys of the memories that were recalled.")] = []
    stored: Annotated[TextList, http("The keys of the memories that were stored.")] = []
    title: Annotated[Text, http("The title of a new conversation. Without one it is the beginning of the first message.")] = ""
    members: Annotated[TextList, http("All personas of a group.")] = []
    replace: Annotated[Flag, http("Put it into the place of the turns from its number on.")] = False


class StoredTurn(PersonaAnswer):
    conversation: ConversationView
    redacted: NotRequired[dict[str, Count]]


@operation(needs=["write"], route=Route("POST", "/api/conversation"), answer=StoredTurn)
def add_turn(call: Call, arguments: TurnArguments) -> Json:
    """Store an ended turn of a conversation, redacted as memories are. A turn is stored as a whole or not at all."""
    if not _ID.fullmatch(arguments.id):
        raise InvalidInput("id can't be used", "it has 1 to 64 letters, digits, - and _", "Choose another")
    if not arguments.messages:
        raise InvalidInput("messages are missing", "a turn has at least what the user said", "Send them in order")
    redaction = Redaction(call.settings.privacy)
    messages = redaction.tree(arguments.messages)
    text = storable(json.dumps(messages, ensure_ascii=False), "messages")
    if len(text.encode()) > TURN_LIMIT_BYTES:
        raise InvalidInput("the turn is too long", "{} MiB are the limit", "Leave out what tools returned", TURN_LIMIT_BYTES // 1048576)
    title = redaction.optional(label(arguments.title, "title")) or _beginning(messages)
    members = tuple(arguments.members and labels(arguments.members, "members"))
    turn = Turn(
        arguments.number,
        call.now,
        redaction.optional(label(arguments.model, "model")) or "",
        tuple(messages),
        tuple(dict.fromkeys(arguments.recalled)),
        tuple(dict.fromkeys(arguments.stored)),
    )
    new = Conversation(arguments.id, title, call.now, call.now, members)
    with call.writing() as persona:
        known = persona.database.write(lambda connection: conversations.add_turn(connection, new, turn, replacing=arguments.replace))
        return {"persona": persona.name, "conversation": _view(call, known), **omit_empty(redacted=redaction.redacted)}


def _beginning(messages: list[Json]) -> str:
    """The beginning of the first message, as a title."""
    text = " ".join(UNSTORABLE.sub("", str(messages[0].get("text", ""))).split())
    return text if len(text) <= TITLE_CHARACTERS else f"{text[: TITLE_CHARACTERS - 1]}…"


class RenameArguments(IdArguments):
    title: Annotated[Text, http("The new title.", minLength=1)]


class ChangedConversation(PersonaAnswer):
    conversation: ConversationView


@operation(needs=["write"], route=Route("PATCH", "/api/conversation"), answer=ChangedConversation)
def rename_conversation(call: Call, arguments: RenameArguments) -> Json:
    """Give a conversation another title."""
    title = label(arguments.title, "title")
    if title is None:
        raise InvalidInput("title is missing", "", "Send a text")
    redacted = Redaction(call.settings.privacy).text(title)
    with call.changing() as persona:
        if persona.exists:
            persona.database.write(lambda connection: conversations.rename(connection, arguments.id, redacted))
        with persona.database.read() as connection:
            known = _known(conversations.by_id(connection, arguments.id), arguments.id)
        return {"persona": persona.name, "conversation": _view(call, known)}


class DeletedConversation(PersonaAnswer):
    deleted: str


@operation(needs=["delete"], route=Route("DELETE", "/api/conversation"), answer=DeletedConversation)
def delete_conversation(call: Call, arguments: IdArguments) -> Json:
    """Delete a conversation for good. The memories that were stored in it stay."""
    done = Operation("delete_conversation", None, call.now, metadata={"conversation": arguments.id})
    with call.changing() as persona:
        with persona.database.read() as connection:
            _known(conversations.by_id(connection, arguments.id), arguments.id)
        persona.database.write(lambda connection: erasure.erase_conversation(connection, arguments.id, done))
        persona.log.append(persona.name, done)
        return {"persona": persona.name, "deleted": arguments.id}


class ExportArguments(IdArguments):
    format: Annotated[
        Literal["markdown", "json"], OneOf(("markdown", "json"), exact=True), http("A text to read, or everything as JSON.")
    ] = "markdown"


@operation(
    needs=["read"],
    route=Route(
        "GET", "/api/conversation/export", content={MARKDOWN: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}}
    ),
)
async def export_conversation(request: Request, arguments: ExportArguments) -> Response:
    """Return a whole conversation as a file: as Markdown, or as JSON with what tools were asked and answered."""
    as_json = arguments.format == "json"
    name = f"conversation-{arguments.id}.{'json' if as_json else 'md'}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return await streamed(request, _exported(call_of(request), arguments.id, as_json=as_json), JSON if as_json else MARKDOWN, headers)


def _exported(call: Call, identity: str, *, as_json: bool) -> Blocks:
    """A conversation as a file, of which a few turns are in memory at a time."""
    with call.reading() as persona:
        with persona.database.read() as connection:
            known = _known(conversations.by_id(connection, identity), identity)
        whole = {"persona": persona.name, **_view(call, known)}
        turns = (_turn_view(call, turn) for turn in conversations.all_turns(persona.database, identity))
        yield from joined(_as_json(whole, turns) if as_json else _as_markdown(whole, turns))


def _as_json(whole: Json, turns: Iterable[Json]) -> Iterator[str]:
    """What `json.dumps(…, indent=2)` writes of the conversation with its turns."""
    beginning, empty, end = json.dumps({**whole, "turns": []}, ensure_ascii=False, indent=2).partition('"turns": []')
    yield beginning + empty[:-1]
    before = "\n    "
    for turn in turns:
        yield before + json.dumps(turn, ensure_ascii=False, indent=2).replace("\n", "\n    ")
        before = ",\n    "
    yield ("\n  ]" if before[0] == "," else "]") + end


def _as_markdown(whole: Json, turns: Iterable[Json]) -> Iterator[str]:
    yield f"# {whole['title'] or whole['id']}\n\n{whole['persona']}, {whole['created_at']}"
    for turn in turns:
        for message in turn["messages"]:
            if message.get("role") in ("user", "assistant") and message.get("text"):
                speaker = message.get("speaker") or (whole["persona"] if message["role"] == "assistant" else "User")
                model = f" ({turn['model']})" if message["role"] == "assistant" else ""
                yield f"\n\n**{speaker}**{model}\n\n{message['text']}"
        for name in ("recalled", "stored"):
            if name in turn:
                yield f"\n\n*{name}: {', '.join(turn[name])}*"
    yield "\n"


def _known(conversation: Conversation | None, identity: str) -> Conversation:
    if conversation is None:
        raise ConversationNotFound("no conversation has the id {}", "", "Take one from GET /api/conversations", identity[:80])
    return conversation


def _view(call: Call, known: Conversation) -> Json:
    zone = call.settings.zone
    return {
        "id": known.id,
        "title": known.title,
        "created_at": local(known.created_at, zone),
        "updated_at": local(known.updated_at, zone),
        "turns": known.turns,
        **omit_empty(members=list(known.members)),
    }


def _turn_view(call: Call, turn: Turn) -> Json:
    return {
        "number": turn.number,
        "ended_at": local(turn.ended_at, call.settings.zone),
        "model": turn.model,
        "messages": list(turn.messages),
        **omit_empty(recalled=list(turn.recalled), stored=list(turn.stored)),
    }
