"""The pool of reading connections of one file, and a fair limit on how many short reads run at once.

Fifty concurrent searches would open fifty connections, each costing two megabytes and a read of the schema, only to wait for the
cores and the interpreter lock anyway.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from memory_mcp import time_limit
from memory_mcp.process import usable_cores

POOL_SIZE = 4
# More threads than cores only take the interpreter lock from each other, and so does a fourth with cores to spare: of five cores it costs
# eight callers 4 %, two are as fast as four. Two at least: one may wait for the disk.
SHORT_READS = max(2, min(3, usable_cores()))
# After so many steps of its machine, some milliseconds, SQLite asks whether there is time for more.
STEPS_BETWEEN_CHECKS = 20_000


class ReaderPool:
    """The reading connections of one file; `connect` opens one."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._idle: queue.LifoQueue[apsw.Connection] = queue.LifoQueue(maxsize=POOL_SIZE)
        self.limiter = FairLimiter(SHORT_READS)

    @contextmanager
    def borrow(self) -> Iterator[apsw.Connection]:
        """A connection for exclusive use in the block, within the time limit of its thread. After an error it is closed, not reused.

        Raises:
            SearchUnfinished: the time is over.
        """
        time_limit.check()
        limit = time_limit.current()
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._connect()
        try:
            if limit:
                connection.set_progress_handler(lambda: limit.is_over, STEPS_BETWEEN_CHECKS)
            yield connection
            if limit:
                connection.set_progress_handler(None)
        except apsw.InterruptError as error:
            connection.close()
            raise limit.passed() if limit else error from None
        except BaseException:
            connection.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        while not self._idle.empty():
            self._idle.get_nowait().close()


class FairLimiter:
    """Admits `count` threads at a time, first come, first served. A semaphore would let a latecomer overtake."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
