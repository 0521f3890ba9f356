"""How a caller finds entities: by name or id, by a similar name, in lists; without what only the trash supports."""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

import apsw

from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.language.names import bare, fold
from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.records import Entity

SUGGESTIONS = 5
# Candidates for suggestions may be hidden: so many more are looked at.
_FURTHER_CANDIDATES = 50
# A name that contains ?2, or ?3 without honorifics.
_MATCHES = "(instr(a.folded, ?2) OR instr(a.bare, ?3))"
# Entities whose matching name may be hidden: a further name, of an entity that a memory in the trash mentions, or that was merged or
# renamed since, so that the name may be a label of such a memory.
_MAY_MATCH_BY_HIDDEN_NAMES = f"""
SELECT DISTINCT coalesce(g.merged_into, g.id) FROM memories m CROSS JOIN entity_mentions em ON em.memory = m.id
JOIN entities g ON g.id = em.entity JOIN entities k ON k.id = coalesce(g.merged_into, g.id)
JOIN entity_aliases a ON a.entity = g.id AND NOT a.by_hand AND a.alias <> k.name
WHERE m.deleted_at IS NOT NULL AND ?1 = '' AND {_MATCHES}
UNION SELECT k.id FROM entity_aliases a JOIN entities g ON g.id = a.entity JOIN entities k ON k.id = coalesce(g.merged_into, g.id)
WHERE NOT a.by_hand AND a.alias <> k.name AND (g.id <> k.id OR k.made_by <> 'text') AND {_MATCHES}
"""


def visible(connection: apsw.Connection, candidates: Iterable[Entity]) -> list[Entity]:
    """Those of these entities that a caller sees, without their hidden names."""
    return _without_hidden_names(connection, visibility.not_hidden(connection, list(candidates)))


def without_hidden_names(connection: apsw.Connection, entity: Entity) -> Entity:
    """An entity that is visible, without its hidden names."""
    return _without_hidden_names(connection, [entity])[0]


def by_name(connection: apsw.Connection, name: str) -> list[Entity]:
    """The entities with this name, found as `records.by_name` finds them if there were no trash."""
    return visibility.visible_and_hidden(connection, name)[0]


def find_all(connection: apsw.Connection, name: str) -> Sequence[Entity]:
    """The entities with this name or id: as their own name before as a further name, then the most mentioned.

    Raises:
        EntityNotFound: there is none; the error suggests similar names.
    """
    with_id = records.by_entity_id(connection, name)
    entities = visible(connection, with_id) if with_id else _without_hidden_names(connection, by_name(connection, name))
    if not entities:
        raise EntityNotFound(
            "no entity is named {}",
            "{}",
            "Take a name from a memory, or look at graph_snapshot",
            repr(name[:80]),
            similar_names_text(connection, name),
        )
    own = records.ids_by_own_name(connection, name) if len(entities) > 1 else set()
    return sorted(entities, key=lambda entity: entity.id not in own)


def find_only(connection: apsw.Connection, name: str) -> Entity:
    """The only entity with this name or id, for changes.

    Raises:
        EntityNotFound: there is none.
        InvalidInput: there are several; the error lists their ids.
    """
    entities = find_all(connection, name)
    if len(entities) > 1:
        ids = ", ".join(f"{entity.entity_id} ({entity.type})" for entity in entities[:SUGGESTIONS])
        raise InvalidInput(
            "{} entities are named {}", "their ids are {}", "Name the one that you mean by its id", len(entities), repr(name[:80]), ids
        )
    return entities[0]


def namesakes(connection: apsw.Connection, entity: Entity) -> list[tuple[str, Entity]]:
    """Each name of an entity that another entity has too, with that entity; its own name first."""
    names = dict.fromkeys((entity.name, *entity.aliases, *entity.merged_names))
    return [(name, other) for name in names for other in by_name(connection, name) if other.id != entity.id]


def similar(connection: apsw.Connection, name: str, limit: int) -> list[Entity]:
    """Visible entities with a name that contains this one or is contained in it, the most mentioned first."""
    wanted = bare(name)
    candidates = records.by_similar_name(connection, wanted, limit + _FURTHER_CANDIDATES)
    return visible(
        connection, visibility.matched_by_visible_names(connection, candidates, lambda known: _are_similar(bare(known), wanted))
    )[:limit]


def similar_names_text(connection: apsw.Connection, name: str) -> str:
    """The similar names as part of an error message."""
    entities = similar(connection, name, SUGGESTIONS)
    return f"similar names are {', '.join(entity.name for entity in entities)}" if entities else "no name is similar"


def listed(connection: apsw.Connection, query: str, type_: str, limit: int, offset: int) -> tuple[list[Entity], int]:
    """Entities that memories mention or a person created, with a name that contains `query`, of a type where one is given; the most
    mentioned first. Also returns how many there are in all."""
    condition = (
        f"{visibility.PRESENT} AND (?1 = '' OR e.type = ?1) AND (?2 = '' OR EXISTS (SELECT 1 FROM entities g JOIN entity_aliases a ON a.entity = g.id "
        f"WHERE coalesce(g.merged_into, g.id) = +e.id AND {_MATCHES})) AND e.id NOT IN (SELECT value FROM json_each(?4))"
    )
    values = (type_, fold(query), bare(query), json.dumps(_matched_by_hidden_names(connection, query)))
    total = int(connection.execute(f"SELECT count(*) FROM entities e WHERE {condition}", values).get)
    rows = connection.execute(
        f"SELECT e.id FROM entities e WHERE {condition} ORDER BY e.extraction_count DESC, e.id LIMIT ?5 OFFSET ?6", (*values, limit, offset)
    )
    ids = [int(row[0]) for row in rows]
    entities = records.by_ids(connection, ids)
    return visible(connection, [entities[id_] for id_ in ids]), total


def _matched_by_hidden_names(connection: apsw.Connection, query: str) -> list[int]:
    """The entities of which only hidden names contain `query`."""
    folded, bared = fold(query), bare(query)
    rows = connection.execute(_MAY_MATCH_BY_HIDDEN_NAMES, ("", folded, bared)) if query else ()
    candidates = list(records.by_ids(connection, [row[0] for row in rows]).values())
    matched = visibility.matched_by_visible_names(connection, candidates, lambda name: folded in fold(name) or bared in bare(name))
    return sorted({entity.id for entity in candidates} - {entity.id for entity in matched})


def _without_hidden_names(connection: apsw.Connection, entities: Sequence[Entity]) -> list[Entity]:
    hidden = visibility.hidden_names(connection, [entity.id for entity in entities if entity.aliases or entity.merged_names])
    return [_without(entity, hidden.get(entity.id, set())) for entity in entities]


def _without(entity: Entity, hidden: Set[str]) -> Entity:
    if not hidden:
        return entity
    aliases, merged = ([name for name in names if name not in hidden] for names in (entity.aliases, entity.merged_names))
    return replace(entity, aliases=tuple(aliases), merged_names=tuple(merged))


def _are_similar(name: str, wanted: str) -> bool:
    return wanted in name or (len(name) > 1 and name in wanted)
