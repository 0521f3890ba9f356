"""What all pages share: who looks and in which language, the headers, forms that only our pages can send, and refusals."""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import jinja2
import pydantic
from anyio import from_thread
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Message, Scope

from memory_mcp import __version__
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.config.values import is_loopback
from memory_mcp.dates.format import Language, ago
from memory_mcp.domain import TokenScope
from memory_mcp.errors import BodyTooLong, InvalidInput, MemoryMCPError, NotAllowed, PersonaElsewhere, TokenRefused, WrongMediaType
from memory_mcp.features.dashboard import looks
from memory_mcp.features.dashboard.words import Words
from memory_mcp.server.actions.imports import UPLOAD_LIMIT
from memory_mcp.server.addressing import PATH_PERSONA
from memory_mcp.server.answers import turn_of
from memory_mcp.server.arguments import Arguments
from memory_mcp.server.auth import ADMISSION, Admission, Authenticator
from memory_mcp.server.bodies import too_long
from memory_mcp.server.call import TURN, Call, accepted_language, call_of, client_language
from memory_mcp.server.errors import argument_problems, refusal_headers, status_of
from memory_mcp.server.feature import operations
from memory_mcp.server.http.requests import body_within
from memory_mcp.server.operation import Json, Operation
from memory_mcp.server.public_path import public_path
from memory_mcp.server.refusals import Refused, refused
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.sessions import DASHBOARD, SIGN_IN, STATIC, cookie_of

FORM_KEY = "form_key"
FORM = "application/x-www-form-urlencoded"
FIELDS_LIMIT, FORM_LIMIT = 1_000, 4 * 1024 * 1024
FILE_BLOCK = 256 * 1024
# A choice that a link makes (`?lang=ja`) and a cookie keeps, by the cookie's name.
CHOICES: Mapping[str, tuple[str, ...]] = {"lang": ("ja", "en"), "theme": ("auto", "light", "dark"), "banner": ("closed",)}
CHOICE_SECONDS = 365 * 24 * 60 * 60
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With `no-referrer` browsers would hide from us, too, which page a form comes from.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
STATIC_FILES = Path(__file__).with_name("static")
# The pages in the order of the menu: path, the name of its text, and the scopes of which a visitor needs one.
ROOMS: tuple[tuple[str, str, tuple[TokenScope, ...]], ...] = (
    ("/today", "today", ("read",)),
    ("/memories", "memories", ("read",)),
    ("/ask", "ask", ("read",)),
    ("/people", "people", ("read",)),
    ("/chat", "chat", ("read",)),
    ("/house", "house", ("admin", "export", "write")),
)
# The same for the pages of the house.
HOUSE: tuple[tuple[str, str, tuple[TokenScope, ...]], ...] = (
    ("/house", "house_persona", ("admin", "export", "write")),
    ("/house/import", "import", ("write",)),
    ("/house/log", "log_room", ("admin",)),
    ("/house/privacy", "privacy_room", ("admin",)),
    ("/house/settings", "config_room", ("admin",)),
    ("/house/tokens", "tokens_room", ("admin",)),
)
# The pages of the rooms that have several.
TABS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "ask": (("/ask", "ask"), ("/ask/context", "context"), ("/ask/figures", "figures")),
    "people": (
        *(("/people", "people_list"), ("/people/picture", "picture"), ("/people/path", "path")),
        *(("/people/twice", "twice"), ("/people/statistics", "statistics")),
    ),
}
# Pages about another feature, by one of its operations.
OF_FEATURES: Mapping[str, str] = {"/chat": "list_conversations", "/people": "list_entities", "/ask/figures": "recall_figures"}
# Those of the whole server, for tokens of all personas.
OF_SERVER = frozenset({"/house/settings"})

