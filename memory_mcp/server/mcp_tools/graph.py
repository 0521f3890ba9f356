"""The `graph` toolset: who stands near whom, how two hang together, a picture of it all, and relations stated by hand."""

from typing import Annotated, Any

from fastmcp.dependencies import Depends
from pydantic import Field

from memory_mcp.errors import InvalidInput
from memory_mcp.graph.query.snapshot import snapshot
from memory_mcp.graph.update import relation_edits
from memory_mcp.graph.update.entity_linking import check_relation_types
from memory_mcp.server import entity_views
from memory_mcp.server.graph_arguments import DEPTH_LIMIT, NEIGHBOURS_LIMIT, PATH_LIMIT, SNAPSHOT_LIMIT
from memory_mcp.server.graph_arguments import algorithm as _algorithm
from memory_mcp.server.graph_arguments import form as _form
from memory_mcp.server.graph_arguments import name as _name
from memory_mcp.server.graph_arguments import share as _share
from memory_mcp.server.graph_arguments import types as _types
from memory_mcp.server.graph_arguments import within as _within
from memory_mcp.server.graph_views import snapshot_view
from memory_mcp.server.mcp_tools.arguments import Flag, Number, ScopedTool, Text, TextList, WholeNumber, tool_of
from memory_mcp.server.neighbour_views import neighbours_answer, paths_answer
from memory_mcp.server.refusals import answering
from memory_mcp.server.request_persona import Call, current_call
from memory_mcp.server.views import heading, told
from memory_mcp.store.graph.entities import records
from memory_mcp.text.labels import label
from memory_mcp.text.relation_notation import parse_relation

RELATIONS_LIMIT = 50


@answering
def entity_neighbors(
    entity: Annotated[Text, Field(description="a name, an id, or a description")],
    depth: Annotated[WholeNumber, Field(description="hops, 1..3")] = None,
    relation_types: TextList = [],
    min_confidence: Annotated[Number, Field(description="0..1")] = None,
    limit: Annotated[WholeNumber, Field(description="1..100")] = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Whom or what a person, place or project is related to."""
    hops, many = _within(depth, "depth", 1, DEPTH_LIMIT, 1), _within(limit, "limit", 1, NEIGHBOURS_LIMIT, 20)
    with call.reading() as persona:
        return neighbours_answer(call, persona, _name(entity, "entity"), hops, relation_types, _share(min_confidence), many)


@answering
def find_path(
    source: Text,
    target: Text,
    algorithm: Annotated[Text, Field(description="shortest, strongest or all")] = "",
    max_depth: Annotated[WholeNumber, Field(description="hops, 1..6")] = None,
    relation_types: TextList = [],
    min_confidence: Annotated[Number, Field(description="0..1")] = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """How two people, places or projects hang together, step by step."""
    depth, least = _within(max_depth, "max_depth", 1, PATH_LIMIT, 4), _share(min_confidence)
    ends, how = (_name(source, "source"), _name(target, "target")), _algorithm(algorithm)
    with call.reading() as persona:
        return paths_answer(call, persona, ends, how, depth, relation_types, least)


@answering
def graph_snapshot(
    format: Annotated[Text, Field(description="vis or json")] = "",  # noqa: A002  the name that the specification gives
    limit: Annotated[WholeNumber, Field(description="entities, 1..500")] = None,
    types: Annotated[TextList, Field(description="Person, Location, …")] = [],
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """The people, places and things that matter most, and what relates them; drawable by vis.js."""
    form = _form(format)
    with call.reading() as persona, persona.database.read() as connection:
        shown = _types(types, records.entity_types(connection))
        found = snapshot(connection, _within(limit, "limit", 1, SNAPSHOT_LIMIT, 50), shown)
        return {**heading(call, persona), **snapshot_view(found, form, call.settings.zone)}


@answering
def relate(
    relations: Annotated[TextList, Field(description='"田中 > works_on > プロジェクトA"')],
    valid_from: Annotated[Text, Field(description="since when: ISO or 昨日")] = "",
    valid_to: Annotated[Text, Field(description="until when, if it is over")] = "",
    notes: Text = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """State how two people, places or projects are related, and since when or until when."""
    if not 0 < len(relations) <= RELATIONS_LIMIT:
        raise InvalidInput(f"relations has {len(relations)} entries", f"1 to {RELATIONS_LIMIT} are allowed", 'Send "A > works_on > B"')
    when = relation_edits.lasting(valid_from, valid_to, notes, call.now, call.settings.zone)
    with call.reading() as persona:
        before = heading(call, persona)
        with persona.database.read() as connection:
            types = records.entity_types(connection)
            said = [parse_relation(text, types) for text in relations]
            check_relation_types(connection, said)
    with call.writing() as persona:
        relation_edits.relate(persona, said, now=call.now.astimezone(call.settings.zone), privacy=call.settings.privacy, when=when)
    related = [f"{one.source} > {one.relation} > {one.target}" for one in said]
    return {**before, "related": related, **told(valid_from=when.valid_from, valid_to=when.valid_to)}


@answering
def unrelate(
    relation: Annotated[Text, Field(description='"田中 > works_on > プロジェクトA"')], reason: Text = "", call: Call = Depends(current_call)
) -> dict[str, Any]:
    """Take a relation back that is wrong; of one that is over, relate says until when. It stays away until relate states it again."""
    with call.changing() as persona:
        with persona.database.read() as connection:
            said = parse_relation(relation, records.entity_types(connection))
        now, why = call.now.astimezone(call.settings.zone), label(reason, "reason")
        gone = relation_edits.unrelate(persona, said, reason=why, now=now, privacy=call.settings.privacy)
        note = None if gone else "there was no such relation"
        return {**heading(call, persona), "unrelated": gone, **told(note=note)}


@answering
def merge_entities(
    entity: Annotated[Text, Field(description="who goes into the other, when the user agrees")] = "",
    into: Annotated[Text, Field(description="who stays")] = "",
    undo: Annotated[WholeNumber, Field(description="number of a merge to take back")] = None,
    distinct: Annotated[Flag, Field(description="they are two: propose them no more")] = False,
    reason: Text = "",
    limit: Annotated[WholeNumber, Field(description="1..100 to list")] = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """List who may be one person or thing under two names (no arguments); merge two; undo a merge. Nothing is merged by itself."""
    return entity_views.merged(call, entity, into, undo, distinct, reason, limit)


def tools() -> list[ScopedTool]:
    """The toolset, in the order in which clients list it."""
    return [
        tool_of(entity_neighbors, title="Neighbours of an entity", needs=["read"], read_only=True, idempotent=True),
        tool_of(find_path, title="Path between entities", needs=["read"], read_only=True, idempotent=True),
        tool_of(graph_snapshot, title="Picture of the graph", needs=["read"], read_only=True, idempotent=True),
        tool_of(relate, title="Relate", needs=["write"], idempotent=True),
        tool_of(unrelate, title="Take a relation back", needs=["read", "write"], idempotent=True),
        tool_of(merge_entities, title="One entity, many names", needs=["read", "write"]),
    ]
