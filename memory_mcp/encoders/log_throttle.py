"""What is logged of a model that fails while somebody waits: the answer says only that it did, and goes on without it.

It fails at every call then, so the same reason is told once in ten minutes.
"""

import logging
import time
from dataclasses import dataclass

from memory_mcp.errors import EncoderFailed

QUIET_SECONDS = 600.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Complaints:
    """Those of one model. Any thread may tell one."""

    _last: str = ""
    _told_at: float = float("-inf")

    def tell(self, error: EncoderFailed) -> None:
        """Logs it, unless it was logged lately."""
        said, now = str(error).removesuffix("."), time.monotonic()
        if said != self._last or now - self._told_at >= QUIET_SECONDS:
            self._last, self._told_at = said, now
            logger.warning("%s", said)
