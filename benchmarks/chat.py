"""What a conversation adds to the time until the first piece of an answer: the same calls with and without it, in turn.

    .venv/bin/python -m benchmarks.chat [--turns 40]

The model is one whose answer is there at once, so that only our own work is measured: messages of N earlier turns, the tools of the real
server, the events. One JSON line per length of the conversation, in milliseconds.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from benchmarks.server import running
from memory_mcp.chat import Connection, Conversation, Message, TextPiece

PIECE = "はい。"


class Immediate(BaseChatModel):
    """Answers at once."""

    @property
    def _llm_type(self) -> str:
        return "immediate"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(PIECE, chunk_position="last"))


async def alone(model: BaseChatModel) -> float:
    """Until the first piece of the model alone."""
    began = time.perf_counter()
    async for _ in model.astream([HumanMessage("x")]):
        break
    return time.perf_counter() - began


async def talked(conversation: Conversation, earlier: list[Message]) -> float:
    """Until the first piece of a conversation that has these messages."""
    conversation.messages = list(earlier)
    first = 0.0
    began = time.perf_counter()
    async for event in conversation.say("x"):
        if isinstance(event, TextPiece):
            first = first or time.perf_counter() - began
    return first


async def measure(url: str, turns: int) -> None:
    """Prints a line per length."""
    model = Immediate()
    async with Conversation(model, Connection(url, persona="benchmark")) as conversation:
        for length in (0, 20, 200):
            earlier = [Message(role, "こんにちは、元気ですか。" * 5) for _ in range(length) for role in ("user", "assistant")]
            pairs = [(await alone(model), await talked(conversation, earlier)) for _ in range(turns + 3)][3:]
            added = sorted((talking - plain) * 1000 for plain, talking in pairs)
            tools = len(conversation.toolbox.tools)
            found = {"median_ms": statistics.median(added), "p95_ms": added[int(len(added) * 0.95)]}
            print(
                json.dumps(
                    {"benchmark": "chat", "earlier_turns": length, "tools": tools, "added": {k: round(v, 2) for k, v in found.items()}}
                )
            )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    with running() as server:
        asyncio.run(measure(server.url, turns))


if __name__ == "__main__":
    main()
