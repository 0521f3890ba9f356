"""Entities, their types and their merges as a client sees them: for the tool `merge_entities` and the routes below /api/graph/."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.graph.merge_proposals import proposals
from memory_mcp.graph.query.entities_by_meaning import entities_by_meaning
from memory_mcp.graph.update import entity_edits
from memory_mcp.personas.registry import Persona
from memory_mcp.server.graph_arguments import name as name_of
from memory_mcp.server.graph_arguments import types as known_types
from memory_mcp.server.graph_arguments import within
from memory_mcp.server.graph_views import entity_view
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, local, told
from memory_mcp.store.graph import types
from memory_mcp.store.graph.entities import entity_merges, lookup, records
from memory_mcp.store.graph.entities.entity_merges import Merge
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.types import Type
from memory_mcp.text.labels import label

SHOWN, SHOWN_LIMIT = 20, 100
ENTITIES_SHOWN, ENTITIES_LIMIT = 50, 500
# SQLite's whole numbers end there.
NUMBER_LIMIT = 2**63 - 1

Seen = TypeVar("Seen")


def merged(call: Call, entity: str, into: str, undo: int | None, distinct: bool, reason: str, limit: int | None) -> dict[str, Any]:
    """Merges `entity` into `into`, or says that they are two, or undoes a merge; lists proposals and merges where none of these is asked for.

    Raises:
        InvalidInput, EntityNotFound: it can't be done; nothing was changed.
    """
    name, kept = entity.strip(), into.strip()
    if undo is not None and (name or kept or distinct):
        raise InvalidInput("undo was given with other arguments", "one call does one thing", "Send two calls")
    if undo is None and not (name or kept or distinct):
        return listing(call, limit)
    if undo is None and not (name and kept):
        raise InvalidInput("one of the two is missing", "a merge takes entity and into", "Name both")
    if undo is None:
        name, kept = name_of(name, "entity"), name_of(kept, "into")
    with call.changing() as persona:
        if undo is not None:
            if not 0 < undo <= NUMBER_LIMIT:
                raise InvalidInput(f"undo is {undo}", "it is the number of a merge", "Look at the merges that are listed")
            one, other = entity_edits.undo_merge(persona, undo, now=call.now)
            return {
                **heading(call, persona),
                "undone": undo,
                **told(into=one and _entity(one, call), entity=other and _entity(other, call)),
            }
        why, privacy = label(reason, "reason"), call.settings.privacy
        if distinct:
            entity_edits.mark_distinct(persona, name, kept, reason=why, now=call.now, privacy=privacy)
            return {**heading(call, persona), "distinct": [name, kept]}
        done = entity_edits.merge_entities(persona, name, kept, reason=why, now=call.now, privacy=privacy)
        return {**heading(call, persona), "merge": done.number, "into": _entity(done.kept, call)}


def listing(call: Call, limit: int | None) -> dict[str, Any]:
    """Who may be one under two names, and the merges so far, undone ones too. Changes nothing.

    Raises:
        AnalysisUnfinished: there are too many to compare in time.
    """
    shown = within(limit, "limit", 1, SHOWN_LIMIT, SHOWN)
    later = "Try again when less is going on; GET /api/graph/entity lists the merges of one"
    # Its turn first: nothing of the database is held while that is waited for.
    with call.reading() as persona, call.runtime.analyses.turn(later) as deadline, persona.database.read() as connection:
        found, total = proposals(connection, shown, deadline)
        return {
            **heading(call, persona),
            "proposals": [
                {**_pair(one.merged, one.kept), "type": one.kept.type, "score": one.score, "why": list(one.why)} for one in found
            ],
            "proposals_in_all": total,
            "merges": [_merge(one, call) for one in entity_merges.history(connection, shown)],
        }


def entities_view(call: Call, query: str, type_: str, limit: int, offset: int) -> dict[str, Any]:
    """Entities by their names, the most mentioned first."""
    with call.reading() as persona, persona.database.read() as connection:
        wanted = "".join(known_types([type_], records.entity_types(connection))) if type_.strip() else ""
        found, total = lookup.listed(connection, query.strip(), wanted, limit, offset)
        return {**heading(call, persona), "entities": [_entity(one, call) for one in found], "in_all": total}


def of_whom(call: Call, persona: Persona, name: str, view: Callable[[apsw.Connection, str], Seen]) -> tuple[Seen, dict[str, Any]]:
    """What `view` sees of the entity of a name, or, where nobody is called so, by the id of whoever it is nearest to by meaning; and what is to
    be said of that.

    Raises:
        EntityNotFound: nobody is called so, and nobody is near; it says so too where no model could be asked.
    """
    try:
        with persona.database.read() as connection:
            return view(connection, name), {}
    except EntityNotFound as error:
        unknown = error
    found = entities_by_meaning(persona, name, call.models)
    if not found.entities:
        asked = f"by meaning nobody could be looked for ({found.skipped})" if found.skipped else "nobody is near by meaning"
        raise EntityNotFound(unknown.what, f"{unknown.why}; {asked}", unknown.do) from unknown
    (best, similarity), *others = found.entities
    said = {"asked": name, "similarity": similarity, **told(others=[{"name": one.name, "similarity": near} for one, near in others])}
    with persona.database.read() as connection:
        return view(connection, best.entity_id), {"by_meaning": said}


def one_view(call: Call, name: str) -> dict[str, Any]:
    """One entity with its namesakes and what was merged into it or taken apart again."""

    def seen(connection: apsw.Connection, known: str) -> dict[str, Any]:
        found, *namesakes = lookup.find_all(connection, known)
        merges = [_merge(one, call) for one in entity_merges.history(connection, SHOWN_LIMIT, of=found.id)]
        return {"entity": _entity(found, call), **told(namesakes=[_entity(one, call) for one in namesakes], merges=merges)}

    with call.reading() as persona:
        view, by_meaning = of_whom(call, persona, name, seen)
        return {**heading(call, persona), **by_meaning, **view}


def types_view(call: Call) -> dict[str, Any]:
    """The types of entities and of relations, with how often each is used."""
    with call.reading() as persona, persona.database.read() as connection:
        return {
            **heading(call, persona),
            "entity_types": [_type(one) for one in types.of_entities(connection)],
            "relation_types": [_type(one) for one in types.of_relations(connection)],
        }


def changed_view(call: Call, persona: Persona, entity: Entity, head: dict[str, Any], *, renamed: bool) -> dict[str, Any]:
    """An entity that was just made or changed. Where its names or its type are new (`renamed`), with whoever else is called so."""
    if not renamed:
        return {**head, "entity": _entity(entity, call)}
    with persona.database.read() as connection:
        others = lookup.namesakes(connection, entity)[:SHOWN]
    namesakes = {other.id: _entity(other, call) for _, other in others}
    note = _note_of_namesakes(entity, others) if others else None
    return {**head, "entity": _entity(entity, call), **told(namesakes=list(namesakes.values()), note=note)}


def _note_of_namesakes(entity: Entity, others: Sequence[tuple[str, Entity]]) -> str:
    who = ", ".join(f"{name} ({other.type} {other.entity_id})" for name, other in others)
    of_one_type = any(entity_merges.compatible(entity.type, other.type) for _, other in others)
    first = "" if of_one_type else ", once they are of one type"
    further = any(name != entity.name for name, _ in others)
    undo = "; aliases without a further name take that away" if further else ""
    return f"others are called so, too: {who}. They stay two; if they are one, merge_entities makes them one{first}{undo}"


def _entity(entity: Entity, call: Call) -> dict[str, Any]:
    return entity_view(entity, call.settings.zone)


def _pair(merged: Entity, kept: Entity) -> dict[str, Any]:
    return {"entity": merged.name, "entity_id": merged.entity_id, "into": kept.name, "into_id": kept.entity_id}


def _merge(merge: Merge, call: Call) -> dict[str, Any]:
    zone = call.settings.zone
    return {
        "merge": merge.number,
        "entity": merge.merged_name,
        "into": merge.kept_name,
        **told(reason=merge.reason, merged_at=local(merge.merged_at, zone), undone_at=local(merge.undone_at, zone)),
    }


def _type(known: Type) -> dict[str, Any]:
    return {
        "name": known.name,
        "display_name": known.display_name,
        "used": known.used,
        "user_defined": known.user_defined,
        **told(description=known.description, color=known.color, directed=known.directed),
    }


def names(values: Sequence[Any] | None) -> tuple[str, ...] | None:
    """A list of names out of a JSON body.

    Raises:
        InvalidInput: one is no string.
    """
    if values is None:
        return None
    if not all(isinstance(value, str) for value in values):
        raise InvalidInput("aliases has the wrong type", "", "Send a list of strings")
    return tuple(values)
