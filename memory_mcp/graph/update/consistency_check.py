"""Checks that the weight of each relation agrees with its evidence and each count with the memories, a few entities at a time.

Errors are corrected and logged. Stated relations and memories are never changed.
"""

import logging
from datetime import datetime

import apsw

from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import consistency, mentions, relations

ENTITIES_AT_ONCE = 100

logger = logging.getLogger(__name__)


def step(persona: Persona, now: datetime) -> bool:
    """Checks the next few entities. Returns whether there are more."""
    with persona.database.read() as connection:
        until = consistency.checked_until(connection)
        entities = consistency.after(connection, until, ENTITIES_AT_ONCE)
        pairs, counts = consistency.wrong_sums(connection, entities), consistency.wrong_counts(connection, entities)
    if pairs or counts:
        logger.warning("the graph of %s was inconsistent: %d relations and %d counts are corrected", persona.name, len(pairs), len(counts))
    more = len(entities) == ENTITIES_AT_ONCE

    def write(connection: apsw.Connection) -> None:
        relations.sum_up(connection, pairs, now)
        mentions.recount(connection, counts)
        consistency.note_checked(connection, entities[-1] if more else 0)

    if pairs or counts or more or until:
        persona.database.write(write)
    return more
