"""Processes of `memory-mcp` that begin as copies of one that has imported everything: imports are most of the work of a start.

    python fork_server.py        forks a process for each line of JSON on its standard input; writes a line when one starts or ends
    python fork_server.py CODE   has imported the packages of others alone; what it forks runs CODE

What is started like this has its own number, reads its own configuration and environment, and dies of its own signals.
That `python -m memory_mcp` starts, too, is what tests/outside/processes/test_server_process.py and test_cli.py show.
"""

import atexit
import functools
import gc
import importlib
import itertools
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import typer
from made_once import share_tls_context

FORKS = sys.platform == "linux"
# What `memory-mcp` imports at its start, with its first call or later, and what uvicorn and anyio look up by name.
# Not torch: few tests need it.
IMPORTED = (
    "memory_mcp.cli",
    "memory_mcp.app",
    "memory_mcp.features.chat.library",
    "memory_mcp.features.chat.opening",
    "memory_mcp.features.chat.web",
    "memory_mcp.client.bridge",
    "memory_mcp.client.discovery",
    "memory_mcp.server.application",
    "memory_mcp.server.runtime",
    "memory_mcp.transfer.formats",
    "anyio._backends._asyncio",
    "faiss",
    "fastmcp.server.context",
    "fastmcp.server.middleware.dereference",
    "fastmcp.server.providers.prefab_payload",
    "fastmcp.server.providers.prefab_synthesis",
    "fastmcp.server.sessions",
    "fastmcp.server.transforms.catalog",
    "key_value.aio.adapters",
    "key_value.aio.stores.memory",
    "numpy.ma",
    "prometheus_client",
    "rich.progress",
    "typer._click.decorators",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.auto",
)
LONGEST_START = 60  # seconds


class ForkedProcess:
    """A process of the fork server, with what tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, ended: "Future[int]") -> None:
        self.pid, self._ended = pid, ended

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self._ended.result(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("memory-mcp", timeout or 0) from None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks, and the ends of those that it has forked."""

    def __init__(self, environment: Mapping[str, str], *code: str) -> None:
        """`environment` is all that the processes have, but for what each is given. `code`: what they run instead of `memory-mcp`."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, *code], env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._started: dict[int, Future[int]] = {}
        self._ended: dict[int, Future[int]] = {}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def start(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        stdout: Path | None = None,
        moment: str | None = None,
        ordinal: int = 1,
    ) -> ForkedProcess:
        """`memory-mcp` with these arguments, its stderr in `log`. It kills itself at a moment of crashing.py, if one is given."""
        number, started, ended = next(self._numbers), Future[int](), Future[int]()
        request = {
            "number": number,
            "arguments": list(arguments),
            "environment": dict(environment or {}),
            "files": [str(stdin or os.devnull), str(stdout) if stdout else None, str(log)],
            "moment": [moment, ordinal] if moment else None,
        }
        with self._lock:
            self._started[number], self._ended[number] = started, ended
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return ForkedProcess(started.result(LONGEST_START), ended)

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None,
        stdin: bytes | None,
        timeout: float,
        moment: str | None = None,
        ordinal: int = 1,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `memory-mcp` to its end."""
        with tempfile.TemporaryDirectory() as directory:
            given, written, log = (Path(directory) / name for name in ("in", "out", "err"))
            given.write_bytes(stdin or b"")
            process = self.start(arguments, log, environment=environment, stdin=given, stdout=written, moment=moment, ordinal=ordinal)
            try:
                status = process.wait(timeout)
            finally:
                process.kill()
            return subprocess.CompletedProcess(["memory-mcp", *arguments], status, written.read_bytes().decode(), log.read_bytes().decode())

    def close(self) -> None:
        """Ends it. Whatever it has forked has been stopped by who wanted it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LONGEST_START)
        self._listener.join(LONGEST_START)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            buffered = b""
            while received := lines.read(65_536):
                *whole, buffered = (buffered + received).split(b"\n")
                for line in whole:
                    told = json.loads(line)
                    kind = self._started if "pid" in told else self._ended
                    kind.pop(told["number"]).set_result(told.get("pid", told.get("status")))


def _import_all() -> None:
    folder = Path(str(importlib.import_module("memory_mcp.feature").FOLDER))
    for module in IMPORTED:
        if not module.startswith("memory_mcp.features.") or (folder / module.split(".")[2]).exists():
            importlib.import_module(module)


def _import_others() -> None:
    for module in ("apsw", *IMPORTED):
        if not module.startswith("memory_mcp."):
            importlib.import_module(module)


def _forks(code: str) -> None:
    """Serve standard input until it ends."""
    if code:
        _import_others()
    else:
        _import_all()
        _prepare()
    gc.collect()
    gc.freeze()
    lines, answers = os.dup(0), os.dup(1)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the servers, and ends whoever wants them
    signal.set_wakeup_fd(woken)
    selector = selectors.DefaultSelector()
    for descriptor in (lines, wake):
        selector.register(descriptor, selectors.EVENT_READ)
    numbers: dict[int, int] = {}
    buffered = b""
    while True:
        ready = {key.fd for key, _ in selector.select()}
        if wake in ready:
            os.read(wake, 4_096)
            _tell_ended(numbers, answers)
        if lines in ready:
            received = os.read(lines, 65_536)
            if not received:
                return
            *whole, buffered = (buffered + received).split(b"\n")
            for line in whole:
                request = json.loads(line)
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    selector.close()
                    for descriptor in (lines, answers, wake, woken):
                        os.close(descriptor)
                    _become(request, code)
                numbers[pid] = request["number"]
                os.write(answers, json.dumps({"number": request["number"], "pid": pid}).encode() + b"\n")


def _prepare() -> None:
    """Make once what each process would make for itself, and make alike."""
    share_tls_context()
    httpx2.Client().close()
    httpx2.Client(trust_env=False).close()
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(importlib.import_module("memory_mcp.cli").app)


def _tell_ended(numbers: dict[int, int], answers: int) -> None:
    while numbers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        told = {"number": numbers.pop(pid), "status": os.waitstatus_to_exitcode(status)}
        os.write(answers, json.dumps(told).encode() + b"\n")


def _become(request: Mapping[str, Any], code: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, (path, how) in enumerate(zip(request["files"], flags, strict=True)):
        # Without a file of its own the output goes where the tests' errors go: standard output is the fork server's.
        opened = os.open(path, how, 0o600) if path else os.dup(2)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.update(request["environment"])
    time.tzset()
    if request["moment"]:
        moment, ordinal = request["moment"]
        importlib.import_module("crashing").arm(moment, ordinal)
    sys.argv[1:] = request["arguments"]
    try:
        exec(code or "from memory_mcp.cli import main; main()", {})  # noqa: S102  what a test gives
    except SystemExit as ended:
        _end(ended.code if isinstance(ended.code, int) else 0)


def _end(status: int) -> None:
    """End as the interpreter does, but without taking apart all that was imported: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(BrokenPipeError):  # whoever read it has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _forks("".join(sys.argv[1:]))
