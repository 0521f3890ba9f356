"""How many calls are answered at once, how many may wait, and whose turn is next: many calls of one persona never keep another's waiting.

A call takes a place when it arrives, or is refused at once, and later waits in it for its turn. Turns go round among the personas
that wait. All of it happens on the event loop: no locks.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from memory_mcp.config.settings import Calls
from memory_mcp.errors import Overloaded, PersonaOverloaded

# Threads that run calls; `calls.at_once` in config.json allows no more. Most wait for a model, a commit or SQLite, and a call that waits for a
# thread loses its time to rerank.
WORKER_THREADS = 100
# A flood is one event, not one for each call that it refuses.
QUIET_SECONDS = 60.0

logger = logging.getLogger(__name__)


class ConcurrencyLimiter:
    """The places and turns of one server. `caller` is whatever tells personas apart before anybody has parsed their names."""

    def __init__(self, limits: Callable[[], Calls]) -> None:
        """`limits` is asked anew for each call that comes: an edit of config.json counts from the next one on."""
        self._limits = limits
        self._latest = limits()
        self._present: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._complained_at = float("-inf")

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Room for one more call, running or waiting.

        Raises:
            PersonaOverloaded: this caller has as many as one may have.
            Overloaded: there are as many as there may be.
        """
        limits = self._latest = self._limits()
        if self._present.total() >= limits.at_once + limits.waiting:
            self._complain()
            raise Overloaded("too many calls are waiting", "the server answers as fast as it can", "Try again in a moment")
        if self._present[caller] >= limits.at_once_per_persona + limits.waiting_per_persona:
            self._complain()
            raise PersonaOverloaded(
                "too many calls of this persona are waiting",
                "one persona may not keep the others waiting",
                "Send fewer at once, or try again in a moment",
            )
        self._present[caller] += 1
        try:
            yield
        finally:
            _count_down(self._present, caller)

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Waits until this call may be answered."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(waiting)
        self._let_in()
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # its turn came in the same moment: the next one gets it
                self._end(caller)
            else:
                self._leave(caller, waiting)
            raise
        try:
            yield
        finally:
            self._end(caller)

    def _let_in(self) -> None:
        """Gives free turns away, one to each persona in its order before any gets a second."""
        limits = self._latest  # to look again would be to look at a file, twice for each call
        while self._running.total() < limits.at_once:
            caller = next((name for name in self._queues if self._running[name] < limits.at_once_per_persona), None)
            if caller is None:
                return
            waiting = self._queues[caller].popleft()
            self._queues.move_to_end(caller)
            if not self._queues[caller]:
                del self._queues[caller]
            self._running[caller] += 1
            waiting.set_result(None)

    def _end(self, caller: str) -> None:
        _count_down(self._running, caller)
        self._let_in()

    def _leave(self, caller: str, waiting: "asyncio.Future[None]") -> None:
        queue = self._queues.get(caller)
        if queue and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[caller]

    def _complain(self) -> None:
        now = time.monotonic()
        if now - self._complained_at >= QUIET_SECONDS:
            logger.warning(
                "calls are refused: %d are running, %d wait", self._running.total(), self._present.total() - self._running.total()
            )
            self._complained_at = now


def _count_down(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
