"""The deadline of an analysis; long ones check it between two steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memory_mcp.errors import AnalysisUnfinished


@dataclass(frozen=True, slots=True)
class Deadline:
    """Ends at `ends_at` by `clock`, `seconds` after the start. `do`: the advice of the error."""

    seconds: float
    ends_at: float
    clock: Callable[[], float] = time.monotonic
    do: str = "Leave weak relations out with min_weight, such as 0.3, or try again when less is going on"

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """A deadline so many seconds from now."""
        return cls(seconds, clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds, 0 at least."""
        return max(self.ends_at - self.clock(), 0.0)

    def check(self) -> None:
        """Raises an error after the deadline.

        Raises:
            AnalysisUnfinished: the time is over.
        """
        if not self.left:
            raise self.passed()

    def passed(self) -> AnalysisUnfinished:
        """The error of an analysis that took too long."""
        why = "the graph is large, or the server has much else to do"
        return AnalysisUnfinished(f"the analysis was not done within {self.seconds:g} s", why, self.do)
