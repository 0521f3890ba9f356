"""One turn: the model answers, its tools run, it answers again, until it calls no more. All of it becomes part of the conversation, or nothing."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from memory_mcp.errors import ChatFailed
from memory_mcp.features.chat.events import ApprovalNeeded, CutOff, Event, Retrying, TextPiece, ToolCallStarted, ToolResult, Usage
from memory_mcp.features.chat.failures import failure_of
from memory_mcp.features.chat.messages import Message, ToolCall, for_model, from_model, portable_id
from memory_mcp.features.chat.tools import Answer, Tool, Toolbox, arguments_of, finished, reaches_others, recalled, specifications, stored
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.llm.endings import Cut, cut_of

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk

RETRIES = 2
RETRY_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
EVERYTHING = "*"
# The fields in which the libraries of the vendors say why an answer ended.
_ENDED = ("incomplete_details", "finish_reason", "stop_reason", "done_reason", "status")
UNREADABLE = "arguments that are not JSON"


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a turn: the calls of the model, the seconds except those that a question waits for its answer, and about how many tokens of
    the latest earlier turns the model is shown. Of a conversation: its tokens and their cost. None: no limit."""

    rounds: int = 16
    seconds: float = 300.0
    shown: int = 60_000
    tokens: int | None = None
    cost: float | None = None


