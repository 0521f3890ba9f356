"""The way in: signing in and out, and choosing a persona."""

from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from memory_mcp.errors import TokenRefused
from memory_mcp.features.dashboard import sample
from memory_mcp.features.dashboard.frame import Visit, address_of, own_path, set_cookie
from memory_mcp.server.actions.personas import list_personas
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.public_path import public_path
from memory_mcp.server.sessions import DASHBOARD, SIGN_IN


def sign_in(visit: Visit) -> Response:
    """Ask for a token, and begin a session with it."""
    target = own_path(visit.field("to"))
    if not visit.admission.is_stranger:
        return RedirectResponse(address_of(visit.request.scope, target), status_code=303)
    if visit.request.method == "GET":
        return visit.page("sign_in.html", to=target, is_refused=False)
    authenticator: Authenticator = visit.request.app.state.authenticator
    try:
        cookie = authenticator.sign_in(visit.field("token"), visit.admission.client)
    except TokenRefused as error:
        visit.admission.note("token", asked=f"POST {SIGN_IN}", why=error.why)
        return visit.page("sign_in.html", 401, to=target, is_refused=True)
    response = RedirectResponse(address_of(visit.request.scope, target), status_code=303)
    set_cookie(response, visit.request, authenticator.sessions.cookie_name, cookie)
    return response


def sign_out(visit: Visit) -> Response:
    """End the session."""
    authenticator: Authenticator = visit.request.app.state.authenticator
    sessions = authenticator.sessions
    sessions.end(sessions.cookie_of(visit.request.scope) or "")
    response = RedirectResponse(address_of(visit.request.scope, DASHBOARD), status_code=303)
    response.delete_cookie(sessions.cookie_name, path=public_path(visit.request.scope) or "/", httponly=True, samesite="strict")
    return response


def personas(visit: Visit) -> Response:
    """List the personas that the visitor may see. An only one is opened at once, unless they come to choose or there are other cells."""
    named = visit.field("persona")
    answer = visit.perform(list_personas, after=visit.field("after"))
    listed = answer["personas"]
    if not (named or visit.field("choose") or "cell" in answer) and len(listed) == 1 and "error" not in listed[0]:
        named = listed[0]["name"]
    if named:
        return RedirectResponse(address_of(visit.request.scope, f"/p/{quote(named, safe='')}{DASHBOARD}/today"), status_code=303)
    may_show_sample = sample.may_show(visit) and not listed
    return visit.page(
        "personas.html", may_show_sample=may_show_sample, personas=listed, following=answer.get("next"), cell=answer.get("cell")
    )
