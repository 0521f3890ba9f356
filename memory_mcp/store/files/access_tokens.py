"""`tokens.json`: access tokens with their personas and scopes. Only a fingerprint of each secret is stored.

The file belongs to no persona: the command line writes it whether or not a server runs, and the server notices a change at the next
call by the file's stamp. Tokens are required as soon as the file exists: revoking the last one denies all access.
"""

import hashlib
import hmac
import logging
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter
from typing_extensions import TypedDict

from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import InvalidInput, StoreError, TokenRefused
from memory_mcp.store.files.locked_file import VERSION, Moment, locked, read_private, stamp_of, write_private

FILE_NAME = "tokens.json"
PREFIX = "mmcp"
NAME_LIMIT = 100

_SECRET = re.compile(rf"{PREFIX}_([0-9a-f]{{10}})_[0-9a-f]{{64}}")
_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_UNUSED_FINGERPRINT = hashlib.sha256(b"").hexdigest()

logger = logging.getLogger(__name__)

Fingerprint = Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]


def _personas_of(stored: object) -> object:
    """Of `personas` in the file. An empty value is not all."""
    if stored is None:
        raise ValueError("personas is neither a list of names nor 'all'")
    return None if stored == "all" else tuple(stored) if isinstance(stored, list) else stored


@dataclass(frozen=True, slots=True)
class Token:
    """An access token. `personas`: canonical names, None for all. `fingerprint`: SHA-256 of the secret, in hex.

    The secret has 256 random bits, so a slow hash as for passwords would add no protection.
    """

    id: str
    name: str
    fingerprint: Fingerprint
    personas: Annotated[
        tuple[str, ...] | None, BeforeValidator(_personas_of), PlainSerializer(lambda names: "all" if names is None else names)
    ]
    scopes: tuple[TokenScope, ...]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None

    def state(self, now: datetime) -> str:
        """`in force`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now else "in force"


Tokens = Mapping[str, Token]


class _File(TypedDict):
    version: int
    tokens: list[Token]


_FORM = TypeAdapter(_File)


def id_of(secret: str) -> str | None:
    """The public id in a secret, by which its token is listed and revoked; None if the text isn't a token secret."""
    match = _SECRET.fullmatch(secret)
    return match[1] if match else None


def matching(tokens: Tokens, secret: str) -> Token | None:
    """The token with this secret; None if there is none. A wrong secret takes as long as an unknown one."""
    known = tokens.get(id_of(secret) or "")
    same = hmac.compare_digest(fingerprint_of(secret), known.fingerprint if known else _UNUSED_FINGERPRINT)
    return known if known and same else None


def read_tokens(directory: Path) -> Tokens | None:
    """All tokens of a data directory by id; None if tokens aren't in use.

    Raises:
        StoreError: the file exists but can't be used. The caller must deny all access.
    """
    stored = read_private(directory, FILE_NAME, _FORM, "Restore a copy of it, or remove it and create new tokens")
    return None if stored is None else MappingProxyType({token.id: token for token in stored["tokens"]})


def expiry_of(text: str, now: datetime) -> datetime:
    """The moment that 12h, 90d, 8w, or a day such as 2026-12-31 means, to its end in local time.

    Raises:
        InvalidInput: it is none of them.
    """
    span = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if span:
        return now + int(span[1]) * _SPANS[span[2]]
    try:
        return datetime.combine(datetime.fromisoformat(text.strip()).date(), time.max).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput("the expiry {} is not a time", "", "Write 12h, 90d, 8w, or a day such as 2026-12-31", repr(text[:40])) from None


