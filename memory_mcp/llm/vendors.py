"""Servers of chat models that config.json names (`llm.vendors`), and where keys are: in the environment, or in the system's keyring."""

from memory_mcp.config.master_key import KEYRING_SERVICE, keyring
from memory_mcp.config.reading import variable
from memory_mcp.config.settings import ModelVendor
from memory_mcp.errors import ChatFailed
from memory_mcp.extras import is_installed


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
