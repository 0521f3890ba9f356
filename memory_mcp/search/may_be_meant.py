"""Who else may be meant by a person's name: 田中 may be 田中誠, as long as nobody has said so or otherwise. For ranking alone."""

from collections.abc import Mapping

import apsw

from memory_mcp.store.graph.entities.entity_merges import distinct_pairs
from memory_mcp.store.graph.entities.names import people_with_shorter_or_longer_names

# What names the one says so much of the other, shared by all who may be meant.
SHARE = 0.5
# A name that more have a part of tells nothing of any of them.
MANY = 20


def with_others(connection: apsw.Connection, weights: Mapping[int, float]) -> dict[int, float]:
    """The weights of entities, with a share for whoever else may be meant."""
    found = dict(weights)
    meant = people_with_shorter_or_longer_names(connection, weights)
    apart = distinct_pairs(connection) if meant else set()
    for entity, named in meant.items():
        others = [other for other in named if (min(entity, other), max(entity, other)) not in apart]
        for other in others if len(others) <= MANY else ():
            found[other] = found.get(other, 0.0) + weights[entity] * SHARE / len(others)
    return found
