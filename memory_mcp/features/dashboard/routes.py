"""The addresses of the dashboard, and its static files."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from memory_mcp.domain import TokenScope
from memory_mcp.features.dashboard import (
    ask,
    chat,
    configuration,
    consent,
    find,
    front,
    imports,
    memories,
    people,
    persona,
    records,
    sample,
    today,
    tokens,
)
from memory_mcp.features.dashboard.frame import STATIC_FILES, Room, Visit, address_of, room
from memory_mcp.server.oauth.resource import AUTHORIZE
from memory_mcp.server.sessions import DASHBOARD, SIGN_IN, STATIC

# Path → what GET shows and what POST does.
_ROOMS: Mapping[str, tuple[Room | None, Room | None]] = {
    "": (front.personas, None),
    "/sign-out": (None, front.sign_out),
    "/find": (find.overview, None),
    "/today": (today.overview, None),
    "/sample": (None, sample.show),
    "/sample/discard": (None, sample.throw_away),
    "/today/decide": (today.decide, None),
    "/today/merge": (None, today.merge),
    "/today/undo": (None, today.undo),
    "/ask": (ask.question, None),
    "/ask/save": (None, ask.save),
    "/ask/context": (ask.context, None),
    "/ask/seen": (ask.seen, None),
    "/ask/figures": (ask.figures, None),
    "/memories": (memories.listing, None),
    "/memories/forget": (None, memories.forget_selected),
    "/memories/restore": (None, memories.restore_selected),
    "/memories/erase": (None, memories.erase),
    "/memories/done": (memories.done, None),
    "/memories/new": (memories.new, memories.add),
    "/memory": (memories.reader, None),
    "/memory/edit": (memories.edit, memories.revise),
    "/memory/version": (None, memories.restore_version),
    "/memory/judge": (None, memories.judge),
    "/memory/unlink": (None, memories.unlink),
    "/memory/replace": (None, memories.replace),
    "/people": (people.listing, None),
    "/people/picture": (people.picture, None),
    "/people/one": (people.one, None),
    "/people/path": (people.path, None),
    "/people/statistics": (people.statistics, None),
    "/people/twice": (people.twice, None),
    "/people/merge": (None, people.merge),
    "/people/add": (None, people.add),
    "/people/change": (None, people.change),
    "/people/relate": (None, people.relate),
    "/chat": (chat.listing, None),
    "/chat/one": (chat.one, None),
    "/chat/say": (None, chat.say),
    "/chat/answer": (None, chat.answer),
    "/chat/rename": (None, chat.rename),
    "/chat/delete": (None, chat.delete),
    "/chat/export": (chat.export, None),
    "/house": (persona.overview, None),
    "/house/export": (persona.export, None),
    "/house/import": (imports.overview, imports.start),
    "/house/import/cancel": (None, imports.cancel),
    "/house/backup": (None, persona.back_up),
    "/house/rename": (None, persona.change),
    "/house/copy": (None, persona.change),
    "/house/merge": (None, persona.change),
    "/house/erase": (persona.erasing, persona.erase),
    "/house/settings": (configuration.overview, configuration.save),
    "/house/log": (records.log, None),
    "/house/privacy": (records.privacy, records.apply_rules),
    "/house/tokens": (tokens.overview, tokens.create),
    "/house/tokens/revoke": (None, tokens.revoke),
}
# Path → the scope without which nothing of a form with a file is read.
_WITH_FILE: Mapping[str, TokenScope] = {"/house/import": "write"}


class _Files(StaticFiles):
    """The address of a file changes with its content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update({"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"})
        return response


async def _root(request: Request) -> Response:
    """Redirect browsers to the dashboard; other clients get status 404."""
    if "text/html" in Headers(scope=request.scope).get("accept", ""):
        return RedirectResponse(address_of(request.scope, DASHBOARD), status_code=303)
    return JSONResponse({"error": "There is nothing here. MCP is at /mcp, the dashboard at /ui."}, status_code=404)


def _routes() -> list[BaseRoute]:
    routes: list[BaseRoute] = [
        Route("/", _root),
        Route(SIGN_IN, room(front.sign_in, open_to_strangers=True), methods=["GET", "POST"]),
        Mount(STATIC.rstrip("/"), _Files(directory=STATIC_FILES)),
    ]
    routes.append(Route(AUTHORIZE, room(consent.consent), methods=["GET", "POST"]))
    for path, (show, act) in _ROOMS.items():
        routes += [Route(f"{DASHBOARD}{path}", room(show), methods=["GET"])] if show else []
        routes += [Route(f"{DASHBOARD}{path}", room(act, takes_file=_WITH_FILE.get(path)), methods=["POST"])] if act else []
    return [*routes, Route(f"{DASHBOARD}/{{rest:path}}", room(Visit.nowhere))]


ROUTES = _routes()
