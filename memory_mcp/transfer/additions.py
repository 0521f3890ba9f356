"""What the memories of a stranger may add: nothing that is stored here is replaced, nor said otherwise of."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

import apsw

from memory_mcp.domain import Draft, StatedRelation
from memory_mcp.language.relation_notation import with_types
from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.store import memories
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.entities import records


def only_adding(connection: apsw.Connection, drafts: Sequence[Draft], stored: Set[str]) -> Iterator[Draft]:
    """The drafts, each without the relations that somebody else stated already. It replaces only what an earlier draft stores, what is `stored` by this
    import, or what an import of the same origin stored and nobody revised."""
    named = [key for draft in drafts for key in (draft.supersedes, draft.restored.key) if key]
    known = memories.by_keys(connection, named)
    new = set(stored)
    for draft in drafts:
        target = known.get(draft.supersedes or "")
        is_update = target is not None and target.revision == 1 and draft.metadata.get(ORIGIN) == target.metadata.get(ORIGIN, "")
        yield replace(
            draft,
            supersedes=draft.supersedes if draft.supersedes in new or is_update else None,
            relations=tuple(_added(connection, draft.relations, stored)),
        )
        if draft.restored.key and draft.restored.key not in known:
            new.add(draft.restored.key)


def _added(connection: apsw.Connection, stated: Sequence[StatedRelation], stored: Set[str]) -> Iterator[StatedRelation]:
    """The relations that nobody else stated. An entity that is known keeps its type."""
    types = records.entity_types(connection) if stated else ()
    for relation in (with_types(relation, types) for relation in stated):
        source, target = (next(iter(records.by_name(connection, name)), None) for name in (relation.source, relation.target))
        supporters = relations.supporters(connection, source.id, target.id, relation.relation) if source and target else []
        if all(key in stored for key in supporters):
            types_of_new = relation.source_type if source is None else None, relation.target_type if target is None else None
            yield StatedRelation(relation.source, relation.relation, relation.target, *types_of_new)
