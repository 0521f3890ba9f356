"""The room of tokens: list them, make one and show its secret once, revoke one."""

from typing import Any

from starlette.responses import Response

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.errors import InvalidInput, NotAllowed, TokenRefused
from memory_mcp.features.dashboard.fields import commas
from memory_mcp.features.dashboard.frame import Visit, set_cookie
from memory_mcp.server.actions import tokens
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.errors import status_of
from memory_mcp.server.operation import Json
from memory_mcp.server.refusals import Refused


def overview(visit: Visit) -> Response:
    """List the tokens, and show the form for a new one."""
    return _page(visit, revoked=visit.field("revoked"))


def create(visit: Visit) -> Response:
    """Create a token, and show its secret."""
    authenticator: Authenticator = visit.request.app.state.authenticator
    token = visit.admission.token
    # What a stolen cookie can do ends with its session; with a token of its own it would not.
    if token is not None and not authenticator.is_secret_of(token, visit.field("own_token")):
        visit.admission.note("token", asked="a new token of the dashboard")
        return _page(visit, 403, error=Refused(visit.words("token_confirm_wrong")))
    sent: dict[str, Any] = {name: visit.field(name) for name in ("name", "expires", "all_personas", "turn_on")}
    try:
        made = visit.perform(tokens.create, personas=commas(visit.field("personas")), scopes=visit.fields.get("scopes", []), **sent)
    except (InvalidInput, NotAllowed, TokenRefused) as refused:
        return _page(visit, status_of(refused), error=visit.refused(refused))
    response = visit.page("token_made.html", made=made, is_open=False)
    if "is_first" in made:
        set_cookie(response, visit.request, authenticator.sessions.cookie_name, authenticator.sign_in(made["secret"]))
    return response


def revoke(visit: Visit) -> Response:
    """Revoke a token."""
    revoked = visit.perform(tokens.revoke, id=visit.field("id"))
    return visit.redirect("/house/tokens", revoked=revoked["id"])


def _page(visit: Visit, status: int = 200, error: Refused | None = None, revoked: str = "") -> Response:
    listed = visit.perform(tokens.list_tokens)
    known: list[Json] = listed["tokens"]
    in_force = [token for token in known if token["state"] == "in force"]
    is_new = visit.request.method == "GET"
    proposed = [] if listed["in_use"] else list(TOKEN_SCOPES)
    written = {
        **{name: visit.field(name) for name in ("name", "personas", "expires")},
        "all_personas": not listed["in_use"] if is_new else visit.field("all_personas"),
        "scopes": (proposed or ["read", "write"]) if is_new else visit.fields.get("scopes", []),
    }
    return visit.page(
        "tokens.html",
        status,
        tokens=known,
        tokens_in_force=len(in_force) if visit.admission.personas is None else 2,
        in_use=listed["in_use"],
        scopes=[scope for scope in TOKEN_SCOPES if visit.may(scope)],
        written=written,
        error=error,
        revoked=revoked if revoked in {token["id"] for token in known} else "",
    )
