"""Exports a persona's graph as GraphML (for Gephi, yEd, networkx, rustworkx) or as node-link JSON (for networkx, d3)."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

import apsw

from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import overview
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.overview import Relation
from memory_mcp.store.graph.transfer import graph_export
from memory_mcp.store.timestamps import optional_to_text

# The exported attributes and their GraphML types.
_ENTITY_ATTRIBUTES = {
    "name": "string",
    "type": "string",
    "subtype": "string",
    "color": "string",
    "aliases": "string",
    "description": "string",
    "attributes": "string",
    "mentions": "int",
    "confidence": "double",
    "importance": "double",
    "first_mentioned_at": "string",
    "last_mentioned_at": "string",
}
_RELATION_ATTRIBUTES = {
    "type": "string",
    "subtype": "string",
    "directed": "boolean",
    "weight": "double",
    "confidence": "double",
    "evidence_count": "int",
    "valid_from": "string",
    "valid_to": "string",
    "method": "string",
    "validation_status": "string",
    "notes": "string",
}
# XML 1.0 can't represent these characters, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\ufffd"
# Unescaped, a carriage return would be read back as a line feed.
_ESCAPES = {"\r": "&#13;"}

Attributes = dict[str, Any]
Item = TypeVar("Item")
Last = TypeVar("Last")


def graphml(persona: Persona, *, include_secret: bool = False) -> Iterator[str]:
    """Yields the graph as GraphML. All edges are directed, since a file must not mix both kinds; an undirected relation has
    `directed` false."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for element, attributes in (("node", _ENTITY_ATTRIBUTES), ("edge", _RELATION_ATTRIBUTES)):
        yield "".join(
            f'<key id="{element}_{name}" for="{element}" attr.name="{name}" attr.type="{type_}"/>\n' for name, type_ in attributes.items()
        )
    yield f'<graph id={_quoted(persona.name)} edgedefault="directed">\n'
    export = _GraphExport(persona, include_secret)
    for page in export.entities():
        yield "".join(f"<node id={_quoted(id_)}>{_data('node', _ENTITY_ATTRIBUTES, attributes)}</node>\n" for id_, attributes in page)
    for links in export.relations():
        yield "".join(
            f"<edge source={_quoted(source)} target={_quoted(target)}>{_data('edge', _RELATION_ATTRIBUTES, attributes)}</edge>\n"
            for source, target, attributes in links
        )
    yield "</graph>\n</graphml>\n"


def node_link(persona: Persona, *, include_secret: bool = False) -> Iterator[str]:
    """Yields the graph as one JSON object that `networkx.node_link_graph` reads. The `key` of an edge is its type."""
    yield json.dumps({"directed": True, "multigraph": True, "graph": {"persona": persona.name}}, ensure_ascii=False)[:-1]
    export = _GraphExport(persona, include_secret)
    yield ', "nodes": [\n'
    yield from _listed([{"id": id_, **attributes} for id_, attributes in page] for page in export.entities())
    yield '], "edges": [\n'
    yield from _listed(
        [{"source": source, "target": target, "key": attributes["type"], **attributes} for source, target, attributes in page]
        for page in export.relations()
    )
    yield "]}\n"


class _GraphExport:
    """One export: reads a page at a time and holds no database open in between. Entities must be read before relations."""

    def __init__(self, persona: Persona, include_secret: bool) -> None:
        self._persona = persona
        self._ids: dict[int, str] = {}
        with persona.database.read() as connection:
            self._colors = overview.colors(connection)
            self._open = None if include_secret else graph_export.export_filter(connection)

    def entities(self) -> Iterator[list[tuple[str, Attributes]]]:
        last = 0
        while page := self._read(graph_export.entities_after, last):
            last = page[-1].id
            visible = [entity for entity in map(self._open.entity, page) if entity] if self._open else page
            self._ids |= {entity.id: entity.entity_id for entity in visible}
            yield [(entity.entity_id, _of_entity(entity, self._colors)) for entity in visible]

    def relations(self) -> Iterator[list[tuple[str, str, Attributes]]]:
        last = (0, 0, "")
        while page := self._read(graph_export.relations_after, last):
            last = (page[-1].source, page[-1].target, page[-1].type)
            visible = [relation for relation in map(self._open.relation, page) if relation] if self._open else page
            # Relations of entities that were created since the entities were read are left for the next export.
            exported = [relation for relation in visible if relation.source in self._ids and relation.target in self._ids]
            yield [(self._ids[relation.source], self._ids[relation.target], _of_relation(relation)) for relation in exported]

    def _read(self, page: Callable[[apsw.Connection, Last], list[Item]], last: Last) -> list[Item]:
        with self._persona.database.read() as connection:
            return page(connection, last)


def _of_entity(entity: Entity, colors: Mapping[str, str]) -> Attributes:
    return _without_empty(
        name=entity.name,
        type=entity.type,
        subtype=entity.subtype,
        color=colors.get(entity.type),
        aliases=[*entity.aliases, *entity.merged_names],
        description=entity.description,
        attributes=dict(entity.attributes),
        mentions=entity.extraction_count,
        confidence=entity.confidence,
        importance=entity.importance,
        first_mentioned_at=optional_to_text(entity.first_mentioned_at),
        last_mentioned_at=optional_to_text(entity.last_mentioned_at),
    )


def _of_relation(relation: Relation) -> Attributes:
    fields = asdict(relation)
    return _without_empty(**{name: fields[name] for name in _RELATION_ATTRIBUTES})


def _without_empty(**fields: Any) -> Attributes:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _listed(pages: Iterable[list[Attributes]]) -> Iterator[str]:
    separator = ""
    for page in pages:
        if page:
            yield separator + ",\n".join(json.dumps(attributes, ensure_ascii=False) for attributes in page)
            separator = ",\n"


def _data(element: str, names: Iterable[str], attributes: Attributes) -> str:
    return "".join(
        f'<data key="{element}_{name}">{escape(_text(attributes[name]), _ESCAPES)}</data>' for name in names if name in attributes
    )


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _NOT_IN_XML.sub(REPLACEMENT, text)


def _quoted(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub(REPLACEMENT, text))
