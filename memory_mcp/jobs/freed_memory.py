"""Gives memory that was needed once back to the system: of a large answer, of an import, of many calls at once."""

from collections.abc import Callable

from memory_mcp import process

# A look costs milliseconds: soon again where there was much to give back, else seldom.
SOON_SECONDS, SELDOM_SECONDS = 5.0, 60.0
MUCH_BYTES = 16 * 1024 * 1024


class FreedMemory:
    """Looks again and again, because the C library keeps what is freed, and doesn't tell how much that is."""

    def __init__(
        self, resident_bytes: Callable[[], int] = process.resident_bytes, return_freed: Callable[[], None] = process.return_freed
    ) -> None:
        self._resident_bytes, self._return_freed = resident_bytes, return_freed
        self._wait_seconds = SOON_SECONDS

    def step(self) -> float:
        """Gives back what is free now. Returns how many seconds to wait before the next look."""
        before = self._resident_bytes()
        self._return_freed()
        gave_much = before - self._resident_bytes() >= MUCH_BYTES
        self._wait_seconds = SOON_SECONDS if gave_much else min(self._wait_seconds * 2, SELDOM_SECONDS)
        return self._wait_seconds
