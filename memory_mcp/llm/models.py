"""Which chat model a name means: `vendor:model`, `name/model` of a server that config.json names, or a class of one's own."""

import importlib
import json
import re
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from memory_mcp.config.proxies import used_for
from memory_mcp.config.settings import ModelVendor
from memory_mcp.errors import ChatFailed, NotInstalled, ProxyUnusable
from memory_mcp.extras import require
from memory_mcp.llm.vendors import OPENAI, VENDORS, key_of
from memory_mcp.time_limit import on_thread
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

T = TypeVar("T")
MAX_TOKENS = "max_tokens"
_OTHER_NAMES = {"google_genai": "google", "gemini": "google", "claude": "anthropic", "gpt": OPENAI}
_SPLIT = re.compile("([:/])")
_CLASS = re.compile(r"(?<![\w.])[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+:[A-Za-z_]\w*+")
_CLIENTS = ("_client", "_async_client")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model is asked: `kind` is the vendor in whose way it is asked, empty for a class of one's own; `server` is one of `llm.vendors`."""

    name: str
    kind: str
    model: str
    server: tuple[str, ModelVendor] | None = None

    def key(self) -> str | None:
        """Its key; None if it needs none.

        Raises:
            ChatFailed: it needs one, and it is not there.
        """
        if self.server:
            return key_of(*self.server)
        vendor = VENDORS[self.kind]
        key = vendor.key()
        if vendor.keys and not key and not vendor.base_url():
            raise ChatFailed("{} can't be asked", "{} is not set", "Set it to your key of {}", self.name, vendor.keys[0], self.kind)
        return key

    def address(self) -> str | None:
        """Its address; None for the vendor's own."""
        return self.server[1].url if self.server else VENDORS[self.kind].base_url()

    @property
    def tells_its_end(self) -> bool:
        """Whether each whole answer says why it ended: servers that only speak as a vendor may not."""
        return bool(self.kind) and self.server is None

    def check(self) -> None:
        """Returns if it can be asked, as far as that can be known without importing anything.

        Raises:
            ChatFailed: its key is missing.
            NotInstalled: the package of its class is.
        """
        if self.kind:
            require(f"chat-{self.kind}", sentence("{} can't be asked", self.name))
            self.key()
        elif find_spec("langchain_core") is None:
            raise NotInstalled(sentence("{} can't be asked", self.name), "chat")


class Models:
    """The models that can be asked. `vendors` are servers that speak OpenAI's API, as `llm.vendors` has them; `arguments` are those of each
    model, as `chat.arguments` has them. With `only_named` a class of one's own is one that `arguments` names: others are not imported."""

    def __init__(
        self,
        vendors: Mapping[str, ModelVendor | Mapping[str, Any]] | None = None,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        only_named: bool = False,
    ) -> None:
        self.vendors = {name: ModelVendor.model_validate(vendor) for name, vendor in (vendors or {}).items()}
        self._arguments, self._only_named = dict(arguments or {}), only_named

    def source(self, name: str) -> Source:
        """Where the model of this name is asked.

        Raises:
            ChatFailed: the name names none.
        """
        place, sign, model = _SPLIT.split(name, maxsplit=1) if _SPLIT.search(name) else (name, "", "")
        if sign == "/" and place in self.vendors and model.strip():
            return Source(name, OPENAI, model.strip(), (place, self.vendors[place]))
        kind = _OTHER_NAMES.get(place, place)
        if sign == ":" and kind in VENDORS and model.strip():
            return Source(name, kind, model.strip())
        if name in self._arguments or not self._only_named:
            package = re.split("[.:]", name)[0]
            if _CLASS.fullmatch(name) and (package in sys.modules or find_spec(package)):
                return Source(name, "", model)
        raise self._unknown(name)

    def _unknown(self, name: str) -> ChatFailed:
        vendors, servers = ", ".join(VENDORS), ", ".join(self.vendors)
        if _CLASS.fullmatch(name) and ("." in name.partition(":")[0] or not servers):  # else it rather means a server
            return ChatFailed(
                "{} is not the name of a model",
                "",
                "Write it as VENDOR:MODEL, where VENDOR is {}. A class of your own has to be named in chat.arguments",
                repr(name),
                vendors,
            )
        if servers:
            return ChatFailed(
                "{} is not the name of a model",
                "",
                "Write it as VENDOR:MODEL, where VENDOR is {}, or as NAME/MODEL, where NAME is {}",
                repr(name),
                vendors,
                servers,
            )
        return ChatFailed("{} is not the name of a model", "", "Write it as VENDOR:MODEL, where VENDOR is {}", repr(name), vendors)

    def model(self, name: str, /, **arguments: Any) -> "BaseChatModel":
        """The model of this name with its arguments, and with these. Imports the package of its class, which takes seconds at the first time.

        Raises:
            ChatFailed: there is no such model, its key is missing, or its class refuses the arguments.
            NotInstalled: the package of its class is not installed.
        """
        source = self.source(name)
        source.check()
        given = {**self._arguments.get(name, {}), **arguments}
        try:
            written = json.dumps(given, sort_keys=True)
        except TypeError as error:
            if not source.kind:
                return instance(name, given, sentence("{} can't be asked", name), "chat.arguments")
            raise ChatFailed("{} can't be asked", "its arguments are not JSON", "Make the model yourself, and pass it", name) from error
        return _built(source, source.key(), source.address(), written) if source.kind else _own(name, written)

    def loading(self, name: str, /, **arguments: Any) -> "Future[BaseChatModel]":
        """The same, made on a thread of its own.

        Raises:
            ChatFailed: there is no such model, or its key is missing.
            NotInstalled: the package of its class is not installed.
        """
        self.source(name).check()
        return on_thread(partial(self.model, name, **arguments), "chat model")

    def obstacle(self, name: str, server: ModelVendor | None = None) -> str:
        """Why a vendor, or this server under its name, can't be asked now; empty if it can. Imports nothing."""
        try:
            Source(name, OPENAI if server else name, "", (name, server) if server else None).check()
        except (ChatFailed, NotInstalled) as error:
            return str(error)
        return ""


