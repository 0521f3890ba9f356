"""What happens in a turn, as the events that `Conversation.say` yields. Each is plain data; `event_json` makes JSON of it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from memory_mcp.errors import ChatFailed
from memory_mcp.features.chat.messages import ToolCall
from memory_mcp.llm.endings import Cut

Outcome = Literal["done", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that the model was shown, and the points that each signal gives to its score, by the names of `parts` of the tool `recall`."""

    key: str
    text: str
    score: float | None = None
    when: str = ""
    why: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A memory that this conversation has stored. `Conversation.undo` forgets it."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model calls a tool."""

    call: ToolCall
    server: str
    reads_only: bool


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """The call waits for `Conversation.answer(call.id, allowed)`: the tool may change something, and was not allowed before, or reaches
    memories that others read or that are there already."""

    call: ToolCall
    server: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, as the model reads it; of the memory's tools also what was recalled or stored."""

    call: ToolCall
    text: str
    is_error: bool = False
    recalled: tuple[Recalled, ...] = ()
    stored: Stored | None = None


@dataclass(frozen=True, slots=True)
class Retrying:
    """The model failed before its first word, and is asked again after `seconds`."""

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutOff:
    """The answer so far is not whole: a limit of tokens ended it, its vendor withholds the rest, or it came to no end that the vendor tells."""

    model: str
    why: Cut = "limit"


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of the turn so far. `cost` is None unless the prices of the model are known; `estimated`: the vendor didn't say."""

    input_tokens: int
    output_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """What failed, why, and what to do."""

    what: str
    why: str = ""
    do: str = ""

    def error(self) -> ChatFailed:
        """The same as an error."""
        return ChatFailed(self.what, self.why, self.do)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last event of each turn. Only with `done` do the conversation's messages have the turn; `begins` is the index of its first.
    `memory` is the key of the turn's transcript, if it was stored; `reason` is why the last answer ended, in the words of its vendor (`stop`, `end_turn`, `length`)."""

    outcome: Outcome
    begins: int
    memory: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """A turn of a group was stored as a memory of the persona who heard it."""

    stored: Stored


Event = TextPiece | ToolCallStarted | ApprovalNeeded | ToolResult | Retrying | CutOff | Usage | Failed | TurnEnded | Heard


def event_json(event: Event) -> dict[str, Any]:
    """The event as JSON: its fields, and its class as `event` (`text_piece`, `turn_ended`)."""
    return {"event": re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower(), **asdict(event)}
