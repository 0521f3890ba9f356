"""Conversations with a chat model of any vendor, which know and use the memory of a persona: `Conversation` and the events of its turns."""

from memory_mcp.client.connection import Connection
from memory_mcp.features.chat.conversation import Conversation, Rooms
from memory_mcp.features.chat.events import (
    ApprovalNeeded,
    CutOff,
    Event,
    Failed,
    Heard,
    Recalled,
    Retrying,
    Stored,
    TextPiece,
    ToolCallStarted,
    ToolResult,
    TurnEnded,
    Usage,
    event_json,
)
from memory_mcp.features.chat.group import GroupConversation
from memory_mcp.features.chat.messages import Message, ToolCall, messages_from_json, messages_json
from memory_mcp.features.chat.tools import ToolServer, memory_server
from memory_mcp.features.chat.turn import Limits, Price
from memory_mcp.llm.models import Models

__all__ = [
    "ApprovalNeeded",
    "Connection",
    "Conversation",
    "CutOff",
    "Event",
    "Failed",
    "GroupConversation",
    "Heard",
    "Limits",
    "Message",
    "Models",
    "Price",
    "Recalled",
    "Retrying",
    "Rooms",
    "Stored",
    "TextPiece",
    "ToolCall",
    "ToolCallStarted",
    "ToolResult",
    "ToolServer",
    "TurnEnded",
    "Usage",
    "event_json",
    "memory_server",
    "messages_from_json",
    "messages_json",
]
