"""The room to talk with one or several personas: list, read and delete conversations, and stream the events of a turn."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import httpx2
from anyio import from_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_mcp.domain import TokenScope
from memory_mcp.errors import ChatFailed, ConversationNotFound, InvalidInput, MemoryMCPError, NotInstalled
from memory_mcp.features.dashboard.frame import HEADERS, Visit
from memory_mcp.features.dashboard.records import contents
from memory_mcp.features.dashboard.words import WORDS
from memory_mcp.server.addressing import HEADER
from memory_mcp.server.answers import turn_of
from memory_mcp.server.auth import ON_BEHALF, Admission, Authenticator
from memory_mcp.server.conversing import RunningTurn, Transports
from memory_mcp.server.operation import Json

# The texts of signals of a score.
SIGNAL = "signal_"
# The latest turns of a conversation that are shown, and sent to a model.
TURNS = 40
MEMBERS = 8
# The arguments of a model that a visitor may choose.
ARGUMENTS: Mapping[str, Callable[[str], float]] = {"temperature": float, "max_tokens": int}
# The number of a turn that none has.
AFTER_THE_LAST = 1_000_000
# A proxy closes a connection on which nothing comes; a model may think for minutes.
SILENCE_SECONDS = 15.0
# Longer than any call takes.
ANSWER_SECONDS = 300.0
STREAM_HEADERS = {**HEADERS, "X-Accel-Buffering": "no"}


def listing(visit: Visit) -> Response:
    """Show the conversations, the latest first."""
    listed = visit.perform("list_conversations", after=visit.field("after"))
    return visit.page("chats.html", found=listed, may_talk=_may_talk(visit), missing=_missing(visit))


def one(visit: Visit) -> Response:
    """Show a conversation, or the form to begin one."""
    identity, before = visit.field("id"), visit.field("before") or AFTER_THE_LAST
    known = visit.perform("read_conversation", id=identity, before=before, limit=TURNS) if identity else None
    host = visit.call.runtime.conversing
    vendors = host.vendors() if host and _may_talk(visit) else []
    own = visit.call.persona_name()
    turns = known["turns"] if known else []
    keys = [key for turn in reversed(turns) for name in ("stored", "recalled") for key in turn.get(name, ())]
    said, gone = contents(visit, keys)
    usual = (host and host.model()) or next((name for vendor in vendors for name in vendor["models"]), "")
    model = turns[-1]["model"] if turns else usual
    if host and vendors and model:
        host.prepare(model)
    return visit.page(
        "chat.html",
        known=known,
        contents=said,
        gone=gone,
        signals={name.removeprefix(SIGNAL): visit.words(name) for name in WORDS if name.startswith(SIGNAL)},
        own=own,
        members=known["conversation"].get("members", [own]) if known else [own],
        others=[name for name in visit.call.visible_personas() if name != own],
        vendors=vendors,
        model=model,
        may_talk=_may_talk(visit),
        missing=_missing(visit),
    )


def rename(visit: Visit) -> Response:
    """Give a conversation another title."""
    visit.perform("rename_conversation", id=visit.field("id"), title=visit.field("title"))
    return visit.redirect("/chat/one", id=visit.field("id"))


def delete(visit: Visit) -> Response:
    """Delete a conversation for good."""
    visit.perform("delete_conversation", id=visit.field("id"))
    return visit.redirect("/chat")


def export(visit: Visit) -> Response:
    """Send a conversation as a file."""
    return visit.stream("export_conversation", id=visit.field("id"), format=visit.field("format") or "markdown")


def answer(visit: Visit) -> Response:
    """Answer the question whether a tool may run."""
    visit.admission.require(_needed(visit), "the chat")
    runs = visit.call.runtime.runs
    allowed = visit.field("allow") == "yes"
    is_known = from_thread.run_sync(
        lambda: runs.answer(visit.field("run"), visit.admission.token, visit.field("call"), allowed=allowed),
    )
    return Response(status_code=204 if is_known else 404, headers=HEADERS)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A requested turn: its place in the conversation, and what the models get."""

    conversation: str
    number: int
    text: str
    model: str
    members: tuple[str, ...]
    is_replacing: bool
    off_record: bool

    def fields(self) -> Json:
        """What a browser needs to go on."""
        return {"id": self.conversation, "number": self.number, "off_record": self.off_record}


def say(visit: Visit) -> Response:
    """Begin a turn, and stream its events. The turn ends with the connection."""
    visit.admission.require(_needed(visit), "the chat")
    host = visit.call.runtime.conversing
    if host is None:
        raise NotInstalled("no conversations can be held here", "chat")
    asked, heard = _asked(visit)
    turn = host.turn(
        asked.model,
        _transports(visit.request, visit.admission, asked.members),
        heard,
        allowed=tuple(visit.fields.get("allowed", ())),
        session_id=f"chat-{asked.conversation}",
        arguments=_arguments(visit),
        hear=bool(visit.field("hear")) and len(asked.members) > 1,
    )
    return StreamingResponse(_stream(visit, asked, turn), media_type="text/event-stream", headers=STREAM_HEADERS)


def _arguments(visit: Visit) -> Json:
    """The arguments of the model that the form has."""
    given = {name: visit.field(name) for name in ARGUMENTS}
    try:
        return {name: kind(given[name]) for name, kind in ARGUMENTS.items() if given[name]}
    except ValueError:
        raise InvalidInput("{} can't be used", "they are numbers", "Correct them", " / ".join(filter(None, given.values()))) from None


