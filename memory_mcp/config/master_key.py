"""The master key of encryption: finds it in a file, the environment or the keyring, and makes new ones."""

import hashlib
import importlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mcp.config.reading import key_in_environment
from memory_mcp.config.settings import Encryption
from memory_mcp.errors import ConfigError
from memory_mcp.extras import require
from memory_mcp.wording import sentence

KEY_BYTES = 32
VARIABLE = "MEMORY_MCP_KEY"
KEYRING_SERVICE, KEYRING_USER = "memory-mcp", "master key"
HOW_TO_CREATE = "Create one with `memory-mcp key new FILE`"

_KEY_TEXT = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True, repr=False)
class MasterKey:
    """32 random bytes. `source` describes where they came from; `id` identifies a key without revealing it."""

    secret: bytes
    source: str

    @property
    def id(self) -> str:
        """16 hexadecimal digits."""
        return hashlib.sha256(b"memory-mcp key id\x00" + self.secret).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The content of a key file: 64 hexadecimal digits."""
        return self.secret.hex()

    def __repr__(self) -> str:
        return f"MasterKey({self.id}, from {self.source})"


def new_key(source: str) -> MasterKey:
    """A new random key."""
    return MasterKey(secrets.token_bytes(KEY_BYTES), source)


def master_key(settings: Encryption) -> MasterKey | None:
    """The configured key: from `key_file`, or else the environment, or else the keyring. None if none is configured.

    Raises:
        ConfigError: the configured key is missing or invalid, or other users can read it.
        NotInstalled: it is in the system's keyring, and `keyring` is not installed.
    """
    if settings.key_file:
        return key_in_file(Path(settings.key_file))
    if text := key_in_environment():
        return _parsed(text, f"the environment variable {VARIABLE}")
    if settings.keyring:
        if text := keyring().get_password(KEYRING_SERVICE, KEYRING_USER):
            return _parsed(text, "the keyring")
        raise ConfigError(
            "the keyring has no master key", "encryption.keyring is true", "Store one there with `memory-mcp key new --keyring`"
        )
    return None


def key_in_file(path: Path) -> MasterKey:
    """The key in a key file.

    Raises:
        ConfigError: the file is missing or holds no key, or other users can read it.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise ConfigError(
            "there is no key file {}", "", "Restore the key; without it, encrypted personas can't be opened. {}", path, HOW_TO_CREATE
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the key file {} can't be read", "{}", "{}", path, getattr(error, "strerror", None) or "it is not a text file", HOW_TO_CREATE
        ) from error
    if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(
            "other users can read the key file {}", "its mode is {}", "Run: chmod 600 {}", path, f"{stat.S_IMODE(mode):04o}", path
        )
    return _parsed(text, sentence("the file {}", path))


def earlier_key(settings: Encryption, key_id: str) -> MasterKey | None:
    """A replaced key that `rotate-key` has kept next to the key file; None if there is none with that id."""
    path = replaced_key_file(Path(settings.key_file), key_id) if settings.key_file else None
    return key_in_file(path) if path and path.exists() else None


def replaced_key_file(key_file: Path, key_id: str) -> Path:
    """The path at which a replaced key is kept."""
    return key_file.with_name(f"{key_file.name}.{key_id}")


def keyring() -> Any:
    """The module `keyring`.

    Raises:
        NotInstalled: the package is not installed.
    """
    require("keyring", "the system's keyring can't be used")
    return importlib.import_module("keyring")


def _parsed(text: str, source: str) -> MasterKey:
    if not _KEY_TEXT.fullmatch(text.strip()):
        raise ConfigError("{} holds no master key", "a key has 64 hexadecimal digits", "{}", source, HOW_TO_CREATE)
    return MasterKey(bytes.fromhex(text.strip()), source)
