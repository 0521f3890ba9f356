"""The key that signs your packs, and the signers seen so far. Both are files in a directory of the data directory.

No authority vouches for a signer: a signature only proves that the same key signed before.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.files.durable_files import write_atomically
from memory_mcp.store.files.locked_file import locked, write_private

DIRECTORY_NAME = ".packs"
KEY_NAME, SIGNERS_NAME = "signing.key", "signers.json"


def own_key(data_directory: Path) -> Ed25519PrivateKey:
    """The key of this data directory, made when it is first asked for.

    Raises:
        StoreError: the file can't be read or written.
    """
    directory = data_directory / DIRECTORY_NAME
    with locked(directory, KEY_NAME):
        path = directory / KEY_NAME
        if not path.exists():
            write_atomically(path, Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
        try:
            return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text(encoding="ascii")))
        except ValueError as error:
            raise StoreDamaged("{} is no key", "", "Restore it; without it packs have another signer", KEY_NAME) from error


def is_signed_by(public_key: bytes, signature: bytes, content: bytes) -> bool:
    """Whether the owner of this key signed this content."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def known_signers(data_directory: Path) -> Mapping[str, Mapping[str, str]]:
    """The signers of installed packs, by fingerprint: the `name` that each gave itself, and when it was `first_seen`.

    Raises:
        StoreDamaged: the file can't be used.
    """
    path = data_directory / DIRECTORY_NAME / SIGNERS_NAME
    if not path.exists():
        return {}
    try:
        signers = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): {"name": str(seen["name"]), "first_seen": str(seen["first_seen"])} for key, seen in signers.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamaged("{} can't be read", "{}", "Restore it, or remove it to trust nobody", SIGNERS_NAME, error) from error


def remember_signer(data_directory: Path, fingerprint: str, name: str, now: datetime) -> None:
    """Keep a signer that is not known yet."""
    with locked(data_directory / DIRECTORY_NAME, SIGNERS_NAME):
        signers = known_signers(data_directory)
        if fingerprint not in signers:
            seen = {"name": name, "first_seen": now.isoformat(timespec="seconds")}
            write_private(data_directory / DIRECTORY_NAME, SIGNERS_NAME, {**signers, fingerprint: seen})
