"""The access tokens themselves: listing, creating and revoking them. A token may never create one that allows more than itself."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired

from pydantic import Field
from starlette.datastructures import Headers
from typing_extensions import TypedDict

from memory_mcp.config.values import is_loopback
from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import InvalidInput, NotAllowed
from memory_mcp.personas.names import addressed_name
from memory_mcp.server.arguments import Arguments, Flag, NoArguments, Text, TextList, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Moment, local, omit_empty
from memory_mcp.store.files.access_tokens import Token, create_token, expiry_of, read_tokens, revoke_token
from memory_mcp.wording import sentence

ALL = "all"


class TokenView(TypedDict):
    """A token without its secret. `personas` is a list of names, or "all"; `last_used_at` is known since the server's start."""

    id: str
    name: str
    personas: Annotated[Any, Field(json_schema_extra={"type": ["array", "string"], "items": {"type": "string"}})]
    scopes: list[str]
    state: str
    created_at: Moment
    expires_at: NotRequired[Moment]
    revoked_at: NotRequired[Moment]
    last_used_at: NotRequired[Moment]
    is_own: NotRequired[bool]


class TokenList(TypedDict):
    """`in_use`: whether calls need a token. Tokens that reach other personas than the caller's are left out."""

    in_use: bool
    tokens: list[TokenView]


@operation(needs=["admin"], route=Route("GET", "/api/tokens", of_persona=False), answer=TokenList)
def list_tokens(call: Call, _arguments: NoArguments) -> Json:
    """List the tokens for the caller's personas, with what each allows and when it was last used since the server's start."""
    tokens = read_tokens(call.runtime.personas.directory)
    shown = visible(call, tokens or {}).values()
    return {"in_use": tokens is not None, "tokens": [_view(call, token) for token in shown]}


class NewToken(Arguments):
    personas: Annotated[TextList, http("The personas that it is for.")] = []
    all_personas: Annotated[Flag, http("It is for all personas, also those to come.")] = False
    scopes: Annotated[TextList, http("Some of the caller's scopes: read, write, delete, export, admin.")] = []
    name: Annotated[Text, http("What it is for, for the list.")] = ""
    expires: Annotated[Text, http("12h, 90d, 8w, or a day such as 2026-12-31; never without it, or when the caller's own does.")] = ""
    turn_on: Annotated[Flag, http("Create the first token: from then on the server refuses every call without a token.")] = False


class CreatedToken(TypedDict):
    """A new token, with the secret that is stored nowhere and never shown again."""

    token: TokenView
    secret: str
    is_first: NotRequired[bool]


@operation(needs=["admin"], route=Route("POST", "/api/tokens", of_persona=False), answer=CreatedToken)
def create(call: Call, arguments: NewToken) -> Json:
    """Create a token that allows no more than the caller may do, and return its secret, once."""
    if call.admission.is_oauth:
        raise NotAllowed("a client that was let in by OAuth creates no tokens", "they would outlive what was granted", "Use a token")
    maker = _own(call)
    if maker is None:
        _check_first(call, turn_on=arguments.turn_on)
    personas, scopes = _personas(call, arguments), _scopes(call, arguments.scopes)
    made, secret = create_token(
        call.runtime.personas.directory,
        name=arguments.name.strip(),
        personas=personas,
        scopes=scopes,
        now=call.now,
        expires_at=_expiry(call, arguments.expires, maker),
        only_first=maker is None,
    )
    call.note_event("create_token", made=made.id)
    return {"token": _view(call, made), "secret": secret, **omit_empty(is_first=maker is None or None)}


class TokenId(Arguments):
    id: Annotated[Text, http("The id in the list.", minLength=1)]