_CODE = re.compile("`([^`]+)`")
# A name marked with its type, [[健太|Person]]; not the [[ -f x ]] of a shell.
# A text that is cut may end within a mark.
_MARKED = re.compile(r"\[\[([^\[\]|\s][^\[\]|]*)(?:\|\w*(?:\]\]|\]?(?=…\Z))|(?=…\Z))")
_OURS = re.compile(rf"(/p/[^/?#\\]+)?{DASHBOARD}([/?][^\\]*)?")


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for a page: who asks for which persona, and what the query or the form holds."""

    request: Request
    call: Call
    language: Language
    fields: Mapping[str, list[str]]
    files: Mapping[str, UploadFile] = field(default_factory=dict)

    @property
    def admission(self) -> Admission:
        return self.call.admission

    def may(self, *scopes: TokenScope) -> bool:
        """Whether the visitor's token has these scopes."""
        return self.admission.scopes.issuperset(scopes)

    def field(self, name: str) -> str:
        """The last value of a field of the query or the form; empty without one. Browsers send the line ends of Windows."""
        return self.fields.get(name, [""])[-1].replace("\r\n", "\n").strip()

    @property
    def words(self) -> Words:
        """The texts in the language of the page."""
        return Words(self.language)

    def has(self, path: str) -> bool:
        """Whether the feature that a page is about is there."""
        return all(self.offers(name) for about, name in OF_FEATURES.items() if path == about or path.startswith(f"{about}/"))

    def offers(self, name: str) -> bool:
        """Whether a feature brings this operation."""
        return name in operations()

    def perform(self, action: Operation | str, **arguments: Any) -> Json:
        """The answer of an operation, as a tool or a route gives it to the same token; that of another feature by its name.

        Raises:
            PageMissing: no feature brings it.
            NotAllowed: the token lacks a scope.
            InvalidInput: an argument can't be used.
            MemoryMCPError: what the operation raises.
        """
        found = known(action)
        return found(self.call, self._checked(found, arguments))

    def of_persona(self, name: str) -> "Visit":
        """The same visit, now, of another persona.

        Raises:
            NotAllowed: that one is not the token's.
        """
        call = replace(self.call, scope={**self.call.scope, PATH_PERSONA: name}, headers=())
        self.admission.require_persona(call.persona_name())
        request = Request({**self.request.scope, PATH_PERSONA: name}, self.request.receive)
        return replace(self, call=call, request=request)

    def stream(self, action: Operation | str, body: str | UploadFile = "", **arguments: Any) -> Response:
        """The same of an operation that reads a body or answers with a file: its response."""

        async def receive() -> Message:
            if isinstance(body, str):
                return {"type": "http.request", "body": body.encode(), "more_body": False}
            block = await body.read(FILE_BLOCK)
            return {"type": "http.request", "body": block, "more_body": bool(block)}

        found = known(action)
        # The page has its turn already.
        request = Request({**self.request.scope, TURN: nullcontext}, receive)
        response: Response = from_thread.run(found.function, request, self._checked(found, arguments))
        response.headers.update(HEADERS)
        return response

    def _checked(self, action: Operation, arguments: Mapping[str, Any]) -> Arguments:
        self.admission.require(action.needs, action.name)
        try:
            return action.arguments.model_validate(arguments)
        except pydantic.ValidationError as error:
            raise InvalidInput("{}", "", "", "; ".join(argument_problems(error, list(action.arguments.model_fields)))) from error

    def trying(self, settings: Settings) -> "Visit":
        """The same visit under other settings."""
        call = replace(self.call, is_trial=True)
        call.settings = settings
        return replace(self, call=call)

    def as_model(self) -> "Visit":
        """The same visit as a model's client makes it: without a language of its own."""
        return replace(self, call=replace(self.call, scope={**self.call.scope, "headers": _without_language(self.call.scope)}))

    def url(self, path: str = "", **query: Any) -> str:
        """The address of a page about the same persona; empty parts of the query are left out."""
        return _address(self.request.scope, f"{DASHBOARD}{path}", query)

    def here(self, **changed: Any) -> str:
        """The address of this page with something else in its query."""
        if self.request.method == "POST":
            return self.url(**changed)
        return self.url(self.request.url.path.removeprefix(DASHBOARD), **{**self.fields, **changed})

    @property
    def rooms(self) -> list[tuple[str, str]]:
        """The rooms of a persona that the visitor may open: path and the name of its text."""
        return [(path, name) for path, name, scopes in ROOMS if any(map(self.may, scopes)) and self.has(path)]

    @property
    def house_rooms(self) -> list[tuple[str, str]]:
        """The pages of the house that the visitor may open: path and the name of its text."""
        sees_server = self.admission.personas is None
        return [(path, name) for path, name, scopes in HOUSE if any(map(self.may, scopes)) and (sees_server or path not in OF_SERVER)]

    def redirect(self, path: str, **query: Any) -> Response:
        """Send the browser to another page."""
        return RedirectResponse(self.url(path, **query), status_code=303)

    def redirect_home(self) -> Response:
        """Send the browser to the choice of a persona."""
        return RedirectResponse(f"{address_of(self.request.scope, DASHBOARD)}?choose=1", status_code=303)

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """Render a page."""
        authenticator: Authenticator = self.request.app.state.authenticator
        persona = self.request.scope.get(PATH_PERSONA)
        shared = {
            "visit": self,
            "persona": persona,
            "rooms": self.rooms if persona is not None else [],
            "form_key": authenticator.sessions.form_key(authenticator.sessions.cookie_of(self.request.scope)),
            "is_signed_in": self.admission.token is not None,
            "is_open": self.admission.token is None and not self.admission.is_stranger,
        }
        return _rendered(template, self.request.scope, self.language, status, **{**shared, **context})

    def nowhere(self) -> Response:
        """The page that says that there is no such page."""
        return self.page("refusal.html", 404, error=Refused(self.words("nowhere")))

    def refused(self, error: MemoryMCPError) -> Refused:
        """The wording of an error in the language of the page."""
        return refused(error, self.language, self.call.settings.privacy)

    def refusal(self, error: MemoryMCPError) -> Response:
        """The page of a request that was refused."""
        response = self.page("refusal.html", status_of(error), error=self.refused(error))
        response.headers.update(refusal_headers(error))
        return response


