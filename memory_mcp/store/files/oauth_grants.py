"""`oauth.json`: what the owner of a token has granted to OAuth clients, and which clients have registered themselves.

Of codes and tokens only fingerprints are stored. A grant is a part of the token that its owner signed in with, and ends with it.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter
from typing_extensions import TypedDict

from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import GrantRefused, InvalidInput
from memory_mcp.store.files.access_tokens import Fingerprint, fingerprint_of
from memory_mcp.store.files.locked_file import VERSION, Moment, locked, read_private, stamp_of, write_private

FILE_NAME = "oauth.json"
CODE, ACCESS, REFRESH = "mmcc", "mmca", "mmcr"
CODE_LIFE, ACCESS_LIFE, REFRESH_LIFE = timedelta(minutes=2), timedelta(hours=1), timedelta(days=30)
# How long a grant stays listed after its end.
LISTED = timedelta(days=30)
# Registering is open to strangers: of the clients without a grant, the oldest make room.
CLIENTS_KEPT = 100

_SECRET = re.compile(rf"({CODE}|{ACCESS}|{REFRESH})_([0-9a-f]{{10}})_([0-9a-f]{{32}})([0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class Client:
    """A client that has registered itself, by its id. None of its statements about itself is proven."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    registered_at: Moment


@dataclass(frozen=True, slots=True)
class Secret:
    """The fingerprint of a code or a token, and until when it is good."""

    fingerprint: Fingerprint
    expires_at: Moment

    def is_of(self, secret: str) -> bool:
        """Whether this is the fingerprint of a secret."""
        return hmac.compare_digest(self.fingerprint, fingerprint_of(secret))


@dataclass(frozen=True, slots=True)
class Asked:
    """A client's request, which an owner may grant: personas and scopes at a resource. `owner`: the id of the owner's token."""

    client_id: str
    client_name: str
    redirect_uri: str
    challenge: str
    resource: str
    owner: str
    personas: tuple[str, ...]
    scopes: Annotated[tuple[TokenScope, ...], AfterValidator(lambda scopes: tuple(scope for scope in TOKEN_SCOPES if scope in scopes))]


@dataclass(frozen=True, slots=True)
class Grant:
    """What is granted. `family`: fingerprint of the part that all its refresh tokens share, by which a used one is recognized.

    `access`: the latest access tokens, the newest last. Until the code is exchanged there is no `refresh`.
    """

    id: str
    asked: Asked
    created_at: Moment
    code: Secret
    family: Fingerprint
    access: tuple[Secret, ...]
    refresh: Secret | None
    revoked_at: Moment | None

    @property
    def ends_at(self) -> datetime:
        """When it ends unless it is used."""
        return self.refresh.expires_at if self.refresh else self.code.expires_at

    def state(self, now: datetime) -> str:
        """`in force`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.ends_at <= now else "in force"


@dataclass(frozen=True, slots=True)
class Issued:
    """New tokens of a grant, which are stored nowhere."""

    access: str
    refresh: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything in the file."""

    grants: Mapping[str, Grant]
    clients: Mapping[str, Client]


class _File(TypedDict):
    version: int
    grants: list[Grant]
    clients: list[Client]


_FORM = TypeAdapter(_File)


def grant_of(secret: str, kind: str) -> str | None:
    """The id of the grant in a code or token of this kind; None if the text is none."""
    match = _SECRET.fullmatch(secret)
    return match[2] if match and match[1] == kind else None


def read_registry(directory: Path) -> Registry:
    """All grants and clients of a data directory.

    Raises:
        StoreError: the file exists but can't be used.
    """
    stored = read_private(directory, FILE_NAME, _FORM, "Remove it: clients then sign in again")
    if stored is None:
        return Registry({}, {})
    return Registry({grant.id: grant for grant in stored["grants"]}, {client.id: client for client in stored["clients"]})


