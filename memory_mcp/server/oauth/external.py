"""Tokens of an external authorization server: whether they are good, and what their claims allow here."""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
from fastmcp.server.auth import TokenVerifier
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier

from memory_mcp.config.settings import OAuth
from memory_mcp.errors import InvalidPersonaName, IssuerUnreachable, StoreError
from memory_mcp.personas.names import canonical_name
from memory_mcp.server.oauth.resource import OAUTH_SCOPES, Rights, personas_of_audience, shared

# How far the clocks of two machines may differ: a token may have been issued so far in the future.
SKEW_SECONDS = 60
# For so long an answer of introspection is believed, and a token works that was revoked since.
INTROSPECTION_SECONDS = 30
INTROSPECTION_TIMEOUT_SECONDS = 10
SUBJECT_LIMIT = 80
# 31 December 9999: a later time is none.
LAST_SECOND = 253_402_300_800
_unanswered: ContextVar[bool] = ContextVar("unanswered", default=False)


class ExternalServer:
    """Checks tokens as the settings say. The verifier has the issuer's keys, and fetches them again when there is a new one."""

    def __init__(self, oauth: OAuth) -> None:
        """Raises StoreError if the secret for introspection can't be read."""
        self._oauth = oauth
        self._verifier = _verifier(oauth)

    async def rights(self, token: str) -> Rights | None:
        """What a token allows here, None if it is not good.

        Raises:
            IssuerUnreachable: whether it is good can't be known now.
        """
        _unanswered.set(False)
        try:
            verified = await self._verifier.verify_token(token)
        except (OverflowError, RecursionError):  # numbers and nesting that no time and no header has
            return None
        if verified is None:
            if _unanswered.get():
                raise _unreachable()
            return None
        claims = verified.claims
        if not self._is_current(claims) or claims.get("iss", self._oauth.issuer) != self._oauth.issuer:
            return None
        good_for = personas_of_audience(self._oauth, _texts(claims.get("aud")))
        if good_for == frozenset():
            return None
        scopes = [word for text in _texts(_claim(claims, self._oauth.scopes_claim)) for word in text.split()]
        subject = str(claims.get("sub") or verified.client_id)[:SUBJECT_LIMIT]
        return Rights(
            f"oauth:{subject}", shared(self._personas(claims), good_for), frozenset(scope for scope in OAUTH_SCOPES if scope in scopes)
        )

    def _is_current(self, claims: Mapping[str, Any]) -> bool:
        """The verifier compares `exp` where there is one, and nothing else of time."""
        expires, begins = claims.get("exp"), claims.get("nbf", 0)
        if not _is_time(begins) or begins > time.time() + SKEW_SECONDS:
            return False
        return _is_time(expires) or (expires is None and self._oauth.introspection_url is not None)

    def _personas(self, claims: Mapping[str, Any]) -> frozenset[str] | None:
        """The personas of the claim; None for all, which the configuration alone can say."""
        values = _texts(_claim(claims, self._oauth.personas_claim))
        if self._oauth.personas:
            granted = [self._oauth.personas[value] for value in values if value in self._oauth.personas]
            if "all" in granted:
                return None
            values = [name for names in granted for name in names]
        return frozenset(name for value in values if (name := _canonical(value)) is not None)


class _KeysOfIssuer(JWTVerifier):
    """Knows whether the issuer's keys could be read: a key that is not among them is then no reason to call a token bad."""

    _is_unanswered = False

    async def _fetch_jwks(self) -> dict[str, Any]:
        self._is_unanswered = True
        tree = await super()._fetch_jwks()
        if not isinstance(tree, dict) or not isinstance(tree.get("keys"), list):
            raise TypeError("there is no list of keys")
        self._is_unanswered = False
        return tree

    async def _get_jwks_key(self, kid: str | None) -> str:
        try:
            return await super()._get_jwks_key(kid)
        except ValueError as error:
            if self._is_unanswered:
                raise _unreachable() from error
            raise


class _NotingClient(httpx2.AsyncClient):
    """Notes for the task that asks that the issuer gave no answer."""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        _unanswered.set(True)
        response = await super().send(request, **how)
        _unanswered.set(response.status_code != HTTPStatus.OK)
        return response


def _unreachable() -> IssuerUnreachable:
    return IssuerUnreachable(
        "whether this token is good can't be known now", "the server that issued it does not answer", "Try again later"
    )


def _is_time(value: Any) -> bool:
    """Whether this is a number of seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LAST_SECOND


def _verifier(oauth: OAuth) -> TokenVerifier:
    if oauth.introspection_url is None:
        return _KeysOfIssuer(jwks_uri=oauth.jwks_url, issuer=oauth.issuer, algorithm=oauth.algorithm)
    try:
        secret = Path(oauth.client_secret_file or "").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(
            "the secret for introspection can't be read", "", "Make oauth.client_secret_file readable for the server"
        ) from error
    return IntrospectionTokenVerifier(
        introspection_url=oauth.introspection_url,
        client_id=oauth.client_id or "",
        client_secret=secret,
        cache_ttl_seconds=INTROSPECTION_SECONDS,
        http_client=_NotingClient(timeout=INTROSPECTION_TIMEOUT_SECONDS, limits=httpx2.Limits(max_keepalive_connections=0)),
    )


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path with dots into objects: some issuers put a URL before a name, others nest."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _canonical(name: str) -> str | None:
    try:
        return canonical_name(name)
    except InvalidPersonaName:
        return None
