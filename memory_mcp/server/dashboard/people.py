"""The room of people and things: whom memories name, as a table and as a picture, how they are related, and who may be one."""

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.server.actions import analytics, entities, graph, merges
from memory_mcp.server.actions.memories import recall
from memory_mcp.server.dashboard.frame import Visit
from memory_mcp.server.dashboard.picture import Picture, drawn
from memory_mcp.server.dashboard.refusals import Refused
from memory_mcp.server.operation import Json

PAGE = 50
DRAWN, DRAWN_LIMIT = 100, 500
NEIGHBORS = 40
MENTIONING = 10
DEPTHS = ("1", "2", "3")
PLAIN = "#adb5bd"

_STEP = re.compile(" (?:>|—) ")


def listing(visit: Visit) -> Response:
    """Show the table, the most mentioned first."""
    offset = visit.field("offset") or "0"
    found, error = _or_refused(visit, entities.list_entities, query=visit.field("q"), type=visit.field("type"), limit=PAGE, offset=offset)
    start = int(float(offset)) if not error else 0
    return visit.page(
        "people.html",
        400 if error else 200,
        q=visit.field("q"),
        type=visit.field("type"),
        **_types(visit),
        found=found,
        following=start + PAGE if found and start + PAGE < found["in_all"] else None,
        start=start,
        error=error,
    )


def picture(visit: Visit) -> Response:
    """Draw the most connected of them, or those of some types."""
    limit = visit.field("limit") or str(DRAWN)
    chosen = visit.fields.get("types", [])
    found, error = _or_refused(visit, graph.graph_snapshot, limit=limit, types=chosen)
    shown = drawn(found["nodes"], found["edges"]) if found and found["nodes"] else None
    names = {node["id"]: node["label"] for node in found["nodes"]} if found else {}
    return visit.page(
        "picture.html",
        400 if error else 200,
        found=found,
        names=names,
        picture=shown,
        limit=limit,
        chosen=chosen,
        **_types(visit),
        error=error,
    )


def one(visit: Visit) -> Response:
    """Show an entity: what is known of it, whom it is related to, the memories that name it, its merges."""
    name, depth = visit.field("entity"), visit.field("depth") or "1"
    known = visit.perform(entities.get_entity, entity=name)
    around = visit.perform(graph.entity_neighbors, entity=known["entity"]["id"], depth=depth, limit=NEIGHBORS)
    types = _types(visit)
    mentioning = visit.perform(recall, query=known["entity"]["name"], mode="graph", top_k=MENTIONING, detail="index")
    return visit.page(
        "person.html",
        entity=known["entity"],
        known=known,
        around=around,
        picture=_from_the_center(around, {type_["name"]: type_["color"] for type_ in types["types"]}) if around["neighbors"] else None,
        depth=depth,
        depths=DEPTHS,
        memories=mentioning["hits"],
        **types,
    )


def _from_the_center(around: Json, colors: Mapping[str, str]) -> Picture:
    """The drawing of an entity and its neighbors, with the relation by which each is reached."""
    entities_ = [{**around["entity"], "nearness": 1.0}, *around["neighbors"]]
    nodes = [
        {
            "id": entity["name"],
            "label": entity["name"],
            "group": entity["type"],
            "color": colors.get(entity["type"], PLAIN),
            "value": entity["nearness"],
        }
        for entity in entities_
    ]
    names = {node["id"] for node in nodes}
    steps = [(_STEP.split(neighbor["via"]), neighbor["weight"]) for neighbor in around["neighbors"]]
    edges = [
        {"from": step[0], "to": step[-1], "label": step[1], "value": weight}
        for step, weight in steps
        if len(step) == 3 and names.issuperset((step[0], step[-1]))
    ]
    return drawn(list({node["id"]: node for node in nodes}.values()), edges)


def path(visit: Visit) -> Response:
    """Show how two of them are connected."""
    source, target = visit.field("source"), visit.field("target")
    found, error = None, None
    if source and target:
        found, error = _or_refused(visit, graph.find_path, source=source, target=target, algorithm="all")
    return visit.page("path.html", 400 if error else 200, source=source, target=target, found=found, error=error)


def statistics(visit: Visit) -> Response:
    """Show the graph in figures, and how it grew."""
    grown = visit.perform(analytics.graph_growth)
    return visit.page("statistics.html", found=visit.perform(analytics.graph_statistics), grown=grown, **_types(visit))


def twice(visit: Visit) -> Response:
    """Show who may be one under two names, and the merges so far."""
    return visit.page("twice.html", found=visit.perform(merges.list_merges), may_merge=visit.may(*merges.merge.needs))


def merge(visit: Visit) -> Response:
    """Merge two into one, say that they are two, or take a merge back."""
    sent: dict[str, Any] = {"entity": visit.field("entity"), "into": visit.field("into"), "distinct": visit.field("distinct") or False}
    visit.perform(merges.merge, **({"undo": visit.field("undo")} if visit.field("undo") else sent))
    return visit.redirect("/people/twice")


def _types(visit: Visit) -> dict[str, Any]:
    """The types of entities that are in use, and how the page calls each."""
    listed: list[Json] = visit.perform(entities.list_types)["entity_types"]
    shown = "display_name" if visit.language == "ja" else "name"
    return {"types": [type_ for type_ in listed if type_["used"]], "type_names": {type_["name"]: type_[shown] for type_ in listed}}


def _or_refused(visit: Visit, action: Any, **arguments: Any) -> tuple[Json | None, Refused | None]:
    """The answer of an operation, or why there is none, to be shown beside the form."""
    try:
        return visit.perform(action, **arguments), None
    except (InvalidInput, EntityNotFound) as refused:
        return None, visit.refused(refused)
