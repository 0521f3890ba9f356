"""Until when an analysis may go on. The long ones ask between two steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memory_mcp.errors import AnalysisTooLong


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds` from the moment that it was made by `clock`, which counts seconds."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    begun: float = float("nan")

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(seconds, clock, clock())

    @property
    def left(self) -> float:
        """Seconds, 0 at least."""
        return max(self.begun + self.seconds - self.clock(), 0.0)

    def check(self) -> None:
        """
        Raises:
            AnalysisTooLong: the time is over.
        """
        if not self.left:
            raise AnalysisTooLong(
                f"the analysis was not done within {self.seconds:g} s",
                "the graph is large, or the server has much else to do",
                "Leave weak relations out with min_weight, such as 0.3, or try again when less is going on",
            )
