"""Servers that have imported what they need before they are wanted: a kill is seldom about imports, and they are most of a start.

    python standing_by.py        imports the server, waits for one line of JSON on its standard input, and is `memory-mcp` from then on

While one server is at work the next one imports on another core. What is started like this is a process as any other: it has its own
number, reads its own configuration, and dies of its own signals. Whether `python -m memory_mcp` starts is what tests/e2e shows.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from processes import ROOT, STOP_SECONDS, clean_environment

# What `memory-mcp serve` imports before it listens, and what uvicorn looks up by name.
IMPORTED = (
    "memory_mcp.cli",
    "memory_mcp.app",
    "memory_mcp.server.application",
    "memory_mcp.server.runtime",
    "uvicorn.protocols.http.h11_impl",
)


class StandingBy:
    """One process that waits for its arguments, and another as soon as it has got them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment`: what the processes have besides a clean one."""
        self._environment = clean_environment(environment)
        self._next: subprocess.Popen[bytes] | None = None

    def start(self, arguments: Sequence[str], log: Path, moment: str | None = None, ordinal: int = 1) -> subprocess.Popen[bytes]:
        """`memory-mcp` with these arguments, which writes its stderr to `log` and kills itself at a moment of `crashing`, if one is given."""
        process, self._next = self._next or self._started(), None
        told = {"arguments": list(arguments), "log": str(log), "moment": moment, "ordinal": ordinal}
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(json.dumps(told).encode() + b"\n")
        self._next = self._started()
        return process

    def close(self) -> None:
        """Ends the one that nobody wanted."""
        if self._next:
            self._next.communicate(timeout=STOP_SECONDS)
            self._next = None

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, __file__], env=self._environment, cwd=ROOT, stdin=subprocess.PIPE)


def _become(told: Mapping[str, Any]) -> None:
    for path, flags, descriptor in (
        (os.devnull, os.O_RDONLY, 0),
        (told["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 2),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    if told["moment"]:
        importlib.import_module("crashing").arm(told["moment"], told["ordinal"])
    sys.argv[1:] = told["arguments"]
    importlib.import_module("memory_mcp.cli").main()


if __name__ == "__main__":
    for module in IMPORTED:
        importlib.import_module(module)
    if line := sys.stdin.readline():
        _become(json.loads(line))
