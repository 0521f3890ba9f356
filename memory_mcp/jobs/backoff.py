"""What a failure of background work becomes: a rest, a line in the log when it is news, and words for whoever looks at the server."""

import logging
from datetime import datetime

from memory_mcp.errors import MemoryMCPError
from memory_mcp.jobs.index_schedule import Backoff

logger = logging.getLogger(__name__)


def put_off(what: str, backoff: Backoff, error: Exception, now: datetime) -> str:
    """Lets `what` rest after a failure, and returns the failure's words.

    It is logged at its first time and again when it is another one than before: something that fails for days must neither fill the log
    nor hide what else goes wrong. What nobody foresaw is logged with its traceback, and told by its kind alone: it may quote a memory.
    """
    foreseen = isinstance(error, MemoryMCPError)
    said = str(error) if foreseen else f"unexpected {_kind(error)}; the log says where."
    is_news = backoff.failed(now, said)
    if is_news and foreseen:
        logger.warning("%s waits: %s", what, said)
    elif is_news:
        logger.error("%s waits, for a reason that nobody foresaw", what, exc_info=error)
    return said


def _kind(error: Exception) -> str:
    """Its class; of a disk's or a network's also the system's words, which quote nothing."""
    words = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