class Approvals:
    """Which tools may change something. Each is asked for once, one after the other; a call that reaches others' memories each time."""

    def __init__(self, allowed: Sequence[str], approval_seconds: float) -> None:
        self.allowed = set(allowed)
        self._approval_seconds = approval_seconds
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._one_question = asyncio.Lock()

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answers a question; a second answer counts no more."""
        waiting = self._waiting.get(call_id)
        if waiting and not waiting.done():
            waiting.set_result(allowed)

    def allows(self, tool: str) -> bool:
        """Whether a tool runs without a question."""
        return bool({tool, EVERYTHING} & self.allowed)

    async def may_run(self, tool: Tool, call: ToolCall, emit: Callable[[Event], None], clock: asyncio.Timeout) -> bool:
        """Whether the call is allowed, which the user may be asked. Meanwhile the clock of the turn is stopped."""
        async with self._one_question:
            known = self.allows(tool.name) and (EVERYTHING in self.allowed or not reaches_others(tool, call))
            if tool.reads_only or known:
                return True
            loop = asyncio.get_running_loop()
            self._waiting[call.id] = loop.create_future()
            left = (clock.when() or loop.time()) - loop.time()
            clock.reschedule(None)
            emit(ApprovalNeeded(call, tool.server))
            try:
                allowed = await asyncio.wait_for(self._waiting[call.id], self._approval_seconds)
            except TimeoutError:
                allowed = False
            finally:
                del self._waiting[call.id]
            clock.reschedule(loop.time() + left)
            if allowed:
                self.allowed.add(tool.name)
            return allowed


class Turn:
    """`run` returns the messages of the turn. What it has used so far is in `usage`, also if it fails; `reason` is why the last answer ended."""

    def __init__(
        self,
        model: "BaseChatModel",
        model_name: str,
        vendor: str,
        tells_its_end: bool,
        toolbox: Toolbox,
        approvals: Approvals,
        emit: Callable[[Event], None],
        *,
        system: str,
        off_record: bool,
        limits: Limits,
        price: Price | None,
        used_before: Usage,
    ) -> None:
        self._model, self._model_name, self._toolbox, self._approvals, self._emit = model, model_name, toolbox, approvals, emit
        self._system, self._off_record, self._limits, self._price, self._before = system, off_record, limits, price, used_before
        self._tools = {name: tool for name, tool in toolbox.tools.items() if tool.reads_only or not off_record}
        self._tells_its_end, self._specified = tells_its_end, specifications(self._tools.values(), vendor)
        self.usage = Usage(0, 0, 0.0 if price else None)
        self.reason = ""

    async def run(self, earlier: Sequence[Message], asked: Message) -> list[Message]:
        """Answers a message.

        Raises:
            ChatFailed: the model failed, or a limit is reached.
        """
        try:
            async with asyncio.timeout(self._limits.seconds) as self._clock:
                return await self._answered(earlier, asked)
        except TimeoutError as error:
            raise ChatFailed("the turn was ended", "it took more than {} seconds", "Try again", f"{self._limits.seconds:g}") from error

    async def _answered(self, earlier: Sequence[Message], asked: Message) -> list[Message]:
        shown = _latest_turns(earlier, self._limits.shown)
        history = for_model(self._system, [*shown, asked], off_record=self._off_record)
        new = [asked]
        for _ in range(self._limits.rounds):
            self._check_spending()
            answer, cut = await self._asked(history)
            self._count(history, answer)
            history.append(answer)
            new.append(from_model(answer, self._model_name, off_record=self._off_record, cut=cut))
            results = await self._called(answer)
            history += [sent for sent, _ in results]
            new += [kept for _, kept in results]
            if not results:
                return new
        raise ChatFailed("the turn was ended", "the model has called tools {} times in a row", "Ask for less at once", self._limits.rounds)

    async def _asked(self, history: "list[BaseMessage]") -> "tuple[AIMessage, Cut]":
        """The model's next answer, and why it is not whole. Asks again after a failure that may pass, unless the user has seen a part of the answer."""
        for attempt in range(RETRIES + 1):
            pieces: list[AIMessageChunk] = []
            shown = False
            try:
                async with aclosing(self._with_tools().astream(history)) as stream:
                    async for piece in stream:
                        _heed_cancellation()
                        pieces.append(piece)
                        if piece.text:
                            shown = True
                            self._emit(TextPiece(str(piece.text)))
                _heed_cancellation()
                self.reason = _reason(pieces)
                answer = _whole(pieces, self._model_name, cut_of(self.reason))
            except Exception as error:  # each vendor's library has errors of its own, without a common base
                failure = failure_of(error, self._model_name)
                seconds = failure.after if failure.after is not None else RETRY_SECONDS * 2**attempt
                if shown or not failure.retry or attempt == RETRIES or seconds > LONGEST_WAIT_SECONDS:
                    raise failure.error from error
                self._emit(Retrying(failure.error.why, seconds))
                await asyncio.sleep(seconds)
            else:
                # All vendors say how a complete answer ended; a server that speaks as one of them may not.
                cut: Cut = "unknown" if self._tells_its_end and not self.reason and not answer.tool_calls else cut_of(self.reason)
                if cut:
                    self._emit(CutOff(self._model_name, cut))
                return answer, cut
        raise AssertionError

    def _with_tools(self) -> Any:
        try:
            return self._model.bind_tools(self._specified) if self._specified else self._model
        except NotImplementedError as error:  # a class of one's own
            raise ChatFailed(
                "{} failed", "its class can't call tools", "Let it have `bind_tools`, or choose another model", self._model_name
            ) from error

    def _check_spending(self) -> None:
        tokens = sum((self._before.input_tokens, self._before.output_tokens, self.usage.input_tokens, self.usage.output_tokens))
        if self._limits.tokens is not None and tokens >= self._limits.tokens:
            raise ChatFailed(
                "the turn was ended",
                "the conversation has used {} tokens of {}",
                "Begin another",
                f"{tokens:,}",
                f"{self._limits.tokens:,}",
            )
        cost = (self._before.cost or 0) + (self.usage.cost or 0)
        if self._limits.cost is not None and cost >= self._limits.cost:
            raise ChatFailed(
                "the turn was ended", "the conversation has cost {} of {}", "Begin another", f"{cost:.2f}", f"{self._limits.cost:.2f}"
            )

    def _count(self, history: "Sequence[BaseMessage]", answer: "AIMessage") -> None:
        counted = answer.usage_metadata if answer.usage_metadata and answer.usage_metadata["total_tokens"] else None
        read = counted["input_tokens"] if counted else sum(estimate_tokens(str(message.text)) for message in history)
        written = counted["output_tokens"] if counted else estimate_tokens(str(answer.text))
        read, written = self.usage.input_tokens + read, self.usage.output_tokens + written
        cost = (read * self._price.input + written * self._price.output) / 1_000_000 if self._price else None
        self.usage = Usage(read, written, cost, self.usage.estimated or not counted)
        self._emit(self.usage)

    async def _called(self, answer: "AIMessage") -> "list[tuple[BaseMessage, Message]]":
        """The results of the calls in an answer, which run at the same time, in their order: as the model gets them, and as they are kept."""
        from langchain_core.messages import ToolMessage  # noqa: PLC0415  it takes half a second

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._call(ToolCall(call["id"] or "", call["name"], call["args"]))) for call in answer.tool_calls]
        pairs: list[tuple[BaseMessage, Message]] = []
        for call, task in zip(answer.tool_calls, running, strict=True):
            result, identity = task.result(), call["id"] or ""
            status: Literal["error", "success"] = "error" if result.is_error else "success"
            kept = Message("tool", result.text, call_id=portable_id(identity), is_error=result.is_error, off_record=self._off_record)
            pairs.append((ToolMessage(result.text, tool_call_id=identity, name=call["name"], status=status), kept))
        return pairs

    async def _call(self, call: ToolCall) -> Answer:
        tool = self._tools.get(call.name)
        if UNREADABLE in call.arguments:
            answer = Answer("The arguments are not valid JSON: call the tool again with valid JSON", is_error=True)
        elif tool is None:
            answer = Answer(f"There is no tool {call.name}", is_error=True)
        else:
            self._emit(ToolCallStarted(call, tool.server, tool.reads_only))
            if await self._approvals.may_run(tool, call, self._emit, self._clock):
                return await (self._run_tool(tool, call) if tool.reads_only else finished(self._run_tool(tool, call)))
            answer = Answer("The user does not allow this call", is_error=True)
        self._emit(ToolResult(call, answer.text, answer.is_error))
        return answer

    async def _run_tool(self, tool: Tool, call: ToolCall) -> Answer:
        answer = await self._toolbox.call(tool, arguments_of(tool, call))
        self._emit(ToolResult(call, answer.text, answer.is_error, recalled(tool, answer), stored(tool, call, answer)))
        return answer


