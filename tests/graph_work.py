"""What several tests of the graph do with it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

from memory_mcp.graph.deadline import Deadline
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.graph.network import Network


def counted(done: list[int]) -> Callable[[Network, Deadline], Any]:
    """An analysis that notes in `done` each time of how many entities it was made."""

    def analysis(whole: Network, deadline: Deadline) -> Any:
        done.append(len(whole.ids))
        return np.array(whole.ids)

    return analysis


def sum_up_from_the_ground(persona: Persona, now: datetime) -> None:
    """Every relation and every count made anew of what speaks for it."""

    def work(connection: Any) -> None:
        everybody = [row[0] for row in connection.execute("SELECT id FROM entities")]
        connection.execute("DELETE FROM relations")
        relations.sum_up_anew(connection, everybody, now)
        mentions.count_again(connection, everybody)

    persona.database.write(work)
