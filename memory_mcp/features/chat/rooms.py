"""Many conversations at once, for bots: one for each room, such as a channel, begun by the first message there."""

import asyncio
from collections.abc import Callable

from memory_mcp.features.chat.conversation import Conversation


class Rooms:
    """`begin` makes the conversation of a room. Of more than `most`, the one that was silent longest is forgotten; what it has stored as memories stays."""

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
