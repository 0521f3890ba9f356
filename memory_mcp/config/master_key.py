"""The master key that everything encrypted hangs on: where it may be kept, reading it, making a new one."""

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

KEY_BYTES = 32
VARIABLE = "MEMORY_MCP_KEY"
KEYRING_SERVICE, KEYRING_USER = "memory-mcp", "master key"
MAKE_ONE = "Make one with `memory-mcp key new FILE`"

_WRITTEN = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True, repr=False)
class MasterKey:
    """32 random bytes. `source` says where they came from, in words; `id` tells keys apart and gives nothing away."""

    secret: bytes
    source: str

    @property
    def id(self) -> str:
        """16 hexadecimal digits."""
        return hashlib.sha256(b"memory-mcp key id\x00" + self.secret).hexdigest()[:16]

    @property
    def text(self) -> str:
        """As it stands in a key file: 64 hexadecimal digits."""
        return self.secret.hex()

    def __repr__(self) -> str:
        return f"MasterKey({self.id}, from {self.source})"


def new_key(source: str) -> MasterKey:
    """A key that nobody has had before."""
    return MasterKey(secrets.token_bytes(KEY_BYTES), source)


def master_key(said: Encryption) -> MasterKey | None:
    """The key in force: from `key_file`, else from the environment, else from the keyring. None where nobody says where one is.

    Raises:
        ConfigError: one is said to be somewhere and isn't, is none, or others may read it.
    """
    if said.key_file:
        return key_in_file(Path(said.key_file))
    if text := key_in_environment():
        return _parsed(text, f"the environment variable {VARIABLE}")
    if said.keyring:
        if text := keyring().get_password(KEYRING_SERVICE, KEYRING_USER):
            return _parsed(text, "the keyring")
        raise ConfigError(
            "the keyring has no master key", "encryption.keyring is true", "Put one there with `memory-mcp key new --keyring`"
        )
    return None


def key_in_file(path: Path) -> MasterKey:
    """The key in a key file.

    Raises:
        ConfigError: it isn't there, is none, or others may read it.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no key file {path}", "", f"Put the key back; without it what is encrypted stays closed. {MAKE_ONE}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the key file {path} can't be read", getattr(error, "strerror", None) or "it is no text", MAKE_ONE) from error
    if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"other users may read the key file {path}", f"its mode is {stat.S_IMODE(mode):04o}", f"Do: chmod 600 {path}")
    return _parsed(text, f"the file {path}")


def earlier_key(said: Encryption, key_id: str) -> MasterKey | None:
    """A key that `rotate-key` has put aside beside the key file; None where there is none of that id."""
    aside = beside(Path(said.key_file), key_id) if said.key_file else None
    return key_in_file(aside) if aside and aside.exists() else None


def beside(key_file: Path, key_id: str) -> Path:
    """Where a key is put aside that another has replaced."""
    return key_file.with_name(f"{key_file.name}.{key_id}")


def keyring() -> Any:
    """The module `keyring`, which is an optional extra.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module("keyring")
    except ImportError as error:
        raise ConfigError(
            "there is no way to the system's keyring", "the package keyring is not installed", "pip install keyring"
        ) from error


def _parsed(text: str, source: str) -> MasterKey:
    if not _WRITTEN.fullmatch(text.strip()):
        raise ConfigError(f"{source} holds no master key", "one is 64 hexadecimal digits", MAKE_ONE)
    return MasterKey(bytes.fromhex(text.strip()), source)
