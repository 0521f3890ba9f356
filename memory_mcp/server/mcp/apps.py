"""MCP Apps: pages that a host shows with the answer of a tool (extension `io.modelcontextprotocol/ui`, 2026-01-26).

A feature brings the pages. They are public and hold no data: those come with the answer of the tool, from the host.
"""

from collections.abc import Iterable, Mapping

from fastmcp import FastMCP
from fastmcp.apps import UI_MIME_TYPE, AppConfig, ResourceCSP, app_config_to_meta_dict
from fastmcp.resources import TextResource
from pydantic import AnyUrl

from memory_mcp.server.feature import App, features

APPS: Mapping[str, App] = {name: app for feature in features() for name, app in feature.apps.items()}
# Nothing is loaded from anywhere, and nothing is sent but through the host.
CLOSED = ResourceCSP(connect_domains=[], resource_domains=[], frame_domains=[], base_uri_domains=[])


def address(name: str) -> str:
    """The address of an app's page."""
    return f"ui://memory-mcp/{name}.html"


def register(mcp: FastMCP, names: Iterable[str]) -> None:
    """Add the pages of these apps to a server."""
    meta = {"ui": app_config_to_meta_dict(AppConfig(csp=CLOSED, prefers_border=True))}
    for name in names:
        about = {"name": f"{name}_app", "description": APPS[name].description, "mime_type": UI_MIME_TYPE, "meta": meta}
        mcp.add_resource(TextResource(uri=AnyUrl(address(name)), text=APPS[name].page(), **about))
