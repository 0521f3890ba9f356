"""Several personas in one room, each with its own memory: one hears what the others say, and knows only what it remembers itself."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any, Self

from memory_mcp.client.connection import Connection
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.features.chat.conversation import Conversation
from memory_mcp.features.chat.events import Event, Failed, Heard, TurnEnded
from memory_mcp.features.chat.messages import Message
from memory_mcp.features.chat.prompts import transcript
from memory_mcp.features.chat.tools import ToolServer, finished

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

ROOM = (
    "You are {name}. Also in the room: {others}. They answer for themselves, and what they say begins with their name. "
    "Answer as {name} alone, without a name in front."
)
MEMBERS_LIMIT = 8


class GroupConversation:
    """Used with `async with`. Of a group of one, it is that conversation.

        async with GroupConversation.of("anthropic:claude-x", {"さくら": sakura, "nilou": nilou}) as group:
            async for speaker, event in group.say("みんな、元気？"):
                ...

    `members` have a conversation each, by name, in their order of speaking. With `hear`, each stores a turn as a
    memory of its own (`Heard`).
    """

    def __init__(self, members: Mapping[str, Conversation], *, user: str = "user", hear: bool = False) -> None:
        if not 1 <= len(members) <= MEMBERS_LIMIT:
            raise InvalidInput("a group of {} can't talk", "it has 1 to {} personas", "Name others", len(members), MEMBERS_LIMIT)
        self.members = dict(members)
        self.hear, self._user = hear, user
        self._speaking: Conversation | None = None
        self._is_cancelled = False
        self._open = AsyncExitStack()

    @classmethod
    def of(
        cls,
        model: "str | BaseChatModel",
        memories: Mapping[str, Connection | ToolServer],
        *,
        hear: bool = False,
        messages: Mapping[str, list[Message]] | None = None,
        **options: Any,
    ) -> Self:
        """A group of members with the same model. `memories`: the server of each as this persona; `messages`: what each has heard before;
        `options` are those of `Conversation`."""
        user = options.get("user", "user")
        members = {
            name: Conversation(model, memory, instructions=room(name, memories), messages=(messages or {}).get(name, ()), **options)
            for name, memory in memories.items()
        }
        return cls(members, user=user, hear=hear)

    async def __aenter__(self) -> Self:
        """Raises: ServerUnreachable: the memory of a member can't be reached."""
        try:
            for member in self.members.values():
                await self._open.enter_async_context(member)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def speakers(self, text: str) -> list[str]:
        """The members that answer: those named in the text, in that order, or else all."""
        names = "|".join(re.escape(name) for name in sorted(self.members, key=len, reverse=True))
        by_folded = {name.casefold(): name for name in self.members}
        named = re.findall(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", text, re.IGNORECASE)
        return list(dict.fromkeys(by_folded[name.casefold()] for name in named)) or list(self.members)

    async def say(self, text: str, *, off_record: bool = False) -> AsyncGenerator[tuple[str, Event]]:
        """Each member that answers, and the events of its turn; each has its own TurnEnded. Unless all are done, no member has heard anything.

        Raises:
            InvalidInput: a turn is running.
        """
        if self._speaking:
            raise InvalidInput("a turn is running", "", "Wait for its end, or cancel it")
        self._is_cancelled = False
        before = {name: list(member.messages) for name, member in self.members.items()}
        outcome = ""
        try:
            async with aclosing(self._round(text, off_record=off_record)) as events:
                async for name, event in events:
                    yield name, event
            outcome = event.outcome if isinstance(event, TurnEnded) else ""
            if outcome == "done" and self.hear and not off_record:
                for name, member in self.members.items():
                    yield name, await finished(self._heard(name, member, len(before[name])))
        finally:
            self._speaking = None
            if outcome != "done":
                for name, member in self.members.items():
                    member.messages[:] = before[name]

    async def _round(self, text: str, *, off_record: bool) -> AsyncGenerator[tuple[str, Event]]:
        """The turns of the members that answer, one after the other; the last event is a TurnEnded."""
        asked = Message("user", text, speaker=self._user if len(self.members) > 1 else "", off_record=off_record)
        unheard = {name: [asked] for name in self.members}
        for name in self.speakers(text):
            self._speaking = member = self.members[name]
            if self._is_cancelled:
                yield name, TurnEnded("cancelled", len(member.messages))
                return
            *earlier, last = unheard[name]
            member.messages += earlier
            unheard[name] = []
            ended: Event | None = None
            async with aclosing(member.say(last.text, speaker=last.speaker, off_record=off_record)) as events:
                async for event in events:
                    ended = event
                    yield name, event
            if not (isinstance(ended, TurnEnded) and ended.outcome == "done"):
                return
            answer = Message("user", member.messages[-1].text, speaker=name, off_record=off_record)
            for other in self.members.keys() - {name}:
                unheard[other].append(answer)
        for name, member in self.members.items():
            member.messages += unheard[name]

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answers ApprovalNeeded."""
        if self._speaking:
            self._speaking.answer(call_id, allowed)

    def cancel(self) -> None:
        """Ends the running turn; then no member has heard anything of it."""
        self._is_cancelled = True
        if self._speaking:
            self._speaking.cancel()

    async def _heard(self, name: str, member: Conversation, begins: int) -> Heard | Failed:
        try:
            return Heard(await member.remember(transcript(member.messages[begins:], self._user, name)))
        except MemoryMCPError as error:
            return Failed(error.what, error.why, error.do)


def room(name: str, names: Mapping[str, object]) -> str:
    """The instructions of a member about the room; empty where it is alone."""
    others = ", ".join(other for other in names if other != name)
    return ROOM.format(name=name, others=others) if others else ""
