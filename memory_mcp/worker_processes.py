"""Processes that work for the server: they don't hold up its threads, have less priority, and can be killed.

A process reads requests from its standard input and writes answers to its standard output, both pickles that only this program writes and
reads. One is started for the first request, waits for the next one, and is ended after an idle minute. Each serves one request at a time. Why no
library's pool: docs/decisions/0015-the-graph.md.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, Any, BinaryIO, cast

IDLE_SECONDS = 60.0
# Less priority than the server, so that recalls go first. With much less no work would ever end under load.
NICENESS = 5
# For Windows; elsewhere the process lowers its priority itself.
_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
# A process uses one core, and none of its threads spins.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
STOPPED = "the server stops"


class NotStarted(Exception):
    """No process can be had: `why`, and what to `do`."""

    def __init__(self, why: str, do: str = "") -> None:
        super().__init__(why)
        self.why, self.do = why, do


class Worker:
    """A process and the pipes to it. `was_killed`: it did not end by itself."""

    def __init__(self, program: str) -> None:
        # It imports from the paths of this process, and not from the current directory.
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603  this program
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
            creationflags=_FLAGS,
        )
        self._requests, self._answers = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self.was_killed = False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, request: Any) -> None:
        """Hands it a request; if it has ended, `receive` tells."""
        pickled = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        with suppress(OSError, ValueError):
            self._requests.write(pickled)
            self._requests.flush()

    def receive(self, limit_seconds: float) -> Any:
        """Its next answer; None if it has ended or was killed after the limit."""
        timer = threading.Timer(limit_seconds, self.kill)
        timer.daemon = True
        timer.start()
        try:
            return pickle.load(self._answers)  # noqa: S301  this program wrote it
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return None
        finally:
            timer.cancel()

    def kill(self) -> None:
        self.was_killed = True
        self._process.kill()

    def end(self) -> None:
        """Kills it and frees its resources."""
        self.kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # an unsent request
                pipe.close()


class Pool:
    """The processes of one kind. Thread-safe. `is_closed`: no further ones are started."""

    def __init__(self, program: str, idle_seconds: float = IDLE_SECONDS) -> None:
        """`program` is Python code that answers requests, see `answer_server`. A process that was idle for `idle_seconds` is ended."""
        self._program, self._idle_seconds = program, idle_seconds
        self._guard = threading.Lock()
        self._idle: dict[Worker, threading.Timer] = {}
        self._busy: set[Worker] = set()
        self.is_closed = False

    def take(self) -> Worker:
        """An idle process, or a new one. The caller gives it back or ends it.

        Raises:
            NotStarted: the pool is closed, or no process could be started.
        """
        with self._guard:
            if self.is_closed:
                raise NotStarted(STOPPED)
            while self._idle:
                process, timer = self._idle.popitem()
                timer.cancel()
                if process.is_alive:
                    break
                process.end()
            else:
                process = self._started()
            self._busy.add(process)
            return process

    def give_back(self, process: Worker) -> None:
        """Keeps a process that has answered for the next request."""
        timer = threading.Timer(self._idle_seconds, self._end_idle, (process,))
        timer.daemon = True
        with self._guard:
            if self.is_closed:
                return
            self._busy.discard(process)
            if not process.was_killed:  # just after it had answered
                self._idle[process] = timer
                timer.start()
                return
        process.end()

    def end(self, process: Worker) -> None:
        """Kills a process."""
        with self._guard:
            self._busy.discard(process)
        process.end()

    def close(self) -> None:
        """Kills all processes."""
        with self._guard:
            self.is_closed = True
            ending = [*self._idle, *self._busy]
            for timer in self._idle.values():
                timer.cancel()
            self._idle.clear()
        for process in ending:
            process.end()

    def _end_idle(self, process: Worker) -> None:
        """Ends a process that was idle for too long."""
        with self._guard:
            was_idle = self._idle.pop(process, None)
        if was_idle:
            process.end()

    def _started(self) -> Worker:
        if not sys.executable:
            raise NotStarted("this Python does not know where its own program is")
        try:
            return Worker(self._program)
        except OSError as error:
            raise NotStarted(f"no process could be started: {error.strerror}", "Try again in a moment") from error


def answer_server(answers: Callable[[Any], Iterable[Any]], limit_seconds: int) -> None:
    """The work of a process: answers one request after another until the server has gone. It ends itself where an answer takes longer than
    `limit_seconds`, should there be no server that kills it earlier.
    """
    output = answers_to_server()
    with suppress(EOFError, OSError):  # the server has gone
        while True:
            request = pickle.load(sys.stdin.buffer)  # noqa: S301  the server wrote it
            _end_after(limit_seconds)
            for answer in answers(request):
                _end_after(0)  # the server may take its time
                output.write(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
                output.flush()
                _end_after(limit_seconds)
            _end_after(0)


def answers_to_server() -> BinaryIO:
    """Called by a process first: lowers its priority and returns where it writes its answers."""
    # A terminal or systemd sends them to the server too, which then closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(OSError):  # a container may forbid it
            os.nice(NICENESS)
    # Output that a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _end_after(seconds: int) -> None:
    """Ends this process after so many seconds unless it is called again; 0 cancels. The server, if it still runs, kills it earlier."""
    if sys.platform != "win32":
        signal.alarm(seconds)
