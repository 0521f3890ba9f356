"""JSON over HTTP with a server of models: within a time limit, of a limited size, to the configured address alone."""

import json
import ssl
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2

from memory_mcp.config.proxies import used_for
from memory_mcp.encoders.failures import CircuitBreaker
from memory_mcp.errors import EncoderFailed, ProxyUnusable, without_passwords

MAX_ANSWER_BYTES = 64 * 1024 * 1024
BUSY_SECONDS = 1.0  # how long an overloaded server is left alone, unless its Retry-After has a number
MAX_BUSY_SECONDS = 30.0
_REFUSED_KEY, _BUSY = (401, 403), (429, 503)


@dataclass(frozen=True, slots=True)
class Reply:
    """`content` is None where the body is not JSON."""

    status: int
    content: Any


class Connection:
    """Calls one server. Redirects are not followed: memories go nowhere but to the configured address. Thread-safe."""

    def __init__(self, name: str, url: str, key: str | None, key_variable: str, breaker: CircuitBreaker) -> None:
        """`name` is the model's, for errors; `breaker` records every failure.

        Raises:
            EncoderFailed: the key can't be sent, or the proxy of the environment can't be used.
        """
        if key and not (key.isascii() and key.isprintable()):
            raise EncoderFailed("{} can't be used", "{} contains characters that no header can hold", "", name, key_variable)
        self.name = name
        self.url = url.removesuffix("/v1")  # some servers have paths outside of it that are called, too
        self._key_variable = key_variable
        self._breaker = breaker
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # No proxy of the environment for an unencrypted address: it is in one's own network, and the proxy would read everything.
        uses_proxies = url.startswith("https://")
        try:
            with used_for(url):
                self._http = httpx2.Client(verify=_certificates(), headers=headers, follow_redirects=False, trust_env=uses_proxies)
        except ProxyUnusable as error:
            raise EncoderFailed("{} can't be used: {}", error.why, error.do, name, error.what) from error

    def get(self, path: str, seconds: float) -> Reply:
        """What a path of the server answers."""
        return self._exchange("GET", path, None, time.monotonic() + seconds)

    def post(self, path: str, body: Any, until: float) -> Reply:
        """The answer to a body, by a moment of `time.monotonic`. Statuses of 400 and above are returned if they are about the body.

        Raises:
            EncoderFailed: there is no answer, or none that can be used.
        """
        reply = self._exchange("POST", path, body, until)
        if 300 <= reply.status < 400:
            raise self.failed(f"{self.url}{path} redirects elsewhere, which is not followed")
        if reply.status in (200, 400, 413, 422):
            return reply
        raise self.failed(f"{self.url}{path} answered {reply.status}")

    def failed(self, reason: str, pause_seconds: float | None = None) -> EncoderFailed:
        """The error for a failure, after which the server is left alone for a moment."""
        reason = without_passwords(reason)
        self._breaker.failed(reason, pause_seconds)
        return EncoderFailed("{} failed", reason, "", self.name)

    def close(self) -> None:
        """Closes the connections; calls that are under way fail."""
        self._http.close()

    def _exchange(self, method: str, path: str, body: Any, until: float) -> Reply:
        # A server may close an idle connection at the moment of the next call: these calls can be repeated.
        for attempt in (1, 2):
            try:
                return self._once(method, path, body, until)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError) as error:
                if attempt == 2:
                    raise self.failed(f"{self.url} broke the connection ({type(error).__name__})") from error
            except httpx2.TimeoutException as error:
                raise self.failed(f"{self.url} did not answer in time") from error
            except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, UnicodeError) as error:  # RuntimeError: the client is closed
                raise self.failed(f"{self.url} can't be reached ({type(error).__name__})") from error
        raise AssertionError

    def _once(self, method: str, path: str, body: Any, until: float) -> Reply:
        seconds = max(until - time.monotonic(), 0.001)
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        with self._http.stream(method, self.url + path, content=content, headers=headers, timeout=seconds) as answer:
            if answer.status_code in _REFUSED_KEY:
                raise self.failed(f"{self.url} refuses the key, or wants one: set {self._key_variable}")
            if answer.status_code in _BUSY:
                raise self.failed(f"{self.url} is overloaded ({answer.status_code})", _pause(answer.headers.get("retry-after")))
            read = bytearray()
            for piece in answer.iter_bytes():
                read += piece
                if len(read) > MAX_ANSWER_BYTES:
                    raise self.failed(f"{self.url} answered with more than {MAX_ANSWER_BYTES // 1024**2} MiB")
                if time.monotonic() > until:
                    raise self.failed(f"{self.url} did not answer in time")
        try:
            return Reply(answer.status_code, json.loads(read))
        except (ValueError, RecursionError):
            return Reply(answer.status_code, None)


@cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # takes a tenth of a second


def _pause(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or BUSY_SECONDS), 0.1), MAX_BUSY_SECONDS)
    except ValueError:  # a date
        return BUSY_SECONDS
