"""The key of each encrypted persona: 32 random bytes, stored in its directory as `key.json`, wrapped by the master key.

During a rotation of the master key, `key.json` contains the key wrapped by both master keys.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from memory_mcp.config.master_key import HOW_TO_CREATE, KEY_BYTES, MasterKey
from memory_mcp.errors import KeyRefused, StoreDamaged
from memory_mcp.store.files.durable_files import shred, write_atomically
from memory_mcp.store.files.sealed import derived

KEY_NAME = "key.json"
FORMAT = 1

_GIVE = "Give it by encryption.key_file in config.json, MEMORY_MCP_KEY, or the keyring"


@dataclass(frozen=True, slots=True, repr=False)
class PersonaKey:
    """The key of one persona, from which a key for each kind of file is derived."""

    secret: bytes

    @property
    def database(self) -> bytes:
        """The key of the SQLite file."""
        return derived(self.secret, "database")

    @property
    def files(self) -> bytes:
        """The key of the sealed files."""
        return derived(self.secret, "files")


@dataclass(frozen=True, slots=True)
class Keys:
    """The master key, None if none is configured, and whether new personas are encrypted (`for_new`)."""

    master: MasterKey | None = None
    for_new: bool = False

    def of(self, directory: Path) -> PersonaKey | None:
        """The key of a persona; None for a plain one.

        Raises:
            KeyRefused: it is wrapped by a master key that isn't configured.
            StoreDamaged: the key file can't be read.
        """
        wraps = _wraps(directory)
        return None if wraps is None else _unwrap(directory, wraps, self.master)

    def make(self, directory: Path) -> PersonaKey:
        """Create the key of a new persona and write it to disk, before any other file of the persona.

        Raises:
            KeyRefused: there is no master key.
        """
        if self.master is None:
            raise KeyRefused("a new persona is to be encrypted", "there is no master key", "{}. {}", _GIVE, HOW_TO_CREATE)
        key = PersonaKey(secrets.token_bytes(KEY_BYTES))
        wrap(directory, key, [self.master])
        return key


def wrap(directory: Path, key: PersonaKey, masters: Sequence[MasterKey]) -> None:
    """Write a persona's key, wrapped by each of these master keys."""
    wraps = {master.id: aes_key_wrap(derived(master.secret, "wrap"), key.secret).hex() for master in masters}
    write_atomically(directory / KEY_NAME, json.dumps({"format": FORMAT, "wrapped_by": wraps}, indent=2) + "\n")


def is_encrypted(directory: Path) -> bool:
    """Whether a persona's files are encrypted."""
    return (directory / KEY_NAME).exists()


def masters_of(directory: Path) -> list[str]:
    """The ids of the master keys that open an encrypted persona.

    Raises:
        StoreDamaged: the key file can't be read.
    """
    return list(_wraps(directory) or {})


def destroy(directory: Path) -> None:
    """Destroy a persona's key: overwrite, then remove it. Everything it encrypted is lost for good, including copies of the files."""
    if is_encrypted(directory):
        shred(directory / KEY_NAME)


def _wraps(directory: Path) -> dict[str, bytes] | None:
    try:
        stored = json.loads((directory / KEY_NAME).read_text(encoding="utf-8"))
        return {str(master): bytes.fromhex(wrapped) for master, wrapped in stored["wrapped_by"].items() if stored["format"] == FORMAT}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreDamaged(
            "{} in {} can't be used",
            "{}",
            "Restore it from a backup",
            KEY_NAME,
            directory.name,
            getattr(error, "strerror", None) or str(error),
        ) from error


def _unwrap(directory: Path, wraps: dict[str, bytes], master: MasterKey | None) -> PersonaKey:
    required = " or ".join(wraps)
    if master is None:
        raise KeyRefused("{} is encrypted", "the master key {} is not there", "{}", directory.name, required, _GIVE)
    if master.id not in wraps:
        raise KeyRefused(
            "{} is encrypted with another master key", "it requires {}; {} is {}", _GIVE, directory.name, required, master.source, master.id
        )
    try:
        return PersonaKey(aes_key_unwrap(derived(master.secret, "wrap"), wraps[master.id]))
    except (InvalidUnwrap, ValueError) as error:
        raise StoreDamaged("{} in {} is damaged", "its checksum is wrong", "Restore it from a backup", KEY_NAME, directory.name) from error
