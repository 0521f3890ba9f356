"""Entities and their types: listing, creating, changing and deleting them by hand."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired, TypeVar

import apsw
from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.features.graph import entity_edits
from memory_mcp.features.graph.views import MERGES_LIMIT, entity_view, merge_view
from memory_mcp.graph.query.entities_by_meaning import entities_by_meaning
from memory_mcp.language.relation_notation import type_of_word
from memory_mcp.personas.registry import Persona
from memory_mcp.server.arguments import (
    Arguments,
    Between,
    EntityName,
    NoArguments,
    Number,
    OneOf,
    Text,
    TextListOrNone,
    TextOrNone,
    Words,
    http,
)
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Count, Fraction, PersonaAnswer, heading, omit_empty
from memory_mcp.store.graph import types as stored_types
from memory_mcp.store.graph.entities import editing, entity_merges, lookup, records
from memory_mcp.store.graph.entities.records import Entity as StoredEntity
from memory_mcp.store.graph.types import Type

ENTITIES_LIMIT = 500
OFFSET_LIMIT = 1_000_000
NAMESAKES_SHOWN = 20
KINDS = ("entity", "relation")
_COLOR = re.compile("#[0-9a-fA-F]{6}")

View = TypeVar("View")


class ListArguments(Arguments):
    query: Annotated[Words, http("A part of a name.")] = ""
    type: Annotated[Text, http("Only entities of this type.")] = ""
    limit: Annotated[int, Between(1, ENTITIES_LIMIT), http("How many entities.")] = 50
    offset: Annotated[int, Between(0, OFFSET_LIMIT), http("How many entities to skip.")] = 0


class Entity(TypedDict):
    id: str
    name: str
    type: str
    confidence: Fraction
    aliases: NotRequired[list[str]]
    subtype: NotRequired[str]
    description: NotRequired[str]
    attributes: NotRequired[dict[str, Any]]
    mentions: NotRequired[Count]
    importance: NotRequired[Fraction]


class EntityMerge(TypedDict):
    merge: Count
    entity: str
    into: str
    reason: NotRequired[str]
    merged_at: NotRequired[str]
    undone_at: NotRequired[str]


class Entities(PersonaAnswer):
    entities: list[Entity]
    in_all: Count


@operation(needs=["read"], route=Route("GET", "/api/graph/entities"), answer=Entities)
def list_entities(call: Call, arguments: ListArguments) -> Json:
    """List the people, places and things that memories name, the most mentioned first."""
    with call.reading() as persona, persona.database.read() as connection:
        type_ = "".join(known_types([arguments.type], records.entity_types(connection))) if arguments.type.strip() else ""
        listed, total = lookup.listed(connection, arguments.query.strip(), type_, arguments.limit, arguments.offset)
        return {**heading(call, persona), "entities": [_view(entity, call) for entity in listed], "in_all": total}


class EntityFields(Arguments):
    """The fields of an entity that a call may set."""

    name: TextOrNone = None
    type: Annotated[TextOrNone, http("One of the types that GET /api/graph/types lists.")] = None
    subtype: Annotated[TextOrNone, http("A narrower type, such as engineer or restaurant. Empty for none.")] = None
    description: Annotated[TextOrNone, http("Empty for none.")] = None
    attributes: Annotated[dict[str, Any] | None, http("Anything else by name, such as a role or an address. Empty for none.")] = None
    aliases: Annotated[TextListOrNone, http("All its further names.")] = None
    importance: Annotated[Number, http(minimum=0, maximum=1)] = None

    @property
    def change(self) -> editing.EntityChange:
        """The fields as the store takes them."""
        return editing.EntityChange(
            name=self.name,
            type=self.type,
            description=self.description,
            aliases=None if self.aliases is None else tuple(self.aliases),
            importance=self.importance,
            subtype=self.subtype,
            attributes=self.attributes,
        )


class NewEntity(EntityFields):
    name: TextOrNone = Field()


class OneEntity(PersonaAnswer):
    entity: Entity
    by_meaning: NotRequired[dict[str, Any]]
    namesakes: NotRequired[list[Entity]]
    merges: NotRequired[list[EntityMerge]]
    note: NotRequired[str]


@operation(needs=["read", "write"], route=Route("POST", "/api/graph/entities"), answer=OneEntity)
def create_entity(call: Call, arguments: NewEntity) -> Json:
    """Create an entity, which stays whether or not a memory names it."""
    change = arguments.change
    with call.reading() as persona:  # an entity that is refused must not create the persona
        head = heading(call, persona)
        entity_edits.check_new(persona, change, privacy=call.settings.privacy)
    with call.writing() as persona:
        entity = entity_edits.create(persona, change, now=call.now, privacy=call.settings.privacy)
        return _changed(call, persona, entity, head, renamed=True)


class EntityArguments(Arguments):
    entity: Annotated[EntityName, http("A name or an id.")]


@operation(needs=["read"], route=Route("GET", "/api/graph/entity"), answer=OneEntity)
def get_entity(call: Call, arguments: EntityArguments) -> Json:
    """Return one entity, with others of the same name, and what was merged into it."""

    def view(connection: apsw.Connection, name: str) -> Json:
        entity, *namesakes = lookup.find_all(connection, name)
        merges = [merge_view(merge, call.settings.zone) for merge in entity_merges.history(connection, MERGES_LIMIT, of=entity.id)]
        return {"entity": _view(entity, call), **omit_empty(namesakes=[_view(other, call) for other in namesakes], merges=merges)}

    with call.reading() as persona:
        entity, by_meaning = seen_by_name(call, persona, arguments.entity, view)
        return {**heading(call, persona), **by_meaning, **entity}


class EntityChange(EntityFields, EntityArguments):
    pass


@operation(needs=["read", "write"], route=Route("PATCH", "/api/graph/entity"), answer=OneEntity)
def change_entity(call: Call, arguments: EntityChange) -> Json:
    """Change an entity's names, its type or what is said of it."""
    change = arguments.change
    with call.changing() as persona:
        entity = entity_edits.change(persona, arguments.entity, change, now=call.now, privacy=call.settings.privacy)
        renamed = bool(change.name or change.type or change.aliases is not None)
        return _changed(call, persona, entity, heading(call, persona), renamed=renamed)


