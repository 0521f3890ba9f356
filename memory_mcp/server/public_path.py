"""The path under which a proxy serves the server, such as /memory: pages begin their addresses with it.

The proxy takes it off the paths of requests and says it in `X-Forwarded-Prefix`, which counts from the same proxies as `X-Forwarded-Proto`:
by default those of this machine, else those that uvicorn's FORWARDED_ALLOW_IPS names. For a proxy that can't say it there is `public_path`.
"""

from starlette.datastructures import Headers
from starlette.types import Scope

from memory_mcp.config.values import plain_path

HEADER = "x-forwarded-prefix"
# Where the connection leaves, in the state of the ASGI scope, whether the other side is a proxy that is believed.
FROM_PROXY = "memory_mcp.from_proxy"
PUBLIC_PATH = "memory_mcp.public_path"  # where the edge leaves the path in the ASGI scope


def with_public_path(scope: Scope, configured: str) -> Scope:
    """The scope with the path under which its pages are: that of the header, else the configured one."""
    sent = Headers(scope=scope).getlist(HEADER) if scope.get("state", {}).get(FROM_PROXY) else []
    named = plain_path(sent[0].strip()) if len(sent) == 1 else None
    path = named if named is not None else configured
    return {**scope, PUBLIC_PATH: path} if path else scope


def public_path(scope: Scope) -> str:
    """The path before the addresses of pages; empty where there is none."""
    path: str = scope.get(PUBLIC_PATH, "")
    return path
