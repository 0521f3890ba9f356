"""What the graph loses when memories are erased for good: who is named in none that is left is forgotten."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

import apsw

from memory_mcp.store.graph import mentions, names, relations


@contextmanager
def of_memories(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> Iterator[None]:
    """Around deleting the rows of these memories: what they named and spoke for is told before, and set right after."""
    ids = json.dumps(list(memory_ids))
    named = {
        row[0] for row in connection.execute("SELECT entity FROM entity_mentions WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    }
    pairs = relations.pairs_of_memories(connection, json.loads(ids))
    named |= {entity for pair in pairs for entity in pair}
    yield
    connection.execute("DELETE FROM graph_queue WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    relations.sum_up(connection, pairs, now)
    connection.execute(
        "DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?)) AND made_by = 'text' "
        "AND NOT EXISTS (SELECT 1 FROM entity_mentions m WHERE m.entity = entities.id) "
        "AND NOT EXISTS (SELECT 1 FROM relation_evidence r WHERE r.source = entities.id OR r.target = entities.id) "
        "AND NOT EXISTS (SELECT 1 FROM entities o WHERE o.merged_into = entities.id)",
        (json.dumps(sorted(named)),),
    )
    mentions.count_again(connection, named)
    names.changed(connection)
