"""A connection to a running server as one persona, shared by the CLI, the stdio bridge and other Python programs."""

import asyncio
import json
import ssl
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2

from memory_mcp.config.proxies import is_here, used_for
from memory_mcp.errors import InvalidInput, MemoryMCPError, ServerUnreachable
from memory_mcp.personas.cells import OWNER_URL_HEADER
from memory_mcp.personas.names import addressed_name, canonical_name
from memory_mcp.personas.server_lock import NOTE_HEADER, YIELD_PATH
from memory_mcp.wording import SENTENCES, Sentence

if TYPE_CHECKING:
    from fastmcp.client.transports import StreamableHttpTransport

C = TypeVar("C", httpx2.Client, httpx2.AsyncClient)

MCP_PATH = "/mcp"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
BRIDGED_ANSWER_SECONDS = 300.0  # the host has a timeout of its own
UPLOAD_BLOCK_BYTES = 64 * 1024

# A light call about the persona.
_AT_ITS_CELL = "/api/import/file"
_START_ONE = "Start one with `memory-mcp serve`, or set its address with --url"


class Connection:
    """The address of the server and the identity of the caller. Holds no socket: each call opens and closes its own."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        persona: str | None = None,
        secret: str | None = None,
        pool: str | None = None,
        *,
        as_stored: bool = False,
    ) -> None:
        """`url` is the server's, with or without `/mcp`. Without a persona, the server chooses the default. `secret` is that of the note in
        the server's data directory. With `pool`, all calls are about that. `as_stored`: the persona exists and is managed, so that its name
        may be a placeholder, from before those were refused.

        Raises:
            InvalidInput: the URL, the token or the persona's name is invalid.
        """
        self.url = _base_url(url)
        self.headers = {**_headers(token, persona, as_stored=as_stored), **({NOTE_HEADER: secret} if secret else {})}
        if pool is not None:
            self.headers["X-Pool"] = quote(pool, safe="")
        self._to_owner = ToOwner(self.url)

    @property
    def mcp_url(self) -> str:
        """The URL of the MCP endpoint."""
        return self.url + MCP_PATH

    def check(self) -> None:
        """Raises ServerUnreachable unless a Memory MCP server answers, and MemoryMCPError if it requires another token."""
        if "version" not in self.get_json("/health"):
            raise self._other_service("its /health has no version")
        if "mode" not in self.get_json("/ready"):  # a server that requires a token answers less without one
            raise _token_missing()

    def instance(self, answer_seconds: float) -> str | None:
        """The name that the server gives to this start of itself; None if there is no server, or one that gives none.

        Sends neither the token nor the secret: it is called before the server is known to be the right one.
        """
        try:
            with self._made(httpx2.Client, base_url=self.url, timeout=answer_seconds) as client:
                name = client.get("/health").json()["instance"]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return None
        return name if isinstance(name, str) else None

    def ask_to_yield(self) -> None:
        """Ask a server that yields to stop; nothing happens if there is none any more."""
        with suppress(httpx2.HTTPError):
            httpx2.post(self.url + YIELD_PATH, headers=self.headers, timeout=CONNECT_SECONDS, **self._trust)

    def get_json(self, path: str, **query: Any) -> dict[str, Any]:
        """Sends GET `path` with the arguments that aren't None, and returns the JSON object of the answer.

        Raises:
            ServerUnreachable: there is no answer, or none from a Memory MCP server.
            MemoryMCPError: the server refuses; the message is the server's.
        """
        return self._answer("GET", path, params=_without_none(query))

    def delete_json(self, path: str, **query: Any) -> dict[str, Any]:
        """Sends DELETE `path`, otherwise as `get_json`."""
        return self._answer("DELETE", path, params=_without_none(query))

    def patch_json(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a JSON object with PATCH `path`, without None values, and returns the JSON object of the answer.

        Raises: as `get_json`.
        """
        return self._answer("PATCH", path, json=_without_none(body))

    def post_json(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a JSON object with POST `path`, without None values, and returns the JSON object of the answer. Has no timeout.

        Raises: as `get_json`.
        """
        return self._answer("POST", path, answer_seconds=None, json=_without_none(body))

    def _answer(self, method: str, path: str, answer_seconds: float | None = ANSWER_SECONDS, **request: Any) -> dict[str, Any]:
        with self._client(answer_seconds) as client:
            response = client.request(method, path, **request)
            self._check(response)
            return self._object(response)

    def import_rows(
        self,
        lines: Iterable[bytes],
        progress: Callable[[int], None] | None = None,
        *,
        on_known: str = "refuse",
        dry_run: bool = False,
        adds_only: bool = False,
    ) -> dict[str, Any]:
        """Streams lines (each without its line feed) to the server and returns its counts: stored, already_known, refused, errors.

        `progress` is called with the number of further lines sent. `on_known` decides on lines whose key is stored with other content
        (refuse, keep, revise). With `dry_run` the server only reports what it would do; with `adds_only` it changes nothing that is stored.
        """
        query = {"on_known": on_known, **{name: "true" for name, wanted in (("dry_run", dry_run), ("adds_only", adds_only)) if wanted}}
        self.get_json(_AT_ITS_CELL)  # finds the persona's cell: lines can't be sent twice
        with self._client(answer_seconds=None) as client:
            response = client.post(
                "/api/import", params=query, content=_blocks(lines, progress), headers={"Content-Type": "application/x-ndjson"}
            )
            self._check(response)
            return self._object(response)

    def export_lines(self, include: Iterable[str] = (), left_out: Callable[[int, int], None] | None = None) -> Iterator[bytes]:
        """The persona's memories as JSON lines, each with its line feed, as they arrive.

        `include` may contain deleted, secret, versions, vectors, context, conversations. `left_out` is called with the numbers of secret memories and of
        lines of the graph left out.
        """
        rest = b""
        # Split at line feeds only: iter_lines also splits at characters such as U+2028, which a memory may contain.
        for block in self.export_blocks("jsonl", include, left_out):
            *whole, rest = (rest + block).split(b"\n")
            yield from (line + b"\n" for line in whole)
        if rest:
            raise ServerUnreachable("the export broke off", "its last line is incomplete", "Check the server's log and try again")

    def export_blocks(self, form: str, include: Iterable[str] = (), left_out: Callable[[int, int], None] | None = None) -> Iterator[bytes]:
        """Yields an export as it arrives; `form` is jsonl, or markdown for a zip of notes."""
        yield from self._blocks("/api/export", {"format": form, **{f"include_{name}": "true" for name in include}}, left_out)

    def graph_blocks(self, form: str, *, include_secret: bool = False) -> Iterator[bytes]:
        """Yields the file of the persona's graph as it arrives; `form` is graphml or json."""
        yield from self._blocks("/api/graph/export", {"format": form, **({"include_secret": "true"} if include_secret else {})})

    def _blocks(self, path: str, query: Mapping[str, str], left_out: Callable[[int, int], None] | None = None) -> Iterator[bytes]:
        with self._client() as client, client.stream("GET", path, params=query) as response:
            if response.is_error:
                response.read()
            self._check(response)
            if left_out:
                left_out(*(int(response.headers.get(f"X-{kind}-Left-Out", 0)) for kind in ("Secret", "Graph")))
            yield from response.iter_bytes()

    def tool_text(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Calls an MCP tool in one request, and returns the text for a model.

        Raises: as `get_json`.
        """
        called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": _without_none(arguments)}}
        with self._client() as client:
            response = client.post(MCP_PATH, json=called, headers={"Accept": "application/json, text/event-stream"})
            self._check(response)
            answer = self._object(response)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise _refusal(str(answer.get("error", {}).get("message", "the server answers without a result")))
        text = "\n".join(str(block.get("text", "")) for block in result.get("content", []))
        if result.get("isError"):
            raise _refusal(text)
        return text

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Calls an MCP tool and returns its structured answer. Arguments that are None are left out.

        Raises:
            ServerUnreachable: there is no answer, or none from a Memory MCP server.
            MemoryMCPError: the tool refuses; the message is the server's.
        """
        self.check()  # first, because its errors are clearer than those of the MCP client
        call = self._call_tool(name, _without_none(arguments))
        if not _in_event_loop():
            return asyncio.run(call)
        with ThreadPoolExecutor(1) as thread:  # a notebook's cell runs in an event loop, which can't be nested
            return thread.submit(asyncio.run, call).result()

    async def call_tool_async(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """As `call_tool`, for callers in an event loop, without blocking it."""
        await asyncio.to_thread(self.check)
        return await self._call_tool(name, _without_none(arguments))

    def transport(self) -> "StreamableHttpTransport":
        """The transport for MCP clients."""
        from fastmcp.client.transports import StreamableHttpTransport  # noqa: PLC0415  it takes 2 s to import

        def http(
            headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None, **options: Any
        ) -> httpx2.AsyncClient:
            limits = timeout or httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=BRIDGED_ANSWER_SECONDS)
            return self._made(httpx2.AsyncClient, headers=headers, timeout=limits, auth=auth or self._to_owner, **options)

        return StreamableHttpTransport(self.mcp_url, headers=self.headers, httpx_client_factory=http)

    def http(self, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
        """An HTTP client with this connection's headers, whose connections stay open."""
        return self._made(httpx2.AsyncClient, base_url=self.url, headers=self.headers, timeout=timeout, auth=self._to_owner)

    def _made(self, kind: type[C], **options: Any) -> C:
        """An HTTP client for this server.

        Raises:
            ProxyUnusable: the environment says to reach it by a proxy that can't be used.
        """
        with used_for(self.url):
            return kind(**options, **self._trust)

    @property
    def _trust(self) -> dict[str, Any]:
        """The certificates to check, and whether to use the proxies of the environment: not for a server on this machine, which they can't reach."""
        uses_proxies = not is_here(self.url)
        return {"trust_env": uses_proxies, "verify": _certificates(from_environment=uses_proxies)}

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # These take 2 s to import, and plain HTTP calls don't need them.
        from fastmcp import Client  # noqa: PLC0415
        from mcp import MCPError  # noqa: PLC0415

        try:
            async with Client(self.transport(), timeout=ANSWER_SECONDS) as client:
                result = await client.call_tool(name, arguments, raise_on_error=False)
        except MCPError as error:
            raise _refusal(str(error)) from error
        except httpx2.HTTPStatusError as error:
            raise _refusal(f"the server answers {error.response.status_code} to {name}") from error
        except (RuntimeError, httpx2.HTTPError, TimeoutError) as error:
            raise ServerUnreachable("{} got no answer from {}", "{}", "Try again", name, self.url, error) from error
        text = "\n".join(getattr(block, "text", "") for block in result.content)
        if result.is_error:
            raise _refusal(text)
        return dict(result.structured_content or json.loads(text))

    @contextmanager
    def _client(self, answer_seconds: float | None = ANSWER_SECONDS) -> Iterator[httpx2.Client]:
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=answer_seconds, write=ANSWER_SECONDS)
        headers = {**self.headers, "Prefer": SENTENCES}
        try:
            with self._made(httpx2.Client, base_url=self.url, headers=headers, timeout=timeout, auth=self._to_owner) as client:
                yield client
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ServerUnreachable("no server answers at {}", "{}", "{}", self.url, error, _START_ONE) from error
        except httpx2.TimeoutException as error:
            raise ServerUnreachable("{} takes too long to answer", "{}", "Try again, or check the server's log", self.url, error) from error
        except httpx2.HTTPError as error:
            raise ServerUnreachable("the connection to {} failed", "{}", "Try again, or check the server's log", self.url, error) from error

    def _check(self, response: httpx2.Response) -> None:
        if response.is_success:
            return
        if response.status_code == httpx2.codes.UNAUTHORIZED and "Authorization" not in self.headers:
            raise _token_missing()
        try:
            sentence = str(_with_sentences(response.json())["error"])
        except (ValueError, KeyError, TypeError):
            raise self._other_service(f"it answers {response.status_code} to {response.request.url.path}") from None
        raise _refusal(sentence)

    def _object(self, response: httpx2.Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            raise self._other_service("its answer is not JSON") from None
        if not isinstance(answer, dict):
            raise self._other_service("its answer is not a JSON object")
        return _with_sentences(answer)

    def _other_service(self, why: str) -> ServerUnreachable:
        return ServerUnreachable("the server at {} is not a Memory MCP server", "{}", "{}", self.url, why, _START_ONE)


class ToOwner(httpx2.Auth):
    """Sends a call again that a cell refuses, to the cell of the persona if the refusal has that one's address, and all later calls at once."""

    def __init__(self, url: str) -> None:
        self._url, self._owner = url, url

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        """As httpx2 has it: yields requests, and gets their responses."""
        path = str(request.url).removeprefix(self._url)
        if self._owner != self._url:
            _lead(request, self._owner + path)
        response = yield request
        owner = response.headers.get(OWNER_URL_HEADER, "").rstrip("/")
        # A token that was sent encrypted is never sent in plain.
        if response.status_code == httpx2.codes.MISDIRECTED_REQUEST and owner.startswith(("https://", f"{urlsplit(self._url).scheme}://")):
            self._owner = owner
            _lead(request, owner + path)
            yield request


def _lead(request: httpx2.Request, url: str) -> None:
    request.url = httpx2.URL(url)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    request.headers.pop(NOTE_HEADER, None)


def persona_header(persona: str, *, as_stored: bool = False) -> str:
    """The value of `X-Persona` for a persona, percent-encoded because many libraries reject raw Japanese in a header.

    Raises:
        InvalidPersonaName: the name is invalid.
    """
    return quote((canonical_name if as_stored else addressed_name)(persona), safe="")


def _headers(token: str | None, persona: str | None, *, as_stored: bool) -> dict[str, str]:
    if token and not (token.isascii() and token.isprintable()):
        raise InvalidInput("the token contains invalid characters", "", "Copy it again")
    return {
        **({"Authorization": f"Bearer {token}"} if token else {}),
        **({"X-Persona": persona_header(persona, as_stored=as_stored)} if persona is not None else {}),
    }


@cache
def _certificates(*, from_environment: bool) -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=from_environment)  # takes a twentieth of a second


def _base_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port) and not parts.query
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput("{} is not the URL of a server", "", "Write it like http://127.0.0.1:8000", repr(url))
    return url.strip().rstrip("/").removesuffix(MCP_PATH)


def _token_missing() -> MemoryMCPError:
    do = "Set it to a token created by `memory-mcp token create --persona NAME`"
    return MemoryMCPError("this server requires a token", "MEMORY_MCP_TOKEN is not set", "{}", do)


def _with_sentences(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer whose sentences have their ids and values, if the server has sent them."""
    known = {str(each): each for each in map(Sentence.of_json, answer.pop(SENTENCES, []))}
    return _replaced(answer, known) if known else answer


def _replaced(value: Any, known: Mapping[str, Sentence]) -> Any:
    if isinstance(value, str):
        return known.get(value, value)
    if isinstance(value, dict):
        return {name: _replaced(inner, known) for name, inner in value.items()}
    return [_replaced(inner, known) for inner in value] if isinstance(value, list) else value


def _refusal(sentence: str) -> MemoryMCPError:
    if isinstance(sentence, Sentence):
        return MemoryMCPError(Sentence(sentence.id.removesuffix("."), sentence.values))
    return MemoryMCPError("{}", "", "", sentence.strip().removesuffix("."))


def _without_none(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _blocks(lines: Iterable[bytes], progress: Callable[[int], None] | None) -> Iterator[bytes]:
    """Joins lines into blocks, since one socket write for each line would take most of the time."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line + b"\n")
        size += len(line) + 1
        if size >= UPLOAD_BLOCK_BYTES:
            yield b"".join(waiting)
            if progress:
                progress(len(waiting))
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
        if progress:
            progress(len(waiting))
