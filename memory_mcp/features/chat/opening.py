"""Opening conversations as the user has set them up: the model, the limits and prices, further servers, an earlier conversation."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_mcp.cli.japanese import tell
from memory_mcp.client.connection import Connection
from memory_mcp.config.settings import Settings
from memory_mcp.errors import InvalidInput
from memory_mcp.features.chat.conversation import KEPT_ARGUMENTS, Conversation
from memory_mcp.features.chat.messages import Message, messages_from_json
from memory_mcp.features.chat.server_files import servers_of
from memory_mcp.features.chat.settings import Chat
from memory_mcp.features.chat.tools import ToolServer
from memory_mcp.features.chat.turn import Limits, Price
from memory_mcp.llm.models import Models


def configured(settings: Settings, *further: Path) -> dict[str, Any]:
    """What the configuration says of all conversations, as options of one. `further`: files with servers beside that of the configuration.

    Raises:
        InvalidInput: a file with servers can't be read.
    """
    chat = settings.of(Chat)
    files = [*([Path(chat.mcp).expanduser()] if chat.mcp else []), *further]
    servers: list[ToolServer] = [server for file in files for server in servers_of(file)]
    prices = {name: Price(price.get("input", 0.0), price.get("output", 0.0)) for name, price in chat.prices.items()}
    limits = Limits(tokens=chat.max_tokens, cost=chat.max_cost)
    return {"models": models_of(settings), "servers": servers, "limits": limits, "prices": prices}


def models_of(settings: Settings) -> Models:
    """The models that conversations may ask by name."""
    return Models(settings.llm.vendors, settings.of(Chat).arguments, only_named=True)


@dataclass(frozen=True, slots=True)
class Opening:
    """What all conversations of one command have in common. `connect` makes a connection as a persona; None: as the given one."""

    connect: Callable[[str | None], Connection]
    settings: Settings
    allowed: tuple[str, ...] = ()
    keep_transcript: bool = False
    instructions: Path | None = None
    servers: Path | None = None
    resume: Path | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def conversation(self, model: str | None, persona: str | None = None) -> Conversation:
        """A conversation, the first of which resumes the earlier one.

        Raises:
            InvalidInput: no model is named, or a file can't be read.
            ChatFailed: the model can't be asked.
            NotInstalled: the vendor's package is not installed.
        """
        earlier = _tree(self.resume) if self.resume and not persona else {}
        kept = _kept_arguments(self.resume, earlier) if self.resume else {}
        name = model or earlier.get("model") or self.settings.of(Chat).model
        if not name:
            raise InvalidInput("no model is named", "", "Name one with --model, such as anthropic:NAME, or set chat.model in config.json")
        models_of(self.settings).source(name).check()
        options = configured(self.settings, *([self.servers] if self.servers else []))
        instructions = _text(self.instructions) if self.instructions else ""
        messages: list[Message] = messages_from_json(earlier)
        return Conversation(
            name,
            self.connect(persona or earlier.get("persona")),  # last of what may fail: it may start a server
            instructions=instructions,
            messages=messages,
            allowed=self.allowed,
            session_id=earlier.get("session_id"),
            keep_transcript=self.keep_transcript,
            arguments={**kept, **self.arguments},
            **options,
        )


def _tree(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_text(path)))
    except (ValueError, TypeError) as error:
        raise InvalidInput("{} is no conversation", "{}", "Name a file that /save has written", path, error) from error


def _kept_arguments(path: Path, earlier: Mapping[str, Any]) -> dict[str, float]:
    """The arguments of the model in a file. A file may come from somebody else, and others say where the conversation and the key are sent."""
    given = earlier.get("arguments", {})
    if not isinstance(given, dict):
        raise InvalidInput("{} is no conversation", "{}", "Name a file that /save has written", path, "arguments is no object")
    kept = {name: value for name, value in given.items() if name in KEPT_ARGUMENTS and type(value) in (int, float)}
    for name in given.keys() - kept.keys():
        tell("memory-mcp: {} of {} is left out: give it with --set", name, path, err=True)
    return kept


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("{} can't be read", "{}", "Correct the name", path, error) from error