def _latest_turns(messages: Sequence[Message], tokens: int) -> Sequence[Message]:
    """The latest whole turns within the tokens. What is left out may be recalled."""
    begins = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        tokens -= estimate_tokens(f"{message.text}{message.calls or ''}")
        if tokens < 0:
            break
        if message.role == "user":
            begins = index
    return messages[begins:]


def _heed_cancellation() -> None:
    """Raises CancelledError where a vendor's library has lost one, as `asyncio.wait_for` of Python 3.11 may."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _reason(pieces: "Sequence[AIMessageChunk]") -> str:
    """Why the answer ended, in its vendor's words; empty if it does not say."""
    told = (piece.response_metadata.get(name) for name in _ENDED for piece in pieces)
    reasons = (one.get("reason") if isinstance(one, dict) else one for one in told)
    return next((str(getattr(reason, "name", reason)).casefold() for reason in reasons if reason), "")


def _whole(pieces: "list[AIMessageChunk]", model: str, cut: Cut) -> "AIMessage":
    """The answer that came in these pieces. All its calls have an id, and unreadable ones a mark."""
    from langchain_core.messages import AIMessage  # noqa: PLC0415  it takes half a second

    if not pieces:
        raise ValueError("the answer has no pieces")
    answer = pieces[0] + pieces[1:] if pieces[1:] else pieces[0]
    if not (answer.text or answer.tool_calls or answer.invalid_tool_calls):
        if cut == "limit":
            raise ChatFailed(
                "{} failed", "its limit of tokens ended the answer before a word", "Raise its limit, or choose another model", model
            )
        raise ChatFailed("{} failed", "its answer is empty", "Say it in other words, or choose another model", model)
    calls = [_call_of(chunk) for chunk in answer.tool_call_chunks]
    if all(call["id"] and UNREADABLE not in call["args"] for call in calls):
        return answer
    named = [{**call, "id": call["id"] or f"call_{uuid4().hex}"} for call in calls]
    return AIMessage(str(answer.text), tool_calls=named, usage_metadata=answer.usage_metadata)


def _call_of(chunk: "ToolCallChunk") -> dict[str, Any]:
    """The call with its arguments. LangChain completes what was cut off, and half a sentence would be remembered as if it were whole."""
    written = chunk["args"] or "{}"
    try:
        arguments = json.loads(written)
    except ValueError:
        arguments = None
    arguments = arguments if isinstance(arguments, dict) else {UNREADABLE: written}
    return {"name": chunk["name"] or "unnamed", "args": arguments, "id": chunk["id"], "type": "tool_call"}
