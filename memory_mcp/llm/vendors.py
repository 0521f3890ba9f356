"""The vendors of chat models: the LangChain class of each, the servers that config.json names (`llm.vendors`), and where keys and addresses come from."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import httpx2

from memory_mcp.config.master_key import KEYRING_SERVICE, keyring
from memory_mcp.config.proxies import used_for
from memory_mcp.config.reading import variable
from memory_mcp.config.settings import ModelVendor
from memory_mcp.errors import ChatFailed, ProxyUnusable, without_passwords
from memory_mcp.extras import is_installed

# The conversation asks again by itself, in the same way with all vendors.
ONE_TRY: dict[str, Any] = {"max_retries": 0}
ANSWER_SECONDS = 120.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Vendor:
    """`keys` and `address` are the usual environment variables, `usual_address` is where it answers without one of the second; the system's keyring has keys under the same names. Without `keys` it needs no key. `base` is the name
    of the argument for an address, `arguments` are further arguments for the class, `of_address` those for another address than the vendor's own. `max_tokens` names the argument that limits an answer."""

    module: str
    class_name: str
    keys: tuple[str, ...]
    address: tuple[str, ...]
    usual_address: str
    base: str = "base_url"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    of_address: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: str = "max_tokens"

    def key(self) -> str | None:
        """The key of the environment, or else of the system's keyring."""
        return next(filter(None, chain(map(variable, self.keys), map(in_keyring, self.keys))), None)

    def base_url(self) -> str | None:
        """The address of the environment; None for the vendor's own."""
        return next(filter(None, map(variable, self.address)), None)


OPENAI, GOOGLE, OLLAMA = "openai", "google", "ollama"
VENDORS: Mapping[str, Vendor] = {
    OPENAI: Vendor(
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
    GOOGLE: Vendor(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL",),
        "https://generativelanguage.googleapis.com",
        arguments={"max_retries": 1, "timeout": ANSWER_SECONDS},  # the first try counts
    ),
    OLLAMA: Vendor(
        "langchain_ollama",
        "ChatOllama",
        (),
        ("OLLAMA_HOST",),
        "http://127.0.0.1:11434",
        arguments={"client_kwargs": {"timeout": ANSWER_SECONDS}},
        max_tokens="num_predict",
    ),
}


def key_of(name: str, vendor: ModelVendor) -> str | None:
    """The key of a configured vendor; None if it needs none.

    Raises:
        ChatFailed: config.json says where the key is, and it is not there.
    """
    if vendor.key is None:
        return None
    place, _, entry = vendor.key.partition(":")
    entry = entry or name
    if key := variable(entry) if place == "env" else in_keyring(entry):
        return key
    where = f"{entry} is not set" if place == "env" else f"the keyring has no {entry}"
    raise ChatFailed("{} can't be asked", where, "Put your key of {} there, or correct llm.vendors in config.json", name, name)


def in_keyring(name: str) -> str | None:
    """The key of this name in the system's keyring; None if there is none, or no keyring."""
    if not is_installed("keyring"):
        return None
    try:
        key: str | None = keyring().get_password(KEYRING_SERVICE, name)
    except Exception:  # noqa: BLE001  each keyring raises its own errors: one that is not there or is locked has no key
        return None
    return key


def authorized(key: str | None) -> dict[str, str]:
    """The header with a key, if there is one."""
    return {"authorization": f"Bearer {key}"} if key else {}


def listed(name: str, vendor: ModelVendor, seconds: float) -> list[dict[str, Any]]:
    """The models that a server of OpenAI's wire lists, as it describes them; each has an `id`. None where it answers otherwise.

    Raises:
        ChatFailed: its key is not there, or nobody answers there.
    """
    headers = authorized(key_of(name, vendor))
    try:
        with used_for(vendor.url):
            client = httpx2.Client(timeout=seconds)
        with client as http:
            answer = http.get(f"{vendor.url}/models", headers=headers).raise_for_status().json()["data"]
        return [model for model in answer if model["id"]]
    except ProxyUnusable as error:
        raise ChatFailed("{} can't be asked: {}", error.why, error.do, name, error.what) from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL) as error:
        place = without_passwords(vendor.url).partition("://")[2].partition("/")[0]
        raise ChatFailed("{} can't be asked", "nobody answers at {}", "", name, place) from error
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        logger.warning("the models of %s can't be listed: %s", name, type(error).__name__)
        return []