@operation(needs=["admin"], route=Route("DELETE", "/api/tokens", of_persona=False), answer=TokenView)
def revoke(call: Call, arguments: TokenId) -> Json:
    """Revoke a token with immediate effect; sessions that it began in a browser end. It stays listed."""
    tokens = read_tokens(call.runtime.personas.directory) or {}
    identity = arguments.id.strip()
    if identity not in visible(call, tokens):
        raise InvalidInput("no token has the id {}", "", "Take it from GET /api/tokens", repr(identity[:20]))
    others = [token for token in tokens.values() if token.id != identity and token.state(call.now) == "in force"]
    if not others:
        raise InvalidInput(
            "the last token that is in force can't be revoked here",
            "nobody could call the server any more",
            "Create another one first, or run `memory-mcp token revoke {}` on the server's machine",
            identity,
        )
    revoked = revoke_token(call.runtime.personas.directory, identity, call.now)
    call.note_event("revoke_token", revoked=revoked.id)
    return _view(call, revoked)


def visible(call: Call, tokens: Mapping[str, Token]) -> dict[str, Token]:
    """The tokens that reach no persona beyond the caller's. The caller may not learn that others exist."""
    own = call.admission.personas
    return {
        identity: token
        for identity, token in tokens.items()
        if own is None or (token.personas is not None and own.issuperset(token.personas))
    }


def _own(call: Call) -> Token | None:
    """The token of the call, None where tokens aren't in use."""
    return (read_tokens(call.runtime.personas.directory) or {}).get(call.admission.token or "")


def _check_first(call: Call, *, turn_on: bool) -> None:
    """Raises NotAllowed or InvalidInput unless the first token may be created: at the machine itself, and confirmed."""
    host = Headers(scope=call.scope).get("host", "").rpartition(":")
    if not is_loopback(host[0] or host[2]):
        raise NotAllowed(
            "the first token is created on the server's machine",
            "tokens aren't in use, and the request names another machine",
            "Open http://127.0.0.1 there, or run `memory-mcp token create --persona NAME`",
        )
    if not turn_on:
        raise InvalidInput(
            "this would be the first token",
            "from then on every call without a token is refused, of clients that work now, too",
            "Send turn_on=true if that is what you want",
        )


def _personas(call: Call, arguments: NewToken) -> list[str] | None:
    named = [addressed_name(name) for name in arguments.personas if name.strip()]
    if bool(named) == arguments.all_personas:
        raise InvalidInput("a token is for some personas or for all", "", "Name personas, or say all_personas")
    if arguments.all_personas and call.admission.personas is not None:
        raise NotAllowed("this token can't create one for all personas", "it is for some", "Name personas of its own")
    for name in named:
        call.admission.require_persona(name)
    return None if arguments.all_personas else named


def _scopes(call: Call, named: list[str]) -> list[TokenScope]:
    wanted = [scope for scope in TOKEN_SCOPES if scope in named]
    unknown = [name for name in named if name not in TOKEN_SCOPES]
    if unknown or not wanted:
        raise InvalidInput(
            "a token needs scopes",
            sentence("{} is not a scope", repr(unknown[0][:40])) if unknown else "none is named",
            "Send some of {}",
            ", ".join(TOKEN_SCOPES),
        )
    call.admission.require(wanted, "a token with these scopes")
    return wanted


def _expiry(call: Call, text: str, maker: Token | None) -> datetime | None:
    """When the new token expires: not after the token that creates it."""
    latest = maker.expires_at if maker else None
    wanted = expiry_of(text, call.now) if text.strip() else latest
    if latest and (wanted is None or wanted > latest):
        raise NotAllowed(
            "the new token would outlive the one that creates it",
            "that one expires at {}",
            "Choose an earlier time",
            local(latest, call.settings.zone),
        )
    return wanted


def _view(call: Call, token: Token) -> Json:
    zone = call.settings.zone
    moments = {"expires_at": token.expires_at, "revoked_at": token.revoked_at, "last_used_at": call.runtime.token_uses.get(token.id)}
    return {
        "id": token.id,
        "name": token.name,
        "personas": ALL if token.personas is None else list(token.personas),
        "scopes": list(token.scopes),
        "state": token.state(call.now),
        "created_at": local(token.created_at, zone),
        **omit_empty(**{name: local(moment, zone) for name, moment in moments.items()}, is_own=token.id == call.admission.token or None),
    }
