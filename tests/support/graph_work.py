"""What several tests of the graph do with it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.graph.network import Network


class Here:
    """Computes where it is asked to, so that tests see what happens."""

    def run(self, analysis: Callable[[Network], Any], network: Network, _deadline: Any) -> Any:
        return analysis(network)

    def close(self) -> None:
        """Nothing is open."""


def counted(done: list[int]) -> Callable[[Network], Any]:
    """An analysis that notes in `done` each time of how many entities it was made."""

    def analysis(whole: Network) -> Any:
        done.append(len(whole.ids))
        return np.array(whole.ids)

    return analysis


def sum_up_from_the_ground(persona: Persona, now: datetime) -> None:
    """Every relation and every count made anew of what speaks for it."""

    def work(connection: Any) -> None:
        everybody = [row[0] for row in connection.execute("SELECT id FROM entities")]
        connection.execute("DELETE FROM relations")
        relations.rebuild_sums(connection, everybody, now)
        mentions.recount(connection, everybody)

    persona.database.write(work)
