"""A whole server on a loopback port of this process, and callers of it in both protocol eras."""

import asyncio
import functools
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from unloaded_models import unloaded_models

from memory_mcp.config.live import LiveConfig
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.server.application import http_application, mcp_server
from memory_mcp.server.bounds import Bounds
from memory_mcp.server.connection import Connection
from memory_mcp.server.import_jobs import ImportJobs
from memory_mcp.server.runtime import Runtime
from memory_mcp.transfer.formats.processes import ReadingProcesses

# Noon of Thursday, 30 October 2025, in Tokyo.
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
NO_MODELS = {"embeddings_model": None, "reranker_model": None}
# Made once: a client makes one of its own otherwise, and reading the certificates takes longer than most tests.
TLS = ssl.create_default_context()
NEVER_SAID = ("Traceback", "pydantic", "http://", "https://", 'File "')


class SharedReaders(ReadingProcesses):
    """The processes that read files for the servers of all tests: starting one takes longer than most tests."""

    def close(self) -> None:
        """Left to the end of the tests."""


READERS = SharedReaders()

Headers = dict[str, str] | list[tuple[str, str | bytes]]

# uvicorn looks ten times a second whether it should end, and pauses as long when it does: most of what a test with a server of its own took.
uvicorn.server.asyncio = SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 20)})


