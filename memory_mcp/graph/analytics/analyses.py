"""What was computed of whole graphs, kept until the graph changes: one analysis at a time, and nobody waits for longer than a few seconds.

An analysis runs in a process beside the server. Whoever asked is told in time that it takes too long; it goes on for a while, what it finds
is kept for whoever asks next, and until then its persona gets no further one.

Everything is kept under the name of its persona and the mark of its graph's state, which no other state ever has. What is kept are
numbers only: names are read when an answer is given, so that nothing of a text stays here after it was erased.
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
# So many analyses that nobody waits for any more may be under way at once: each has a process.
LATE_LIMIT = 2

logger = logging.getLogger(__name__)


class Result(Protocol):
    """Whatever an analysis finds, as long as it tells how many bytes it takes."""

    @property
    def nbytes(self) -> int: ...


Found = TypeVar("Found", bound=Result)
Read = TypeVar("Read")
# Whose graph, and without relations that are lighter than what; None for what is read of the whole.
_Key = tuple[str, float | None]


@dataclass(slots=True)
class _State:
    """One state of a graph and what is known of it. `until`: when it is forgotten, by the clock."""

    mark: str
    until: float
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(int(result.nbytes) for result in self.results.values())


def _read(persona: Persona, reading: Callable[[apsw.Connection], Read]) -> Read:
    """Nothing of the database is held while a turn is waited for: what changed since its mark was read is found a little early."""
    with persona.database.read() as connection:
        return reading(connection)


def _not_begun(why: str) -> AnalysisUnfinished:
    return AnalysisUnfinished("the analysis was not begun", why, "Try again in a moment")


def _tell_late(what: str, whose: str, failure: BaseException | None) -> None:
    """Nobody waits for it any more: whether it failed is told here or nowhere."""
    if failure is None:
        logger.warning("%s of %s took long, and has ended", what, whose)
    elif isinstance(failure, AnalysisUnfinished):
        logger.warning("of %s: %s", whose, failure)
    else:
        logger.error("%s of %s took long, and has failed", what, whose, exc_info=failure)


class Computing(Protocol):
    """Where analyses run: `Processes`, but for tests."""

    def run(self, analysis: Callable[[Network], Found], network: Network) -> Found: ...

    def close(self) -> None: ...


class Analyses:
    """The analyses of one server's personas. Safe to use from several threads; blocks, so never on an event loop."""

    def __init__(
        self,
        computing: Computing | None = None,
        clock: Callable[[], float] = time.monotonic,
        deadline_seconds: float = DEADLINE_SECONDS,
        ttl_seconds: float = TTL_SECONDS,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        """`computing` default: processes of its own. `clock` counts seconds. No more than `limit_bytes` are kept, of the states used last."""
        self._clock, self._deadline_seconds, self._ttl_seconds, self._limit_bytes = clock, deadline_seconds, ttl_seconds, limit_bytes
        self._computing: Computing = computing or Processes()
        self._guard, self._turn = threading.Lock(), threading.Lock()
        self._states: OrderedDict[_Key, _State] = OrderedDict()
        self._late: set[str] = set()

    def of(self, persona: Persona, analysis: Callable[[Network], Found], min_weight: float = 0.0) -> tuple[Network, Found]:
        """The persona's graph without relations lighter than `min_weight`, and what `analysis`, a named function, finds in it.

        Raises:
            AnalysisUnfinished: it was not done in time, or its turn did not come.
        """
        key, deadline = (persona.name, min_weight), Deadline.after(self._deadline_seconds, self._clock)
        mark = _read(persona, overview.revision)
        what = analysis.__qualname__

        def read() -> Network:
            return self._keep(key, mark, "network", _read(persona, lambda connection: network.read(connection, min_weight)))

        def compute() -> Found:  # what it finds is kept also where nobody waits for it any more
            return self._keep(key, mark, what, self._computing.run(analysis, whole))

        whole = self._kept(key, mark, "network", read, deadline)
        return whole, self._kept(key, mark, what, lambda: self._in_time(persona.name, what, compute, deadline), deadline)

    def read(self, persona: Persona, reading: Callable[[apsw.Connection], Found]) -> Found:
        """What `reading`, a named function, reads of the persona's whole graph.

        Raises:
            AnalysisUnfinished: its turn did not come.
        """
        deadline, key, what = Deadline.after(self._deadline_seconds, self._clock), (persona.name, None), reading.__qualname__
        mark = _read(persona, overview.revision)
        return self._kept(key, mark, what, lambda: self._keep(key, mark, what, _read(persona, reading)), deadline)

    @contextmanager
    def turn(self, do: str) -> Iterator[Deadline]:
        """Its turn for what is not kept and asks the deadline itself; `do` is what a refusal advises.

        Raises:
            AnalysisUnfinished: its turn did not come.
        """
        deadline = replace(Deadline.after(self._deadline_seconds, self._clock), do=do)
        with self._taking_turn(deadline):
            yield deadline

    def close(self) -> None:
        """Ends whatever is under way."""
        self._computing.close()

    @property
    def nbytes(self) -> int:
        """What is kept now, in bytes."""
        with self._guard:
            return sum(state.nbytes for state in self._states.values())

    def _kept(self, key: _Key, mark: str, what: str, compute: Callable[[], Found], deadline: Deadline) -> Found:
        """What is known of this state of the graph; where it is not, `compute` finds and keeps it."""
        known: Found | None = self._known(key, mark, what)
        if known is not None:
            return known
        with self._taking_turn(deadline):
            known = self._known(key, mark, what)  # somebody else may have asked the same
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

    def _in_time(self, whose: str, what: str, compute: Callable[[], Found], deadline: Deadline) -> Found:
        """What `compute` finds, or a refusal once nobody should wait any longer: a thread waits on."""
        with self._guard:
            if whose in self._late:
                raise _not_begun("an earlier one that takes long is still under way")
            if len(self._late) >= LATE_LIMIT:
                raise _not_begun("others that take long are still under way")
        done: Future[Found] = Future()

        def run() -> None:
            try:
                done.set_result(compute())
            except Exception as error:  # noqa: BLE001  whoever waits must hear why, and nothing may stay under way that has ended
                done.set_exception(error)
            with self._guard:
                was_late = whose in self._late
                self._late.discard(whose)
            if was_late:
                _tell_late(what, whose, done.exception())

        threading.Thread(target=run, name=f"analysis {what}", daemon=True).start()
        try:
            return done.result(deadline.left)
        except TimeoutError:
            with self._guard:
                if not done.done():
                    self._late.add(whose)
            raise deadline.passed() from None

    def _known(self, key: _Key, mark: str, what: str) -> Any:
        with self._guard:
            state = self._states.get(key)
            if state is None or state.mark != mark or self._clock() >= state.until:
                return None
            self._states.move_to_end(key)
            return state.results.get(what)

    def _keep(self, key: _Key, mark: str, what: str, found: Found) -> Found:
        with self._guard:
            now = self._clock()
            for over in [other for other, kept in self._states.items() if now >= kept.until]:
                del self._states[over]
            state = self._states.get(key)
            if state is None or state.mark != mark:
                state = self._states[key] = _State(mark, now + self._ttl_seconds)
            state.results[what] = found
            self._states.move_to_end(key)
            # What takes more than there is room for is for this answer only.
            while self._states and sum(kept.nbytes for kept in self._states.values()) > self._limit_bytes:
                self._states.popitem(last=False)
        return found
