"""A host that starts `memory-mcp stdio`: it writes requests to the process and waits for the answers, in any order."""

import itertools
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fork_server import FORKS
from places import SUPPORT
from processes import ROOT, SPAWNED, Process, clean_environment, fork_server, importable, without_fallback

ANSWER_SECONDS = 120


def request(number: int, method: str, **params: Any) -> bytes:
    """A line with a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, ensure_ascii=False).encode() + b"\n"


def call(number: int, tool: str, **arguments: Any) -> bytes:
    """A line with the call of a tool."""
    return request(number, "tools/call", name=tool, arguments=arguments)


class Refused(Exception):
    """The answer is an error, in the words of the server or of the bridge."""


class StdioHost:
    """One process of `memory-mcp stdio` and its answers. Every line of its stdout must be a message."""

    def __init__(
        self, directory: Path, data: Path, *options: str, environment: Mapping[str, str] | None = None, moment: str | None = None
    ) -> None:
        """Its stderr goes to a file in `directory`. It kills itself at a `moment` of crashing.py, if one is given."""
        config = data.parent / "config.json"
        if not config.exists():
            config.write_text(without_fallback("{}"), encoding="utf-8")
        number = next(_numbers)
        self.log = directory / f"stdio-{number}.log"
        arguments = ["stdio", "--data", str(data), *options]
        if FORKS:
            pipes = [directory / f"stdio-{number}.{name}" for name in ("in", "out")]
            for pipe in pipes:
                os.mkfifo(pipe)
            self.process: Process = fork_server().start(
                arguments, self.log, environment=environment, stdin=pipes[0], stdout=pipes[1], moment=moment
            )
            self._stdin, self._stdout = pipes[0].open("wb"), pipes[1].open("rb")
        else:
            spawned = _spawned(arguments, self.log, environment, moment)
            assert spawned.stdin
            assert spawned.stdout
            self.process, self._stdin, self._stdout = spawned, spawned.stdin, spawned.stdout
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Any] | None]] = {}
        self.messages: list[dict[str, Any]] = []
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "StdioHost":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self._ended.wait(60)
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()

    def begin(self, tool: str, **arguments: Any) -> int:
        """Calls a tool without waiting. Returns the number for `answer`."""
        number = next(self._ids)
        self._answers[number] = queue.Queue()
        self._stdin.write(call(number, tool, **arguments))
        self._stdin.flush()
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """The structured answer of a tool.

        Raises:
            Refused: it is an error, or the process ended without an answer.
        """
        message = self._answers[number].get(timeout=ANSWER_SECONDS)
        if message is None:
            raise Refused(f"it ended with {self.process.wait(60)}: {self.log.read_text(encoding='utf-8')}")
        if "error" in message:
            raise Refused(message["error"]["message"])
        if message["result"].get("isError"):
            raise Refused(message["result"]["content"][0]["text"])
        return dict(message["result"]["structuredContent"])

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool and waits for its answer."""
        return self.answer(self.begin(tool, **arguments))

    def contents(self, **arguments: Any) -> set[str]:
        """What the latest memories say."""
        return {hit["content"] for hit in self("recall", mode="recent", top_k=50, **arguments)["hits"]}

    def end(self) -> int:
        """Ends its stdin, as a host does that needs it no longer. Returns its status."""
        self._stdin.close()
        return self.process.wait(60)

    def stop(self, number: int = signal.SIGKILL) -> int:
        """Ends it with a signal. Returns its status."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def _read(self) -> None:
        for line in self._stdout:
            message = json.loads(line)
            self.messages.append(message)
            if message.get("id") in self._answers:
                self._answers[message["id"]].put(message)
        for waiting in self._answers.values():
            waiting.put(None)
        self._ended.set()


def _spawned(arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None, moment: str | None) -> subprocess.Popen[bytes]:
    armed = [SPAWNED[0], str(SUPPORT / "crashing.py"), moment, "1"] if moment else SPAWNED
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [*armed, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
            env=clean_environment({**importable(), **(environment or {})}),
        )


_numbers = itertools.count(1)
