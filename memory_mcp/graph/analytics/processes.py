"""A pool of worker processes for analyses: they do not block the server's threads, have less priority, and can be killed.

A worker is started for the first analysis, waits for the next one, and is ended after an idle minute. Each runs one analysis at a time. Why no
library's pool: docs/decisions/0015-the-graph.md.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TypeVar, cast

from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.graph.analytics.worker import LIMIT_SECONDS, Answer
from memory_mcp.store.graph.network import Network

IDLE_SECONDS = 60.0
# Not `-m`: as `__main__` its answers would be of another class.
_PROGRAM = "from memory_mcp.graph.analytics.worker import main; main()"
# For Windows; elsewhere the worker lowers its priority itself.
_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
# An analysis uses one core, and none of its threads spins.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_STOPPED = "the server stops"

R = TypeVar("R")

logger = logging.getLogger(__name__)


class Processes:
    """The worker processes of one server. Thread-safe; `run` blocks."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS, idle_seconds: float = IDLE_SECONDS) -> None:
        """Kills an analysis after `limit_seconds`, and a worker that was idle for `idle_seconds`."""
        self._limit_seconds, self._idle_seconds = limit_seconds, idle_seconds
        self._guard = threading.Lock()
        self._idle: dict[_Worker, threading.Timer] = {}
        self._busy: set[_Worker] = set()
        self._closed = False

    def run(self, analysis: Callable[[Network], R], network: Network) -> R:
        """Runs `analysis`, a function of a module, on a network.

        Raises:
            AnalysisUnfinished: it was killed, its worker ended, or the pool is closed.
            MemoryMCPError: it was raised by the analysis.
            RuntimeError: it failed.
        """
        what, process = analysis.__qualname__, self._take()
        try:
            answer = process.ask(pickle.dumps((analysis, network), pickle.HIGHEST_PROTOCOL), self._limit_seconds)
        except BaseException:
            self._end(process)
            raise
        if answer is None:
            killed = process.was_killed
            self._end(process)
            if killed:
                raise AnalysisUnfinished(f"{what} was ended", _STOPPED if self._closed else f"it took more than {self._limit_seconds:g} s")
            logger.error("%s broke off: its process was ended from outside, or ended by itself", what)
            raise AnalysisUnfinished(f"{what} broke off", "its process ended, as where memory runs out", "Try again in a moment")
        self._return(process)
        if answer.refusal is not None:
            raise answer.refusal
        if answer.failure is not None:
            failure = RuntimeError(f"{what} broke off: {answer.failure}")
            failure.add_note(answer.trace)
            raise failure
        result: R = answer.result
        return result

    def close(self) -> None:
        """Kills all workers."""
        with self._guard:
            self._closed = True
            ending = [*self._idle, *self._busy]
            for timer in self._idle.values():
                timer.cancel()
            self._idle.clear()
        for process in ending:
            process.end()

    def _take(self) -> "_Worker":
        """An idle worker, or a new one."""
        with self._guard:
            if self._closed:
                raise AnalysisUnfinished("the analysis was not begun", _STOPPED)
            while self._idle:
                process, timer = self._idle.popitem()
                timer.cancel()
                if process.is_alive:
                    break
                process.end()
            else:
                process = _started()
            self._busy.add(process)
            return process

    def _return(self, process: "_Worker") -> None:
        timer = threading.Timer(self._idle_seconds, self._end_idle, (process,))
        timer.daemon = True
        with self._guard:
            if self._closed:
                return
            self._busy.discard(process)
            if not process.was_killed:  # just after it had answered
                self._idle[process] = timer
                timer.start()
                return
        process.end()

    def _end_idle(self, process: "_Worker") -> None:
        """Ends a worker that was idle for too long."""
        with self._guard:
            was_idle = self._idle.pop(process, None)
        if was_idle:
            process.end()

    def _end(self, process: "_Worker") -> None:
        with self._guard:
            self._busy.discard(process)
        process.end()


def _started() -> "_Worker":
    if not sys.executable:
        raise AnalysisUnfinished("the analysis was not begun", "this Python does not know where its own program is")
    try:
        return _Worker()
    except OSError as error:
        raise AnalysisUnfinished(
            "the analysis was not begun", f"no process could be started: {error.strerror}", "Try again in a moment"
        ) from error


class _Worker:
    """A worker process and the pipes to it. `was_killed`: it did not end by itself."""

    def __init__(self) -> None:
        # It imports from the paths of this process, and not from the current directory.
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603  this program
            [sys.executable, "-P", "-c", _PROGRAM],
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

    def ask(self, request: bytes, limit_seconds: float) -> Answer | None:
        """Its answer; None if it has ended or was killed after the limit."""
        timer = threading.Timer(limit_seconds, self._kill)
        timer.daemon = True
        timer.start()
        try:
            self._requests.write(request)
            self._requests.flush()
            answer: Answer = pickle.load(self._answers)  # noqa: S301  this program wrote it
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return None
        finally:
            timer.cancel()
        return answer

    def end(self) -> None:
        """Kills it and frees its resources."""
        self._kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # an unsent request
                pipe.close()

    def _kill(self) -> None:
        self.was_killed = True
        self._process.kill()
