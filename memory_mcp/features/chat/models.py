"""The vendors of chat models: the LangChain class of each, and where its key and its address come from."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from memory_mcp.config.proxies import used_for
from memory_mcp.config.reading import variable
from memory_mcp.errors import ChatFailed, NotInstalled, ProxyUnusable
from memory_mcp.extras import is_installed, require
from memory_mcp.llm.vendors import in_keyring
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

# The conversation asks again by itself, in the same way with all vendors.
ONE_TRY: dict[str, Any] = {"max_retries": 0}
ANSWER_SECONDS = 120.0
OLLAMA = "http://127.0.0.1:11434"
_CLIENTS = ("_client", "_async_client")


@dataclass(frozen=True, slots=True)
class Vendor:
    """`keys` and `address` are the usual environment variables, `usual_address` is where it answers without one of the second; the system's keyring has keys under the same names. Without `keys` it needs no key. `base` is the name
    of the argument for an address, and `arguments` are further arguments for the class."""

    module: str
    class_name: str
    keys: tuple[str, ...]
    address: tuple[str, ...]
    usual_address: str
    base: str = "base_url"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    of_address: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str | None:
        """The key of the environment, or else of the system's keyring."""
        return next(filter(None, chain(map(variable, self.keys), map(in_keyring, self.keys))), None)

    def base_url(self) -> str | None:
        """The address of the environment; None for the vendor's own."""
        return next(filter(None, map(variable, self.address)), None)


VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor(
        "langchain_openai",
        "ChatOpenAI",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        "https://api.openai.com",
        arguments={**ONE_TRY, "stream_usage": True, "timeout": ANSWER_SECONDS},
        # Other servers that call themselves compatible know this wire, and rarely the newer one.
        of_address={"use_responses_api": False},
    ),
    "anthropic": Vendor(
        "langchain_anthropic",
        "ChatAnthropic",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
        "https://api.anthropic.com",
        arguments={**ONE_TRY, "timeout": ANSWER_SECONDS},
    ),
    "google": Vendor(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL",),
        "https://generativelanguage.googleapis.com",
        arguments={"max_retries": 1, "timeout": ANSWER_SECONDS},  # the first try counts
    ),
    "ollama": Vendor(
        "langchain_ollama", "ChatOllama", (), ("OLLAMA_HOST",), OLLAMA, arguments={"client_kwargs": {"timeout": ANSWER_SECONDS}}
    ),
}
_OTHER_NAMES = {"google_genai": "google", "gemini": "google", "claude": "anthropic", "gpt": "openai"}


def parsed(name: str) -> tuple[str, str]:
    """The vendor and the model of a name such as `anthropic:claude-x`.

    Raises:
        ChatFailed: it names no vendor that there is, or no model.
    """
    vendor, _, model = name.partition(":")
    vendor = _OTHER_NAMES.get(vendor, vendor)
    if vendor not in VENDORS or not model.strip():
        raise ChatFailed(
            "{} is not the name of a model", "", "Write it as VENDOR:MODEL, where VENDOR is {}", repr(name), ", ".join(VENDORS)
        )
    return vendor, model.strip()


def chat_model(name: str, *, key: str | None = None, base_url: str | None = None) -> "BaseChatModel":
    """The model of a name such as `anthropic:claude-x`, with a key and an address, or those of the environment (or the keyring).

    Imports only this vendor's package.

    Raises:
        ChatFailed: there is no such vendor, its key is missing, or its class refuses the arguments.
        NotInstalled: the vendor's package is not installed.
    """
    vendor_name, model = parsed(name)
    vendor = VENDORS[vendor_name]
    require(f"chat-{vendor_name}", sentence("{} can't be asked", name))
    key, base_url = key or vendor.key(), base_url or vendor.base_url()
    if vendor.keys and not key and not base_url:
        raise _key_missing(name, vendor_name)
    return _built(name, vendor_name, model, key, base_url)


@lru_cache(maxsize=64)
def _built(name: str, vendor_name: str, model: str, key: str | None, base_url: str | None) -> "BaseChatModel":
    """Kept, so that conversations share the open connections of their models, which the classes never close."""
    vendor = VENDORS[vendor_name]
    # A server of one's own may need no key, but the classes insist on one.
    key_argument = {"api_key": key or "none"} if vendor.keys else {}
    address = {vendor.base: base_url, **vendor.of_address} if base_url else {}
    try:
        with used_for(base_url or vendor.usual_address):  # the import, too: one of the packages makes a client in it
            chat_class: Callable[..., BaseChatModel] = getattr(importlib.import_module(vendor.module), vendor.class_name)
            built = chat_class(model=model, **vendor.arguments, **key_argument, **address)
            for client in _CLIENTS:  # some classes make them when they are first used
                getattr(built, client, None)
            return built
    except ProxyUnusable as error:
        raise ChatFailed("{} can't be asked: {}", error.why, error.do, name, error.what) from error
    except Exception as error:  # each class raises its own errors, and may quote a key
        raise ChatFailed("{} can't be asked", "its class refuses the arguments: {}", "", name, type(error).__name__) from error


def obstacle(vendor: str) -> str:
    """Why a vendor can't be asked now; empty if it can. Imports nothing."""
    if not is_installed(f"chat-{vendor}"):
        return str(NotInstalled(sentence("{} can't be asked", vendor), f"chat-{vendor}"))
    known = VENDORS[vendor]
    return "" if known.key() or known.base_url() or not known.keys else str(_key_missing(vendor, vendor))


def _key_missing(name: str, vendor: str) -> ChatFailed:
    return ChatFailed("{} can't be asked", "{} is not set", "Set it to your key of {}", name, VENDORS[vendor].keys[0], vendor)
