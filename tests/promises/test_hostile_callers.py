"""Texts and connections that are made to hold others up: everybody else is answered as before."""

import json
import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from figures import Figure
from processes import RunningServer, serving
from writers import Caller

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BODIES, THOROUGH_BODIES = 150, 600
IMPORTS, SLOW_HEADERS = 50, 50
ROUNDS = 40
# What took seconds took 3 to 45 of them: this is no measure of speed, but of whether one call can still hold everybody up. It counts what the
# server computes meanwhile: on a busy machine everybody waits, for others' sake.
HELD_UP_SECONDS = 2.0
HOSTILE = {
    "one name of thousands of words": "Aaa " * 5_000,
    "names in marks": "".join(f"[[{'森' * length}|Person]]" for length in range(1, 101)) + "森" * 12_000,
    "marks in marks": "[[" * 5_000 + "田中" + "]]" * 5_000,
    "ligatures": "\ufdfa" * 10_000,
    "thousands of names": " ".join(f"Mr. X{chr(65 + number % 26)}{chr(97 + number // 26 % 26)}son met" for number in range(1_200)),
    "one long word": "a" * 200_000,
    "honorifics": "さん" * 60_000,
    "brackets and bars": "[[a|b" * 20_000,
    "days": "10月17日" * 4_000,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("held"), json.dumps({"embeddings_model": None, "reranker_model": None})) as server:
        yield server


def computed_by(server: RunningServer) -> float:
    """The seconds of processors that it has used; where the system doesn't tell, seconds."""
    if sys.platform != "linux":
        return time.monotonic()
    fields = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Watch:
    """Asks /health again and again, and notes how long each answer took, and how much of that the server computed."""

    server: RunningServer
    waits: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._ask, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _ask(self, stop: threading.Event) -> None:
        with httpx2.Client(base_url=self.server.url, trust_env=False, timeout=60) as http:
            while not stop.wait(0.01):
                began, computed = time.monotonic(), computed_by(self.server)
                assert http.get("/health").status_code == 200
                self.waits.append(time.monotonic() - began)
                self.computed.append(computed_by(self.server) - computed)


def test_no_text_holds_the_server_up(server: RunningServer, figure: Figure) -> None:
    watch = Watch(server)
    with Caller(server, "ordinary") as caller:  # what is imported at its first use is no matter of texts
        caller("remember", content="10月17日に新田一郎さんと京都へ行った。I met Sarah.")
        caller("recall", query="新田さん")
    with Caller(server, "hostile") as caller, watch.running():
        for text in HOSTILE.values():
            caller("remember", content=text)
            caller("remember", content="今日は新田一郎さんと会った")
            caller("recall", query="新田さん")
            caller("recall", query=text[:500])
    figure("hostile texts", len(HOSTILE))
    figure("hostile texts: longest wait for /health (s)", round(max(watch.waits), 2))
    assert max(watch.computed) < HELD_UP_SECONDS


@contextmanager
def stalled(server: RunningServer, bodies: int) -> Iterator[None]:
    """Connections that never finish what they began: calls, imports, headers."""
    address = httpx2.URL(server.url)
    head = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Persona: stalled-{}\r\nContent-Length: 9999\r\n"
    with ExitStack() as stack:

        def begin(request: bytes) -> None:
            stack.enter_context(socket.create_connection((address.host, address.port or 80), timeout=60)).sendall(request)

        for number in range(bodies):
            begin(head.format("/mcp" if number % 2 else "/api/purge", number).encode() + b'\r\n{"jsonrpc"')
        for number in range(IMPORTS):
            begin(head.format("/api/import", number).encode() + b'\r\n{"content": "begun')
        for number in range(SLOW_HEADERS):
            begin(head.format("/mcp", number).encode())
        yield


def waits_of(server: RunningServer, persona: str) -> list[float]:
    waits = []
    with Caller(server, persona) as caller:
        for number in range(ROUNDS):
            began = time.monotonic()
            if number % 4:
                caller("recall", query=f"苺 {number}")
            else:
                assert caller("remember", content=f"苺が好き {persona} {number}")["stored"]
            waits.append(time.monotonic() - began)
    return waits


def p95(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=20)[-1]


def test_callers_that_stall_keep_nobody_waiting(tmp_path: Path, figure: Figure, thorough: bool) -> None:
    bodies = THOROUGH_BODIES if thorough else BODIES
    with serving(tmp_path, json.dumps({"embeddings_model": None, "reranker_model": None})) as server:
        waits_of(server, "warm")
        before = waits_of(server, "before")
        with stalled(server, bodies):
            beside = waits_of(server, "beside")  # none was refused
            with Caller(server, "importing") as caller:
                lines = "".join(json.dumps({"content": f"桃 {number}"}) + "\n" for number in range(500)).encode()
                imported = caller._http.post("/api/import", content=lines)
                assert imported.json()["stored"] == 500
    figure("stalled callers", f"{bodies} bodies, {IMPORTS} imports, {SLOW_HEADERS} headers")
    figure("stalled callers: p95 of others' calls, against before", round(p95(beside) / p95(before), 2))
