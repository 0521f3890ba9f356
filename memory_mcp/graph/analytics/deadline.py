"""Until when an analysis may go on. The long ones ask between two steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memory_mcp.errors import AnalysisUnfinished


@dataclass(frozen=True, slots=True)
class Deadline:
    """It is over at `ends_at`, by `clock`, which counts seconds; that was `seconds` from the beginning. `do` is what whoever asked may do
    then."""

    seconds: float
    ends_at: float
    clock: Callable[[], float] = time.monotonic
    do: str = "Leave weak relations out with min_weight, such as 0.3, or try again when less is going on"

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """So many seconds from now."""
        return cls(seconds, clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds, 0 at least."""
        return max(self.ends_at - self.clock(), 0.0)

    def check(self) -> None:
        """Goes on, or gives up.

        Raises:
            AnalysisUnfinished: the time is over.
        """
        if not self.left:
            raise self.passed()

    def passed(self) -> AnalysisUnfinished:
        """The refusal of what was not done in time."""
        why = "the graph is large, or the server has much else to do"
        return AnalysisUnfinished(f"the analysis was not done within {self.seconds:g} s", why, self.do)
