"""Who is let in: from a request's token to what it may do, before anybody reads its body.

fastmcp's own `auth=` covers MCP alone; this guards MCP and every route alike. Where no tokens are in use everybody
is let in to everything, as far as the address that is listened on lets them reach it.
"""

import hmac
import ipaddress
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from starlette.types import Scope

from memory_mcp.config.settings import OAuth, RateLimit
from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import MemoryMCPError, NotAllowed, StoreError, TokenRefused, TooManyCalls
from memory_mcp.personas.server_lock import NOTE_HEADER
from memory_mcp.server.oauth.access import OAuthAccess
from memory_mcp.server.oauth.resource import ENDPOINTS, Rights
from memory_mcp.server.rate_limits import RateLimits
from memory_mcp.server.refusal_log import RefusalLog
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.sessions import COOKIE, STATIC, Sessions, is_dashboard
from memory_mcp.store.files.access_tokens import LiveTokens, Token, Tokens, id_of, matching
from memory_mcp.wording import sentence

ADMISSION = "memory_mcp.admission"  # where the edge leaves it in the ASGI scope
# Where a conversation in this process leaves the id of its token; no request can write there.
ON_BEHALF = "memory_mcp.on_behalf"
ALWAYS_OPEN = "/health"
# "/" leads to the dashboard, which asks strangers to sign in.
OPEN_TO_STRANGERS = frozenset({ALWAYS_OPEN, "/ready", "/"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Clients that get a 401 look here for a service that hands out tokens. Without OAuth there is none, which they understand only from a
# plain 404.
WELL_KNOWN = "/.well-known/"
# Tokens can't be guessed; this bounds what guessing costs, whatever `rate_limit` is. Counted for each address.
WRONG_SIGN_INS = RateLimit(per_minute=10, burst=10)

_DO = "Send `Authorization: Bearer` with a token; `memory-mcp token create --persona NAME` makes one, and our own commands read it from MEMORY_MCP_TOKEN"


@dataclass(frozen=True, slots=True)
class Admission:
    """What a request may do. `token`: the public id, None without one; `personas`: canonical names, None for all.

    `is_oauth`: a client of OAuth, which can ask its user for more; `lacking` collects the scopes that it would have needed.
    """

    token: str | None
    personas: frozenset[str] | None
    scopes: frozenset[TokenScope]
    client: str
    refusals: RefusalLog
    is_stranger: bool = False
    is_oauth: bool = False
    lacking: list[TokenScope] = field(default_factory=list)

    def reaches(self, persona: str) -> bool:
        """Whether this canonical name is within the token's set. One that is not must be answered as if it did not exist."""
        return self.personas is None or persona in self.personas

    def among(self, personas: Iterable[str]) -> list[str]:
        """Those of `personas` that the caller may learn about."""
        return list(personas) if self.personas is None else [name for name in personas if self.reaches(name)]

    def require(self, needs: Collection[TokenScope], what: str) -> None:
        """Raises NotAllowed, and notes it, unless the token has all the scopes that `what` needs."""
        missing = [scope for scope in TOKEN_SCOPES if scope in needs and scope not in self.scopes]
        if not missing:
            return
        self.lacking.extend(missing)
        self.note("scope", asked=what)
        wanted = sentence(f"the scope{'s' if len(missing) > 1 else ''} {' and '.join('{}' for _ in missing)}", *missing)
        has = ", ".join(scope for scope in TOKEN_SCOPES if scope in self.scopes)
        raise NotAllowed(
            "{} needs a token with {}", "this one has {}", "Ask the server's owner for another", what, wanted, has or sentence("none")
        )

    def foreign(self, persona: str) -> NotAllowed:
        """The refusal of a write as a persona that is not the token's, in the same words whether or not that one exists."""
        own = sorted(self.personas or ())
        named = f"{', '.join(own[:5])}{f' and {len(own) - 5} more' if len(own) > 5 else ''}"
        return NotAllowed(
            "this token may not write as {}",
            "it is for {}",
            "Send one of its personas as X-Persona, or use another token",
            repr(persona),
            named,
        )

    def require_persona(self, persona: str) -> None:
        """Raises NotAllowed, and notes it, unless the token is for this persona, whether or not that one exists."""
        if not self.reaches(persona):
            self.note("persona", persona=persona)
            raise self.foreign(persona)

    def note(self, reason: str, **facts: str) -> None:
        """Puts a refusal into the operations log."""
        self.refusals.note(reason=reason, token=self.token, client=self.client, **facts)


class Authenticator:
    """Decides about each request. Its state, the buckets of the rate limit, is touched by the event loop alone."""

    def __init__(self, runtime: Runtime, known_addresses: Collection[str]) -> None:
        """`known_addresses`: the paths that may be named in the log. Others may hold anything, such as a secret.

        Raises:
            StoreError: tokens are in use and can't be read.
        """
        self._runtime = runtime
        self._known = known_addresses
        self._tokens = LiveTokens(runtime.personas.directory)
        self.oauth = OAuthAccess(runtime)
        self._had_oauth = self.oauth.settings.is_on
        self._limits = RateLimits()
        self._wrong_sign_ins, self._signing_in = RateLimits(), threading.Lock()
        cell = runtime.personas.cell
        self.sessions = Sessions(cookie_name=COOKIE if cell.is_whole else f"{COOKIE}_{cell.index}")
        self.refusals = RefusalLog(runtime.personas.log, runtime.clock)

    async def admit(self, scope: Scope) -> Admission:
        """What the request may do.

        Raises:
            TokenRefused, NotAllowed, TooManyCalls: it may do nothing.
            IssuerUnreachable: whether it may can't be known now.
            StoreError: the tokens can't be read.
        """
        client = _network(scope)
        if scope["path"] == ALWAYS_OPEN or scope["path"].startswith((WELL_KNOWN, STATIC)):
            return self._stranger(client)
        self._check_secret(scope)
        settings = self._runtime.config.current()
        tokens, admission = self._tokens_in_use(settings.oauth), None
        try:
            if tokens is not None and ON_BEHALF in scope:
                admission = self._admitted(self._in_force_by_id(tokens, scope[ON_BEHALF]), client)
            else:
                admission = await self._admission(scope, tokens, client)
        finally:  # a guess counts as a call
            caller = admission.token if admission else None
            self._limits.take(caller or client, settings.rate_limit, time.monotonic())
        return admission

    @property
    def runtime(self) -> Runtime:
        """What the server is made of."""
        return self._runtime

    def _tokens_in_use(self, oauth: OAuth) -> Tokens | None:
        """None where every caller is let in: without a token file and OAuth, neither of which ends while the server runs."""
        tokens = self._tokens.current()
        self._had_oauth = self._had_oauth or oauth.is_on
        return {} if tokens is None and self._had_oauth else tokens

    def address(self, scope: Scope) -> str:
        """The method and path of a request, for logs. Unknown ones get a general wording: they may contain anything."""
        method, path = scope["method"], scope["path"]
        known = STATIC if path.startswith(STATIC) else path if path in self._known else "an unknown address"
        return f"{method if method in METHODS else 'another method'} {known}"

    def note(self, scope: Scope, error: MemoryMCPError) -> None:
        """Puts what `admit` raised into the operations log, with the token where the secret was right. Writes to the disk."""
        shown = _credentials(scope)
        try:
            tokens = self._tokens.current() or {}
        except StoreError:
            tokens = {}
        token = matching(tokens, _secret_in(shown[0])) if len(shown) == 1 else None
        self.refusals.note(
            reason="rate_limit" if isinstance(error, TooManyCalls) else "token",
            token=token.id if token else None,
            client=_network(scope),
            asked=self.address(scope),
            why=error.why,
        )

    def _check_secret(self, scope: Scope) -> None:
        """Raises TokenRefused where a server of `memory-mcp stdio` is called by a user who can't read its data directory."""
        secret, name = self._runtime.secret, NOTE_HEADER.lower().encode()
        sent = next((value for header, value in scope["headers"] if header == name), b"")
        if secret and ON_BEHALF not in scope and not hmac.compare_digest(sent, secret.encode()):
            raise TokenRefused(
                "this server answers only to `memory-mcp` commands of its owner",
                "`memory-mcp stdio` has started it",
                "Run `memory-mcp serve` for a server that other programs can call",
            )

    async def _admission(self, scope: Scope, tokens: Tokens | None, client: str) -> Admission:
        """The rights that the credentials of a request give. A request without any is a stranger's, which some paths admit."""
        if tokens is None:
            return Admission(None, None, frozenset(TOKEN_SCOPES), client, self.refusals)
        shown, path, oauth = _credentials(scope), scope["path"], self.oauth.settings
        # Clients show codes there, not tokens: some do so in this header, too.
        if path.startswith(ENDPOINTS) and oauth.authorization_server == "built_in":
            return self._stranger(client)
        if not shown and is_dashboard(path):
            signed_in = self._signed_in(scope, tokens)
            return self._admitted(signed_in, client) if signed_in else self._stranger(client)
        if not shown and path in OPEN_TO_STRANGERS:
            return self._stranger(client)
        if len(shown) != 1:
            why = sentence("the request has {} Authorization headers", len(shown)) if shown else "the request has none"
            raise TokenRefused("this server wants a token", why, _DO)
        secret = _secret_in(shown[0])
        # Pages are for people: a client that opens them could grant itself more than its user did.
        if oauth.is_on and id_of(secret) is None and not is_dashboard(path):
            return self._of_rights(await self.oauth.rights(secret, tokens), client)
        return self._admitted(self._in_force(tokens, secret), client)

    def _admitted(self, token: Token, client: str) -> Admission:
        self._runtime.token_uses[token.id] = self._runtime.clock()
        personas = None if token.personas is None else frozenset(token.personas)
        return Admission(token.id, personas, frozenset(token.scopes), client, self.refusals)

    def _of_rights(self, rights: Rights | None, client: str) -> Admission:
        if rights is None:
            raise TokenRefused("this token is not good here", "it is unknown, expired, revoked or for another server", "Sign in again")
        if rights.personas == frozenset():
            raise NotAllowed("this token is for no persona of this server", "its claims name none", "Ask the server's owner")
        return Admission(rights.id, rights.personas, rights.scopes, client, self.refusals, is_oauth=True)

    def _in_force(self, tokens: Tokens, secret: str) -> Token:
        token = matching(tokens, secret)
        if token is None:
            raise TokenRefused("this token is not one of this server's", "the Authorization header holds none that is known here", _DO)
        return self._usable(token)

    def _in_force_by_id(self, tokens: Tokens, identity: str | None) -> Token:
        token = tokens.get(identity or "")
        if token is None:
            raise TokenRefused("this token is not good any more", "there is none with its id", "Sign in again")
        return self._usable(token)

    def _usable(self, token: Token) -> Token:
        state = token.state(self._runtime.clock())
        if state != "in force":
            raise TokenRefused("this token is not good any more", "it is {}", "Ask the server's owner for another", state)
        return token

    def _signed_in(self, scope: Scope, tokens: Tokens) -> Token | None:
        """The token of the browser's session, None where there is none any more: the page then asks to sign in."""
        cookie = self.sessions.cookie_of(scope)
        token = tokens.get(self.sessions.token_of(cookie) or "") if cookie else None
        return token if token and token.state(self._runtime.clock()) == "in force" else None

    def still_admits(self, admission: Admission) -> bool:
        """Whether the token of a call that takes minutes is still in force. One of OAuth is not asked for again."""
        if admission.token is None or admission.is_oauth:
            return True
        token = (self._tokens.current() or {}).get(admission.token)
        return token is not None and token.state(self._runtime.clock()) == "in force"

    def sign_in(self, secret: str, client: str = "") -> str:
        """Begin a session with a token's secret. Returns its cookie.

        Raises:
            TokenRefused: it is the secret of no token in force.
            TooManyCalls: too many of this client's were wrong.
            StoreError: the tokens can't be read.
        """
        with self._signing_in:
            self._wrong_sign_ins.require(client, WRONG_SIGN_INS, time.monotonic())
            try:
                token = self._in_force(self._tokens.current() or {}, secret)
            except TokenRefused:
                self._wrong_sign_ins.take(client, WRONG_SIGN_INS, time.monotonic())
                raise
        return self.sessions.begin(token.id)

    def is_secret_of(self, token: str | None, secret: str) -> bool:
        """Whether this is the secret of the token with this id, and the token in force."""
        known = matching(self._tokens.current() or {}, secret)
        return known is not None and known.id == token and known.state(self._runtime.clock()) == "in force"

    def _stranger(self, client: str) -> Admission:
        return Admission(None, frozenset(), frozenset(), client, self.refusals, is_stranger=True)


def _credentials(scope: Scope) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == b"authorization"]


def _secret_in(header: bytes) -> str:
    scheme, _, secret = header.decode("latin-1").strip(" \t").partition(" ")
    return secret.strip(" ") if scheme.casefold() == "bearer" else ""


def _network(scope: Scope) -> str:
    """The address by which a caller without a token is counted; of IPv6 only the first half, since callers choose the other themselves."""
    try:
        address = ipaddress.ip_address((scope.get("client") or ("",))[0])
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False)) if not address.is_loopback else str(address)
    return str(address)
