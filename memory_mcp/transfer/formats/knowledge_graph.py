"""Reads memory.json of the MCP reference memory server: each entity, each observation as a fact, and each relation as a fact that states it.

langchain-community has no loader for it.
"""

import json
from collections.abc import Iterator
from typing import Any

from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.language.entity_types import STANDARD_TYPES, type_of_word
from memory_mcp.language.names import NAME_LIMIT
from memory_mcp.language.relation_notation import format_relation
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, objects, text_in
from memory_mcp.transfer.formats.json_stream import lines
from memory_mcp.transfer.formats.sources import Source, blocks

FORM = "mcp-memory"


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  the file has no authors
    """Yields a row for each observation, such as "健太: 苺が好き". The file has no times."""
    for name in source.names():
        try:
            for number, line in lines(blocks(source, name), name):
                yield from _line(line, f"{name}, line {number}")
        except InvalidInput as error:
            yield ImportItem(name, refused=str(error))


def _line(line: str, where: str) -> Iterator[ImportItem]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        yield ImportItem(where, refused=f"It is not JSON: {error}.")
        return
    if isinstance(value, dict) and "type" not in value and ("entities" in value or "relations" in value):  # the answer of read_graph
        for entity in objects(value.get("entities")):
            yield from _entity(entity, where)
        for relation in objects(value.get("relations")):
            yield from _relation(relation, where)
    elif isinstance(value, dict) and value.get("type") == "entity":
        yield from _entity(value, where)
    elif isinstance(value, dict) and value.get("type") == "relation":
        yield from _relation(value, where)
    else:
        yield ImportItem(where, refused="It is neither an entity nor a relation.")


def _entity(entity: dict[str, Any], where: str) -> Iterator[ImportItem]:
    name, kind = text_in(entity.get("name")).strip(), text_in(entity.get("entityType")).strip()
    if not name:
        yield ImportItem(where, refused="The entity has no name.")
        return
    type_ = type_of_word(kind, STANDARD_TYPES) if kind else None
    if len(name) <= NAME_LIMIT:  # a longer one would be no name in a text
        yield ImportItem(where, {"entity": name, **({"type": type_} if type_ else {})})
    further = import_rows.unread(entity, {"type", "name", "entityType", "observations"})
    listed = entity.get("observations")
    # An observation is a string, or an object with the string as `content`.
    entries = [entry if isinstance(entry, dict) else {"content": entry} for entry in listed] if isinstance(listed, list) else []
    observations = [entry for entry in entries if text_in(entry.get("content")).strip()]
    for _ in range(len(entries) - len(observations)):
        yield ImportItem(where, left_out="observations without a text")
    for entry in observations or [{}]:
        observation, own = text_in(entry.get("content")), import_rows.unread(entry, {"content"})
        content = f"{name}: {observation}" if observation else f"{name} ({kind})" if kind else name
        yield from import_rows.memory_rows(
            where,
            FORM,
            ("entity", name, observation),
            content,
            kind="fact",
            tags=[kind],
            metadata={FORM: {**further, **own}} if further or own else None,
            origin={"entity": name, "entity_type": kind},
        )


def _relation(relation: dict[str, Any], where: str) -> Iterator[ImportItem]:
    parts = [text_in(relation.get(part)).strip() for part in ("from", "relationType", "to")]
    if not all(parts):
        yield ImportItem(where, refused="The relation lacks from, relationType or to.")
        return
    stated = format_relation(StatedRelation(parts[0], "_".join(parts[1].split()), parts[2]))
    further = import_rows.unread(relation, {"type", "from", "relationType", "to"})
    if not stated:
        yield ImportItem(where, left_out="relations that the graph can't hold and a fact tells")
    yield from import_rows.memory_rows(
        where,
        FORM,
        ("relation", *parts),
        " ".join(parts),
        kind="fact",
        relations=[stated] if stated else None,
        metadata={FORM: further} if further else None,
        origin={"relation": dict(zip(("from", "type", "to"), parts, strict=True))},
    )
