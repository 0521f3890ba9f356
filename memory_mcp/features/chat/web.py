"""What the dashboard's chat room needs of conversations, as JSON: `Conversing` of the server."""

import logging
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from memory_mcp.config.settings import ModelVendor, Settings
from memory_mcp.domain import TokenScope
from memory_mcp.errors import ChatFailed, MemoryMCPError
from memory_mcp.features.chat.events import Heard, ToolResult, TurnEnded, event_json
from memory_mcp.features.chat.group import GroupConversation
from memory_mcp.features.chat.messages import messages_from_json, messages_json
from memory_mcp.features.chat.opening import configured, models_of
from memory_mcp.features.chat.settings import Chat
from memory_mcp.features.chat.tools import MEMORY, ToolServer
from memory_mcp.llm.models import Models
from memory_mcp.llm.vendors import OLLAMA, VENDORS, listed

if TYPE_CHECKING:
    from fastmcp.client.transports import ClientTransport

Json = dict[str, Any]
PROBE_SECONDS = 0.5
LISTED_SECONDS = 60.0
SUGGESTIONS = 50

logger = logging.getLogger(__name__)


class WebChat:
    """One for the process. `settings` is asked anew for each turn."""

    def __init__(self, settings: Callable[[], Settings] = Settings) -> None:
        self._settings = settings
        self._listed: dict[tuple[str, str], tuple[float, list[str]]] = {}

    def model(self) -> str | None:
        """The model of conversations that name none."""
        return self._settings().of(Chat).model

    def scope(self) -> TokenScope:
        """The scope that a token needs to talk, beside `read` and `write`."""
        return self._settings().of(Chat).dashboard_scope

    def vendors(self) -> list[Json]:
        """Each vendor with its models, where they are configured or can be listed, and why it can't be asked, if it can't. `prefix` is what the names
        of its models begin with."""
        settings = self._settings()
        chat, models = settings.of(Chat), models_of(settings)
        named = dict.fromkeys(filter(None, [chat.model, *chat.arguments, *chat.prices]))
        # A server of the configuration may have the name of a vendor.
        names = [*((name, f"{name}:", None) for name in VENDORS), *((name, f"{name}/", server) for name, server in models.vendors.items())]
        with ThreadPoolExecutor(len(names)) as threads:
            states = list(threads.map(lambda each: self._state(models, each[0], each[2]), names))
        vendors = []
        for (name, prefix, _), (listed_models, why) in zip(names, states, strict=True):
            own = [model for model in named if model.startswith(prefix)]
            known = dict.fromkeys([*own, *(f"{prefix}{model}" for model in listed_models)])
            vendors.append({"name": name, "prefix": prefix, "models": list(known)[:SUGGESTIONS], "why": why})
        return vendors

    def prepare(self, model: str) -> None:
        """Load the class of a vendor's model in the background, once. What it lacks is told when it is asked."""
        models = models_of(self._settings())
        with suppress(MemoryMCPError):
            kind = models.source(model).kind
            if kind and VENDORS[kind].module not in sys.modules:
                models.loading(model)

    def _state(self, models: Models, name: str, server: ModelVendor | None) -> tuple[list[str], str]:
        """The models that a vendor or a server lists, kept for a minute, and why it can't be asked."""
        if why := models.obstacle(name, server):
            return [], why
        if server is None and name != OLLAMA:
            return [], ""  # they know hundreds
        asked = server or ModelVendor.model_construct(url=_ollama())  # an odd one is said to be unreachable
        kept_until, known = self._listed.get((name, asked.url), (0.0, []))
        if time.monotonic() < kept_until:
            return known, ""
        try:
            known = [model["id"] for model in listed(name, asked, PROBE_SECONDS)]
        except ChatFailed as error:
            return [], str(error)
        self._listed[name, asked.url] = time.monotonic() + LISTED_SECONDS, known
        return known, ""

    def turn(
        self, model: str, transports: "Mapping[str, Callable[[], ClientTransport]]", messages: Mapping[str, Sequence[Json]], **options: Any
    ) -> "WebTurn":
        """The next turn of a conversation: `transports` lead to our server as each of its personas, `messages` are what each has heard; `options` are those
        of `Conversation`, and `hear`.

        Raises:
            InvalidInput: the messages have another form, or the file with further servers can't be read.
            ChatFailed: the model can't be asked.
            NotInstalled: its vendor's package is not installed.
        """
        memories = {name: ToolServer(MEMORY, transport) for name, transport in transports.items()}
        known = {name: messages_from_json(trees) for name, trees in messages.items()}
        return WebTurn.of(model, memories, messages=known, **configured(self._settings()), **options)


class WebTurn(GroupConversation):
    """A turn that begins when its events are read. Closing them ends it."""

    async def events(self, text: str, *, off_record: bool = False) -> AsyncGenerator[Json]:
        """The events, each with the `persona` that it is of. Where all has ended well, the last is `said`, with the new messages of each."""
        async with self as group:
            toolbox = next(iter(group.members.values())).toolbox
            for server, why in toolbox.missing.items():  # it may quote what only the server's owner may read
                logger.warning("the MCP server %s is left out: %s", server, why)
                yield {"event": "left_out", "server": server, "why": toolbox.faults[server]}
            begins = {name: len(member.messages) for name, member in group.members.items()}
            keys: dict[str, dict[str, list[str]]] = {name: {"recalled": [], "stored": []} for name in begins}
            is_done = False
            async with aclosing(group.say(text, off_record=off_record)) as events:
                async for name, event in events:
                    if isinstance(event, TurnEnded):
                        is_done = event.outcome == "done"
                    if isinstance(event, ToolResult):
                        keys[name]["recalled"] += [memory.key for memory in event.recalled]
                    if isinstance(event, ToolResult | Heard) and event.stored:
                        keys[name]["stored"].append(event.stored.key)
                    yield {**event_json(event), "persona": name}
            if is_done:
                messages = {name: messages_json(member.messages[begins[name] :]) for name, member in group.members.items()}
                yield {"event": "said", "members": {name: {"messages": messages[name], **keys[name]} for name in begins}}


def _ollama() -> str:
    """Where Ollama speaks OpenAI's wire."""
    address = VENDORS[OLLAMA].base_url() or VENDORS[OLLAMA].usual_address
    return f"{address if '//' in address else f'http://{address}'}".rstrip("/") + "/v1"
