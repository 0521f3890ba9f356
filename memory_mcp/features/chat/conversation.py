"""A conversation of one persona: with any vendor's model, changed at any time, with the same memory."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from memory_mcp.client.connection import Connection
from memory_mcp.errors import InvalidInput, MemoryMCPError, ServerUnreachable
from memory_mcp.features.chat.events import ApprovalNeeded, CutOff, Event, Failed, Outcome, Stored, TextPiece, ToolResult, TurnEnded, Usage
from memory_mcp.features.chat.messages import Message, messages_json
from memory_mcp.features.chat.prompts import SUMMARIZE, system_message, transcript
from memory_mcp.features.chat.tools import MEMORY, Answer, Tool, Toolbox, ToolServer, finished, memory_server
from memory_mcp.features.chat.turn import Approvals, Limits, Price, Turn
from memory_mcp.language.labels import storable
from memory_mcp.llm.endings import CUT_MARK
from memory_mcp.llm.models import Models

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

# The arguments of a model that are written with a conversation: any other may be a key.
KEPT_ARGUMENTS = ("temperature", "max_tokens")


class Conversation:
    """Used with `async with`, which connects to the servers. One turn runs at a time.

        async with Conversation("anthropic:claude-x", Connection("http://127.0.0.1:8000", token, "さくら")) as conversation:
            async for event in conversation.say("ただいま"):
                ...

    `model` is a name such as `openai:gpt-x`, `package.module:Class`, or `local/qwen` of a server that `models` know, or a LangChain chat model; `arguments` (`temperature`, `max_tokens`) are for those with a name. `memory` is our server as a persona, or a ToolServer with the name
    `memory`. `servers` are further MCP servers. `instructions` say who the persona is. `messages` are those of an earlier conversation.
    `allowed` are tools that may change something without a question, except in a pool or in place of a memory; `*` means all. `keep_transcript` stores each turn as a memory
    with the `session_id`.
    """

    def __init__(
        self,
        model: "str | BaseChatModel",
        memory: Connection | ToolServer | None = None,
        *,
        servers: Iterable[ToolServer] = (),
        instructions: str = "",
        messages: Iterable[Message] = (),
        allowed: Sequence[str] = (),
        session_id: str | None = None,
        keep_transcript: bool = False,
        user: str = "user",
        limits: Limits | None = None,
        prices: Mapping[str, Price] | None = None,
        models: Models | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = memory if isinstance(memory, Connection) else None
        own = memory_server(memory) if isinstance(memory, Connection) else memory
        self._servers = [*([own] if own else []), *servers]
        self._instructions, self._system = instructions, ""
        self.messages = list(messages)
        self.session_id = session_id or f"chat-{uuid4().hex[:12]}"
        self.keep_transcript, self.user = keep_transcript, user
        self.limits, self._prices = limits or Limits(), dict(prices or {})
        self.persona = ""
        self.toolbox, self.approvals = Toolbox(), Approvals(allowed, self.limits.seconds)
        self.usage = Usage(0, 0)
        self.stored: list[Stored] = []
        self._models, self.arguments = models or Models(), dict(arguments or {})
        self._is_open = False
        self._running: asyncio.Task[None] | None = None
        self.model = model if isinstance(model, str) else ""
        self._model: BaseChatModel | Future[BaseChatModel]
        self.switch(model)

    def switch(self, model: "str | BaseChatModel") -> None:
        """Answers with another model from the next turn on; the arguments of the one before don't go along.

        Raises:
            ChatFailed: the model can't be asked.
            NotInstalled: the vendor's package is not installed.
        """
        if isinstance(model, str):
            source = self._models.source(model)
            arguments = self.arguments if model == self.model else {}
            # The class is imported meanwhile, which takes seconds at the first time.
            self._model, self.model, self.arguments = self._models.loading(model, **arguments), model, arguments
            self._vendor, self._tells_its_end = source.kind, source.tells_its_end
        else:
            self._model, self.model, self._vendor, self._tells_its_end = model, type(model).__name__, "", False

    async def switch_loaded(self, model: str) -> None:
        """The same, once the model's class is loaded.

        Raises:
            ChatFailed: the model can't be asked, or its class can't be loaded; the one before goes on.
            NotInstalled: the vendor's package is not installed.
        """
        await asyncio.wrap_future(self._models.loading(model, **(self.arguments if model == self.model else {})))
        self.switch(model)

    async def __aenter__(self) -> Self:
        """Raises: ServerUnreachable: the memory's server can't be reached. Others that can't be reached are in `toolbox.missing`."""
        try:
            await self._begin()
        except BaseException:
            await self.toolbox.close()
            raise
        self._is_open = True
        return self

    async def _begin(self) -> None:
        await self.toolbox.open(self._servers)
        why, context = self.toolbox.missing.get(MEMORY, ""), ""
        if tool := self._memory_tool("get_context"):
            answer = await self.toolbox.call(tool, {})
            why, context = (answer.text.removesuffix("."), "") if answer.is_error else ("", answer.text)
            self.persona = str((answer.tree or {}).get("persona", ""))
        if why:
            raise ServerUnreachable("the memory can't be used", "{}", "Check its address and the token", why)
        self._system = system_message(self._instructions, self.toolbox.instructions, context)

    async def __aexit__(self, *_: object) -> None:
        self._is_open = False
        await self._stopped()
        await self.toolbox.close()

    async def say(self, text: str, *, speaker: str = "", off_record: bool = False, replacing: int | None = None) -> AsyncGenerator[Event]:
        """The events of the next turn. The last is TurnEnded; only a turn that is done becomes part of the conversation.

        With `off_record` nothing of the turn is stored, and later turns that are not off the record don't show it to the model.
        With `replacing`, the index of a message of the user, the turn takes the place of that message and of all after it.

        Raises:
            InvalidInput: the conversation is not open, a turn is running, the text is empty or can't be stored, or `replacing` is no message
                of the user.
        """
        if not self._is_open:
            raise InvalidInput("the conversation is not open", "", "Use it with `async with`")
        if self._running:
            raise InvalidInput("a turn is running", "", "Wait for its end, or cancel it")
        if not storable(text, "text").strip():
            raise InvalidInput("there is nothing to say", "", "Say something")
        begins = len(self.messages) if replacing is None else self._user_message(replacing)
        events: asyncio.Queue[Event] = asyncio.Queue()
        asked = Message("user", text, speaker=speaker, off_record=off_record)
        self._running = asyncio.create_task(self._run(asked, begins, events.put_nowait))
        try:
            while True:
                event = await events.get()
                if isinstance(event, ToolResult) and event.stored:
                    self.stored.append(event.stored)
                yield event
                if isinstance(event, TurnEnded):
                    return
        finally:
            await self._stopped()

    async def regenerate(self, index: int | None = None) -> AsyncGenerator[Event]:
        """Answers the user's message at the index again, or the last one. Drops what came after it, when the new answer is there."""
        indexes = [index_of_user for index_of_user, message in enumerate(self.messages) if message.role == "user"]
        index_of_user = indexes[-1] if index is None and indexes else self._user_message(index if index is not None else -1)
        old = self.messages[index_of_user]
        async for event in self.say(old.text, speaker=old.speaker, off_record=old.off_record, replacing=index_of_user):
            yield event

    async def reply(self, text: str, **how: Any) -> str:
        """The answer as text, for callers that show nothing else; with […] where it is not whole. Tools run as far as they are `allowed`, without a question.

        Raises:
            ChatFailed: there is none.
        """
        pieces = []
        async for event in self.say(text, **how):
            match event:
                case TextPiece():
                    pieces.append(event.text)
                case CutOff():
                    pieces.append(CUT_MARK)
                case ApprovalNeeded():
                    self.answer(event.call.id, allowed=False)
                case Failed():
                    raise event.error()
        return "".join(pieces)

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answers ApprovalNeeded."""
        self.approvals.answer(call_id, allowed)

    def cancel(self) -> None:
        """Ends the running turn, which leaves nothing in the conversation. What tools have stored stays, and can be undone."""
        if self._running:
            self._running.cancel()

    async def undo(self, key: str | None = None) -> Stored | None:
        """Forgets a memory that this conversation has stored, or the last one. None: there is none.

        Raises:
            MemoryMCPError: the memory's server refuses, or does not answer.
        """
        memory = next((stored for stored in reversed(self.stored) if key in (None, stored.key)), None)
        if memory:
            await self._memory("forget", {"keys": [memory.key], "reason": "undone in the conversation"})
            self.stored.remove(memory)
        return memory

    async def judge(self, key: str, verdict: str) -> None:
        """Judges a memory that was recalled here: it `helped`, misled (`hurt`) or no longer holds (`stale`). Later answers heed the judgement.

        Raises:
            MemoryMCPError: the memory's server refuses, or does not answer.
        """
        arguments = {"keys": [key], "verdict": verdict}
        if self._connection:  # the route is there whichever toolsets are offered
            judged = await asyncio.to_thread(self._connection.post_json, "/api/judge", arguments)
        else:
            judged = dict((await self._memory("judge", arguments)).tree or {})
        outcome = judged["outcomes"][0]
        if outcome["outcome"] != "judged":
            raise MemoryMCPError("{} was not judged", "{}", "", key, outcome.get("reason", "there is no such memory"))

    async def summarize(self) -> Stored | None:
        """Lets the model summarize the conversation, and stores that. None: there is nothing on the record.

        Raises:
            MemoryMCPError: the model failed, or the memory's server did.
        """
        if not any(message.role == "assistant" and not message.off_record for message in self.messages):
            return None
        lines = transcript([message for message in self.messages if not message.off_record], self.user, self.persona)
        turn = await self._turn(lambda _: None, off_record=False, with_tools=False)
        (*_, answer) = await turn.run([], Message("user", f"{SUMMARIZE}\n---\n{lines}\n---"))
        return await self.remember(answer.text)

    async def remember(self, content: str) -> Stored:
        """Stores a text as a memory of this session.

        Raises:
            MemoryMCPError: the memory's server refuses, or does not answer.
        """
        tree = (await self._memory("remember", {"content": content, "session_id": self.session_id, "kind": "conversation"})).tree or {}
        self.stored.append(Stored(str(tree["key"]), content))
        return self.stored[-1]

    def json(self) -> dict[str, Any]:
        """The conversation without what was off the record, from which `Conversation(messages=…, session_id=…)` resumes it."""
        kept = {name: self.arguments[name] for name in KEPT_ARGUMENTS if name in self.arguments}
        facts = {"session_id": self.session_id, "persona": self.persona, "model": self.model, **({"arguments": kept} if kept else {})}
        return {**facts, "messages": messages_json(self.messages)}

    async def _run(self, asked: Message, begins: int, emit: Callable[[Event], None]) -> None:
        """The task of a turn. Its last event is always TurnEnded."""
        turn: Turn | None = None
        outcome: Outcome = "failed"
        try:
            turn = await self._turn(emit, off_record=asked.off_record)
            new = await turn.run(self.messages[:begins], asked)
            replaced, self.messages[begins:] = self.messages[begins:], new
            outcome = "done"
            await finished(self._keep(begins, replaced))
        except asyncio.CancelledError:
            outcome = "done" if outcome == "done" else "cancelled"
        except MemoryMCPError as error:
            emit(Failed(error.what, error.why, error.do))
        finally:
            if turn:
                self._count(turn.usage)
            emit(TurnEnded(outcome, begins, self.messages[-1].memory if outcome == "done" else None, turn.reason if turn else ""))

    async def _keep(self, begins: int, replaced: Sequence[Message]) -> None:
        """Stores the transcript of the turn that begins there, if wanted, as one memory; forgets those of the turns that it replaces."""
        if old := [message.memory for message in replaced if message.memory]:
            await self._memory("forget", {"keys": old, "reason": "said again otherwise"})
        new = self.messages[begins:]
        if self.keep_transcript and not new[0].off_record:
            content = transcript(new, self.user, self.persona)
            answer = await self._memory("remember", {"content": content, "session_id": self.session_id, "kind": "conversation"})
            self.messages[-1] = replace(self.messages[-1], memory=str((answer.tree or {}).get("key")))

    def _count(self, usage: Usage) -> None:
        before = self.usage
        cost = None if usage.cost is None and before.cost is None else (usage.cost or 0) + (before.cost or 0)
        self.usage = Usage(before.input_tokens + usage.input_tokens, before.output_tokens + usage.output_tokens, cost)

    async def _turn(self, emit: Callable[[Event], None], *, off_record: bool, with_tools: bool = True) -> Turn:
        model = await asyncio.wrap_future(self._model) if isinstance(self._model, Future) else self._model
        return Turn(
            model,
            self.model,
            self._vendor,
            self._tells_its_end,
            self.toolbox if with_tools else Toolbox(),
            self.approvals,
            emit,
            system=self._system if with_tools else "",
            off_record=off_record,
            limits=self.limits,
            price=self._prices.get(self.model),
            used_before=self.usage,
        )

    def _user_message(self, index: int) -> int:
        if not (0 <= index < len(self.messages) and self.messages[index].role == "user"):
            raise InvalidInput("message {} is not one of the user", "", "Name the index of one", index)
        return index

    def _memory_tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.toolbox.tools.values() if tool.is_memory and tool.own_name == name), None)

    async def _memory(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        tool = self._memory_tool(name)
        if tool is None:
            raise InvalidInput("this conversation has no {}", "it has no memory that can be written", "Check the token", name)
        answer = await self.toolbox.call(tool, arguments)
        if answer.is_error:
            raise MemoryMCPError("{}", "", "", answer.text.removesuffix("."))
        return answer

    async def _stopped(self) -> None:
        """Returns when no turn runs any more."""
        if self._running:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None


class Rooms:
    """Many conversations at once, for bots: one for each room, such as a channel, begun by the first message there.

    `begin` makes the conversation of a room. Of more than `most`, the one that was silent longest is forgotten; what it has stored as memories stays."""

    def __init__(self, begin: Callable[[str], Conversation], most: int = 100) -> None:
        self._begin, self._most = begin, most
        self._rooms: dict[str, Conversation] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def reply(self, room: str, text: str, speaker: str = "") -> str:
        """The answer to a message in a room. Of several at once, each waits for the one before.

        Raises:
            MemoryMCPError: the memory can't be reached, or the model failed.
        """
        async with self._locks.setdefault(room, asyncio.Lock()):
            conversation = self._rooms.pop(room, None)
            if conversation is None:
                await self._make_room()
                conversation = await self._begin(room).__aenter__()
            self._rooms[room] = conversation  # behind those that were silent longer
            return await conversation.reply(text, speaker=speaker)

    async def close(self) -> None:
        """Ends all conversations."""
        for room in list(self._rooms):
            await self._end(room)

    async def _make_room(self) -> None:
        silent = [room for room in self._rooms if not self._locks[room].locked()]
        for room in silent[: max(len(self._rooms) - self._most + 1, 0)]:
            await self._end(room)

    async def _end(self, room: str) -> None:
        conversation = self._rooms.pop(room)
        self._locks.pop(room)
        await conversation.__aexit__(None, None, None)
