"""In which language a client is answered where the answer is ours to word: `ago`, and the time since the last conversation."""

from starlette.datastructures import Headers

from memory_mcp.dates.format import Language, language_of
from memory_mcp.server.request_persona import Call

_KNOWN: tuple[Language, ...] = ("ja", "en")


def client_language(call: Call, said: str = "") -> Language | None:
    """As `language` in config.json says, else the request's Accept-Language, else that of what was `said`. None where nothing tells:
    a memory's own is right then.
    """
    if call.settings.language != "auto":
        return call.settings.language
    return _accepted(Headers(scope=call.scope).get("accept-language", "")) or (language_of(said) if said.strip() else None)


def _accepted(header: str) -> Language | None:
    """The one of ours that the header likes best. What libraries send by themselves (`*`) is nobody's wish."""
    best: tuple[float, Language] | None = None
    for entry in header.split(","):
        name, _, weight = entry.strip().lower().partition(";q=")
        language = next((known for known in _KNOWN if name.partition("-")[0] == known), None)
        try:
            liked = float(weight or 1)
        except ValueError:
            continue
        if language and liked > (best[0] if best else 0):
            best = liked, language
    return best[1] if best else None