def owner_of_grant(directory: Path, identity: str, now: datetime) -> str | None:
    """The id of the token whose owner made a grant; None if the grant is not in force.

    Raises:
        StoreError: as `read_registry`.
    """
    known = read_registry(directory).grants.get(identity)
    return known.asked.owner if known and known.state(now) == "in force" else None


def register_client(directory: Path, *, name: str, redirect_uris: Iterable[str], now: datetime) -> Client:
    """Store a client that registers itself, under a new id."""
    client = Client(secrets.token_hex(16), name, tuple(redirect_uris), now)

    def add(registry: Registry) -> Registry:
        used = {grant.asked.client_id for grant in registry.grants.values()}
        idle = [identity for identity in registry.clients if identity not in used]
        dropped = set(idle[: max(0, len(idle) - CLIENTS_KEPT + 1)])
        kept = {identity: known for identity, known in registry.clients.items() if identity not in dropped}
        return Registry(registry.grants, {**kept, client.id: client})

    _change(directory, now, add)
    return client


def grant(directory: Path, asked: Asked, now: datetime) -> str:
    """Store what an owner grants. Returns the code, which the client exchanges once for tokens."""
    identity, family = secrets.token_hex(5), secrets.token_hex(16)
    code = f"{CODE}_{identity}_{family}{secrets.token_hex(32)}"
    made = Grant(identity, asked, now, Secret(fingerprint_of(code), now + CODE_LIFE), fingerprint_of(family), (), None, None)
    _change(directory, now, lambda registry: _with(registry, made))
    return code


def exchange(
    directory: Path, code: str, *, client_id: str, redirect_uri: str, verifier: str, resource: str | None, now: datetime
) -> Issued:
    """The tokens for a code. A code that is shown twice, or by another client, was stolen: its grant ends.

    Raises:
        GrantRefused: the code is unknown, used or expired, or not of this client, redirect address and verifier.
    """

    def issue(registry: Registry) -> tuple[Grant, Issued | None]:
        known = registry.grants.get(grant_of(code, CODE) or "")
        if known is None or not known.code.is_of(code) or known.revoked_at:
            raise GrantRefused("this code is not good", "it is unknown, expired or used")
        is_own = known.asked.client_id == client_id and known.asked.redirect_uri == redirect_uri
        if known.refresh or known.code.expires_at <= now or not is_own or not _is_verifier(verifier, known.asked.challenge):
            return replace(known, revoked_at=now), None
        _check_resource(known, resource)
        issued = _issued(known, code, now)
        return issued.grant, issued

    return _issue(directory, now, issue, "this code is not good: it is unknown, expired, used or another client's")


def refresh(directory: Path, token: str, *, client_id: str, resource: str | None, now: datetime) -> Issued:
    """New tokens for a refresh token, which is good once. A used one was stolen, from the client or by it: its grant ends.

    Raises:
        GrantRefused: the token is unknown, used or expired, or not of this client.
    """

    def issue(registry: Registry) -> tuple[Grant, Issued | None]:
        match = _SECRET.fullmatch(token)
        known = registry.grants.get(grant_of(token, REFRESH) or "")
        if match is None or known is None or known.refresh is None or known.state(now) != "in force":
            raise GrantRefused("this refresh token is not good", "it is unknown, expired or revoked")
        if not hmac.compare_digest(known.family, fingerprint_of(match[3])):
            raise GrantRefused("this refresh token is not good", "it is unknown, expired or revoked")
        if not known.refresh.is_of(token) or known.asked.client_id != client_id:
            return replace(known, revoked_at=now), None
        _check_resource(known, resource)
        issued = _issued(known, token, now)
        return issued.grant, issued

    return _issue(directory, now, issue, "this refresh token is not good: it was used before, and its grant is revoked")


def revoke_grant(directory: Path, identity: str, now: datetime) -> Grant:
    """End a grant, with all its tokens. It stays listed for a while.

    Raises:
        InvalidInput: no grant has this id.
    """

    def end(registry: Registry) -> Registry:
        known = registry.grants.get(identity)
        if known is None:
            raise InvalidInput("no grant has the id {}", "", "See `memory-mcp oauth list`", repr(identity[:20]))
        return _with(registry, known if known.revoked_at else replace(known, revoked_at=now))

    return _change(directory, now, end).grants[identity]


