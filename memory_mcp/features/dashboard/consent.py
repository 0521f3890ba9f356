"""The page on which a person grants a client personas and scopes: no more than the token with which they signed in."""

import re
from dataclasses import dataclass, replace

from anyio import from_thread
from fastmcp.server.auth.redirect_validation import build_client_redirect
from starlette.responses import RedirectResponse, Response

from memory_mcp.domain import TokenScope
from memory_mcp.errors import InvalidInput, InvalidPersonaName, NotAllowed
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.personas.names import addressed_name
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.oauth.clients import KnownClient, client_of, form_target
from memory_mcp.server.oauth.resource import AUTHORIZE, MCP, OAUTH_SCOPES, USUAL_SCOPES, own_url, persona_in, personas_of_audience
from memory_mcp.server.refusals import Refused
from memory_mcp.store.files.oauth_grants import Asked, grant

# What the client sends, and the page's form sends along.
PARAMETERS = ("response_type", "client_id", "redirect_uri", "scope", "state", "resource", "code_challenge", "code_challenge_method")

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class _Request:
    """What a client asks for. `wrong`: why it is refused, as an error of RFC 6749, once the client is known."""

    client: KnownClient
    return_to: str
    state: str
    resource: str = ""
    challenge: str = ""
    scopes: tuple[TokenScope, ...] = ()
    persona: str | None = None
    wrong: str = ""


def consent(visit: Visit) -> Response:
    """Show who asks for what; grant what the person chose, or nothing, and send them back to the client."""
    if visit.call.settings.oauth.authorization_server != "built_in":
        return visit.nowhere()
    asked = _request(visit)
    if asked.wrong:
        return _back(visit, asked, error=asked.wrong)
    return _decided(visit, asked) if visit.request.method == "POST" else _page(visit, asked)


def _decided(visit: Visit, asked: _Request) -> Response:
    if visit.field("decision") != "grant":
        return _back(visit, asked, error="access_denied")
    if not _is_present(visit):
        visit.admission.note("token", asked=f"POST {AUTHORIZE}")
        return _page(visit, asked, 403, Refused(visit.words("token_confirm_wrong")))
    personas, scopes = _personas(visit, asked), tuple(scope for scope in asked.scopes if scope in visit.fields.get("scopes", []))
    if not personas or not scopes:
        return _page(visit, asked, 400, Refused(visit.words("consent_nothing")))
    granted = Asked(
        client_id=asked.client.id,
        client_name=asked.client.name,
        redirect_uri=asked.return_to,
        challenge=asked.challenge,
        resource=asked.resource,
        owner=visit.admission.token or "",
        personas=personas,
        scopes=scopes,
    )
    code = grant(visit.call.runtime.personas.directory, granted, visit.call.now)
    visit.call.note_event("grant", to=asked.client.host or asked.client.id)
    return _back(visit, asked, code=code)


def _request(visit: Visit) -> _Request:
    """What the client asks for.

    Raises:
        InvalidInput: it is not known who asks, or whether this is the client's address: then there is no redirect.
        NotAllowed: the visitor can grant nothing of it.
    """
    for name in PARAMETERS:
        if len(visit.fields.get(name, [])) > 1:
            raise InvalidInput("{} is sent twice", "", "Connect the client again", name)
    authenticator: Authenticator = visit.request.app.state.authenticator
    registered = authenticator.oauth.registry.current().clients
    client = from_thread.run(client_of, visit.field("client_id"), registered, visit.call.runtime.fetch_document)
    return_to = _sent(visit, "redirect_uri")
    if not client.may_return_to(return_to):
        raise InvalidInput("the client may not be answered there", "it has not named this redirect address", "Connect the client again")
    return _detailed(visit, _Request(client, return_to, _sent(visit, "state")))


def _sent(visit: Visit, name: str) -> str:
    """A parameter as it was sent, to the last space: the client compares what comes back."""
    return visit.fields.get(name, [""])[-1]