class EntityDeleted(PersonaAnswer):
    deleted: str


@operation(needs=["read", "write", "delete"], route=Route("DELETE", "/api/graph/entity"), answer=EntityDeleted)
def delete_entity(call: Call, arguments: EntityArguments) -> Json:
    """Delete an entity; a text that names it again creates it anew."""
    with call.changing() as persona:
        entity = entity_edits.delete(persona, arguments.entity, now=call.now)
        return {**heading(call, persona), "deleted": entity.name}


class GraphType(TypedDict):
    name: str
    display_name: str
    used: Count
    user_defined: bool
    description: NotRequired[str]
    color: NotRequired[str]
    directed: NotRequired[bool]


class GraphTypes(PersonaAnswer):
    entity_types: list[GraphType]
    relation_types: list[GraphType]


@operation(needs=["read"], route=Route("GET", "/api/graph/types"), answer=GraphTypes)
def list_types(call: Call, _arguments: NoArguments) -> Json:
    """List the types of entities and relations, with how often each is used."""
    return _types(call)


class TypeArguments(Arguments):
    kind: Annotated[Literal["entity", "relation"], OneOf(KINDS, exact=True), http("What it is a type of.")]
    name: Annotated[EntityName, http("The name of the type.")]


class NewGraphType(TypeArguments):
    display_name: TextOrNone = None
    description: TextOrNone = None
    color: Annotated[TextOrNone, http("Of entities: # and six hexadecimal digits.")] = None
    directed: Annotated[bool, http("Of relations.")] = True


@operation(needs=["read", "write"], route=Route("POST", "/api/graph/types"), answer=GraphTypes)
def create_type(call: Call, arguments: NewGraphType) -> Json:
    """Add a type."""
    color = arguments.color or None
    if color and not _COLOR.fullmatch(color):
        raise InvalidInput("color is {}", "it is # and six hexadecimal digits", "Send one such as #e4572e, or none", repr(color[:80]))
    new = entity_edits.NewType(arguments.kind, arguments.name, arguments.display_name, arguments.description, color, arguments.directed)
    entity_edits.checked_type(new, call.settings.privacy)  # a type that is refused must not create the persona
    with call.writing() as persona:
        entity_edits.create_type(persona, new, now=call.now, privacy=call.settings.privacy)
    return _types(call)