def revoke_secret(directory: Path, secret: str, client_id: str, now: datetime) -> Grant | None:
    """End the grant of a client's access or refresh token; None if the client has no such token."""
    registry = read_registry(directory)
    known = registry.grants.get(grant_of(secret, ACCESS) or grant_of(secret, REFRESH) or "")
    if known is None or known.asked.client_id != client_id or known.revoked_at:
        return None
    if not any(stored.is_of(secret) for stored in (*known.access, *([known.refresh] if known.refresh else []))):
        return None
    return revoke_grant(directory, known.id, now)


class LiveRegistry:
    """The current grants and clients of a running server; the file is read again when it has changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # One assignment, so that any thread sees a registry with its own stamp.
        self._read: tuple[Any, Registry] | None = None

    def current(self) -> Registry:
        """The grants for a call that begins now. Costs one `stat`.

        Raises:
            StoreError: the file can't be used.
        """
        stamp, known = stamp_of(self._directory / FILE_NAME), self._read
        if known is None or known[0] != stamp:
            known = self._read = (stamp, read_registry(self._directory))
        return known[1]


def _check_resource(known: Grant, resource: str | None) -> None:
    if resource is not None and resource != known.asked.resource:
        raise GrantRefused(
            "this token would be for another resource", "the grant is for {}", "", known.asked.resource, code="invalid_target"
        )


def _is_verifier(verifier: str, challenge: str) -> bool:
    """RFC 7636, S256."""
    digest = hashlib.sha256(verifier.encode("utf-8", errors="surrogateescape")).digest()
    return hmac.compare_digest(base64.urlsafe_b64encode(digest).rstrip(b"="), challenge.encode())


def _issued(known: Grant, shown: str, now: datetime) -> Issued:
    match = _SECRET.fullmatch(shown)
    if match is None:
        raise GrantRefused("this is no code and no token")
    access = f"{ACCESS}_{known.id}_{secrets.token_hex(48)}"
    token = f"{REFRESH}_{known.id}_{match[3]}{secrets.token_hex(32)}"
    # Earlier ones stay good for their hour: a client may have calls under way.
    kept = [secret for secret in known.access if secret.expires_at > now][-4:]
    access_tokens = (*kept, Secret(fingerprint_of(access), now + ACCESS_LIFE))
    renewed = replace(known, access=access_tokens, refresh=Secret(fingerprint_of(token), now + REFRESH_LIFE))
    return Issued(access, token, renewed)


def _issue(directory: Path, now: datetime, step: Callable[[Registry], tuple[Grant, Issued | None]], refused: str) -> Issued:
    """Does one step under the lock, so that of two that show the same secret one alone is given tokens."""
    issued: list[Issued | None] = []

    def change(registry: Registry) -> Registry:
        changed, new = step(registry)
        issued.append(new)
        return _with(registry, changed)

    _change(directory, now, change)
    if issued[0] is None:
        raise GrantRefused(refused)
    return issued[0]


def _change(directory: Path, now: datetime, change: Callable[[Registry], Registry]) -> Registry:
    with locked(directory, FILE_NAME):
        registry = change(read_registry(directory))
        kept = {identity: known for identity, known in registry.grants.items() if _is_kept(known, now)}
        registry = Registry(kept, registry.clients)
        tree: _File = {"version": VERSION, "grants": [*registry.grants.values()], "clients": [*registry.clients.values()]}
        write_private(directory, FILE_NAME, _FORM.dump_python(tree, mode="json"))
    return registry


def _is_kept(known: Grant, now: datetime) -> bool:
    if known.refresh is None and known.revoked_at is None:
        return known.code.expires_at > now
    return (known.revoked_at or known.ends_at) + LISTED > now


def _with(registry: Registry, changed: Grant) -> Registry:
    return Registry({**registry.grants, changed.id: changed}, registry.clients)
