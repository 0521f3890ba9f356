"""How long a client may keep the server waiting."""

from dataclasses import dataclass


@dataclass(slots=True)
class Bounds:
    """One server's bounds, shared by its connections and its edge.

    `silence_seconds`: a call that stops arriving, as from a laptop that sleeps, is given up.
    """

    silence_seconds: float = 20.0
