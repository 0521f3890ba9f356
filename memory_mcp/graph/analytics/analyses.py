"""Runs analyses of whole graphs, one at a time, and caches the results until the graph changes; a caller waits a few seconds at most.

An analysis runs in a worker process. After the deadline the caller gets an error while the analysis goes on; its result is cached for the next
caller, and until then its persona gets no further analysis.

The cache key is the persona and the revision of its graph, which no other state ever has. Only numbers are cached: names are read when an answer is
given, so that no erased text stays here.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import apsw

from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.graph.analytics.deadline import Deadline
from memory_mcp.graph.analytics.processes import Processes
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import network, overview
from memory_mcp.store.graph.network import Network

DEADLINE_SECONDS = 5.0
TTL_SECONDS = 900.0
LIMIT_BYTES = 32 * 1024 * 1024
# Analyses that may run on at once after their callers have given up: each has a process.
LATE_LIMIT = 2

logger = logging.getLogger(__name__)


class Result(Protocol):
    """The result of an analysis, with its size in bytes."""

    @property
    def nbytes(self) -> int: ...


R = TypeVar("R", bound=Result)
Read = TypeVar("Read")
# Persona, and the least weight of its relations; None for what is read of the whole graph.
_Key = tuple[str, float | None]


@dataclass(slots=True)
class _State:
    """One revision of a graph and its results. `until`: when they expire, by the clock."""

    mark: str
    until: float
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(int(result.nbytes) for result in self.results.values())


def _read(persona: Persona, reading: Callable[[apsw.Connection], Read]) -> Read:
    """No connection is held while waiting for the lock: what changes after the revision was read is found a little early."""
    with persona.database.read() as connection:
        return reading(connection)


def _not_begun(why: str) -> AnalysisUnfinished:
    return AnalysisUnfinished("the analysis was not begun", why, "Try again in a moment")


def _log_late(what: str, persona: str, failure: BaseException | None) -> None:
    """Logs the end of an analysis that its caller has given up: a failure is reported nowhere else."""
    if failure is None:
        logger.warning("%s of %s took long, and has ended", what, persona)
    elif isinstance(failure, AnalysisUnfinished):
        logger.warning("of %s: %s", persona, failure)
    else:
        logger.error("%s of %s took long, and has failed", what, persona, exc_info=failure)


class Executor(Protocol):
    """Runs analyses: `Processes`, except in tests."""

    def run(self, analysis: Callable[[Network], R], network: Network) -> R: ...

    def close(self) -> None: ...


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
        """`computing` defaults to worker processes. `clock` counts seconds. The cache holds at most `limit_bytes`, of the revisions used last."""
        self._clock, self._deadline_seconds, self._ttl_seconds, self._limit_bytes = clock, deadline_seconds, ttl_seconds, limit_bytes
        self._computing: Executor = computing or Processes()
        self._guard, self._turn = threading.Lock(), threading.Lock()
        self._states: OrderedDict[_Key, _State] = OrderedDict()
        self._late: set[str] = set()

    def of(self, persona: Persona, analysis: Callable[[Network], R], min_weight: float = 0.0) -> tuple[Network, R]:
        """The persona's graph without relations lighter than `min_weight`, and the result of `analysis`, a named function.

        Raises:
            AnalysisUnfinished: it, or those before it, took too long.
        """
        key, deadline = (persona.name, min_weight), Deadline.after(self._deadline_seconds, self._clock)
        mark = _read(persona, overview.revision)
        what = analysis.__qualname__

        def read() -> Network:
            return self._keep(key, mark, "network", _read(persona, lambda connection: network.read(connection, min_weight)))

        def compute() -> R:  # the result is cached also if the caller has given up
            return self._keep(key, mark, what, self._computing.run(analysis, whole))

        whole = self._kept(key, mark, "network", read, deadline)
        return whole, self._kept(key, mark, what, lambda: self._in_time(persona.name, what, compute, deadline), deadline)

    def read(self, persona: Persona, reading: Callable[[apsw.Connection], R]) -> R:
        """The result of `reading`, a named function, on the persona's whole graph.

        Raises:
            AnalysisUnfinished: those before it took too long.
        """
        deadline, key, what = Deadline.after(self._deadline_seconds, self._clock), (persona.name, None), reading.__qualname__
        mark = _read(persona, overview.revision)
        return self._kept(key, mark, what, lambda: self._keep(key, mark, what, _read(persona, reading)), deadline)

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
        """The cached result for this revision; else `compute` computes and caches it."""
        known: R | None = self._known(key, mark, what)
        if known is not None:
            return known
        with self._taking_turn(deadline):
            known = self._known(key, mark, what)  # another thread may have asked the same
            if known is None:
                deadline.check()
                known = compute()
            return known

    @contextmanager
    def _taking_turn(self, deadline: Deadline) -> Iterator[None]:
        if not self._turn.acquire(timeout=deadline.left):
            raise _not_begun("others are under way")
        try:
            yield
        finally:
            self._turn.release()

    def _in_time(self, persona: str, what: str, compute: Callable[[], R], deadline: Deadline) -> R:
        """The result of `compute`, or an error after the deadline, while a thread waits on."""
        with self._guard:
            if persona in self._late:
                raise _not_begun("an earlier one that takes long is still under way")
            if len(self._late) >= LATE_LIMIT:
                raise _not_begun("others that take long are still under way")
        done: Future[R] = Future()

        def run() -> None:
            try:
                done.set_result(compute())
            except Exception as error:  # noqa: BLE001  the waiting caller must get it, and the persona must be free again
                done.set_exception(error)
            with self._guard:
                was_late = persona in self._late
                self._late.discard(persona)
            if was_late:
                _log_late(what, persona, done.exception())

        threading.Thread(target=run, name=f"analysis {what}", daemon=True).start()
        try:
            return done.result(deadline.left)
        except TimeoutError:
            with self._guard:
                if not done.done():
                    self._late.add(persona)
            raise deadline.passed() from None

    def _known(self, key: _Key, mark: str, what: str) -> Any:
        with self._guard:
            state = self._states.get(key)
            if state is None or state.mark != mark or self._clock() >= state.until:
                return None
            self._states.move_to_end(key)
            return state.results.get(what)

    def _keep(self, key: _Key, mark: str, what: str, result: R) -> R:
        with self._guard:
            now = self._clock()
            for over in [other for other, kept in self._states.items() if now >= kept.until]:
                del self._states[over]
            state = self._states.get(key)
            if state is None or state.mark != mark:
                state = self._states[key] = _State(mark, now + self._ttl_seconds)
            state.results[what] = result
            self._states.move_to_end(key)
            # A result that is too large for the cache is used for this answer only.
            while self._states and sum(kept.nbytes for kept in self._states.values()) > self._limit_bytes:
                self._states.popitem(last=False)
        return result
