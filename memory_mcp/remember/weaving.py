"""What the graph learns while nobody calls: who is named together, what follows what. A step works off a few memories of the
queue, and reads those for names that are older than the graph."""

from collections.abc import Sequence
from datetime import datetime
from itertools import combinations

import apsw

from memory_mcp.personas.registry import Persona
from memory_mcp.remember import naming
from memory_mcp.store.graph import links, mentions, queue, relations
from memory_mcp.store.graph.relations import Evidence, Pair

BATCH_MEMORIES = 50
# A memory that names more says little about any two of them: the first so many are paired.
TOGETHER_LIMIT = 8
# One memory that names two makes a weak relation; seven make one of 0.8.
TOGETHER_WEIGHT = 0.2
TOGETHER_CONFIDENCE = 0.5


def weave(persona: Persona, now: datetime) -> bool:
    """One batch of the queue, in one transaction: a crash leaves it waiting. Returns whether there is more."""

    def work(connection: apsw.Connection) -> bool:
        waiting = queue.first(connection, BATCH_MEMORIES)
        if not waiting:
            return False
        for memory, content in queue.unnamed(connection, waiting).items():
            naming.name_again(connection, persona.names, memory, content, now)
        changed = _pair_up(connection, waiting, now)
        relations.sum_up(connection, changed, now)
        links.link(connection, waiting, now)
        queue.done(connection, waiting)
        return len(waiting) == BATCH_MEMORIES

    with persona.database.read() as connection:
        if not queue.length(connection):
            return False
    return persona.database.write(work)


def _pair_up(connection: apsw.Connection, memory_ids: Sequence[int], now: datetime) -> set[Pair]:
    changed: set[Pair] = set()
    named = mentions.of_memories(connection, memory_ids)
    for memory in memory_ids:
        changed |= relations.remove_of_memory(connection, memory, ["co_occurrence"])
        together = combinations(named.get(memory, [])[:TOGETHER_LIMIT], 2)
        evidence = [
            Evidence(one, other, "co_occurrence", TOGETHER_WEIGHT, TOGETHER_CONFIDENCE, "co_occurrence", memory=memory)
            for one, other in together
        ]
        changed |= relations.add(connection, evidence, now)
    return changed
