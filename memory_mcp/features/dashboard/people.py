"""The room of people and things: the entities that memories name, as a table and as a picture, their relations, and possible duplicates."""

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from memory_mcp.errors import EntityNotFound, InvalidInput, NotInstalled, install_command
from memory_mcp.features.dashboard.frame import Visit, known
from memory_mcp.features.dashboard.words import WORDS
from memory_mcp.patterns import bounded
from memory_mcp.server.actions import browse
from memory_mcp.server.actions.memories import recall
from memory_mcp.server.operation import Json
from memory_mcp.server.refusals import Refused

PAGE = 50
DRAWN, AROUND_LIMIT = 100, 50
MENTIONING = 10
DAYS = 60
# A relation between two names, in its direction or without one.
_STATED = bounded(r"(.+?) ([>—]) ([^\s>—]+) \2 (.+)", re.DOTALL, longest=300)
_BETWEEN_WORDS = re.compile("_|(?<=[a-z])(?=[A-Z])")
TOGETHER, RELATION = "co_occurrence", "relation_"
DEPTHS = ("1", "2", "3")
# How far a path between two is looked for.
STEPS, STEPS_OFFERED = "4", ("2", "3", "4", "5", "6")


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing: nodes and edges of graph_snapshot, the nodes without edges, which are not drawn beside others, the ids of the entities that it goes out from, the relations of a path to mark, and
    the address of the picture that goes on from an entity.
    """

    nodes: Sequence[Json]
    alone: Sequence[Json]
    edges: Sequence[Json]
    names: Mapping[str, str]
    opened: Sequence[str]
    path: Collection[tuple[str, str]]
    onward: Callable[[str], str]

    @property
    def is_placed(self) -> bool:
        """Whether it is known where to draw them."""
        return all("x" in node for node in self.nodes)

    @property
    def install(self) -> str:
        """The command that installs what computes it."""
        return install_command("graph")

    @property
    def colors(self) -> Mapping[str, str]:
        """The color of each type in it."""
        return {node["group"]: node["color"] for node in self.nodes}


def listing(visit: Visit, problem: Refused | None = None) -> Response:
    """Show the table, the most mentioned first."""
    offset = visit.field("offset") or "0"
    listed, error = _or_refused(
        visit, visit.perform, "list_entities", query=visit.field("q"), type=visit.field("type"), limit=PAGE, offset=offset
    )
    start = int(float(offset)) if not error else 0
    return visit.page(
        "people.html",
        400 if error or problem else 200,
        problem=problem,
        may_write=visit.may("read", "write"),
        q=visit.field("q"),
        type=visit.field("type"),
        **types(visit),
        found=listed,
        following=start + PAGE if listed and start + PAGE < listed["in_all"] else None,
        start=start,
        error=error,
    )


def picture(visit: Visit) -> Response:
    """Draw the most connected of them, or what is around some of them."""
    kept: dict[str, Any] = {name: visit.fields.get(name, []) for name in ("types", "relation_types")}
    kept |= {name: visit.field(name) for name in ("limit", "depth", "min_weight")}
    around = list(filter(None, map(str.strip, visit.fields.get("around", []))))
    asked = {"limit": str(DRAWN), **{name: value for name, value in kept.items() if value}, "around": around}
    snapshot, error = _or_refused(visit, _snapshot, visit, **asked)
    return visit.page(
        "picture.html",
        400 if error else 200,
        found=snapshot,
        graph=_graph(visit, snapshot, kept) if snapshot and snapshot["nodes"] else None,
        asked={**kept, "limit": asked["limit"]},
        depths=DEPTHS,
        **types(visit),
        error=error,
    )


def one(visit: Visit, problem: Refused | None = None) -> Response:
    """Show an entity: what is known of it, its relations, the memories that name it, its merges."""
    name, depth = visit.field("entity"), visit.field("depth") or "1"
    known = visit.perform("get_entity", entity=name)
    around = _snapshot(visit, around=[known["entity"]["id"]], depth=depth, limit=DRAWN)
    hits = visit.perform(recall, query=known["entity"]["name"], mode="graph", top_k=MENTIONING, detail="index")["hits"]
    names = [name.casefold() for name in (known["entity"]["name"], *known["entity"].get("aliases", []))]
    naming = [hit for hit in hits if any(name in hit["content"].casefold() for name in names)]
    return visit.page(
        "person.html",
        400 if problem else 200,
        entity=known["entity"],
        known=known,
        graph=_graph(visit, around) if around["edges"] else None,
        relations=list(_relations(known["entity"]["id"], around)),
        done=visit.field("done") == "changed",
        problem=problem,
        may_write=visit.may("read", "write"),
        depth=depth,
        depths=DEPTHS,
        memories=naming,
        near=[hit for hit in hits if hit not in naming],
        **types(visit),
    )


def _relations(entity: str, around: Json) -> Iterator[Json]:
    """What relates an entity to others: the relation, the other one, and whether it goes there or comes from there."""
    names = {node["id"]: node["label"] for node in around["nodes"]}
    own = [edge for edge in around["edges"] if entity in (edge["from"], edge["to"])]
    stated = {frozenset((edge["from"], edge["to"])) for edge in own if edge["label"] != TOGETHER}
    for edge in own:
        # That two are named together says nothing beside a relation that was told.
        if edge["label"] != TOGETHER or frozenset((edge["from"], edge["to"])) not in stated:
            forward = edge["from"] == entity
            other = edge["to"] if forward else edge["from"]
            since = (
                " – ".join(str(edge.get(end, "")) for end in ("valid_from", "valid_to")) if {"valid_from", "valid_to"} & set(edge) else ""
            )
            yield {"label": edge["label"], "id": other, "name": names[other], "forward": forward or "arrows" not in edge, "since": since}


def add(visit: Visit) -> Response:
    """Add somebody or something by hand."""
    try:
        added = visit.perform("create_entity", name=visit.field("name"), type=visit.field("type"))
    except InvalidInput as refused:
        return listing(visit, visit.refused(refused))
    return visit.redirect("/people/one", entity=added["entity"]["id"])


def change(visit: Visit) -> Response:
    """Give an entity another name, type or description."""
    written = {name: visit.field(name) for name in ("name", "type", "description")}
    try:
        visit.perform("change_entity", entity=visit.field("entity"), **written)
    except InvalidInput as refused:
        return one(visit, visit.refused(refused))
    return visit.redirect("/people/one", entity=visit.field("entity"), done="changed")


def relate(visit: Visit) -> Response:
    """State how an entity is related to another one."""
    visit.admission.require(known("relate").needs, "a relation")
    entity = visit.perform("get_entity", entity=visit.field("entity"))["entity"]
    stated = " > ".join((entity["name"], visit.field("relation"), visit.field("target")))
    try:
        visit.perform("relate", relations=[stated])
    except InvalidInput as refused:
        return one(visit, visit.refused(refused))
    return visit.redirect("/people/one", entity=entity["id"], done="changed")


def path(visit: Visit) -> Response:
    """Show how two of them are connected."""
    source, target, steps = visit.field("source"), visit.field("target"), visit.field("steps") or STEPS
    answer, error = None, None
    if source and target:
        sent = {"source": source, "target": target, "max_depth": steps}
        answer, error = _or_refused(visit, visit.perform, "find_path", **sent, algorithm="all")
    named = types(visit)
    for way in answer["paths"] if answer else ():
        way["steps"] = [stated(step, named["relation_names"]) for step in way["steps"]]
    return visit.page(
        "path.html",
        400 if error else 200,
        source=source,
        target=target,
        steps=steps,
        steps_offered=STEPS_OFFERED,
        found=answer,
        graph=_ways(visit, answer["paths"]) if answer and answer["paths"] else None,
        **named,
        error=error,
    )


def _snapshot(visit: Visit, **asked: Any) -> Json:
    """A part of the graph, with where to draw it if that can be computed here."""
    try:
        return visit.perform("graph_snapshot", positions=True, **asked)
    except NotInstalled:
        return visit.perform("graph_snapshot", **asked)


def _graph(visit: Visit, snapshot: Json, kept: Mapping[str, Any] | None = None) -> Graph:
    """The drawing of a part of the graph; `kept` are the choices that a link onwards keeps."""
    opened = snapshot.get("around", [])
    names = {node["id"]: node["label"] for node in snapshot["nodes"]}

    def onward(entity: str) -> str:
        return visit.url("/people/picture", **(kept or {}), around=[*opened, entity][-AROUND_LIMIT:])

    ends = {edge[end] for edge in snapshot["edges"] for end in ("from", "to")} | set(opened)
    alone = [node for node in snapshot["nodes"] if ends and node["id"] not in ends]
    drawn = [node for node in snapshot["nodes"] if not ends or node["id"] in ends]
    return Graph(drawn, alone, snapshot["edges"], names, opened, (), onward)


def _ways(visit: Visit, paths: Sequence[Json]) -> Graph:
    """The drawing of paths: the entities on them and all relations among these."""
    names = list(dict.fromkeys(name for way in paths for name in way["entities"]))
    snapshot = _snapshot(visit, around=names[:AROUND_LIMIT], depth=0)
    ids = {node["label"]: node["id"] for node in snapshot["nodes"]}
    steps = {(ids.get(start, ""), ids.get(end, "")) for way in paths for start, end in itertools.pairwise(way["entities"])}
    return replace(_graph(visit, snapshot), path=steps | {(end, start) for start, end in steps}, opened=[])


def stated(step: str, names: Mapping[str, str]) -> Json:
    """The parts of a relation between two, `A > lives_in > B` or without a direction `A — lives_in — B`, for the page."""
    found = _STATED.fullmatch(step)
    if not found:
        return {"source": step}
    return {"source": found[1], "label": names.get(found[3], found[3]), "target": found[4], "is_directed": found[2] == ">"}


def statistics(visit: Visit) -> Response:
    """Show how many memories each of the last days has, how the graph grew, and the graph in figures."""
    days = visit.perform(browse.memories_per_day, days=DAYS)["days"]
    grown = visit.perform("graph_growth")["growth"]
    try:
        figures = visit.perform("graph_statistics")
    except NotInstalled:
        figures = None
    return visit.page(
        "statistics.html",
        days=[(day["day"], day["memories"]) for day in days],
        growth=[(step["begins"][:7], step["entities"]) for step in grown],
        found=figures,
        install=install_command("graph"),
        **types(visit),
    )


def twice(visit: Visit) -> Response:
    """Show entities that may be the same under two names, and the merges so far."""
    return visit.page("twice.html", found=visit.perform("list_merges"), may_merge=visit.may("read", "write"), **types(visit))


def merge(visit: Visit) -> Response:
    """Merge two entities, mark them as different, or undo a merge."""
    sent: dict[str, Any] = {"entity": visit.field("entity"), "into": visit.field("into"), "distinct": visit.field("distinct") or False}
    visit.perform("merge", **({"undo": visit.field("undo")} if visit.field("undo") else sent))
    return visit.redirect("/people/twice")


def types(visit: Visit) -> dict[str, Any]:
    """The types of entities and relations that are in use, and how the page calls each."""
    listed = visit.perform("list_types") if visit.offers("list_types") else {"entity_types": [], "relation_types": []}
    named = {
        kind: {type_["name"]: type_["display_name"] if visit.language == "ja" else _spaced(type_["name"]) for type_ in listed[kind]}
        for kind in ("entity_types", "relation_types")
    }
    used = {kind: [type_ for type_ in listed[kind] if type_["used"]] for kind in named}
    return {
        "types": used["entity_types"],
        "type_names": named["entity_types"],
        "relation_types": used["relation_types"],
        "relation_names": relation_names(visit, named["relation_types"]),
    }


def _spaced(name: str) -> str:
    """A type's name in words: works_at → works at, TimeUnit → Time Unit."""
    return _BETWEEN_WORDS.sub(" ", name)


def relation_names(visit: Visit, known: Mapping[str, str]) -> dict[str, str]:
    """How the page calls relations: also frequent ones that no type was made for."""
    t, worded = visit.words, (name.removeprefix(RELATION) for name in WORDS if name.startswith(RELATION))
    return {**known, **{name: t.term("relation", name) for name in worded}}


def _or_refused(visit: Visit, ask: Callable[..., Json], *sent: Any, **arguments: Any) -> tuple[Json | None, Refused | None]:
    """What `ask` returns, or why it was refused, to be shown with the form."""
    try:
        return ask(*sent, **arguments), None
    except (InvalidInput, EntityNotFound) as refused:
        return None, visit.refused(refused)
