"""Whom, and by which names, a client is told: not those whom only memories in the trash name, nor further names that only these hold."""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

import apsw

from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.text.names import bare

SUGGESTIONS = 5
# Of whom only the trash speaks nothing is told: so many more are looked at.
ALSO_LOOKED_AT = 50


def visible(connection: apsw.Connection, found: Sequence[Entity]) -> list[Entity]:
    """Of these entities those of whom something else than memories in the trash speaks, without the further names that only such hold."""
    untold = visibility.hidden_entities(connection, [entity.id for entity in found if not entity.extraction_count])
    return _openly(connection, [entity for entity in found if entity.id not in untold])


def without_hidden_names(connection: apsw.Connection, entity: Entity) -> Entity:
    """An entity that somebody just spoke of, without the further names that only memories in the trash hold."""
    return _openly(connection, [entity])[0]


def _openly(connection: apsw.Connection, found: Sequence[Entity]) -> list[Entity]:
    names = visibility.hidden_names(connection, [entity.id for entity in found if entity.aliases or entity.merged_names])
    return [_without(entity, names.get(entity.id, set())) for entity in found]


def _without(entity: Entity, names: Set[str]) -> Entity:
    if not names:
        return entity
    aliases, merged = ([name for name in said if name not in names] for said in (entity.aliases, entity.merged_names))
    return replace(entity, aliases=tuple(aliases), merged_names=tuple(merged))


def visible_as(connection: apsw.Connection, found: Sequence[Entity], name: str) -> list[Entity]:
    """Those of whoever is called so who are told, and by this name; each with all its names."""
    untold = visibility.hidden_entities(connection, [entity.id for entity in found if not entity.extraction_count])
    wanted = bare(name)
    return [one for one in matched_by_visible_names(connection, found, lambda known: bare(known) == wanted) if one.id not in untold]


def by_name(connection: apsw.Connection, name: str) -> list[Entity]:
    """Whoever is called so, as `records.by_name` finds, as if there were no trash."""
    return visible_and_hidden(connection, name)[0]


def visible_and_hidden(connection: apsw.Connection, name: str) -> tuple[list[Entity], set[int]]:
    """The same, and the ids of those who are called so by the trash alone."""
    refused: set[int] = set()
    for found in records.by_name_forms(connection, name):
        there = visible_as(connection, [entity for entity in found if entity.id not in refused], name)
        refused.update({entity.id for entity in found} - {entity.id for entity in there})
        if there:
            return there, refused
    return [], refused


def matched_by_visible_names(connection: apsw.Connection, found: Sequence[Entity], fits: Callable[[str], bool]) -> list[Entity]:
    """Those of these entities that were not found by names alone that only memories in the trash hold. `fits`: whether a name is sought."""
    hidden = visibility.hidden_names(connection, [entity.id for entity in found if not fits(entity.name)], fits)
    return [entity for entity in found if entity.id not in hidden or not _are_hidden(entity, hidden[entity.id], fits)]


def _are_hidden(entity: Entity, hidden: Set[str], fits: Callable[[str], bool]) -> bool:
    fitting = [name for name in (*entity.aliases, *entity.merged_names) if fits(name)]
    return bool(fitting) and hidden >= set(fitting)


def find_all(connection: apsw.Connection, name: str) -> Sequence[Entity]:
    """The entities of that name or id: whose own name it is before whose further name, then the most mentioned first. What only memories in
    the trash say is not told.

    Raises:
        EntityNotFound: nobody is called so; says who is called alike.
    """
    with_id = records.by_entity_id(connection, name)
    found = visible(connection, with_id) if with_id else _openly(connection, by_name(connection, name))
    if not found:
        raise EntityNotFound(
            f"nobody and nothing is called {name[:80]!r}",
            similar_names_text(connection, name),
            "Take a name from a memory, or look at graph_snapshot",
        )
    own = records.ids_by_own_name(connection, name) if len(found) > 1 else set()
    return sorted(found, key=lambda entity: entity.id not in own)


def find_only(connection: apsw.Connection, name: str) -> Entity:
    """The only entity of that name or id: for what changes it.

    Raises:
        EntityNotFound: nobody is called so.
        InvalidInput: several are; says which.
    """
    found = find_all(connection, name)
    if len(found) > 1:
        ids = ", ".join(f"{entity.entity_id} ({entity.type})" for entity in found[:SUGGESTIONS])
        raise InvalidInput(f"{len(found)} are called {name[:80]!r}", f"their ids are {ids}", "Name the one that you mean by its id")
    return found[0]


def namesakes(connection: apsw.Connection, entity: Entity) -> list[tuple[str, Entity]]:
    """Each name of an entity that somebody else is called by, too, and who that is; its own name first."""
    names = dict.fromkeys((entity.name, *entity.aliases, *entity.merged_names))
    return [(name, other) for name in names for other in by_name(connection, name) if other.id != entity.id]


def similar_names_text(connection: apsw.Connection, name: str) -> str:
    """Who is called alike, in words."""
    found = similar(connection, name, SUGGESTIONS)
    return f"known are {', '.join(entity.name for entity in found)}" if found else "no name is like it"


def similar(connection: apsw.Connection, name: str, limit: int) -> list[Entity]:
    """Entities with a name that holds this one or is held by it, most mentioned first; none of whom only the trash speaks."""
    wanted = bare(name)
    found = matched_by_visible_names(
        connection, records.by_similar_name(connection, wanted, limit + ALSO_LOOKED_AT), lambda name: _are_alike(bare(name), wanted)
    )
    return visible(connection, found)[:limit]


def _are_alike(name: str, wanted: str) -> bool:
    return wanted in name or (len(name) > 1 and name in wanted)
