"""A chat model whose answers are written down: a real LangChain model, without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, PrivateAttr

Step = str | Exception | dict[str, Any] | list[dict[str, Any]] | Callable[[], Any]


class ScriptedModel(BaseChatModel):
    """Each answer is the next step: a text, calls of tools, an exception, or something to wait for. `ended`: what it says of the end of each. `asked` are the messages of each round."""

    steps: list[Any]
    ended: dict[str, Any] = Field(default_factory=dict)
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _offered: list[list[str]] = PrivateAttr(default_factory=list)
    _tools: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._asked

    @property
    def offered(self) -> list[list[str]]:
        """The tools that were offered in each round."""
        return self._offered

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self._tools = [tool["function"]["name"] for tool in tools]
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        self._asked.append(list(messages))
        self._offered.append(self._tools)
        step = self.steps.pop(0)
        while callable(step):
            step = await step()
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            for piece in (step[: len(step) // 2], step[len(step) // 2 :]):
                yield ChatGenerationChunk(message=AIMessageChunk(piece))
            usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
            yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=usage, response_metadata=self.ended, chunk_position="last"))
            return
        for index, call in enumerate(step if isinstance(step, list) else [step]):
            piece = {"index": index, "id": f"call_{len(self._asked)}_{index}", "args": "{}", **call, "type": "tool_call_chunk"}
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[piece]))


async def forever() -> None:
    """A step that never answers."""
    await asyncio.Event().wait()