def _asked(visit: Visit) -> tuple[_Asked, Mapping[str, Sequence[Json]]]:
    """What the form asks for, and what each persona has heard before."""
    text, replaced = visit.field("text"), visit.field("replace")
    if not text:
        raise InvalidInput("nothing was said", "", "Write a message")
    if replaced and not replaced.isdecimal():
        raise InvalidInput("replace is no number", "", "Open the page again, and send it from there")
    own = visit.call.persona_name()
    visits = {member.call.persona_name(): member for member in map(visit.of_persona, dict.fromkeys([own, *visit.fields.get("member", [])]))}
    if len(visits) > MEMBERS:
        raise InvalidInput("{} personas are too many for a room", "{} are the limit", "Choose fewer", len(visits), MEMBERS)
    identity = visit.field("id") or uuid.uuid4().hex
    before = int(replaced) if replaced else AFTER_THE_LAST
    # A conversation that was deleted meanwhile, or whose persona was renamed, does not begin anew.
    turns = {name: _turns(member, identity, before, is_known=bool(visit.field("id")) and name == own) for name, member in visits.items()}
    number = int(replaced) if replaced else 1 + max((turn["number"] for known in turns.values() for turn in known), default=0)
    asked = _Asked(identity, number, text, visit.field("model"), tuple(visits), bool(replaced), bool(visit.field("off_record")))
    return asked, {name: [message for turn in known for message in turn["messages"]] for name, known in turns.items()}


def _turns(visit: Visit, identity: str, before: int, *, is_known: bool) -> list[Json]:
    try:
        known: list[Json] = visit.perform("read_conversation", id=identity, before=before, limit=TURNS)["turns"]
    except ConversationNotFound:
        if is_known:
            raise
        return []
    return known


async def _stream(visit: Visit, asked: _Asked, turn: RunningTurn) -> AsyncGenerator[str]:
    """The events as the browser gets them. The turn runs in a task of its own, which cleans up after itself when the browser is gone."""
    events: asyncio.Queue[Json | None] = asyncio.Queue()
    task = visit.call.runtime.runs.begin(
        turn, visit.admission.token, lambda identity: _run(visit, asked, turn, identity, events.put_nowait)
    )
    try:
        while True:
            try:
                event = await asyncio.wait_for(events.get(), SILENCE_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None:
                return
            yield f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
    finally:
        task.cancel()


async def _run(visit: Visit, asked: _Asked, turn: RunningTurn, identity: str, emit: Callable[[Json | None], None]) -> None:
    emit({"event": "begun", "run": identity, **asked.fields()})
    try:
        async with aclosing(turn.events(asked.text, off_record=asked.off_record)) as events:
            async for event in events:
                if event["event"] != "said":
                    emit(_worded(visit, event))
                elif not asked.off_record:
                    admission = await _admitted_now(visit.request, visit.admission)
                    now = replace(visit, call=replace(visit.call, admission=admission))
                    async with turn_of(visit.request.scope):
                        emit(await run_in_threadpool(_store, now, asked, event["members"]))
    except MemoryMCPError as error:
        emit({"event": "failed", "text": visit.refused(error).text})
    finally:
        emit(None)


def _worded(visit: Visit, event: Json) -> Json:
    """An event with the words of a failure in the language of the page."""
    if event["event"] != "failed":
        return event
    return {"event": "failed", "text": visit.refused(ChatFailed(event["what"], event["why"], event["do"])).text}


def _store(visit: Visit, asked: _Asked, members: Mapping[str, Json]) -> Json:
    """Store the turn for everybody who was there."""
    group = list(asked.members) if len(asked.members) > 1 else []
    title = ""
    for name, heard in members.items():
        fields: dict[str, Any] = {"id": asked.conversation, "number": asked.number, "model": asked.model, "members": group, **heard}
        stored = visit.of_persona(name).perform("add_turn", replace=asked.is_replacing, **fields)
        title = stored["conversation"]["title"]
    return {"event": "saved", "title": title, **asked.fields()}


def _may_talk(visit: Visit) -> bool:
    return visit.may(*_needed(visit))


def _needed(visit: Visit) -> tuple[TokenScope, ...]:
    """The scopes that the chat needs. It costs money through the server's keys, so the configuration can require more than reading and
    writing.
    """
    host = visit.call.runtime.conversing
    return ("read", "write", host.scope() if host else "admin")


def _missing(visit: Visit) -> str | None:
    """The words of what is not installed, if that is so."""
    return None if visit.call.runtime.conversing else visit.refused(NotInstalled("no conversations can be held here", "chat")).text


def _transports(request: Request, admission: Admission, personas: Sequence[str]) -> Transports:
    """Ways for MCP clients to this server as each of these personas, with the rights of a request's token, through the same checks as
    from outside.
    """
    from fastmcp.client.transports import StreamableHttpTransport  # noqa: PLC0415  a quarter of a second that a server without conversations saves

    edge: ASGIApp = request.app.state.edge
    client = request.client or ("127.0.0.1", 0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await edge({**scope, ON_BEHALF: admission.token}, receive, send)

    def http(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None, **_options: Any
    ) -> httpx2.AsyncClient:
        inside = httpx2.ASGITransport(app=app, client=(client[0], client[1]))
        return httpx2.AsyncClient(transport=inside, headers=headers, auth=auth, timeout=timeout or ANSWER_SECONDS)

    def transport(persona: str) -> StreamableHttpTransport:
        return StreamableHttpTransport("http://127.0.0.1/mcp", headers={HEADER: quote(persona)}, httpx_client_factory=http)

    return {persona: lambda persona=persona: transport(persona) for persona in personas}  # type: ignore[misc]  # mypy knows no default


async def _admitted_now(request: Request, admission: Admission) -> Admission:
    """The current rights of the token of a request that takes minutes.

    Raises:
        TokenRefused: it is not good any more.
    """
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.admit({**request.scope, ON_BEHALF: admission.token})