@dataclass
class Clock:
    """The clock of a server, which a test may move."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True)
class Served:
    """A running server: where it listens, what it is made of, where its data are, its clock, and what clients may hold of it."""

    url: str
    port: int
    mcp: FastMCP
    runtime: Runtime
    data: Path
    config: Path
    clock: Clock
    bounds: Bounds

    def configure(self, **settings: Any) -> None:
        """Writes config.json, as its owner would while the server runs."""
        self.config.write_text(json.dumps({**NO_MODELS, **settings}), encoding="utf-8")

    def directory_of(self, persona: str) -> Path:
        return self.data / directory_name(persona)

    def directories(self) -> set[str]:
        return {entry.name for entry in self.data.iterdir() if entry.is_dir() and not entry.name.startswith(".")}


class Caller:
    """One MCP client, seen from a plain test: a call answers with the tool's object, a refusal with its words."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.result(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """The words of a call that must be refused; none of them may come out of a library."""
        result = self.result(tool, arguments)
        words = result.content[0].text
        assert result.is_error, words
        assert not [said for said in NEVER_SAID if said in words], words
        return words

    def result(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.wait(self.client.call_tool, tool, arguments, raise_on_error=False)

    def wait(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._portal.call(lambda: function(*args, **kwargs))


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    """The event loop of the clients."""
    with start_blocking_portal() as portal:
        yield portal


@contextmanager
def _served(directory: Path, settings: dict[str, Any], **parts: Any) -> Iterator[Served]:
    data, config = directory / "memory", directory / "config.json"
    config.write_text(json.dumps({**NO_MODELS, **settings}), encoding="utf-8")
    live = LiveConfig(config)
    clock = Clock()
    personas = Personas(data, cell=Cell.configured(live.current().cell))
    parts = {"imports": ImportJobs(readers=READERS), **parts}
    runtime = Runtime(live, personas, unloaded_models, clock=clock, started_at=NOON, usage=Usage(), **parts)
    mcp = mcp_server(live.current())
    bounds = Bounds()
    application = http_application(mcp, runtime, live.current(), bounds)
    connection = functools.partial(Connection, bounds=bounds)
    server = uvicorn.Server(uvicorn.Config(application, http=connection, log_config=None, access_log=False, timeout_graceful_shutdown=5))
    # IPPROTO_TCP said aloud: only then does asyncio turn off the delay that costs every answer 40 ms.
    # What a server freezes would outlive it here.
    with patch("gc.freeze"), socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{port}", port, mcp, runtime, data, config, clock, bounds)
        finally:
            server.should_exit = True
            thread.join()
            runtime.imports.close()
            runtime.close()
            runtime.personas.close()


@pytest.fixture(scope="session")
def serving() -> Callable[..., Any]:
    """serving(directory, **settings): a context manager around a server of its own, its data and config.json in that directory.

    `parts`: what its runtime has instead of the usual.
    """
    return lambda directory, parts=None, **settings: _served(directory, settings, **(parts or {}))


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server that the tests of a module share, with the settings of the module's mark `served`: each test uses personas of its own."""
    mark = request.node.get_closest_marker("served")
    with _served(tmp_path_factory.mktemp("server"), mark.kwargs if mark else {}) as served:
        yield served


@pytest.fixture
def clock(server: Served) -> Iterator[Clock]:
    """The clock of the shared server; it shows noon again afterwards."""
    yield server.clock
    server.clock.now = NOON


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Served]:
    """A server of this test alone, for what changes its settings or counts its personas."""
    with _served(tmp_path, {}) as served:
        yield served


@pytest.fixture
def era(request: pytest.FixtureRequest) -> str:
    """The revision of the protocol that clients speak: 2026-07-28, which they find out about themselves, and with the mark `both_eras` 2025-11-25, too."""
    return getattr(request, "param", "auto")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The earlier revision is left out of `make check`."""
    if "era" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_eras"):
        metafunc.parametrize("era", ["auto", pytest.param("legacy", marks=pytest.mark.slow)], indirect=True)


@pytest.fixture
def connect(portal: BlockingPortal, era: str) -> Iterator[Callable[..., Caller]]:
    """connect(server, "さくら"): a caller in the era of the test. `headers` and `path` instead of a name for what a client may get wrong."""
    with ExitStack() as stack:

        def connect(server: Served, persona: str | None = None, *, headers: Headers | None = None, path: str = "/mcp") -> Caller:
            sent = list(headers.items()) if isinstance(headers, dict) else (headers or [])
            if persona is not None:
                sent = [("X-Persona", persona.encode())]

            def http(headers: dict[str, str] | None = None, **options: Any) -> httpx2.AsyncClient:
                return httpx2.AsyncClient(headers=[*(headers or {}).items(), *sent], verify=TLS, **options)

            transport = StreamableHttpTransport(server.url + path, httpx_client_factory=http)
            client = stack.enter_context(portal.wrap_async_context_manager(Client(transport, mode=era)))
            return Caller(portal, client)

        yield connect


_numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    """A persona name that no other test has."""
    return f"persona-{next(_numbers)}"


@pytest.fixture
def persona(server: Served, connect: Callable[..., Caller], name: str) -> Caller:
    """A caller of the shared server as a persona that nobody else is."""
    return connect(server, name)


@pytest.fixture
def own_http(own_server: Served) -> Iterator[httpx2.Client]:
    """Plain HTTP to the server of this test alone."""
    with httpx2.Client(base_url=own_server.url, verify=TLS) as client:
        yield client


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    """Plain HTTP to the shared server."""
    with httpx2.Client(base_url=server.url, verify=TLS) as client:
        yield client


@pytest.fixture
def api(http: httpx2.Client, name: str) -> Callable[..., Any]:
    """api(method, path, **sent): the graph's answer, which must be a good one. `sent` is the query of a GET, the body of anything else."""

    def api(method: str, path: str, persona: str = name, **sent: Any) -> Any:
        told = {"params": sent} if method == "GET" else {"json": sent}
        answer = http.request(method, f"/api/graph/{path}", headers={"X-Persona": persona}, **told)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return api


@pytest.fixture
def erase(persona: Caller, http: httpx2.Client, name: str) -> Callable[[str], None]:
    """erase(key): forgets a memory and erases it for good."""

    def erase(key: str) -> None:
        persona("forget", keys=[key])
        headers = {"X-Persona": name}
        asked = http.post("/api/purge", json={"keys": [key]}, headers=headers).json()
        http.post("/api/purge", json={"keys": [key], "confirm": asked["confirm"]}, headers=headers).raise_for_status()

    return erase
