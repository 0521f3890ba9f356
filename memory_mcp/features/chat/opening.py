"""Opening conversations as the user has set them up: the model, the limits and prices, further servers, an earlier conversation."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mcp.client.connection import Connection
from memory_mcp.errors import InvalidInput
from memory_mcp.features.chat.conversation import Conversation
from memory_mcp.features.chat.messages import Message, messages_from_json
from memory_mcp.features.chat.models import chat_model
from memory_mcp.features.chat.server_files import servers_of
from memory_mcp.features.chat.settings import Chat
from memory_mcp.features.chat.turn import Limits, Price


def limits_of(settings: Chat) -> Limits:
    """The limits of the configuration."""
    return Limits(tokens=settings.max_tokens, cost=settings.max_cost)


def prices_of(settings: Chat) -> dict[str, Price]:
    """The prices of the configuration, by model."""
    return {name: Price(price.get("input", 0.0), price.get("output", 0.0)) for name, price in settings.prices.items()}


@dataclass(frozen=True, slots=True)
class Opening:
    """What all conversations of one command have in common. `connect` makes a connection as a persona; None: as the given one."""

    connect: Callable[[str | None], Connection]
    settings: Chat
    allowed: tuple[str, ...] = ()
    keep_transcript: bool = False
    instructions: Path | None = None
    servers: Path | None = None
    resume: Path | None = None

    def conversation(self, model: str | None, persona: str | None = None) -> Conversation:
        """A conversation, the first of which resumes the earlier one.

        Raises:
            InvalidInput: no model is named, or a file can't be read.
            ChatFailed: the model can't be asked.
            NotInstalled: the vendor's package is not installed.
        """
        earlier = _tree(self.resume) if self.resume and not persona else {}
        name = model or earlier.get("model") or self.settings.model
        if not name:
            raise InvalidInput("no model is named", "", "Name one with --model, such as anthropic:NAME, or set chat.model in config.json")
        chat_model(name)
        servers = servers_of(self.servers) if self.servers else ()
        instructions = _text(self.instructions) if self.instructions else ""
        messages: list[Message] = messages_from_json(earlier.get("messages", ()))
        return Conversation(
            name,
            self.connect(persona or earlier.get("persona")),  # last of what may fail: it may start a server
            servers=servers,
            instructions=instructions,
            messages=messages,
            allowed=self.allowed,
            session_id=earlier.get("session_id"),
            keep_transcript=self.keep_transcript,
            limits=limits_of(self.settings),
            prices=prices_of(self.settings),
        )


def _tree(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_text(path)))
    except (ValueError, TypeError) as error:
        raise InvalidInput("{} is no conversation", "{}", "Name a file that /save has written", path, error) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("{} can't be read", "{}", "Correct the name", path, error) from error
