"""The graph of entities and relations: neighbors, paths, a snapshot, relations stated by hand, links between memories, and its export."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

import apsw
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from memory_mcp.domain import Memory
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.features.graph import relation_edits
from memory_mcp.features.graph.operations.entities import known_types, seen_by_name
from memory_mcp.features.graph.query.neighbors import find_neighbors
from memory_mcp.features.graph.query.paths import ALGORITHMS, Algorithm
from memory_mcp.features.graph.query.paths import find_path as find_paths
from memory_mcp.features.graph.query.picture import Section, places, snapshot, snapshot_view
from memory_mcp.graph.update.entity_linking import check_relation_types
from memory_mcp.language.labels import label
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.server.actions.organize import brief
from memory_mcp.server.answers import Blocks, joined, streamed
from memory_mcp.server.arguments import Arguments, Between, EntityName, Flag, OneOf, Share, Text, TextList, entity_name, http
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.operation import JSON, Json, Route, Tool, operation
from memory_mcp.server.views import Count, ReadingAnswer, heading, omit_empty
from memory_mcp.store import memories
from memory_mcp.store.graph import memory_links as stored_links
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.memory_links import Link
from memory_mcp.transfer.graph_export import graphml, node_link

DEPTH_LIMIT, PATH_LIMIT = 3, 6
NEIGHBORS_LIMIT, SNAPSHOT_LIMIT, AROUND_LIMIT = 100, 500, 50
LINKS_LIMIT = 100
RELATIONS_LIMIT = 50
GRAPHML = "application/graphml+xml"
EXPORTS = {"graphml": (GRAPHML, graphml), "json": (JSON, node_link)}

RelationTypes = Annotated[TextList, http("Follow only relations of these types.")]
MinConfidence = Annotated[Share, Field(description="0..1"), http("Follow only relations of at least this confidence.")]


class NeighborsArguments(Arguments):
    entity: Annotated[EntityName, Field(description="a name, an id, or a description"), http(minLength=1)]
    depth: Annotated[int, Between(1, DEPTH_LIMIT), Field(description=f"hops, 1..{DEPTH_LIMIT}"), http("How many hops away.")] = 1
    relation_types: RelationTypes = []
    min_confidence: MinConfidence = 0.0
    limit: Annotated[int, Between(1, NEIGHBORS_LIMIT), Field(description=f"1..{NEIGHBORS_LIMIT}"), http("How many neighbors.")] = 20


class Neighbor(TypedDict):
    name: str
    type: str
    distance: Count
    nearness: float
    via: str
    weight: float
    confidence: float
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]
    more_relations: NotRequired[Count]


class GraphNeighbors(ReadingAnswer):
    entity: dict[str, Any]
    neighbors: list[Neighbor]
    by_meaning: NotRequired[dict[str, Any]]
    more: NotRequired[Count]
    namesakes: NotRequired[list[dict[str, Any]]]
    note: NotRequired[str]


@operation(
    needs=["read"],
    tool=Tool("entity_neighbors", "Neighbors of an entity", read_only=True, idempotent=True),
    route=Route("GET", "/api/graph/neighbors"),
    answer=GraphNeighbors,
)
def entity_neighbors(call: Call, arguments: NeighborsArguments) -> Json:
    """Whom or what a person, place or project is related to."""

    def neighborhood(connection: apsw.Connection, name: str) -> Json:
        rules = arguments.depth, arguments.relation_types, arguments.min_confidence, arguments.limit
        return find_neighbors(connection, name, call.settings.zone, *rules)

    with call.reading() as persona:
        view, by_meaning = seen_by_name(call, persona, arguments.entity, neighborhood)
        return {**heading(call, persona), **by_meaning, **view}


class PathArguments(Arguments):
    source: Annotated[EntityName, http("A name or an id.", minLength=1)]
    target: Annotated[EntityName, http("A name or an id.", minLength=1)]
    algorithm: Annotated[Algorithm, OneOf(ALGORITHMS), Field(description="shortest, strongest or all"), http("Which paths.")] = "shortest"
    max_depth: Annotated[int, Between(1, PATH_LIMIT), Field(description=f"hops, 1..{PATH_LIMIT}"), http("The most hops of a path.")] = 4
    relation_types: RelationTypes = []
    min_confidence: MinConfidence = 0.0


class GraphPaths(ReadingAnswer):
    source: str
    target: str
    paths: list[dict[str, Any]]
    namesakes: NotRequired[list[dict[str, Any]]]
    note: NotRequired[str]


@operation(
    needs=["read"],
    tool=Tool("find_path", "Path between entities", read_only=True, idempotent=True),
    route=Route("GET", "/api/graph/paths"),
    answer=GraphPaths,
)
def find_path(call: Call, arguments: PathArguments) -> Json:
    """How two people, places or projects are connected, step by step."""
    with call.reading() as persona, persona.database.read() as connection:
        rules = arguments.algorithm, arguments.max_depth, arguments.relation_types, arguments.min_confidence
        return {**heading(call, persona), **find_paths(connection, arguments.source, arguments.target, *rules)}


class SnapshotArguments(Arguments):
    format: Annotated[
        Literal["vis", "json"],
        OneOf(("vis", "json"), ignored_suffix=".js"),
        Field(description="vis or json"),
        http("For vis.js, or plain."),
    ] = "vis"
    limit: Annotated[int, Between(1, SNAPSHOT_LIMIT), Field(description=f"entities, 1..{SNAPSHOT_LIMIT}"), http("How many entities.")] = 50
    types: Annotated[TextList, Field(description="Person, Location, …"), http("Only entities of these types.")] = []
    around: Annotated[TextList, Field(description="names or ids"), http("Names or ids: these entities and what is near them.")] = []
    depth: Annotated[int, Between(0, DEPTH_LIMIT), Field(description=f"hops, 0..{DEPTH_LIMIT}"), http("How far from `around`.")] = 1
    relation_types: RelationTypes = []
    min_weight: Annotated[Share, Field(description="0..1"), http("Leave out lighter relations.")] = 0.0
    positions: Annotated[Flag, http("Also where to draw each entity, as x and y.")] = False


class GraphPicture(ReadingAnswer):
    around: NotRequired[list[str]]
    entities_in_all: Count
    relations_in_all: Count
    nodes: NotRequired[list[dict[str, Any]]]
    edges: NotRequired[list[dict[str, Any]]]
    entities: NotRequired[list[dict[str, Any]]]
    relations: NotRequired[list[dict[str, Any]]]


@operation(
    needs=["read"],
    tool=Tool("graph_snapshot", "Picture of the graph", read_only=True, idempotent=True, app="graph"),
    route=Route("GET", "/api/graph/snapshot"),
    answer=GraphPicture,
)
def graph_snapshot(call: Call, arguments: SnapshotArguments) -> Json:
    """The people, places and things that matter most, or those around some of them, and what relates them; drawable by vis.js."""
    if len(arguments.around) > AROUND_LIMIT:
        raise InvalidInput("around has {} entries", "{} are the limit", "Send fewer", len(arguments.around), AROUND_LIMIT)
    around = [entity_name(name, "around") for name in arguments.around]
    with call.reading() as persona, persona.database.read() as connection:
        types = known_types(arguments.types, records.entity_types(connection))
        section = Section(types, arguments.relation_types, arguments.min_weight, around, arguments.depth)
        picture = snapshot(connection, arguments.limit, section)
    positions = places(picture) if arguments.positions else None
    return {**heading(call, persona), **snapshot_view(picture, arguments.format, call.settings.zone, positions)}


class RelateArguments(Arguments):
    relations: Annotated[TextList, Field(description='"田中 > works_on > プロジェクトA"')]
    valid_from: Annotated[Text, Field(description="since when: ISO or 昨日")] = ""
    valid_to: Annotated[Text, Field(description="until when, if it is over")] = ""
    notes: Text = ""


@operation(needs=["write"], tool=Tool("relate", "Relate", idempotent=True))
def relate(call: Call, arguments: RelateArguments) -> Json:
    """State how two people, places or projects are related, and since when or until when."""
    texts = arguments.relations
    if not 0 < len(texts) <= RELATIONS_LIMIT:
        raise InvalidInput("relations has {} entries", "1 to {} are allowed", 'Send "A > works_on > B"', len(texts), RELATIONS_LIMIT)
    when = relation_edits.lasting(arguments.valid_from, arguments.valid_to, arguments.notes, call.now, call.settings.zone)
    with call.reading() as persona:
        head = heading(call, persona)
        with persona.database.read() as connection:
            types = records.entity_types(connection)
            relations = [parse_relation(text, types) for text in texts]
            check_relation_types(connection, relations)
    with call.writing() as persona:
        now = call.local_now
        stored = relation_edits.relate(persona, relations, now=now, privacy=call.settings.privacy, when=when)
    related = [f"{relation.source} > {relation.relation} > {relation.target}" for relation in stored]
    return {**head, "related": related, **omit_empty(valid_from=when.valid_from, valid_to=when.valid_to)}


class UnrelateArguments(Arguments):
    relation: Annotated[Text, Field(description='"田中 > works_on > プロジェクトA"')]
    reason: Text = ""


@operation(needs=["read", "write"], tool=Tool("unrelate", "Take a relation back", idempotent=True))
def unrelate(call: Call, arguments: UnrelateArguments) -> Json:
    """Take a relation back that is wrong; of one that is over, relate says until when. It stays away until relate states it again."""
    with call.changing() as persona:
        with persona.database.read() as connection:
            relation = parse_relation(arguments.relation, records.entity_types(connection))
        now, reason = call.local_now, label(arguments.reason, "reason")
        removed = relation_edits.unrelate(persona, relation, reason=reason, now=now, privacy=call.settings.privacy)
        note = None if removed else "there was no such relation"
        return {**heading(call, persona), "unrelated": removed, **omit_empty(note=note)}


class LinksArguments(Arguments):
    key: Annotated[Text, http("The key of the memory.", minLength=1)]
    types: Annotated[TextList, http("Only links of these types.")] = []
    limit: Annotated[int, Between(1, LINKS_LIMIT), http("How many links.")] = 20


class MemoryLink(TypedDict):
    type: str
    memory: dict[str, Any]
    weight: float
    confidence: float
    method: str
    direction: NotRequired[Literal["to", "from"]]


class MemoryLinks(ReadingAnswer):
    key: str
    links: list[MemoryLink]
    in_all: Count
    note: NotRequired[str]


@operation(needs=["read"], route=Route("GET", "/api/graph/memory-links"), answer=MemoryLinks)
def memory_links(call: Call, arguments: LinksArguments) -> Json:
    """Return the memories that a memory is linked to, and how, the strongest links first."""
    key = label(arguments.key, "key")
    if key is None:
        raise InvalidInput("key is missing", "", "Take one from a recall")
    call, key = call.locate(key)
    with call.reading() as persona, persona.database.read() as connection:
        memory = memories.by_keys(connection, [key]).get(key)
        if memory is None or memory.deleted_at:
            raise MemoryNotFound("no memory has the key {}", "it is in the trash" if memory else "", "Take the key from a recall", key)
        types = known_types(arguments.types, stored_links.types(connection)) if arguments.types else []
        shown, total = stored_links.of_memory(connection, memory.id, types, arguments.limit)
        others = memories.beginnings(connection, {end for link in shown for end in (link.source, link.target)} - {memory.id})
        note = "the memory waits to be linked, which is done while nobody calls" if relation_queue.holds(connection, memory.id) else None
        return {
            **heading(call, persona),
            "key": key,
            "links": [_link_view(link, memory.id, others, call) for link in shown],
            "in_all": total,
            **omit_empty(note=note),
        }


def _link_view(link: Link, memory_id: int, others: Mapping[int, Memory], call: Call) -> Json:
    outgoing = link.source == memory_id
    other = others[link.target if outgoing else link.source]
    return {
        "type": link.type,
        **omit_empty(direction=("to" if outgoing else "from") if link.type in stored_links.DIRECTED else None),
        "memory": {**brief(other, call), **omit_empty(superseded_by=other.superseded_by)},
        "weight": link.weight,
        "confidence": link.confidence,
        "method": link.method,
    }


class ExportGraphArguments(Arguments):
    format: Annotated[Literal["graphml", "json"], OneOf(tuple(EXPORTS), exact=True), http("GraphML or node-link JSON.")] = "graphml"
    include_secret: Annotated[Flag, http("What only secret memories name, too.")] = False


class NodeLink(TypedDict):
    directed: Literal[True]
    multigraph: Literal[True]
    graph: dict[str, Any]
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


@operation(needs=["export"], route=Route("GET", "/api/graph/export", content={GRAPHML: {"schema": {"type": "string"}}}), answer=NodeLink)
async def export_graph(request: Request, arguments: ExportGraphArguments) -> Response:
    """Return the whole graph, as GraphML or as node-link JSON."""
    call = call_of(request)
    media_type, written = EXPORTS[arguments.format]

    def blocks() -> Blocks:
        with call.reading() as persona:
            yield from joined(written(persona, include_secret=arguments.include_secret))

    headers = {"Content-Disposition": f'attachment; filename="graph.{arguments.format}"'}
    return await streamed(request, blocks(), media_type, headers)
