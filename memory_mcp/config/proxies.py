"""The SOCKS proxies of the environment: where they are used, and where they are not.

HTTP clients of all libraries make a connection pool for each proxy of the environment, even for those that they will not use, and fail if the
package for SOCKS is not installed. And they would look for this machine behind a proxy, which can't reach it.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from memory_mcp.config.values import is_loopback
from memory_mcp.errors import ProxyUnusable

PACKAGE = "socksio"
_VARIABLES = tuple(spelling(f"{scheme}_proxy") for scheme in ("http", "https", "all") for spelling in (str.lower, str.upper))
_USABLE = frozenset({"socks5", "socks5h"})
_changing = threading.RLock()


def is_here(url: str) -> bool:
    """Whether a URL, or a host with a port, leads to this machine."""
    host = urlsplit(url if "://" in url else f"http://{url}").hostname or ""
    return is_loopback(host) or host.endswith(".localhost") or host in ("0.0.0.0", "::")  # noqa: S104  only compared


@contextmanager
def used_for(url: str) -> Iterator[None]:
    """Make HTTP clients for a URL in the block: they know no SOCKS proxy that they don't need, and for this machine no proxy at all.

    Raises:
        ProxyUnusable: they need one that they can't use.
    """
    socks = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name, "").startswith("socks")}
    if not socks:
        yield
    elif is_here(url):
        with _hidden({name for name in _VARIABLES if name in os.environ}):
            yield
    elif variable := _variable_for(url):
        _require_usable(variable, socks.get(variable, ""), url)
        yield
    else:
        with _hidden(set(socks)):
            yield


def _variable_for(url: str) -> str | None:
    """The variable with the SOCKS proxy by which a URL is called; None if it is called without."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host = parts.hostname or ""
    proxies = getproxies()
    if proxy_bypass(host if parts.port is None else f"{host}:{parts.port}"):
        return None
    scheme = parts.scheme if proxies.get(parts.scheme) else "all"
    named = next((name for name in (f"{scheme}_proxy", f"{scheme}_PROXY".upper()) if os.environ.get(name)), None)
    return named if named and os.environ[named].startswith("socks") else None


def _require_usable(variable: str, proxy: str, url: str) -> None:
    host, kind = urlsplit(url if "://" in url else f"http://{url}").hostname, proxy.partition(":")[0]
    if kind not in _USABLE:
        raise ProxyUnusable(
            "{} can't be reached", "{} names a proxy of the kind {}", "Write it as socks5://HOST:PORT", host, variable, kind
        )
    if find_spec(PACKAGE) is None:
        raise ProxyUnusable(
            "{} can't be reached",
            "{} names a SOCKS proxy, which needs the package {}",
            "Run: pip install {}. Or put the host into NO_PROXY",
            host,
            variable,
            PACKAGE,
            PACKAGE,
        )


@contextmanager
def _hidden(names: set[str]) -> Iterator[None]:
    """Without these variables: libraries read them when a client is made."""
    with _changing:
        kept = {name: os.environ.pop(name) for name in names}
        try:
            yield
        finally:
            os.environ.update(kept)
