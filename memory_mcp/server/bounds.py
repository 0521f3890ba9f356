"""How long a client may keep the server waiting, and how many bytes may wait for clients."""

from collections import Counter
from dataclasses import dataclass

from memory_mcp.errors import Overloaded, PersonaOverloaded

# Up to so many bytes a call and an answer are not counted: a thousand connections have as much in their buffers anyway.
SMALL_BYTES = 64 * 1024


@dataclass(slots=True)
class Bounds:
    """One server's bounds, shared by its connections and its edge.

    `silence_seconds`: a call that stops arriving and an answer that is not taken, as by a laptop that sleeps, are given up.
    `least_bytes_per_second`: of a body, counted once it was waited for as long.
    `stranger_bytes`: of a body without a token or session, such as that of a sign-in.
    `waiting_bytes`: of all bodies that are arriving, and of all answers that are being taken. `waiting_bytes_each`: the same of one caller.
    """

    silence_seconds: float = 20.0
    least_bytes_per_second: int = 4 * 1024
    stranger_bytes: int = 64 * 1024
    waiting_bytes: int = 256 * 1024 * 1024
    waiting_bytes_each: int = 64 * 1024 * 1024


class WaitingBytes:
    """The bytes that lie in memory until clients have sent or taken the rest, of all callers and of each."""

    def __init__(self, bounds: Bounds, full: Overloaded) -> None:
        """`full` has the words of the refusal."""
        self._bounds = bounds
        self._full = full
        self._all = 0
        self._each: Counter[str] = Counter()

    def add(self, caller: str, size: int) -> None:
        """Count further bytes. What would be alone is always let in, however large.

        Raises:
            PersonaOverloaded: this caller has too many.
            Overloaded: all together have too many.
        """
        if self._each[caller] and self._each[caller] + size > self._bounds.waiting_bytes_each:
            raise PersonaOverloaded(self._full.what, self._full.why, self._full.do)
        if self._all and self._all + size > self._bounds.waiting_bytes:
            raise Overloaded(self._full.what, self._full.why, self._full.do)
        self._all += size
        self._each[caller] += size

    def remove(self, caller: str, size: int) -> None:
        """Count bytes no longer."""
        self._all -= size
        self._each[caller] -= size
        if not self._each[caller]:
            del self._each[caller]
