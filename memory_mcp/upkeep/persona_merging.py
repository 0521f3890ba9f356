"""Merging one persona into another: its memories and their history come along, and it stays as it is until somebody erases it."""

from datetime import datetime

import apsw

from memory_mcp.personas.registry import Persona
from memory_mcp.store import operations, persona_merge
from memory_mcp.store.operations import Operation
from memory_mcp.store.persona_merge import Merged


def merge(source: Persona, target: Persona, now: datetime) -> Merged:
    """Takes the memories of `source` into `target` in one transaction: all of them, or none. Doing it again brings what is new.

    `persona_context.json` of the target stays as it is.

    Raises:
        StoreError: it could not be done; nothing was.
    """
    with source.database.read() as there:

        def work(here: apsw.Connection) -> tuple[Merged, Operation]:
            merged = persona_merge.take_in(here, there, source.name, now)
            counts = {"from": source.name, "taken": merged.taken, "known": merged.known, "erased_before": merged.erased_before}
            done = Operation("merge_persona", None, now, metadata=counts)
            operations.record(here, done)
            return merged, done

        merged, done = target.database.write(work)
    target.log.append(target.name, done)
    return merged
