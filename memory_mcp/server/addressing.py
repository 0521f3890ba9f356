"""Which persona or pool a request is for: by its URL, its headers, its token, and the settings.

The persona comes from the URL (`/p/{persona}/mcp`), else the `X-Persona` header, else the token if it allows exactly one, else from
`on_missing_persona`. No tool has a persona argument, and a name that can't be used, or that stands in a header with a slip in its own name,
is an error, never a reason to serve another persona.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import Scope

from memory_mcp.errors import InvalidPersonaName, PersonaConflict, PersonaRequired
from memory_mcp.personas.names import addressed_name, canonical_name, sent_name
from memory_mcp.server.auth import Admission
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.sessions import DASHBOARD

HEADER = "x-persona"
POOL_HEADER = "x-pool"
PATH_PERSONA = "memory_mcp.path_persona"  # where the edge leaves the persona of the URL in the ASGI scope
DEFAULT_PERSONA = "default"
# A header's name with so many letters added, left out or changed is a misspelling of X-Persona.
SLIPS = 2
# Where a persona is managed: one from before placeholders were refused is renamed or erased there.
MANAGEMENT = ("/api/persona", DASHBOARD)

OnMissing = Literal["default", "error", "auto"]


def resolve(
    scope: Scope,
    *,
    headers: Sequence[str],
    on_missing: OnMissing,
    existing: Callable[[], Collection[str]],
    token_personas: Collection[str] | None = None,
) -> str:
    """The canonical name that a request means, by its path and the values of its X-Persona `headers`. `token_personas`: the personas of its
    token, None where tokens are not in use."""
    if name := named(scope, headers):
        return name
    if token_personas is not None and len(token_personas) == 1:
        return next(iter(token_personas))
    if token_personas is not None and DEFAULT_PERSONA not in token_personas:
        raise PersonaRequired(
            "no persona is named", "the token is for several", "Send one of them as X-Persona, or begin the path with /p/{persona}"
        )
    if on_missing == "error":
        raise PersonaRequired(
            "no persona is named", "this server serves none by default", "Send an X-Persona header, or begin the path with /p/{persona}"
        )
    if on_missing == "auto" and set(existing()) - {DEFAULT_PERSONA}:
        raise PersonaRequired(
            "no persona is named",
            "this server has several, and must not guess",
            "Send an X-Persona header, or begin the path with /p/{persona}",
        )
    return DEFAULT_PERSONA


def named(scope: Scope, headers: Sequence[str]) -> str | None:
    """The canonical name in the path and the headers of a request; None if it names no persona.

    Raises:
        InvalidPersonaName: the name can't be used.
        PersonaConflict: it names two.
        PersonaRequired: it has none but in a header with a misspelled name.
    """
    canonical = canonical_name if scope["path"].startswith(MANAGEMENT) else addressed_name
    names = {canonical(from_header(header)) for header in headers}
    if len(names) > 1:
        raise PersonaConflict(
            "the request has {} different X-Persona headers", "one call is for one persona", "Send the header once", len(names)
        )
    if not headers and (slip := misspelled(scope["headers"])):
        raise PersonaRequired(
            "the header {} names no persona", "it looks like a misspelling of X-Persona", "Send it as X-Persona", repr(slip)
        )
    path = scope.get(PATH_PERSONA)
    if path is not None:
        names.add(canonical(path))
        if len(names) > 1:
            raise PersonaConflict(
                "the URL and the X-Persona header name different personas", "one call is for one persona", "Send only one of them"
            )
    return names.pop() if names else None


def misspelled(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The name of a header that is X-Persona with at most `SLIPS` letters added, left out or changed; None if there is none."""
    return next((name.decode("latin-1") for name, _ in headers if 0 < _slips(name, HEADER.encode()) <= SLIPS), None)


def _slips(name: bytes, right: bytes) -> int:
    """The Levenshtein distance of two headers' names; more than `SLIPS` where their lengths alone show so."""
    if abs(len(name) - len(right)) > SLIPS:
        return SLIPS + 1
    row = list(range(len(right) + 1))
    for done, letter in enumerate(name.lower(), start=1):
        before, row[0] = row[0], done
        for place, wanted in enumerate(right, start=1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != wanted))
    return row[-1]


def require_own(scope: Scope, admission: Admission, runtime: Runtime) -> None:
    """Raises PersonaElsewhere for a request that names a persona of another cell, and for any of MCP that means one: a client learns so
    before it sends a tool's arguments."""
    cell, path = runtime.personas.cell, scope.get(PATH_PERSONA)
    headers = Headers(scope=scope).getlist(HEADER)
    if cell.is_whole or not (headers or path is not None or scope["path"] == "/mcp"):
        return
    on_missing = runtime.config.current().on_missing_persona
    with suppress(InvalidPersonaName, PersonaConflict, PersonaRequired):  # refused later, in their own words
        cell.require(resolve(scope, headers=headers, on_missing=on_missing, existing=list, token_personas=admission.personas))


def from_header(value: str) -> str:
    """The name in a header's value as Starlette hands it over (latin-1): UTF-8 bytes or percent-encoding, blanks around it dropped."""
    try:
        return sent_name(value.strip(" \t"))
    except UnicodeDecodeError:
        raise InvalidPersonaName(
            "the X-Persona header is not UTF-8", "", "Send the name as UTF-8 or percent-encoded: さくら is %E3%81%95%E3%81%8F%E3%82%89"
        ) from None


def pool_in(headers: Sequence[str]) -> str:
    """The pool that the values of the header name; empty for a value that can't be read, and for more than one."""
    try:
        return unicodedata.normalize("NFC", from_header(headers[0])) if len(headers) == 1 else ""
    except InvalidPersonaName:
        return ""
