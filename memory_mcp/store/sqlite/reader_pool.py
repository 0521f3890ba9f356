"""The connections that one file is read through: a few are kept, and what is over in milliseconds takes turns on those.

Fifty searches at once would open fifty connections, two megabytes and a reading of the schema each, and then wait for each other
anyway: for the cores, and for the interpreter.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

KEPT = 4


class Readers:
    """The reading connections of one file; `connect` opens one."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._idle: queue.LifoQueue[apsw.Connection] = queue.LifoQueue(maxsize=KEPT)
        self.turns = Turns(KEPT)

    @contextmanager
    def taken(self) -> Iterator[apsw.Connection]:
        """A connection that nobody else has meanwhile. After an error it is not used again."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    def close(self) -> None:
        """Closes those that nobody has."""
        while not self._idle.empty():
            self._idle.get_nowait().close()


class Turns:
    """So many threads at a time inside, in the order in which they came. A semaphore would let a late one overtake."""

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