class PageMissing(Exception):
    """A page is about a feature that isn't there."""


def known(action: Operation | str) -> Operation:
    """An operation; that of another feature by its name.

    Raises:
        PageMissing: no feature brings it.
    """
    if isinstance(action, Operation):
        return action
    if action not in operations():
        raise PageMissing
    return operations()[action]


Room = Callable[[Visit], Response]


def room(show: Room, *, open_to_strangers: bool = False, takes_file: TokenScope | None = None) -> Callable[[Request], Awaitable[Response]]:
    """A handler of requests: it asks strangers to sign in, refuses forms of other sites, and runs `show` on a worker thread.

    `takes_file`: a form may bring a file, if the token has this scope.
    """

    async def handle(request: Request) -> Response:
        admission: Admission = request.scope[ADMISSION]
        if admission.is_stranger and not open_to_strangers:
            wanted = {} if request.method == "POST" else {"to": _path(request.scope, request.url.path, parse_qs(request.url.query))}
            return RedirectResponse(_address(request.scope, SIGN_IN, wanted), status_code=303)
        if chosen := _chosen(request):
            return chosen
        try:
            if request.method == "POST" and _media_type(request) == "multipart/form-data" and takes_file:
                await run_in_threadpool(_require_writing, request, takes_file)
                return await _with_file(show, request)
            fields = await _fields(request)
        except MemoryMCPError as error:
            return refusal_page(request.scope, error)
        except ClientDisconnect:
            return Response(status_code=400)  # the client never reads it
        async with turn_of(request.scope):
            return await run_in_threadpool(_shown, show, request, fields)

    handle.__name__ = show.__name__
    return handle


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", FORM).partition(";")[0].strip().lower()


def _require_writing(request: Request, scope: TokenScope) -> None:
    """Raises NotAllowed before anything of a file is read, where the visitor may not import it."""
    call = call_of(request)
    call.admission.require([scope], "an import")
    call.writable_name()


async def _with_file(show: Room, request: Request) -> Response:
    """The page of a form that sends a file, which may be large: nothing of one that no page of ours has sent is read."""
    if not _is_from_here(request):
        return await run_in_threadpool(_shown, show, request, {})
    parser = MultiPartParser(request.headers, _limited(request.stream()), max_files=1, max_fields=FIELDS_LIMIT, max_part_size=FORM_LIMIT)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise InvalidInput("the form can't be read", "it is damaged, or too long", "Open the page again, and send it from there") from error
    try:
        fields: dict[str, list[str]] = {}
        for name, value in form.multi_items():
            if isinstance(value, str):
                fields.setdefault(name, []).append(value)
        files = {name: value for name, value in form.multi_items() if isinstance(value, UploadFile) and value.filename}
        async with turn_of(request.scope):
            return await run_in_threadpool(_shown, show, request, fields, files)
    finally:
        await form.close()