@lru_cache(maxsize=64)
def _built(source: Source, key: str | None, base_url: str | None, given: str) -> "BaseChatModel":
    """Kept, so that conversations share the open connections of their models, which the classes never close."""
    vendor = VENDORS[source.kind]
    arguments: dict[str, Any] = json.loads(given)
    if MAX_TOKENS in arguments:
        most = arguments.pop(MAX_TOKENS)
        if source.kind == OPENAI and base_url:  # OpenAI's class would call it otherwise, as only OpenAI does
            arguments["extra_body"] = {**(arguments.get("extra_body") or {}), MAX_TOKENS: most}
        else:
            arguments[vendor.max_tokens] = most
    # A server of one's own may need no key, but the classes insist on one.
    key_argument = {"api_key": key or "none"} if vendor.keys else {}
    address = {vendor.base: base_url, **vendor.of_address} if base_url else {}
    whole = {"model": source.model, **vendor.arguments, **key_argument, **address, **arguments}
    try:
        with used_for(base_url or vendor.usual_address):  # the import, too: one of the packages makes a client in it
            built: BaseChatModel = getattr(importlib.import_module(vendor.module), vendor.class_name)(**whole)
            for client in _CLIENTS:  # some classes make them when they are first used
                getattr(built, client, None)
            return built
    except ProxyUnusable as error:
        raise ChatFailed("{} can't be asked: {}", error.why, error.do, source.name, error.what) from error
    except Exception as error:  # each class raises its own errors, and may quote a key
        raise ChatFailed("{} can't be asked", "its class refuses the arguments: {}", "", source.name, type(error).__name__) from error


@lru_cache(maxsize=64)
def _own(name: str, given: str) -> "BaseChatModel":
    """Kept for the same reason."""
    return instance(name, json.loads(given), sentence("{} can't be asked", name), "chat.arguments")


def instance(path: str, arguments: Mapping[str, Any], what: str, key: str) -> "BaseChatModel":
    """An instance of the class at `package.module:Class`. `what` can't be done without it, and `key` of config.json has its arguments.

    Raises:
        ChatFailed: the class does not exist, is not a chat model, or rejects the arguments.
    """
    # LangChain's core takes half a second to import, and is needed only with a chat model.
    from langchain_core.language_models.chat_models import BaseChatModel  # noqa: PLC0415

    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise ChatFailed(what, "it has the wrong form", "Write it as package.module:Class, such as langchain_openai:ChatOpenAI")
    try:
        chat_class = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:  # a module may raise anything while it is imported
        raise ChatFailed(what, "{}", "Install its package here, or correct the name", type(error).__name__) from error
    if not (isinstance(chat_class, type) and issubclass(chat_class, BaseChatModel)):
        raise ChatFailed(what, "it is not a subclass of langchain_core.language_models.chat_models.BaseChatModel")
    try:
        return chat_class(**arguments)
    except Exception as error:  # each class raises its own errors, and may quote a key
        raise ChatFailed(what, "it rejects {}: {}", "", key, type(error).__name__) from error
