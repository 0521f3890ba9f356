"""Runs analyses in worker processes, so that they do not hold up the server's threads."""

import logging
from collections.abc import Callable
from typing import TypeVar

from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.graph.analytics.worker import LIMIT_SECONDS, Answer
from memory_mcp.store.graph.network import Network
from memory_mcp.worker_processes import IDLE_SECONDS, STOPPED, NotStarted, Pool, Worker

# Not `-m`: as `__main__` its answers would be of another class.
_PROGRAM = "from memory_mcp.graph.analytics.worker import main; main()"

R = TypeVar("R")

logger = logging.getLogger(__name__)


class Processes:
    """The worker processes of one server. Thread-safe; `run` blocks."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS, idle_seconds: float = IDLE_SECONDS) -> None:
        """Kills an analysis after `limit_seconds`, and a worker that was idle for `idle_seconds`."""
        self._limit_seconds = limit_seconds
        self._pool = Pool(_PROGRAM, idle_seconds)

    def run(self, analysis: Callable[[Network], R], network: Network) -> R:
        """Runs `analysis`, a function of a module, on a network.

        Raises:
            AnalysisUnfinished: it was killed, its worker ended, or the pool is closed.
            MemoryMCPError: it was raised by the analysis.
            RuntimeError: it failed.
        """
        what, process = analysis.__qualname__, self._taken()
        answer: Answer | None = None
        try:
            process.send((analysis, network))
            answer = process.receive(self._limit_seconds)
        except BaseException:
            self._pool.end(process)
            raise
        if answer is None:
            killed = process.was_killed
            self._pool.end(process)
            if killed:
                why = STOPPED if self._pool.is_closed else f"it took more than {self._limit_seconds:g} s"
                raise AnalysisUnfinished(f"{what} was ended", why)
            logger.error("%s broke off: its process was ended from outside, or ended by itself", what)
            raise AnalysisUnfinished(f"{what} broke off", "its process ended, as where memory runs out", "Try again in a moment")
        self._pool.give_back(process)
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
        self._pool.close()

    def _taken(self) -> Worker:
        try:
            return self._pool.take()
        except NotStarted as error:
            raise AnalysisUnfinished("the analysis was not begun", error.why, error.do) from error
