"""Reading the answers of a vendor as they pass: what was said, how it ended, and how many tokens it took."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_mcp.features.gateway.transcript import text_of
from memory_mcp.llm.endings import CALLS, WITHHELD
from memory_mcp.remember.validation import CONTENT_LIMIT

EVENTS = "text/event-stream"


@dataclass(slots=True)
class Answer:
    """What is known of an answer so far: of its first choice, for a client that asks for several. `tokens`: the input's and the output's."""

    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    ended: str = ""
    has_failed: bool = False
    tokens: tuple[int, int] | None = None

    @property
    def is_given(self) -> bool:
        """Whether something was said to the end."""
        return bool(self.ended and self.text.strip()) and self.ended.casefold() not in CALLS | WITHHELD and not self.has_failed

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self.pieces)

    @property
    def is_call(self) -> bool:
        """Whether the model waits for what its tools answer."""
        return self.ended.casefold() in CALLS and not self.has_failed

    def add(self, tree: Any) -> None:
        """Read an answer, or an event of one."""
        if not isinstance(tree, Mapping):
            return
        self.has_failed |= bool(tree.get("error"))
        self._count(tree.get("usage"))
        choices = tree.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._add(choice)

    def _add(self, choice: Mapping[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message")
        # No more is read of an answer than a memory may have.
        if isinstance(said, Mapping) and (text := text_of(said.get("content"))) and self.characters < CONTENT_LIMIT:
            self.pieces.append(text)
            self.characters += len(text)
        if isinstance(ended := choice.get("finish_reason"), str):
            self.ended = ended

    def _count(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.tokens = counts if all(isinstance(count, int) for count in counts) else self.tokens  # type: ignore[assignment]  # they are


class Events:
    """Reads a stream of server-sent events piece by piece."""

    def __init__(self) -> None:
        self.answer = Answer()
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Read a further piece; events may be cut anywhere."""
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip())

    def _event(self, event: bytes) -> None:
        if event == b"[DONE]":
            self.answer.ended = self.answer.ended or "stop"
            return
        try:
            self.answer.add(json.loads(event))
        except (ValueError, RecursionError):
            self.answer.has_failed = True  # who reads it can't know either what was said


def whole(body: bytes) -> Answer:
    """An answer that came at once."""
    answer = Answer()
    try:
        answer.add(json.loads(body))
    except (ValueError, RecursionError):
        answer.has_failed = True
    return answer
