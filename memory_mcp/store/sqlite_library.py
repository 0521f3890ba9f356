"""What SQLite as a whole is told, in this process and for good."""

import logging

import apsw

logger = logging.getLogger(__name__)


def allocate_uncounted() -> None:
    """Lets SQLite allocate without counting, for which all connections wait for one lock: with fifty callers a third of all waiting
    for locks. Only before the first connection is opened; later everything stays as it is.
    """
    if apsw.connections():
        logger.warning("SQLite goes on counting what it allocates: a file is open already")
        return
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.initialize()
