"""The types of entities and relations: the built-in ones, and those that users add."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.overview import counts_by_type


@dataclass(frozen=True, slots=True)
class Type:
    """A type, with how many entities or relations have it now. `directed` is None for entities, `color` for relations."""

    name: str
    display_name: str
    description: str | None
    user_defined: bool
    used: int
    color: str | None = None
    directed: bool | None = None


def of_entities(connection: apsw.Connection) -> list[Type]:
    """The types that an entity can have, the built-in ones first."""
    rows: list[Any] = connection.execute(
        "SELECT name, display_name, description, user_defined, color FROM entity_types ORDER BY user_defined, name"
    ).fetchall()
    used = counts_by_type(connection).entities
    return [Type(name, display, described, bool(own), used.get(name, 0), color=color) for name, display, described, own, color in rows]


def of_relations(connection: apsw.Connection) -> list[Type]:
    """The types that a relation can have, the built-in ones first. Other words that relations use have a direction, and are not listed."""
    rows: list[Any] = connection.execute(
        "SELECT name, display_name, description, user_defined, directed FROM relation_types ORDER BY user_defined, name"
    ).fetchall()
    used = counts_by_type(connection).relations
    return [Type(name, display, described, bool(own), used.get(name, 0), directed=bool(way)) for name, display, described, own, way in rows]


def create_of_entities(connection: apsw.Connection, name: str, display_name: str, description: str | None, color: str | None) -> None:
    """Adds a type of entities.

    Raises:
        InvalidInput: the name exists, in upper or lower case.
    """
    _refuse_known(name, [known.name for known in of_entities(connection)])
    connection.execute(
        "INSERT INTO entity_types(name, display_name, description, color, user_defined) VALUES (?,?,?,?,1)",
        (name, display_name, description, color),
    )


def create_of_relations(
    connection: apsw.Connection, name: str, display_name: str, description: str | None, directed: bool, now: datetime
) -> None:
    """Adds a type of relations, and sums up the relations that use this word already.

    Raises:
        InvalidInput: the name exists, in upper or lower case.
    """
    _refuse_known(name, [known.name for known in of_relations(connection)])
    connection.execute(
        "INSERT INTO relation_types(name, display_name, description, directed, user_defined) VALUES (?,?,?,?,1)",
        (name, display_name, description, int(directed)),
    )
    rows = connection.execute("SELECT DISTINCT source, target FROM relation_evidence WHERE type = ?", (name,))
    relations.sum_up(connection, {(int(source), int(target)) for source, target in list(rows)}, now)


def delete(connection: apsw.Connection, kind: str, name: str) -> None:
    """Deletes a type of entities (`entity`) or of relations that a user added and nothing uses.

    Raises:
        InvalidInput: there is no such type, it is built in, or it is used.
    """
    known, table, used, do = (
        (of_entities(connection), "entities", "entities", "Give them another type first")
        if kind == "entity"
        else (of_relations(connection), "relation_evidence", "relations", "Take them back first")
    )
    type_ = next((type_ for type_ in known if type_.name == name), None)
    if type_ is None:
        raise InvalidInput(
            "there is no type {}", "known are {}", "Take one of them", repr(name[:80]), ", ".join(type_.name for type_ in known)
        )
    if not type_.user_defined:
        raise InvalidInput("{} can't be deleted", "every persona begins with it", "Only types that were added can go", name)
    if type_.used:
        raise InvalidInput("{} can't be deleted", "{} of it: {}", do, name, used, type_.used)
    if connection.execute(f"SELECT 1 FROM {table} WHERE type = ? LIMIT 1", (name,)).get is not None:
        why = "what is in the trash, replaced, merged or rejected still has it"
        raise InvalidInput("{} can't be deleted", why, "Leave it, or erase what is in the trash first", name)
    connection.execute(f"DELETE FROM {'entity' if kind == 'entity' else 'relation'}_types WHERE name = ?", (name,))


def _refuse_known(name: str, known: list[str]) -> None:
    same = next((other for other in known if other.casefold() == name.casefold()), None)
    if same:
        raise InvalidInput("there is a type {} already", "", "Use it, or choose another name", repr(same))
