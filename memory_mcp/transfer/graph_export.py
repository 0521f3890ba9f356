"""A persona's graph as a file: GraphML, which Gephi, yEd, networkx and rustworkx open, or the node-link JSON of networkx and d3."""

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

# What an entity and a relation say, and as what GraphML has it.
_OF_ENTITY = {
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
_OF_RELATION = {
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
# XML 1.0 has no way to write these, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\ufffd"
# Unescaped, it would be read back as a line feed.
_KEPT = {"\r": "&#13;"}

Told = dict[str, Any]
Item = TypeVar("Item")
Last = TypeVar("Last")


def graphml(persona: Persona, *, include_secret: bool = False) -> Iterator[str]:
    """The graph as GraphML, piece by piece. Every edge runs one way, since a file must not mix both; of a relation without a direction
    `directed` is false."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for what, fields in (("node", _OF_ENTITY), ("edge", _OF_RELATION)):
        yield "".join(f'<key id="{what}_{name}" for="{what}" attr.name="{name}" attr.type="{type_}"/>\n' for name, type_ in fields.items())
    yield f'<graph id={_quoted(persona.name)} edgedefault="directed">\n'
    leaving_now = _Leaving(persona, include_secret)
    for page in leaving_now.entities():
        yield "".join(f"<node id={_quoted(id_)}>{_data('node', _OF_ENTITY, told)}</node>\n" for id_, told in page)
    for links in leaving_now.relations():
        yield "".join(
            f"<edge source={_quoted(source)} target={_quoted(target)}>{_data('edge', _OF_RELATION, told)}</edge>\n"
            for source, target, told in links
        )
    yield "</graph>\n</graphml>\n"


def node_link(persona: Persona, *, include_secret: bool = False) -> Iterator[str]:
    """The graph as one JSON object, piece by piece: what `networkx.node_link_graph` reads. An edge's `key` is its type."""
    yield json.dumps({"directed": True, "multigraph": True, "graph": {"persona": persona.name}}, ensure_ascii=False)[:-1]
    leaving_now = _Leaving(persona, include_secret)
    yield ', "nodes": [\n'
    yield from _listed([{"id": id_, **told} for id_, told in page] for page in leaving_now.entities())
    yield '], "edges": [\n'
    yield from _listed(
        [{"source": source, "target": target, "key": told["type"], **told} for source, target, told in page]
        for page in leaving_now.relations()
    )
    yield "]}\n"


class _Leaving:
    """One export: a page is read at a time, and no database is held open between two. Relations come after the entities."""

    def __init__(self, persona: Persona, include_secret: bool) -> None:
        self._persona = persona
        self._ids: dict[int, str] = {}
        with persona.database.read() as connection:
            self._colors = overview.colors(connection)
            self._open = None if include_secret else graph_export.export_filter(connection)

    def entities(self) -> Iterator[list[tuple[str, Told]]]:
        last = 0
        while page := self._read(graph_export.entities_after, last):
            last = page[-1].id
            found = [entity for entity in map(self._open.entity, page) if entity] if self._open else page
            self._ids |= {entity.id: entity.entity_id for entity in found}
            yield [(entity.entity_id, _of_entity(entity, self._colors)) for entity in found]

    def relations(self) -> Iterator[list[tuple[str, str, Told]]]:
        last = (0, 0, "")
        while page := self._read(graph_export.relations_after, last):
            last = (page[-1].source, page[-1].target, page[-1].type)
            found = [relation for relation in map(self._open.relation, page) if relation] if self._open else page
            # Whoever came since the entities were written is left for the next export.
            known = [relation for relation in found if relation.source in self._ids and relation.target in self._ids]
            yield [(self._ids[relation.source], self._ids[relation.target], _of_relation(relation)) for relation in known]

    def _read(self, page: Callable[[apsw.Connection, Last], list[Item]], last: Last) -> list[Item]:
        with self._persona.database.read() as connection:
            return page(connection, last)


def _of_entity(entity: Entity, colors: Mapping[str, str]) -> Told:
    return _said(
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


def _of_relation(relation: Relation) -> Told:
    told = asdict(relation)
    return _said(**{name: told[name] for name in _OF_RELATION})


def _said(**fields: Any) -> Told:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _listed(pages: Iterable[list[Told]]) -> Iterator[str]:
    between = ""
    for page in pages:
        if page:
            yield between + ",\n".join(json.dumps(told, ensure_ascii=False) for told in page)
            between = ",\n"


def _data(what: str, fields: Mapping[str, str], told: Told) -> str:
    return "".join(f'<data key="{what}_{name}">{escape(_text(told[name]), _KEPT)}</data>' for name in fields if name in told)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _NOT_IN_XML.sub(REPLACEMENT, text)


def _quoted(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub(REPLACEMENT, text))
