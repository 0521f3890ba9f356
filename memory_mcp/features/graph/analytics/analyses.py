"""Runs analyses of whole graphs, one at a time, and caches the results until the graph changes; a caller waits a few seconds at most.

An analysis runs in a worker process, which is killed when the time is over: no library lets itself be stopped, and recalls go on meanwhile.

The cache key is the persona and the revision of its graph, which no other state ever has. Only numbers are cached: names are read when an
answer is given, so that no erased text stays here.
"""

import logging
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import apsw

from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.features.graph.analytics import worker
from memory_mcp.features.graph.analytics.worker import Answer
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import network, overview
from memory_mcp.store.graph.network import Network
from memory_mcp.worker_processes import IDLE_SECONDS, STOPPED, NotStarted, Pool

DEADLINE_SECONDS = 5.0
TTL_SECONDS = 900.0
LIMIT_BYTES = 32 * 1024 * 1024
# Not `-m`: as `__main__` its answers would be of another class.
_PROGRAM = f"from {worker.__name__} import main; main()"

logger = logging.getLogger(__name__)


R = TypeVar("R")
# Persona, and the least weight of its relations; None for what is read of the whole graph.
_Key = tuple[str, float | None]


@dataclass(frozen=True, slots=True)
class Deadline:
    """Ends at `ends_at` by `clock`, `seconds` after the start. `do`: the advice of the error."""

    seconds: float
    ends_at: float
    clock: Callable[[], float] = time.monotonic
    do: str = "Leave weak relations out with min_weight, such as 0.3, or try again when less is going on"

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """A deadline so many seconds from now."""
        return cls(seconds, clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds, 0 at least."""
        return max(self.ends_at - self.clock(), 0.0)

    def check(self) -> None:
        """Raises an error after the deadline.

        Raises:
            AnalysisUnfinished: the time is over.
        """
        if not self.left:
            raise self.passed()

    def passed(self) -> AnalysisUnfinished:
        """The error of an analysis that took too long."""
        why = "the graph is large, or the server has much else to do"
        return AnalysisUnfinished("the analysis was not done within {} s", why, self.do, f"{self.seconds:g}")


class Executor(Protocol):
    """Runs analyses: `Processes`, except in tests."""

    def run(self, analysis: Callable[[Network], R], network: Network, deadline: Deadline) -> R: ...

    def close(self) -> None: ...


class Processes:
    """The worker processes of one server. Thread-safe; `run` blocks."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        """A worker that was idle for `idle_seconds` is ended."""
        self._pool = Pool(_PROGRAM, idle_seconds)

    def run(self, analysis: Callable[[Network], R], network: Network, deadline: Deadline) -> R:
        """Runs `analysis`, a function of a module, on a network.

        Raises:
            AnalysisUnfinished: the deadline came first, its worker ended, or the pool is closed.
            MemoryMCPError: it was raised by the analysis.
            RuntimeError: it failed.
        """
        try:
            worker = self._pool.take()
        except NotStarted as error:
            raise AnalysisUnfinished("the analysis was not begun", error.why, error.do) from error
        try:
            worker.send((analysis, network))
            answer: Answer | None = worker.receive(deadline.left)
        except BaseException:
            self._pool.end(worker)
            raise
        if answer is None:
            in_time = not worker.was_killed
            self._pool.end(worker)
            raise self._ended(analysis.__qualname__, deadline, in_time=in_time)
        self._pool.give_back(worker)
        if answer.refusal is not None:
            raise answer.refusal
        if answer.failure is not None:
            failure = RuntimeError(f"{analysis.__qualname__} broke off: {answer.failure}")
            failure.add_note(answer.trace)
            raise failure
        result: R = answer.result
        return result

    def close(self) -> None:
        """Kills all workers."""
        self._pool.close()

    def _ended(self, what: str, deadline: Deadline, *, in_time: bool) -> AnalysisUnfinished:
        """The error of an analysis whose process has ended, by itself if that was `in_time`."""
        if self._pool.is_closed:
            return AnalysisUnfinished("{} was ended", "{}", "", what, STOPPED)
        if not in_time:
            return deadline.passed()
        logger.error("%s broke off: its process was ended from outside, or ended by itself", what)
        return AnalysisUnfinished("{} broke off", "its process ended, as where memory runs out", "Try again in a moment", what)


@dataclass(slots=True)
class _State:
    """One revision of a graph and its results. `until`: when they expire, by the clock. `nbytes`: about how much memory they take."""

    mark: str
    until: float
    results: dict[str, Any] = field(default_factory=dict)
    nbytes: int = 0


def _read(persona: Persona, reading: Callable[[apsw.Connection], R]) -> R:
    """No connection is held while waiting for the lock: what changes after the revision was read is found a little early."""
    with persona.database.read() as connection:
        return reading(connection)


class Analyses:
    """The analyses of all personas of a server. Thread-safe; blocks, so never use it on an event loop."""

    def __init__(
        self,
        computing: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
        deadline_seconds: float = DEADLINE_SECONDS,
        ttl_seconds: float = TTL_SECONDS,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        """`computing` defaults to worker processes. `clock` counts seconds. The cache holds at most `limit_bytes`, of the revisions used
        last.
        """
        self._clock, self._deadline_seconds, self._ttl_seconds, self._limit_bytes = clock, deadline_seconds, ttl_seconds, limit_bytes
        self._computing: Executor = computing or Processes()
        self._guard, self._turn = threading.Lock(), threading.Lock()
        self._states: OrderedDict[_Key, _State] = OrderedDict()

    def of(self, persona: Persona, analysis: Callable[[Network], R], min_weight: float = 0.0) -> tuple[Network, R]:
        """The persona's graph without relations lighter than `min_weight`, and the result of `analysis`, a named function.

        Raises:
            AnalysisUnfinished: it, or those before it, took too long.
        """
        key, deadline = (persona.name, min_weight), Deadline.after(self._deadline_seconds, self._clock)
        mark = _read(persona, overview.revision)
        whole = self._kept(key, mark, "network", lambda: _read(persona, lambda connection: network.read(connection, min_weight)), deadline)
        return whole, self._kept(key, mark, analysis.__qualname__, lambda: self._computing.run(analysis, whole, deadline), deadline)

    def read(self, persona: Persona, reading: Callable[[apsw.Connection], R]) -> R:
        """The result of `reading`, a named function, on the persona's whole graph.

        Raises:
            AnalysisUnfinished: those before it took too long.
        """
        deadline, mark = Deadline.after(self._deadline_seconds, self._clock), _read(persona, overview.revision)
        return self._kept((persona.name, None), mark, reading.__qualname__, lambda: _read(persona, reading), deadline)

    @contextmanager
    def turn(self, do: str) -> Iterator[Deadline]:
        """Takes the lock for work that is not cached and checks the deadline itself; `do` is the advice of the error.

        Raises:
            AnalysisUnfinished: those before it took too long.
        """
        deadline = replace(Deadline.after(self._deadline_seconds, self._clock), do=do)
        with self._taking_turn(deadline):
            yield deadline

    def close(self) -> None:
        """Ends all analyses."""
        self._computing.close()

    @property
    def nbytes(self) -> int:
        """The size of the cache in bytes."""
        with self._guard:
            return sum(state.nbytes for state in self._states.values())

    def _kept(self, key: _Key, mark: str, what: str, compute: Callable[[], R], deadline: Deadline) -> R:
        """The cached result for this revision; else `compute` computes it."""
        known: R | None = self._known(key, mark, what)
        if known is not None:
            return known
        with self._taking_turn(deadline):
            known = self._known(key, mark, what)  # another thread may have asked the same
            if known is None:
                deadline.check()
                known = self._keep(key, mark, what, compute())
            return known

    @contextmanager
    def _taking_turn(self, deadline: Deadline) -> Iterator[None]:
        if not self._turn.acquire(timeout=deadline.left):
            raise AnalysisUnfinished("the analysis was not begun", "others are under way", "Try again in a moment")
        try:
            yield
        finally:
            self._turn.release()

    def _known(self, key: _Key, mark: str, what: str) -> Any:
        with self._guard:
            state = self._states.get(key)
            if state is None or state.mark != mark or self._clock() >= state.until:
                return None
            self._states.move_to_end(key)
            return state.results.get(what)

    def _keep(self, key: _Key, mark: str, what: str, result: R) -> R:
        size = len(pickle.dumps(result, pickle.HIGHEST_PROTOCOL))
        with self._guard:
            now = self._clock()
            for over in [other for other, kept in self._states.items() if now >= kept.until]:
                del self._states[over]
            state = self._states.get(key)
            if state is None or state.mark != mark:
                state = self._states[key] = _State(mark, now + self._ttl_seconds)
            if what not in state.results:
                state.nbytes += size
            state.results[what] = result
            self._states.move_to_end(key)
            # A result that is too large for the cache is used for this answer only.
            while self._states and sum(kept.nbytes for kept in self._states.values()) > self._limit_bytes:
                self._states.popitem(last=False)
        return result