async def _limited(stream: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    size = 0
    async for block in stream:
        size += len(block)
        if size > UPLOAD_LIMIT:
            raise BodyTooLong("the file is too large", "{} GiB are the limit here", "Use `memory-mcp import FILE`", UPLOAD_LIMIT // 1024**3)
        yield block


def _shown(show: Room, request: Request, fields: Mapping[str, list[str]], files: Mapping[str, UploadFile] | None = None) -> Response:
    call = call_of(request)
    language = cast("Language | None", _choice(request.scope, "lang")) or client_language(call) or "en"
    # The operations word what they say in the language of the page.
    headers = [*_without_language(call.scope), (b"accept-language", language.encode())]
    # Who looks here has not used what they see.
    call = replace(call, scope={**call.scope, "headers": headers}, runtime=replace(call.runtime, usage=None))
    visit = Visit(request, call, language, fields, files or {})
    try:
        _check_address(visit)
        if request.method == "POST":
            _check_form(visit)
        return show(visit)
    except PageMissing:
        return visit.nowhere()
    except MemoryMCPError as error:
        return visit.refusal(error)


def _without_language(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in scope["headers"] if name != b"accept-language"]


async def _fields(request: Request) -> dict[str, list[str]]:
    """The fields of the form, or of the query."""
    text = request.url.query
    if request.method == "POST":
        if _media_type(request) != FORM:
            raise WrongMediaType(
                "a form of this kind is not taken here", "it would bring a file", "Open the page again, and send it from there"
            )
        text = (await body_within(request, FORM_LIMIT, too_long(request.url.path, FORM_LIMIT))).decode("utf-8", "replace")
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=FIELDS_LIMIT)
    except ValueError:
        return {}


def _check_address(visit: Visit) -> None:
    """Raises NotAllowed for a browser on another machine where no tokens are in use."""
    if visit.admission.token is None and not visit.admission.is_stranger and not is_loopback(visit.request.url.hostname or ""):
        raise NotAllowed(
            "without tokens the dashboard is for this machine alone",
            "the address in the browser is another machine's name",
            "Create a token with `memory-mcp token create --persona NAME`, or open it as http://127.0.0.1 on the machine itself",
        )


def _check_form(visit: Visit) -> None:
    """Raises NotAllowed for a form that no page of ours has sent: other pages of this machine count as the same site to a browser."""
    authenticator: Authenticator = visit.request.app.state.authenticator
    sessions = authenticator.sessions
    if not (_is_from_here(visit.request) and sessions.is_form_key(visit.field(FORM_KEY), sessions.cookie_of(visit.request.scope))):
        visit.admission.note("form", asked="a form of the dashboard")
        raise NotAllowed("this form was not accepted", "it is not of this session", "Open the page again, and send it from there")


def _is_from_here(request: Request) -> bool:
    """Whether a form was sent by a page at the server's own address, by the browser's headers."""
    origin = request.headers.get("origin")
    is_own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    return is_own and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _chosen(request: Request) -> Response | None:
    """The answer to a link that chooses a language or a theme: the same page without the choice in its address."""
    query = parse_qs(request.url.query, keep_blank_values=True)
    chosen = {name: query[name][-1] for name, known in CHOICES.items() if query.get(name, [""])[-1] in known}
    if not chosen or request.method == "POST":
        return None
    rest = {name: values for name, values in query.items() if name not in CHOICES}
    response = RedirectResponse(_address(request.scope, request.url.path, rest), status_code=303)
    for name, value in chosen.items():
        set_cookie(response, request, f"memory_mcp_{name}", value, max_age=CHOICE_SECONDS)
    return response


def set_cookie(response: Response, request: Request, name: str, value: str, max_age: int | None = None) -> None:
    """Set a cookie that no script and no other site sees, until the browser is closed if it has no `max_age`."""
    path = public_path(request.scope) or "/"
    response.set_cookie(name, value, max_age=max_age, path=path, httponly=True, samesite="strict", secure=_is_secure(request))


def _is_secure(request: Request) -> bool:
    """Whether the browser uses TLS: with this server, or, at its public address, with a proxy, which may not report it."""
    runtime: Runtime = request.app.state.runtime
    public = urlsplit(runtime.config.current().oauth.public_url or "")
    return request.url.scheme == "https" or (public.scheme == "https" and request.url.hostname == public.hostname)


def _choice(scope: Scope, name: str) -> str | None:
    value = cookie_of(scope, f"memory_mcp_{name}")
    return value if value in CHOICES[name] else None


def address_of(scope: Scope, path: str) -> str:
    """The address of a path of the dashboard, as the browser knows it."""
    return public_path(scope) + path


def _address(scope: Scope, path: str, query: Mapping[str, Any]) -> str:
    """The address of a path about the persona of the request; empty parts of the query are left out."""
    return address_of(scope, _path(scope, path, query))


def _path(scope: Scope, path: str, query: Mapping[str, Any]) -> str:
    """The same without what a proxy takes off."""
    persona = scope.get(PATH_PERSONA)
    prefix = f"/p/{quote(persona, safe='')}" if persona is not None else ""
    sent = urlencode({name: value for name, value in query.items() if value not in (None, "", [], [""])}, doseq=True)
    return f"{prefix}{path}{f'?{sent}' if sent else ''}"


def own_path(path: str) -> str:
    """The path of one of our pages; anything else is the first page."""
    return path if _OURS.fullmatch(path) else DASHBOARD


def refusal_page(scope: Scope, error: MemoryMCPError) -> Response:
    """The page of a request that was not let in; where the persona is on another server, or a router took the name for another, the way
    there.
    """
    if isinstance(error, PersonaElsewhere) and scope["method"] == "GET" and (error.url or error.persona != scope.get(PATH_PERSONA)):
        query = parse_qs(scope["query_string"].decode("latin-1"))
        path = _path({**scope, PATH_PERSONA: error.persona}, scope["path"], query)
        return RedirectResponse(error.url + path if error.url else address_of(scope, path), status_code=303)
    language = accepted_language(Headers(scope=scope).get("accept-language", "")) or "en"
    response = _rendered("refusal.html", scope, language, status_of(error), visit=None, error=refused(error, language, Privacy()))
    response.headers.update({name: value for name, value in refusal_headers(error).items() if not isinstance(error, TokenRefused)})
    return response


def _rendered(template: str, scope: Scope, language: Language, status: int, **context: Any) -> HTMLResponse:
    text = (
        _environment()
        .get_template(template)
        .render(
            t=Words(language),
            language=language,
            theme=_choice(scope, "theme") or "auto",
            is_banner_closed=_choice(scope, "banner") is not None,
            root=public_path(scope),
            static=lambda name: address_of(scope, static_address(name)),
            icon=lambda name: looks.icon(address_of(scope, static_address(looks.ICONS)), name),
            **context,
        )
    )
    return HTMLResponse(text, status_code=status, headers=HEADERS)


def unmarked(text: str) -> str:
    """A text with its marked names, [[美咲|Person]], as names."""
    return _MARKED.sub(r"\1", text)


@jinja2.pass_context
def _minute(context: jinja2.runtime.Context, moment: str) -> str:
    return looks.moment(moment, context["language"], context["visit"].call.local_now.year)


@jinja2.pass_context
def _ago(context: jinja2.runtime.Context, moment: str) -> str:
    call: Call = context["visit"].call
    return ago(datetime.fromisoformat(moment), call.local_now, context["language"], call.settings.zone)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        version=__version__, choices=CHOICES, icon_of=looks.ICON_OF, other_icon=looks.OTHER_ICON, avatar=looks.avatar, tabs_of=TABS
    )
    environment.filters.update(weekday=looks.weekday, month=looks.month, days_until=looks.days_until)
    environment.filters.update(minute=_minute, ago=_ago)
    environment.filters["coded"] = lambda text: Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  escaped before
    environment.filters["unmarked"] = unmarked
    environment.filters["pretty"] = lambda tree: json.dumps(tree, ensure_ascii=False, indent=2)
    return environment


@cache
def static_address(name: str) -> str:
    """The address of a static file, which changes with its content: browsers keep it for good."""
    return f"{STATIC}{name}?v={hashlib.sha256(STATIC_FILES.joinpath(name).read_bytes()).hexdigest()[:12]}"
