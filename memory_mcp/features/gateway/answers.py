"""Reading the answers of a vendor as they pass: what was said, how it ended, and how many tokens it took."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_mcp.features.gateway.transcript import text_of
from memory_mcp.llm.endings import CALLS, WITHHELD
from memory_mcp.remember.validation import CONTENT_LIMIT

EVENTS = "text/event-stream"
# Above it a count of tokens is none.
COUNT_LIMIT = 2**53
# The first line of a stream that says something.
_FIRST_LINE = re.compile(rb"^(?!event:)[^\r\n]+[\r\n]", re.MULTILINE)


@dataclass(slots=True)
class Answer:
    """What is known of an answer so far: of its first choice, for a client that asks for several. `has_calls`: it calls tools; `calls`: those,
    if they are wanted; `tokens`: the input's and the output's.
    """

    are_calls_wanted: bool = False
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    ended: str = ""
    has_failed: bool = False
    has_calls: bool = False
    tokens: tuple[int, int] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether something was said to the end."""
        is_told = self.ended and self.ended.casefold() not in WITHHELD and not self.has_failed
        return bool(is_told and self.text.strip()) and not self.is_call

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self.pieces)

    @property
    def is_call(self) -> bool:
        """Whether the model waits for what its tools answer. Some vendors end that as they end what is said."""
        return (self.has_calls or self.ended.casefold() in CALLS) and bool(self.ended) and not self.has_failed

    def read(self, text: bytes) -> None:
        """Read an answer, or an event of one."""
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            self.has_failed = True  # who reads it can't know either what was said
            return
        if not isinstance(tree, Mapping):
            return
        self.has_failed |= bool(tree.get("error"))
        self._count(tree.get("usage"))
        choices = tree.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._add(choice)

    def _add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        said = delta or choice.get("message")
        # No more is read of an answer than a memory may have.
        if isinstance(said, Mapping) and (text := text_of(said.get("content"))) and self.characters < CONTENT_LIMIT:
            self.pieces.append(text)
            self.characters += len(text)
        calls = said.get("tool_calls") if isinstance(said, Mapping) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                self.has_calls = True
                if self.are_calls_wanted:
                    self._call(call, call.get("index") if delta else None)
        self.has_calls |= isinstance(said, Mapping) and isinstance(said.get("function_call"), Mapping)  # the form before `tool_calls`
        self.has_failed |= bool(choice.get("error"))
        if isinstance(ended := choice.get("finish_reason"), str):
            self.ended = ended

    def _call(self, piece: Mapping[str, Any], index: object) -> None:
        """Add a call of a tool, or a piece of the one that a stream numbers so: name and arguments may come in many. A piece with another
        identifier begins a call, since some servers number all of them 0."""
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        number = self._numbers.get(index, len(self.calls)) if isinstance(index, int) else len(self.calls)
        if number < len(self.calls) and piece.get("id") and piece["id"] != self.calls[number]["id"] != "":
            number = len(self.calls)
        if isinstance(index, int):
            self._numbers[index] = number
        if number == len(self.calls):
            others = {name: value for name, value in piece.items() if name != "index"}
            self.calls.append({"id": "", "type": "function", **others, "function": {**function, "name": "", "arguments": ""}})
        call = self.calls[number]
        call["id"] = piece.get("id") or call["id"]
        for name in ("name", "arguments"):
            call["function"][name] += str(function.get(name) or "")

    def _count(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
            is_told = all(isinstance(count, int) and 0 <= count < COUNT_LIMIT for count in counts)
            self.tokens = counts if is_told else self.tokens  # type: ignore[assignment]  # they are numbers


class Events:
    """Reads a stream of server-sent events piece by piece. One that `holds_calls` holds the events from the first call of a tool on, until it
    is known whose tools they are: of ours alone the client sees nothing, and otherwise all as it came.
    """

    def __init__(self, *, holds_calls: bool = False) -> None:
        self.answer = Answer(holds_calls)
        self._rest = self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Read a further piece; events may be cut anywhere. Returns what the client gets now."""
        lines = (self._rest + piece).splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        shown = b""
        for line in lines:
            self._read(line)
            if self.answer.calls:
                self._held += line
            else:
                shown += line
        return shown if self.answer.are_calls_wanted else piece

    def end(self) -> bytes:
        """Read the last line, which may lack its end. Returns what the client gets then, where the calls are the client's."""
        self._read(self._rest)
        return self._held + self._rest if self.answer.are_calls_wanted else b""

    def _read(self, line: bytes) -> None:
        event = line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
        if event == b"[DONE]":
            self.answer.ended = self.answer.ended or "stop"
        elif event:
            self.answer.read(event)


def whole(body: bytes, *, are_calls_wanted: bool = False) -> Answer:
    """An answer that came at once. It is at its end though its vendor may not say why."""
    answer = Answer(are_calls_wanted)
    answer.read(body)
    answer.ended = answer.ended or "stop"
    return answer


def first_event(stream: bytes) -> bytes | None:
    """What the first event of a stream holds, empty where it is a comment; None where that isn't known yet."""
    line = _FIRST_LINE.search(stream)
    return line and line[0].partition(b"data:")[2]


def is_error(text: bytes) -> bool:
    """Whether an answer, or an event of one, is an error without anything that was said."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(tree, Mapping) and bool(tree.get("error")) and not tree.get("choices")
