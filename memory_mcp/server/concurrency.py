"""How many calls are answered at once, how many may wait, and whose turn is next: many calls of one persona never keep another's waiting.

A call takes a place when it arrives, or is refused at once, and later waits in it for its turn. Turns go round among the personas
that wait. All of it happens on the event loop: no locks.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from memory_mcp.config.settings import Calls
from memory_mcp.errors import Overloaded, PersonaOverloaded

# Threads that run calls; `calls.at_once` in config.json allows no more. Most wait for a model, a commit or SQLite, and a call that waits
# for a thread loses its time to rerank.
WORKER_THREADS = 100
# A flood is one event, not one for each call that it refuses.
QUIET_SECONDS = 60.0

logger = logging.getLogger(__name__)


class ConcurrencyLimiter:
    """The calls that one server admits, and their turns.

    A caller is one name or several: of the persona that is called and of the token that calls. Each of its names has a bound of its own,
    so that neither one persona nor one token for many takes all of them. Turns go round among the first names.
    """

    def __init__(self, limits: Callable[[], Calls], part_of: Callable[[str], int] = lambda _: 1) -> None:
        """`limits` is asked anew for each call that comes: an edit of config.json counts from the next one on.

        `part_of` a caller's name: which part of the bounds of one persona it has; 5: a fifth, but one call at least.
        """
        self._limits = limits
        self._part_of = part_of
        self._latest = limits()
        self._admitted = self._turns = 0
        self._present: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._complained_at = float("-inf")
        self.refused = 0  # calls, since the start

    @property
    def running(self) -> int:
        """How many calls are being answered."""
        return self._turns

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return max(self._admitted - self._turns, 0)  # calls that stream take turns without being admitted here

    def without_waiting(self, most_of_one: int = WORKER_THREADS) -> "ConcurrencyLimiter":
        """Another limiter, for as many calls as may run at once, and no more than `most_of_one` of one caller."""

        def limits() -> Calls:
            limits = self._limits()
            of_one = min(limits.at_once_per_persona, most_of_one)
            return limits.model_copy(update={"waiting": 0, "waiting_per_persona": 0, "at_once_per_persona": of_one})

        return ConcurrencyLimiter(limits, self._part_of)

    @contextmanager
    def admitted(self, *caller: str) -> Iterator[None]:
        """Room for one more call, running or waiting.

        Raises:
            PersonaOverloaded: this caller has as many as one may have.
            Overloaded: there are as many as there may be.
        """
        limits = self._latest = self._limits()
        if self._admitted >= limits.at_once + limits.waiting:
            self._complain()
            raise Overloaded("too many calls are waiting", "the server answers as fast as it can", "Try again in a moment")
        if any(self._present[name] >= self._share(name, limits.at_once_per_persona + limits.waiting_per_persona) for name in caller):
            self._complain()
            raise PersonaOverloaded(
                "too many calls of this persona are waiting",
                "one persona may not keep the others waiting",
                "Send fewer at once, or try again in a moment",
            )
        self._admitted += 1
        self._present.update(caller)
        try:
            yield
        finally:
            self._admitted -= 1
            _count_down(self._present, caller)

    @asynccontextmanager
    async def turn(self, *caller: str) -> AsyncIterator[None]:
        """Waits until this call may be answered."""
        waiting = _Waiting(asyncio.get_running_loop().create_future(), caller)
        self._queues.setdefault(caller[0], deque()).append(waiting)
        self._let_in()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled():  # its turn came in the same moment: the next one gets it
                self._end(caller)
            else:
                self._remove(waiting)
                self._let_in()  # behind it may be one that may run
            raise
        try:
            yield
        finally:
            self._end(caller)

    def _let_in(self) -> None:
        """Gives free turns away, one to each persona in its order before any gets a second."""
        limits = self._latest  # to look again would be to look at a file, twice for each call
        while self._turns < limits.at_once:
            first = next((queue[0] for queue in self._queues.values() if self._may_run(queue[0], limits)), None)
            if first is None:
                return
            self._remove(first)
            if first.turn.done():  # its call was canceled, and hasn't run since
                continue
            if first.caller[0] in self._queues:
                self._queues.move_to_end(first.caller[0])
            self._turns += 1
            self._running.update(first.caller)
            first.turn.set_result(None)

    def _may_run(self, waiting: "_Waiting", limits: Calls) -> bool:
        return all(self._running[name] < self._share(name, limits.at_once_per_persona) for name in waiting.caller)

    def _share(self, name: str, of_one: int) -> int:
        return max(of_one // self._part_of(name), 1)

    def _end(self, caller: Sequence[str]) -> None:
        self._turns -= 1
        _count_down(self._running, caller)
        self._let_in()

    def _remove(self, waiting: "_Waiting") -> None:
        name = waiting.caller[0]
        queue = self._queues.get(name)
        if queue and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[name]

    def _complain(self) -> None:
        self.refused += 1
        now = time.monotonic()
        if now - self._complained_at >= QUIET_SECONDS:
            logger.warning("calls are refused: %d are running, %d wait", self.running, self.waiting)
            self._complained_at = now


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    turn: asyncio.Future[None]
    caller: tuple[str, ...]


def _count_down(counter: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]
