"""Many callers at once, who count what they are answered."""

import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from processes import RunningServer
from writers import ACCEPT, TLS

LONGEST_PAUSE_SECONDS = 0.2
# A busy machine may have answered nobody yet.
ANSWER_SECONDS = 60
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")


@dataclass
class Tally:
    """What the callers were answered. `errors` are answers that are neither right nor a refusal that says when to come again."""

    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    stored: dict[str, list[str]] = field(default_factory=dict)
    guard: threading.Condition = field(default_factory=threading.Condition)

    def note(self, kind: str, persona: str, arguments: dict[str, Any], response: httpx2.Response, seconds: float) -> bool:
        """Counts an answer. Whether it was one, and not a refusal."""
        with self.guard:
            if response.status_code in (429, 503):
                if not response.headers.get("retry-after", "").isdigit():
                    self.errors.append(f"{response.status_code} without Retry-After: {response.text[:200]}")
                self.refused[response.status_code] += 1
                return False
            told = response.json() if response.status_code == 200 else {}
            result = told.get("result", {})
            if result.get("isError", True) or result["structuredContent"]["persona"] != persona:
                self.errors.append(f"{response.status_code}: {response.text[:200]}")
                return True
            self.answered[kind] += 1
            self.seconds.setdefault(kind, []).append(seconds)
            self.guard.notify_all()
            if kind == "remember":
                self.stored.setdefault(persona, []).append(arguments["content"])
        return True

    def p95(self, kind: str) -> float:
        """Of the answered calls of this kind so far, at least two, in seconds; begins to count anew."""
        with self.guard:
            assert self.guard.wait_for(lambda: len(self.seconds.get(kind, ())) > 1, ANSWER_SECONDS)
            return statistics.quantiles(self.seconds.pop(kind), n=20)[-1]


Arguments = Callable[[int], dict[str, Any]]


def call_until(
    stop: threading.Event, server: RunningServer, persona: str, tool: str, arguments: Arguments, tally: Tally, kind: str
) -> None:
    """The same tool without a pause, but for what a refusal asks for."""
    headers = {**ACCEPT, "X-Persona": quote(persona)}
    number = 0
    with httpx2.Client(base_url=server.url, headers=headers, verify=TLS, trust_env=False, timeout=60) as http:
        while not stop.is_set():
            given = arguments(number)
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": given}}
            began = time.monotonic()
            try:
                response = http.post("/mcp", json=call)
            except httpx2.TransportError as error:
                with tally.guard:
                    tally.errors.append(f"{type(error).__name__}: {error}")
                return
            if tally.note(kind, persona, given, response, time.monotonic() - began):
                number += 1
            else:
                stop.wait(min(float(response.headers.get("retry-after", 1)), LONGEST_PAUSE_SECONDS))


@contextmanager
def running(callers: list[Callable[[], None]], stop: threading.Event) -> Iterator[None]:
    """All of them on threads of their own while the block runs."""
    threads = [threading.Thread(target=caller) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def status_of(server: RunningServer, field: str) -> int:
    """A number of /proc/PID/status: VmHWM is the most memory it ever had, in KiB."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
