"""MCP Apps: pages that a host shows with the answer of a tool (extension `io.modelcontextprotocol/ui`, 2026-01-26).

Each is one HTML file, assembled of the dashboard's scripts and texts and of `app_pages/`. The pages are public and hold no data: those come
with the answer of the tool, from the host.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.apps import UI_MIME_TYPE, AppConfig, ResourceCSP, app_config_to_meta_dict
from fastmcp.resources import TextResource
from pydantic import AnyUrl

from memory_mcp import __version__
from memory_mcp.server.dashboard.frame import STATIC_FILES
from memory_mcp.server.dashboard.words import WORDS
from memory_mcp.store.graph.schema import ENTITY_TYPES, RELATION_TYPES

PAGES = Path(__file__).with_name("app_pages")
# Nothing is loaded from anywhere, and nothing is sent but through the host.
CLOSED = ResourceCSP(connect_domains=[], resource_domains=[], frame_domains=[], base_uri_domains=[])


@dataclass(frozen=True, slots=True)
class App:
    """A page: what it shows, and its scripts in their order, after the one for messages with the host."""

    description: str
    scripts: tuple[Path, ...]


APPS: Mapping[str, App] = {
    "graph": App(
        "How people and things are connected, as a picture.",
        (STATIC_FILES / "vendor" / "cytoscape-3.34.4.min.js", STATIC_FILES / "graph.js", PAGES / "graph_app.js"),
    ),
    "history": App("What a memory said before.", (PAGES / "history.js", PAGES / "history_app.js")),
    "why": App("Why memories were recalled, part by part of their scores.", (PAGES / "history.js", PAGES / "why_app.js")),
}
# How built-in types are called in Japanese.
TYPES = {type_[0]: type_[1] for type_ in (*ENTITY_TYPES, *RELATION_TYPES)}
_SHARED = PAGES / "host.js"
_STYLES = (STATIC_FILES / "dashboard.css", PAGES / "app.css")
_QUOTED = re.compile(r'"(\w+)"')


def address(name: str) -> str:
    """The address of an app's page."""
    return f"ui://memory-mcp/{name}.html"


def register(mcp: FastMCP, names: Iterable[str]) -> None:
    """Add the pages of these apps to a server."""
    meta = {"ui": app_config_to_meta_dict(AppConfig(csp=CLOSED, prefers_border=True))}
    for name in names:
        about = {"name": f"{name}_app", "description": APPS[name].description, "mime_type": UI_MIME_TYPE, "meta": meta}
        mcp.add_resource(TextResource(uri=AnyUrl(address(name)), text=page(name), **about))


@cache
def page(name: str) -> str:
    """The page of an app."""
    scripts = [path.read_text(encoding="utf-8") for path in (_SHARED, *APPS[name].scripts)]
    styles = "\n".join(path.read_text(encoding="utf-8") for path in _STYLES)
    about = json.dumps({"words": _words_of(scripts), "types": TYPES, "version": __version__}, ensure_ascii=False)
    inside = "\n".join(f"<script>{_inside_a_script(script)}</script>" for script in (f"const ABOUT = {about};", *scripts))
    return (
        f'<!doctype html>\n<html lang="en" data-theme="auto">\n<head>\n<meta charset="utf-8">\n<title>Memory MCP</title>\n<style>{styles}</style>\n'
        f'</head>\n<body class="app">\n<main id="app"></main>\n{inside}\n</body>\n</html>\n'
    )


def _words_of(scripts: Iterable[str]) -> Mapping[str, list[str]]:
    """The texts that scripts name: "score", or all that begin as "part_" does."""
    named = {name for script in scripts if len(script) < 100_000 for name in _QUOTED.findall(script)}
    families = tuple(name for name in named if name.endswith("_"))
    return {name: texts for name, texts in WORDS.items() if name in named or (families and name.startswith(families))}


def _inside_a_script(text: str) -> str:
    """A script, with nothing in it that a browser could take for the end of its element, or for a comment around that."""
    return re.sub(r"<(?=/script|script|!--)", r"\\x3c", text, flags=re.IGNORECASE)