def create_token(
    directory: Path,
    *,
    name: str,
    personas: Iterable[str] | None,
    scopes: Iterable[TokenScope],
    now: datetime,
    expires_at: datetime | None = None,
    only_first: bool = False,
) -> tuple[Token, str]:
    """Create a token. Returns it with its secret, which isn't stored. `only_first`: as long as tokens aren't in use.

    The directory is created if necessary, because a server that listens on the network requires a token before its first start.

    Raises:
        InvalidInput: the name is too long, no persona or scope is given, or the expiry is in the past.
        StoreError: the file can't be read or written.
    """
    who = None if personas is None else tuple(dict.fromkeys(personas))
    what = tuple(scope for scope in TOKEN_SCOPES if scope in set(scopes))
    if who == () or not what:
        raise InvalidInput("the token would allow nothing", "it has no persona or no scope", "Give at least one of each")
    if len(name) > NAME_LIMIT:
        raise InvalidInput("the token's name has {} characters", "{} are the limit", "Choose a shorter one", len(name), NAME_LIMIT)
    if expires_at and expires_at <= now:
        raise InvalidInput("the token would have expired already", "at {}", "Choose a later time", expires_at.isoformat())
    with locked(directory, FILE_NAME):
        existing = read_tokens(directory)
        if only_first and existing is not None:
            raise TokenRefused("this server wants a token", "tokens have been in use for a moment", "Sign in, and try again")
        tokens = dict(existing or {})
        identity = next(made for made in iter(lambda: secrets.token_hex(5), None) if made not in tokens)
        secret = f"{PREFIX}_{identity}_{secrets.token_hex(32)}"
        token = Token(identity, name, fingerprint_of(secret), who, what, now, expires_at, None)
        _write(directory, {**tokens, identity: token})
    return token, secret


def revoke_token(directory: Path, identity: str, now: datetime) -> Token:
    """Revoke a token from the next call on. It stays listed.

    Raises:
        InvalidInput: no token has this id.
        StoreError: the file can't be read or written.
    """
    _tokens_with(directory, identity)
    with locked(directory, FILE_NAME):
        tokens = _tokens_with(directory, identity)
        token = tokens[identity]
        if token.revoked_at is None:
            token = tokens[identity] = replace(token, revoked_at=now)
            _write(directory, tokens)
    return token


class LiveTokens:
    """The current tokens of a running server. A file that is damaged or was removed denies all access."""

    def __init__(self, directory: Path) -> None:
        """Raises StoreError if the file exists but can't be used: a server started then would be open."""
        self._directory = directory
        self._stamp = stamp_of(self._directory / FILE_NAME)
        self._tokens = read_tokens(directory)
        self._unusable = False
        self._lock = threading.Lock()

    def current(self) -> Tokens | None:
        """The tokens for a call that begins now; None if tokens aren't in use. Costs one `stat` (microseconds).

        Raises:
            StoreError: all access is denied.
        """
        if stamp_of(self._directory / FILE_NAME) != self._stamp:
            with self._lock:  # concurrent refreshes could keep the older tokens under the newer stamp
                stamp = stamp_of(self._directory / FILE_NAME)
                if stamp != self._stamp:
                    self._refresh()
                    self._stamp = stamp
        if self._unusable:
            raise StoreError("no call is accepted at the moment", "the server can't read its tokens", "Its log says why")
        return self._tokens

    def _refresh(self) -> None:
        try:
            tokens = read_tokens(self._directory)
        except StoreError as error:
            self._deny(str(error))
            return
        if tokens is None and (self._tokens is not None or self._unusable):
            self._deny(f"{FILE_NAME} is gone. Restore it, or restart the server to serve without tokens.")
            return
        if tokens is not None and self._tokens is None:
            logger.info("tokens are in use from now on: a call without one is refused")
        self._tokens, self._unusable = tokens, False

    def _deny(self, why: str) -> None:
        logger.error("%s Until then no call is accepted.", why)
        self._unusable = True


def fingerprint_of(secret: str) -> str:
    """The stored form of a secret: SHA-256, in hex."""
    return hashlib.sha256(secret.encode("utf-8", errors="surrogateescape")).hexdigest()


def _tokens_with(directory: Path, identity: str) -> dict[str, Token]:
    tokens = dict(read_tokens(directory) or {})
    if identity not in tokens:
        raise InvalidInput("no token has the id {}", "", "See `memory-mcp token list`", repr(identity[:20]))
    return tokens


def _write(directory: Path, tokens: Tokens) -> None:
    write_private(directory, FILE_NAME, _FORM.dump_python({"version": VERSION, "tokens": list(tokens.values())}, mode="json"))
