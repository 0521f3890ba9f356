"""Analyses run in processes beside the server: they hold up no thread of it, take what the calls leave of the cores, and can be ended.

A process is started for the first analysis, waits for the next one, and is ended when there was none for a minute. Each has one at a time.
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
# Not `-m`: run as `__main__`, its answers would be of a class that is not ours.
_PROGRAM = "from memory_mcp.graph.analytics.worker import main; main()"
# Windows alone has such flags; elsewhere the process lowers its priority itself.
_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
# An analysis takes one core, and no thread of it waits in a loop for another.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_STOPPED = "the server stops"

Found = TypeVar("Found")

logger = logging.getLogger(__name__)


class Processes:
    """The processes of one server. Safe to use from several threads; `run` blocks."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS, idle_seconds: float = IDLE_SECONDS) -> None:
        """An analysis that takes longer than `limit_seconds` is ended, and so is a process that had none for `idle_seconds`."""
        self._limit_seconds, self._idle_seconds = limit_seconds, idle_seconds
        self._guard = threading.Lock()
        self._idle: dict[_Process, threading.Timer] = {}
        self._busy: set[_Process] = set()
        self._closed = False

    def run(self, analysis: Callable[[Network], Found], network: Network) -> Found:
        """What `analysis`, a function of a module, finds in the graph.

        Raises:
            AnalysisUnfinished: it was ended, or its process ended, or all of them are.
            RuntimeError: it failed.
        """
        what, process = analysis.__qualname__, self._taken()
        try:
            answer = process.ask(pickle.dumps((analysis, network), pickle.HIGHEST_PROTOCOL), self._limit_seconds)
        except BaseException:
            self._end(process)
            raise
        if answer is None:
            ended = process.was_ended
            self._end(process)
            if ended:
                raise AnalysisUnfinished(f"{what} was ended", _STOPPED if self._closed else f"it took more than {self._limit_seconds:g} s")
            logger.error("%s broke off: its process was ended from outside, or ended by itself", what)
            raise AnalysisUnfinished(f"{what} broke off", "its process ended, as where memory runs out", "Try again in a moment")
        self._put_back(process)
        if answer.failure is not None:
            failure = RuntimeError(f"{what} broke off: {answer.failure}")
            failure.add_note(answer.trace)
            raise failure
        found: Found = answer.found
        return found

    def close(self) -> None:
        """Ends all of them, whatever they are doing."""
        with self._guard:
            self._closed = True
            ending = [*self._idle, *self._busy]
            for timer in self._idle.values():
                timer.cancel()
            self._idle.clear()
        for process in ending:
            process.end()

    def _taken(self) -> "_Process":
        """One that waits, or a new one."""
        with self._guard:
            if self._closed:
                raise AnalysisUnfinished("the analysis was not begun", _STOPPED)
            while self._idle:
                process, timer = self._idle.popitem()
                timer.cancel()
                if process.lives:
                    break
                process.end()
            else:
                process = _started()
            self._busy.add(process)
            return process

    def _put_back(self, process: "_Process") -> None:
        timer = threading.Timer(self._idle_seconds, self._put_away, (process,))
        timer.daemon = True
        with self._guard:
            if self._closed:
                return
            self._busy.discard(process)
            if not process.was_ended:  # in the very moment in which it had answered
                self._idle[process] = timer
                timer.start()
                return
        process.end()

    def _put_away(self, process: "_Process") -> None:
        """Ends one that nobody wanted for long."""
        with self._guard:
            unwanted = self._idle.pop(process, None)
        if unwanted:
            process.end()

    def _end(self, process: "_Process") -> None:
        with self._guard:
            self._busy.discard(process)
        process.end()


def _started() -> "_Process":
    if not sys.executable:
        raise AnalysisUnfinished("the analysis was not begun", "this Python does not know where its own program is")
    try:
        return _Process()
    except OSError as error:
        raise AnalysisUnfinished(
            "the analysis was not begun", f"no process could be started: {error.strerror}", "Try again in a moment"
        ) from error


class _Process:
    """One process, and the pipes to it. `was_ended`: it did not end by itself."""

    def __init__(self) -> None:
        # It finds its modules where this process finds them, and none in whatever directory this one was started in.
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603  this program
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
            creationflags=_FLAGS,
        )
        self._asked, self._answers = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self.was_ended = False

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, asked: bytes, limit_seconds: float) -> Answer | None:
        """What it answers; None where it has ended, or was ended because it took longer."""
        timer = threading.Timer(limit_seconds, self._kill)
        timer.daemon = True
        timer.start()
        try:
            self._asked.write(asked)
            self._asked.flush()
            answer: Answer = pickle.load(self._answers)  # noqa: S301  this program wrote it
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return None
        finally:
            timer.cancel()
        return answer

    def end(self) -> None:
        """Ends it now, and leaves nothing of it."""
        self._kill()
        self._process.wait()
        for pipe in (self._asked, self._answers):
            with suppress(OSError):  # what it was still to be asked
                pipe.close()

    def _kill(self) -> None:
        self.was_ended = True
        self._process.kill()
