"""A real server in a process of its own, on a free port, with a data directory of its own."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from fork_server import FORKS, ForkedProcess, ForkServer
from places import ROOT, SUPPORT

START_SECONDS = 90  # two processes of tests share the machine, and others may, too
STOP_SECONDS = 60
COMMAND_SECONDS = 100
SPAWNED = (sys.executable, "-m", "memory_mcp")  # as a user starts it

Process = subprocess.Popen[bytes] | ForkedProcess


@dataclass(frozen=True)
class RunningServer:
    """Where a server is and what it works on."""

    url: str
    data: Path
    config: Path
    log: Path
    process: Process

    def memory_mcp(self, *arguments: str, stdin: bytes | None = None, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command of ours that talks to this server."""
        given = {"MEMORY_MCP_TOKEN": token} if token else {}
        return command(*arguments, environment={"MEMORY_MCP_URL": self.url, "MEMORY_MCP_DATA": str(self.data), **given}, stdin=stdin)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it with a signal, unless it has ended; returns its status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


def command(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    spawned: bool = False,
    moment: str | None = None,
    ordinal: int = 1,
) -> subprocess.CompletedProcess[str]:
    """Runs `memory-mcp` to its end, in a process made by the fork server, or `spawned` as a user starts it.

    It kills itself at the `ordinal`-th `moment` of crashing.py, if one is given.
    """
    if FORKS and not spawned:
        return fork_server().run(arguments, environment, stdin, COMMAND_SECONDS, moment, ordinal)
    done = subprocess.run(
        [*_armed(moment, ordinal), *arguments],
        env=clean_environment({**importable(), **(environment or {})} if moment else environment),
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _armed(moment: str | None, ordinal: int) -> Sequence[str]:
    return [sys.executable, str(SUPPORT / "crashing.py"), moment, str(ordinal)] if moment else SPAWNED


def clean_environment(further: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings of whoever runs the tests, and without a hub: no test downloads a model."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MCP_")}
    return {**kept, "HF_HUB_OFFLINE": "1", **(further or {})}


def importable() -> dict[str, str]:
    """The environment in which the modules of tests and the product can be imported."""
    return {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}


@functools.cache
def fork_server() -> ForkServer:
    """The one of this process; conftest.py closes it."""
    return ForkServer(clean_environment(importable()))


def without_fallback(config: str) -> str:
    """A configuration under which nothing takes the place of an absent model, unless it says what does: loading that would take each server seconds."""
    try:
        settings = json.loads(config)
    except ValueError:  # it is to be refused
        return config
    is_searched_by_words = not isinstance(settings, dict) or settings.get("embeddings_model", "") is None
    return config if is_searched_by_words else json.dumps({"embeddings_fallback": None, **settings})


@contextmanager
def serving(
    directory: Path,
    config: str = "{}",
    *,
    data: Path | None = None,
    command: Sequence[str] | None = None,
    forks: ForkServer | None = None,
    environment: Mapping[str, str] | None = None,
    port: int = 0,
    moment: str | None = None,
    ordinal: int = 1,
) -> Iterator[RunningServer]:
    """A server over `data` (`directory`/memory unless said) that answers; stopped at the end.

    The process comes from the fork server, or from `forks`, unless a `command` is given that takes memory-mcp's arguments.
    It kills itself at the `ordinal`-th `moment` of crashing.py, if one is given.
    """
    path, log, data = directory / "config.json", directory / "server.log", data or directory / "memory"
    path.write_text(without_fallback(config), encoding="utf-8")
    log.write_bytes(b"")
    arguments = ["serve", "--port", str(port), "--config", str(path), "--data", str(data)]
    process: Process
    if FORKS and not command:
        process = (forks or fork_server()).start(arguments, log, environment=environment, moment=moment, ordinal=ordinal)
    else:
        process = _started([*(command or _armed(moment, ordinal)), *arguments], log, {**importable(), **(environment or {})})
    try:
        url = _awaited_url(log, process)
        if not moment:  # which may have come
            assert httpx2.get(f"{url}/health", timeout=START_SECONDS, trust_env=False).json()["status"] == "ok"
        yield RunningServer(url, data, path, log, process)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(STOP_SECONDS)


def _started(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(command, env=clean_environment(environment), cwd=ROOT, stdin=subprocess.DEVNULL, stderr=stderr)


def _awaited_url(log: Path, process: Process) -> str:
    pause = threading.Event()
    for _ in range(START_SECONDS * 50):
        ended = process.poll() is not None
        found = re.search(r"Memory MCP listens on (http://[\w.:\[\]]+)\b", log.read_text(encoding="utf-8"))
        if found:
            return found.group(1)
        if ended:
            break
        pause.wait(0.02)
    pytest.fail(f"the server did not start: {log.read_text(encoding='utf-8')}")


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """What a command printed, which must have succeeded."""
    assert done.returncode == 0, done.stderr
    return done.stdout
