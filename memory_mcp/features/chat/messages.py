"""The messages of a conversation in a form of our own, the same for all vendors, and their way to JSON and to LangChain's messages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from memory_mcp.errors import InvalidInput
from memory_mcp.llm.endings import Cut

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

Role = Literal["user", "assistant", "tool"]
# What all vendors allow in the id of a call.
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_ID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool as the model calls it. `name` is what the model knows it by, which has a prefix if two servers have a tool of that name."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `speaker` is its author, where several take part; `model` which model answered; `call_id` and `is_error` are a tool's.

    `off_record` messages are shown to the model only while the user stays off the record, and are in no JSON. `memory` is the key of the
    transcript that holds the turn that ends here. `cut`: why an answer is not whole.
    """

    role: Role
    text: str
    speaker: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    model: str = ""
    off_record: bool = False
    memory: str | None = None
    cut: Cut = ""


def messages_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages that may be stored, as JSON without their empty fields."""
    trees = (asdict(message) for message in messages if not message.off_record)
    return [
        {"role": tree.pop("role"), "text": tree.pop("text"), **{name: value for name, value in tree.items() if value}} for tree in trees
    ]


def messages_from_json(tree: Iterable[Mapping[str, Any]] | Mapping[str, Any]) -> list[Message]:
    """The messages of such JSON, or of the JSON of a conversation.

    Raises:
        InvalidInput: it has another form.
    """
    trees: Any = tree.get("messages", ()) if isinstance(tree, Mapping) else tree
    try:
        return [Message(**{**tree, "calls": tuple(ToolCall(**call) for call in tree.get("calls", ()))}) for tree in trees]
    except (TypeError, AttributeError) as error:
        raise InvalidInput("the conversation can't be read", "{}", "", error) from error


def for_model(system: str, messages: Iterable[Message], *, off_record: bool = False) -> "list[BaseMessage]":
    """The messages as LangChain's, which each vendor's class translates. What was off the record is left out on the record."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: PLC0415  it takes half a second

    converted: list[BaseMessage] = [SystemMessage(system)] if system else []
    for message in messages:
        if message.off_record and not off_record:
            continue
        if message.role == "user":
            text = f"{message.speaker}: {message.text}" if message.speaker else message.text
            # Some vendors want the user and the model to take turns; in a group several answer between two messages.
            earlier = converted.pop().text if converted and isinstance(converted[-1], HumanMessage) else ""
            converted.append(HumanMessage(f"{earlier}\n\n{text}" if earlier else text))
        elif message.role == "assistant":
            calls = [{"name": call.name, "args": dict(call.arguments), "id": call.id, "type": "tool_call"} for call in message.calls]
            converted.append(AIMessage(message.text, tool_calls=calls))
        else:
            converted.append(ToolMessage(message.text, tool_call_id=message.call_id, status="error" if message.is_error else "success"))
    return converted


def from_model(answer: "AIMessage", model: str, *, off_record: bool, cut: Cut = "") -> Message:
    """A model's answer, with ids of calls that every vendor accepts."""
    calls = tuple(ToolCall(portable_id(call["id"] or ""), call["name"], call["args"]) for call in answer.tool_calls)
    return Message("assistant", str(answer.text), calls=calls, model=model, off_record=off_record, cut=cut)


def portable_id(identity: str) -> str:
    """The id of a call as all vendors allow it."""
    return _NOT_IN_ID.sub("_", identity)[:_ID_LENGTH]