@operation(needs=["read", "write", "delete"], route=Route("DELETE", "/api/graph/types"), answer=GraphTypes)
def delete_type(call: Call, arguments: TypeArguments) -> Json:
    """Delete a type that was added and that nothing uses."""
    with call.changing() as persona:
        entity_edits.delete_type(persona, arguments.kind, arguments.name, now=call.now)
    return _types(call)


def seen_by_name(call: Call, persona: Persona, name: str, view: Callable[[apsw.Connection, str], View]) -> tuple[View, Json]:
    """Return the `view` of the entity with this name, or else of the nearest one by meaning; and the field that marks that.

    Raises:
        EntityNotFound: no entity has the name, and none is near, or no model could be asked for near ones, which the error reports.
    """
    try:
        with persona.database.read() as connection:
            return view(connection, name), {}
    except EntityNotFound as error:
        unknown = error
    near = entities_by_meaning(persona, name, call.models)
    if not near.entities:
        asked = f"none could be looked for by meaning ({near.skipped})" if near.skipped else "none is near by meaning"
        raise EntityNotFound(unknown.what, "{}; {}", unknown.do, unknown.why, asked) from unknown
    (best, similarity), *others = near.entities
    further = [{"name": entity.name, "similarity": nearness} for entity, nearness in others]
    marked = omit_empty(others=further, **({"degraded": [near.replaced.reason], "embedder": near.replaced.name} if near.replaced else {}))
    with persona.database.read() as connection:
        return view(connection, best.entity_id), {"by_meaning": {"asked": name, "similarity": similarity, **marked}}


def known_types(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return types of entities by their names: `Person` for person, 人物 and 人.

    Raises:
        InvalidInput: there is no such type.
    """
    types = []
    for name in names:
        type_ = type_of_word(name, known)
        if type_ is None:
            raise InvalidInput("there is no type {}", "known are {}", "Take one of them, or none", repr(name[:80]), ", ".join(known))
        types.append(type_)
    return types


def _types(call: Call) -> Json:
    with call.reading() as persona, persona.database.read() as connection:
        return {
            **heading(call, persona),
            "entity_types": [_type_view(type_) for type_ in stored_types.listed(connection, "entity")],
            "relation_types": [_type_view(type_) for type_ in stored_types.listed(connection, "relation")],
        }


def _changed(call: Call, persona: Persona, entity: StoredEntity, head: Json, *, renamed: bool) -> Json:
    """Return an entity that was just created or changed. If its names or its type are new (`renamed`), name others of the same name."""
    if not renamed:
        return {**head, "entity": _view(entity, call)}
    with persona.database.read() as connection:
        others = lookup.namesakes(connection, entity)[:NAMESAKES_SHOWN]
    namesakes = {other.id: _view(other, call) for _, other in others}
    note = _note_of_namesakes(entity, others) if others else None
    return {**head, "entity": _view(entity, call), **omit_empty(namesakes=list(namesakes.values()), note=note)}


def _note_of_namesakes(entity: StoredEntity, others: Sequence[tuple[str, StoredEntity]]) -> str:
    names = ", ".join(f"{name} ({other.type} {other.entity_id})" for name, other in others)
    same_type = any(entity_merges.compatible(entity.type, other.type) for _, other in others)
    condition = "" if same_type else ", once they are of one type"
    by_alias = any(name != entity.name for name, _ in others)
    undo = "; aliases without a further name take that away" if by_alias else ""
    return f"others have the same name: {names}. They stay two; if they are one, merge_entities makes them one{condition}{undo}"


def _view(entity: StoredEntity, call: Call) -> Json:
    return entity_view(entity, call.settings.zone)


def _type_view(type_: Type) -> Json:
    fields = asdict(type_)
    return {**{name: fields.pop(name) for name in ("name", "display_name", "used", "user_defined")}, **omit_empty(**fields)}
