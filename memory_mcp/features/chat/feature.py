"""Conversations with chat models: in the terminal, for bots, and in the dashboard, if that is there."""

from collections.abc import Callable

from memory_mcp.config.settings import Settings
from memory_mcp.extras import is_installed
from memory_mcp.features.chat import operations
from memory_mcp.features.chat.web import WebChat
from memory_mcp.server.feature import Feature
from memory_mcp.server.operation import operations_of

EXTRAS = ("chat-openai", "chat-anthropic", "chat-google", "chat-ollama")


def _conversing(settings: Callable[[], Settings]) -> WebChat | None:
    return WebChat(settings) if any(map(is_installed, EXTRAS)) else None


FEATURE = Feature(operations=operations_of(operations), streams={"/api/conversation/export": "export"}, conversing=_conversing)
