"""What a database that somebody else wrote may take and do while it is read: its definitions are programs, and may compute values of a
gigabyte.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

# A line of an import has at most 2 MiB; the rest is for points of vector stores, and for text that escapes make longer.
VALUE_LIMIT_BYTES = 4 * 1024 * 1024
# The memories of a persona's own older server are taken over with a wider one: nothing of them may be lost.
OWN_VALUE_LIMIT_BYTES = 16 * 1024 * 1024
# Steps of SQLite's virtual machine: about half a minute, and so many more for each byte of the file.
STEPS_LIMIT, STEPS_PER_BYTE = 1_000_000_000, 1_000
_STEPS_BETWEEN = 100_000
_OFF = (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, apsw.SQLITE_DBCONFIG_ENABLE_VIEW)
# Our own queries are short; those in a foreign file need not be long.
_LIMITS = {
    apsw.SQLITE_LIMIT_ATTACHED: 1,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    apsw.SQLITE_LIMIT_VDBE_OP: 250_000,
}


def distrust(connection: apsw.Connection, value_limit_bytes: int = VALUE_LIMIT_BYTES, steps: int = STEPS_LIMIT) -> None:
    """Read a foreign database without its views and triggers, with a bound on the length of a value and on the work of all queries.

    A query beyond the bound raises apsw.InterruptError, a computed value that is too long apsw.TooBigError.
    """
    for option in _OFF:
        connection.config(option, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for limit, value in {**_LIMITS, apsw.SQLITE_LIMIT_LENGTH: value_limit_bytes}.items():
        connection.limit(limit, value)
    _bound_work(connection, steps)


@contextmanager
def bounded(connection: apsw.Connection) -> Iterator[None]:
    """Bound the length of a value for a while, on a connection that goes on to be used: the tables of an older server become ours."""
    limit = connection.limit(apsw.SQLITE_LIMIT_LENGTH)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, OWN_VALUE_LIMIT_BYTES)
    try:
        yield
    finally:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, limit)


def _bound_work(connection: apsw.Connection, steps: int) -> None:
    pages, page_bytes = connection.pragma("page_count"), connection.pragma("page_size")
    left = (steps + STEPS_PER_BYTE * int(pages) * int(page_bytes)) // _STEPS_BETWEEN

    def is_over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(is_over, _STEPS_BETWEEN)
