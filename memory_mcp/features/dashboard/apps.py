"""The pages of MCP Apps, which hosts show with the answer of a tool: each one HTML file, assembled of the dashboard's scripts and texts and
of `app_pages/`."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path

from memory_mcp import __version__
from memory_mcp.features.dashboard.frame import STATIC_FILES
from memory_mcp.features.dashboard.words import WORDS
from memory_mcp.server.feature import App
from memory_mcp.store.graph.schema import ENTITY_TYPES, RELATION_TYPES

PAGES = Path(__file__).with_name("app_pages")
# How built-in types are called in Japanese.
TYPES = {type_[0]: type_[1] for type_ in (*ENTITY_TYPES, *RELATION_TYPES)}
_SHARED = PAGES / "host.js"
_STYLES = (STATIC_FILES / "vendor" / "open-props-sizes-1.7.23.min.css", STATIC_FILES / "dashboard.css", PAGES / "app.css")
_QUOTED = re.compile(r'"(\w+)"')
# Pictures among the properties of the vendor's sheet: no page shows one.
_PICTURE = re.compile(r'--[\w-]{1,60}+:url\("[^"]*+"\);')


@cache
def page(*own: Path) -> str:
    """The page of an app with these scripts, after the one for messages with the host."""
    scripts = [path.read_text(encoding="utf-8") for path in (_SHARED, *own)]
    styles = _PICTURE.sub("", "\n".join(path.read_text(encoding="utf-8") for path in _STYLES))
    about = json.dumps({"words": _words_of(scripts), "types": TYPES, "version": __version__}, ensure_ascii=False)
    inside = "\n".join(f"<script>{_inside_a_script(script)}</script>" for script in (f"const ABOUT = {about};", *scripts))
    return (
        f'<!doctype html>\n<html lang="en" data-theme="auto">\n<head>\n<meta charset="utf-8">\n<title>Memory MCP</title>\n<style>{styles}</style>\n'
        f'</head>\n<body class="app">\n<main id="app"></main>\n{inside}\n</body>\n</html>\n'
    )


def _words_of(scripts: Iterable[str]) -> Mapping[str, list[str]]:
    """The texts that scripts name: "score", or all that begin as "signal_" does."""
    named = {name for script in scripts if len(script) < 100_000 for name in _QUOTED.findall(script)}
    families = tuple(name for name in named if name.endswith("_"))
    return {name: texts for name, texts in WORDS.items() if name in named or (families and name.startswith(families))}


def _inside_a_script(text: str) -> str:
    """A script, with nothing in it that a browser could take for the end of its element, or for a comment around that."""
    return re.sub(r"<(?=/script|script|!--)", r"\\x3c", text, flags=re.IGNORECASE)


APPS: Mapping[str, App] = {
    "graph": App(
        "How people and things are connected, as a picture.",
        partial(page, STATIC_FILES / "vendor" / "cytoscape-3.34.4.min.js", STATIC_FILES / "graph.js", PAGES / "graph_app.js"),
    ),
    "history": App("What a memory said before.", partial(page, PAGES / "history.js", PAGES / "history_app.js")),
    "why": App("Why memories were recalled, part by part of their scores.", partial(page, PAGES / "history.js", PAGES / "why_app.js")),
}
