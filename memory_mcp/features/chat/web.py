"""What the dashboard's chat room needs of conversations, as JSON: `Conversing` of the server."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

from memory_mcp.config.proxies import used_for
from memory_mcp.domain import TokenScope
from memory_mcp.errors import ProxyUnusable, without_passwords
from memory_mcp.features.chat.events import Heard, ToolResult, TurnEnded, event_json
from memory_mcp.features.chat.group import GroupConversation
from memory_mcp.features.chat.messages import messages_from_json, messages_json
from memory_mcp.features.chat.models import OLLAMA, VENDORS, obstacle
from memory_mcp.features.chat.opening import limits_of, prices_of
from memory_mcp.features.chat.settings import Chat
from memory_mcp.features.chat.tools import MEMORY, ToolServer

if TYPE_CHECKING:
    from fastmcp.client.transports import ClientTransport

Json = dict[str, Any]
PROBE_SECONDS = 0.5


class WebChat:
    """One for the process. `settings` is asked anew for each turn."""

    def __init__(self, settings: Callable[[], Chat] = Chat) -> None:
        self._settings = settings

    def model(self) -> str | None:
        """The model of conversations that name none."""
        return self._settings().model

    def scope(self) -> TokenScope:
        """The scope that a token needs to talk, beside `read` and `write`."""
        return self._settings().dashboard_scope

    def vendors(self) -> list[Json]:
        """Each vendor with its models, where they are configured or can be listed without a key, and why it can't be asked, if it can't."""
        settings = self._settings()
        configured = dict.fromkeys(filter(None, [settings.model, *settings.prices]))
        vendors = []
        for name in VENDORS:
            state = _state(name)
            own = [model for model in configured if model.startswith(f"{name}:")]
            vendors.append({"name": name, "models": list(dict.fromkeys([*own, *state["models"]])), "why": state["why"]})
        return vendors

    def turn(
        self, model: str, transports: "Mapping[str, Callable[[], ClientTransport]]", messages: Mapping[str, Sequence[Json]], **options: Any
    ) -> "WebTurn":
        """The next turn of a conversation: `transports` lead to our server as each of its personas, `messages` are what each has heard; `options` are those
        of `Conversation`, and `hear`.

        Raises:
            InvalidInput: the messages have another form.
            ChatFailed: the model can't be asked.
            NotInstalled: its vendor's package is not installed.
        """
        memories = {name: ToolServer(MEMORY, transport) for name, transport in transports.items()}
        known = {name: messages_from_json(trees) for name, trees in messages.items()}
        settings = self._settings()
        bounds: Json = {"limits": limits_of(settings), "prices": prices_of(settings)}
        return WebTurn(GroupConversation.of(model, memories, messages=known, **bounds, **options))


class WebTurn:
    """A turn that begins when its events are read. Closing them ends it."""

    def __init__(self, group: GroupConversation) -> None:
        self._group = group

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answers the question whether a tool may run."""
        self._group.answer(call_id, allowed)

    async def events(self, text: str, *, off_record: bool = False) -> AsyncGenerator[Json]:
        """The events, each with the `persona` that it is of. Where all has ended well, the last is `said`, with the new messages of each."""
        async with self._group as group:
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


def _state(vendor: str) -> Json:
    if why := obstacle(vendor):
        return {"models": [], "why": why}
    return _ollama() if vendor == "ollama" else {"models": [], "why": ""}


def _ollama() -> Json:
    """The models of the Ollama at its address, or that it does not answer."""
    address = VENDORS["ollama"].base_url() or OLLAMA
    address = (address if "//" in address else f"http://{address}").rstrip("/")
    try:
        with used_for(address), urlopen(f"{address}/api/tags", timeout=PROBE_SECONDS) as answer:  # noqa: S310  an address of the owner's environment
            return {"models": [f"ollama:{model['name']}" for model in json.load(answer)["models"]], "why": ""}
    except ProxyUnusable as error:
        return {"models": [], "why": str(error)}
    except (HTTPException, URLError, OSError, ValueError, KeyError, TypeError):
        shown = without_passwords(address).partition("://")[2].partition("/")[0]
        return {"models": [], "why": f"Ollama does not answer at {shown}."}
