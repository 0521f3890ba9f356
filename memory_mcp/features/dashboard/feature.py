"""The dashboard: pages for people, at /ui, and pages for hosts that show some with the answer of a tool."""

from memory_mcp.features.dashboard.apps import APPS
from memory_mcp.features.dashboard.frame import refusal_page
from memory_mcp.features.dashboard.routes import ROUTES
from memory_mcp.server.feature import Feature
from memory_mcp.server.sessions import DASHBOARD

FEATURE = Feature(
    routes=ROUTES,
    refusal_page=refusal_page,
    apps=APPS,
    streams={
        f"{DASHBOARD}/house/import": "file",
        f"{DASHBOARD}/house/export": "export",
        f"{DASHBOARD}/chat/export": "export",
        f"{DASHBOARD}/chat/say": "conversation",
    },
)
