"""Reading one file: the pool of its connections, a fair limit on how many short reads run at once, and many small rows in one step.

Fifty concurrent searches would open fifty connections, each costing two megabytes and a read of the schema, only to wait for the
cores and the interpreter lock anyway. APSW releases that lock around each row: with forty busy threads, a recall that reads five hundred ids
would wait for it five hundred times. As one JSON text the rows arrive in one step.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
from pydantic_core import from_json, to_json

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


def bulk_rows(connection: apsw.Connection, columns: str, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[list[Any]]:
    """The rows of `query` in order, as lists of `columns`. For numbers and short texts, not for contents."""
    # MATERIALIZED, because bm25() works only inside the full-text query itself.
    sql = f"WITH rows_found AS MATERIALIZED ({query}) SELECT json_group_array(json_array({columns})) FROM rows_found"
    text = connection.execute(sql, values if isinstance(values, dict) else tuple(values)).get
    rows: list[list[Any]] = from_json(text)
    return rows


def grouped(rows: Iterable[Any]) -> dict[Any, list[Any]]:
    """The second values of rows of two by the first, both in the order of the rows."""
    groups: dict[Any, list[Any]] = {}
    for group, value in rows:
        groups.setdefault(group, []).append(value)
    return groups


def json_ids(ids: Iterable[int]) -> str:
    """Ids as the text that a statement reads with `json_each(?)`, in a third of the time of `json.dumps`."""
    return to_json(list(ids)).decode()


def row_count(connection: apsw.Connection, table: str) -> int:
    """The number of rows of a table."""
    return int(connection.execute(f'SELECT count(*) FROM "{table}"').get)