def _detailed(visit: Visit, asked: _Request) -> _Request:
    """The same with what is asked for, or with what is wrong with that."""
    if visit.field("response_type") != "code":
        return replace(asked, wrong="unsupported_response_type")
    # Without a method a client means `plain`, which any reader of the request can answer.
    challenge = visit.field("code_challenge")
    if visit.field("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        return replace(asked, wrong="invalid_request")
    oauth = visit.call.settings.oauth
    resource = visit.field("resource") or own_url(oauth, MCP)
    if personas_of_audience(oauth, [resource]) == frozenset():
        return replace(asked, wrong="invalid_target")
    persona = persona_in(resource.removeprefix(own_url(oauth)))
    if persona is not None and not visit.admission.reaches(persona):
        raise visit.admission.foreign(persona)
    wanted = visit.field("scope").split()
    known = [scope for scope in OAUTH_SCOPES if scope in wanted]
    if wanted and not known:
        return replace(asked, wrong="invalid_scope")
    scopes = tuple(scope for scope in (known or USUAL_SCOPES) if visit.may(scope))
    if not scopes:
        raise NotAllowed(
            "your token can grant nothing of this", "the client asks for {}", "Use another token", ", ".join(known or USUAL_SCOPES)
        )
    return replace(asked, resource=resource, challenge=challenge, scopes=scopes, persona=persona)


def _is_present(visit: Visit) -> bool:
    """Whether the owner of the token is there, and not only the cookie of their session."""
    authenticator: Authenticator = visit.request.app.state.authenticator
    if authenticator.sessions.is_fresh(authenticator.sessions.cookie_of(visit.request.scope)):
        return True
    return authenticator.is_secret_of(visit.admission.token, visit.field("own_token"))


def _offered(visit: Visit, asked: _Request) -> list[str]:
    """The personas to choose from: the one of the address, else those of the visitor's token, which may not exist yet."""
    if asked.persona is not None:
        return [asked.persona]
    return sorted({*visit.call.visible_personas(), *(visit.admission.personas or ())})


def _personas(visit: Visit, asked: _Request) -> tuple[str, ...]:
    """The chosen personas, which are the visitor's.

    Raises:
        NotAllowed: one is not.
    """
    if asked.persona is not None:
        return (asked.persona,)
    named = [name for name in (*visit.fields.get("personas", []), visit.field("further")) if name.strip()]
    try:
        chosen = tuple(dict.fromkeys(addressed_name(name) for name in named))
    except InvalidPersonaName as error:
        raise InvalidInput(error.what, error.why, error.do) from error
    for name in chosen:
        if not visit.admission.reaches(name):
            visit.admission.note("persona", persona=name)
            raise visit.admission.foreign(name)
    return chosen


def _page(visit: Visit, asked: _Request, status: int = 200, error: Refused | None = None) -> Response:
    authenticator: Authenticator = visit.request.app.state.authenticator
    offered = _offered(visit, asked)
    response = visit.page(
        "consent.html",
        status,
        client=asked.client,
        returns_to=form_target(asked.return_to),
        sent={name: _sent(visit, name) for name in PARAMETERS if _sent(visit, name)},
        offered=offered,
        chosen=visit.fields.get("personas", []) if status != 200 else offered if len(offered) == 1 else [],
        may_name=asked.persona is None and visit.admission.personas is None,
        scopes=asked.scopes,
        is_fresh=authenticator.sessions.is_fresh(authenticator.sessions.cookie_of(visit.request.scope)),
        error=error,
    )
    # Browsers apply the policy for forms to where an answer leads, too.
    policy = response.headers["Content-Security-Policy"]
    response.headers["Content-Security-Policy"] = policy.replace("form-action 'self'", f"form-action 'self' {form_target(asked.return_to)}")
    return response


def _back(visit: Visit, asked: _Request, **answer: str) -> Response:
    """Send the person back to the client, and say who answers (RFC 9207), so that no other server's answer is taken for it."""
    state = {"state": asked.state} if asked.state else {}
    address = build_client_redirect(asked.return_to, {**answer, **state}, iss=own_url(visit.call.settings.oauth))
    return RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
