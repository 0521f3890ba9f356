"""Sessions of the dashboard: a browser can't send a token with every page, so it signs in with one and gets a cookie.

Kept in memory: a restart signs everybody out. The token is looked up again at each request, so that revoking it ends its sessions.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

DASHBOARD = "/ui"
STATIC = f"{DASHBOARD}/static/"
SIGN_IN = f"{DASHBOARD}/sign-in"
COOKIE = "memory_mcp_session"
# Without a request for so long a session ends, and however it is used after so long.
IDLE_SECONDS, LIFE_SECONDS = 30 * 60, 12 * 60 * 60
FRESH_SECONDS = 5 * 60
SESSIONS_KEPT = 1_000


def is_dashboard(path: str) -> bool:
    """Whether a page of the dashboard is at this path."""
    return path == DASHBOARD or path.startswith(f"{DASHBOARD}/")


def cookie_of(scope: Scope, name: str) -> str | None:
    """The value of a cookie that a request sends, None where it sends none or several different ones."""
    values = set()
    for header in (value for key, value in scope["headers"] if key == b"cookie"):
        for part in header.decode("latin-1").split(";"):
            try:
                values |= {morsel.value for key, morsel in SimpleCookie(part.strip()).items() if key == name}
            except CookieError:
                continue
    return values.pop() if len(values) == 1 else None


@dataclass(slots=True)
class _Session:
    token: str
    began: float
    used: float


class Sessions:
    """The sessions in force, and the keys of their forms. Any thread may use it. `cookie_name`: cells behind one router have one each."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, cookie_name: str = COOKIE) -> None:
        self._monotonic, self.cookie_name = monotonic, cookie_name
        # By the digest of the cookie: no cookie can be made from what is in memory. The least recently used is dropped.
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def cookie_of(self, scope: Scope) -> str | None:
        """The cookie of the session that a request belongs to."""
        return cookie_of(scope, self.cookie_name)

    def begin(self, token: str) -> str:
        """Start a session of the token with this id. Returns the cookie."""
        cookie, now = secrets.token_urlsafe(32), self._monotonic()
        with self._lock:
            self._sessions[_digest(cookie)] = _Session(token, now, now)
            if len(self._sessions) > SESSIONS_KEPT:
                self._sessions.popitem(last=False)
        return cookie

    def token_of(self, cookie: str) -> str | None:
        """The id of the token that signed in, None once the session is over."""
        key, now = _digest(cookie), self._monotonic()
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now - session.used > IDLE_SECONDS or now - session.began > LIFE_SECONDS:
                del self._sessions[key]
                return None
            session.used = now
            self._sessions.move_to_end(key)
            return session.token

    def is_fresh(self, cookie: str | None) -> bool:
        """Whether the session has just begun. What outlasts a session needs more than its cookie, which may have been stolen."""
        with self._lock:
            session = self._sessions.get(_digest(cookie or ""))
        return session is not None and self._monotonic() - session.began <= FRESH_SECONDS

    def end(self, cookie: str) -> None:
        """Sign out."""
        with self._lock:
            self._sessions.pop(_digest(cookie), None)

    def form_key(self, cookie: str | None) -> str:
        """The key that a form must send to prove that it is a page of ours, of this session: pages of other sites can't read it."""
        return hmac.new(self._secret, (cookie or "").encode(), hashlib.sha256).hexdigest()

    def is_form_key(self, shown: str, cookie: str | None) -> bool:
        """Whether a form of this session has this key."""
        return hmac.compare_digest(shown.encode(), self.form_key(cookie).encode())


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
