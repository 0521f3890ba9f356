"""The types of entities and relations: the built-in ones, and those that users add."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.overview import counts_by_type

Kind = Literal["entity", "relation"]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Where the types of one kind are, the column that only they have, and what has such a type: `do` frees a type."""

    types: str
    own: str
    used_by: str
    do: str


TABLES: Mapping[Kind, _Tables] = {
    "entity": _Tables("entity_types", "color", "entities", "Give them another type first"),
    "relation": _Tables("relation_types", "directed", "relation_evidence", "Take them back first"),
}


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


def listed(connection: apsw.Connection, kind: Kind) -> list[Type]:
    """The types that an entity or a relation can have, the built-in ones first. Other words that relations use have a direction, and are not
    listed.
    """
    tables, counted = TABLES[kind], counts_by_type(connection)
    used = counted.entities if kind == "entity" else counted.relations
    rows: list[Any] = connection.execute(
        f"SELECT name, display_name, description, user_defined, {tables.own} FROM {tables.types} ORDER BY user_defined, name"
    ).fetchall()
    return [
        Type(name, display, described, bool(by_user), used.get(name, 0), *((own,) if kind == "entity" else (None, bool(own))))
        for name, display, described, by_user, own in rows
    ]


def insert(connection: apsw.Connection, kind: Kind, values: tuple[Any, ...]) -> bool:
    """Adds a type with its name, display name, description, and color or direction, unless it is there. Returns whether it was not."""
    tables = TABLES[kind]
    columns = f"name, display_name, description, {tables.own}, user_defined"
    connection.execute(f"INSERT OR IGNORE INTO {tables.types}({columns}) VALUES (?,?,?,?,1)", values)
    return connection.changes() > 0


def create(connection: apsw.Connection, kind: Kind, values: tuple[Any, ...], now: datetime) -> None:
    """Adds a type as `insert` does, and sums up the relations that use this word already.

    Raises:
        InvalidInput: the name exists, in upper or lower case.
    """
    name = values[0]
    if same := next((known.name for known in listed(connection, kind) if known.name.casefold() == name.casefold()), None):
        raise InvalidInput("there is a type {} already", "", "Use it, or choose another name", repr(same))
    insert(connection, kind, values)
    if kind == "relation":
        rows = connection.execute("SELECT DISTINCT source, target FROM relation_evidence WHERE type = ?", (name,))
        relations.sum_up(connection, {(int(source), int(target)) for source, target in list(rows)}, now)


def delete(connection: apsw.Connection, kind: Kind, name: str) -> None:
    """Deletes a type that a user added and nothing uses.

    Raises:
        InvalidInput: there is no such type, it is built in, or it is used.
    """
    tables, known = TABLES[kind], {type_.name: type_ for type_ in listed(connection, kind)}
    type_ = known.get(name)
    if type_ is None:
        raise InvalidInput("there is no type {}", "known are {}", "Take one of them", repr(name[:80]), ", ".join(known))
    if not type_.user_defined:
        raise InvalidInput("{} can't be deleted", "every persona begins with it", "Only types that were added can go", name)
    if type_.used:
        used = "entities" if kind == "entity" else "relations"
        raise InvalidInput("{} can't be deleted", "{} of it: {}", tables.do, name, used, type_.used)
    if connection.execute(f"SELECT 1 FROM {tables.used_by} WHERE type = ? LIMIT 1", (name,)).get is not None:
        why = "what is in the trash, replaced, merged or rejected still has it"
        raise InvalidInput("{} can't be deleted", why, "Leave it, or erase what is in the trash first", name)
    connection.execute(f"DELETE FROM {tables.types} WHERE name = ?", (name,))
