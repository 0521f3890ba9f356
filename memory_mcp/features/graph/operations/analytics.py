"""Analyses of a whole graph: its figures, the most important entities, communities and growth. Only entities that are shown get names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired

import apsw
import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.features.graph.analytics.analyses import Analyses
from memory_mcp.features.graph.analytics.measures import INTERVALS, MEASURES, Interval, Paths, communities, growth, paths, statistics
from memory_mcp.personas.registry import Persona
from memory_mcp.server.arguments import Arguments, Between, OneOf, Share, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Count, ReadingAnswer, heading, omit_empty
from memory_mcp.store.graph import overview
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.overview import creation_times

SCORES_LIMIT, COMMUNITIES_LIMIT, MEMBERS_LIMIT, GROWTH_LIMIT = 100, 50, 50, 1_000

Measure = Literal["pagerank", "degree", "eigenvector", "betweenness"]


MinWeight = Annotated[Share, http("Leave out lighter relations.")]


class StatisticsArguments(Arguments):
    min_weight: MinWeight = 0.0


class GraphStatistics(ReadingAnswer):
    entities: Count
    relations: Count
    pairs: Count
    density: float
    components: Count
    largest_component: Count
    isolated: Count
    mean_degree: float
    clustering: float
    mean_distance: float | None
    by_type: dict[str, Count]
    relations_by_type: dict[str, Count]
    sampled: NotRequired[Count]


@operation(needs=["read"], route=Route("GET", "/api/graph/statistics"), answer=GraphStatistics)
def graph_statistics(call: Call, arguments: StatisticsArguments) -> Json:
    """Return the graph in figures."""
    min_weight, analyses = arguments.min_weight, call.runtime.shared(Analyses)
    with call.reading() as persona:
        _, computed = analyses.of(persona, statistics, min_weight)
        _, distances = analyses.of(persona, paths, min_weight)
        types = _counts_by_type(call, persona, min_weight)
        figures = {name: _rounded(value) for name, value in asdict(computed).items()}
        return {
            **heading(call, persona),
            **figures,
            "mean_distance": None if distances.mean_distance is None else _rounded(distances.mean_distance),
            **omit_empty(sampled=distances.sampled),
            "by_type": types.entities,
            "relations_by_type": types.relations,
        }


def _counts_by_type(call: Call, persona: Persona, min_weight: float) -> overview.Types:
    if min_weight == 0.0:
        return call.runtime.shared(Analyses).read(persona, overview.counts_by_type)
    with persona.database.read() as connection:
        return overview.counts_by_type(connection, min_weight)


class NamedEntity(TypedDict):
    id: str
    name: str
    type: str


class ScoredEntity(NamedEntity):
    score: NotRequired[float]


class AnalyticsArguments(Arguments):
    measure: Annotated[Measure, OneOf(tuple(MEASURES)), http("The measure of importance.")] = "pagerank"
    limit: Annotated[int, Between(1, SCORES_LIMIT), http("How many entities.")] = 20
    min_weight: MinWeight = 0.0


class GraphAnalytics(ReadingAnswer):
    measure: Measure
    scores: list[ScoredEntity]
    entities_in_all: Count
    sampled: NotRequired[Count]


@operation(needs=["read"], route=Route("GET", "/api/graph/analytics"), answer=GraphAnalytics)
def graph_analytics(call: Call, arguments: AnalyticsArguments) -> Json:
    """Return the most important entities by a measure."""
    measure = arguments.measure
    with call.reading() as persona:
        network, computed = call.runtime.shared(Analyses).of(persona, MEASURES[measure], arguments.min_weight)
        scores = computed.betweenness if isinstance(computed, Paths) else computed
        best = np.argsort(-scores, kind="stable")[: arguments.limit]
        sampled = computed.sampled if isinstance(computed, Paths) else None
        score_of = dict(zip(network.ids[best].tolist(), scores[best].tolist(), strict=True))
        with persona.database.read() as connection:
            shown = [{**entity, "score": _rounded(score_of[id_])} for id_, entity in _named(connection, score_of)]
        count = {"entities_in_all": len(scores), **omit_empty(sampled=sampled)}
        return {**heading(call, persona), "measure": measure, "scores": shown, **count}


class CommunitiesArguments(Arguments):
    limit: Annotated[int, Between(1, COMMUNITIES_LIMIT), http("How many communities.")] = 20
    members: Annotated[int, Between(1, MEMBERS_LIMIT), http("How many members of each.")] = 10
    min_weight: MinWeight = 0.0


class Community(TypedDict):
    size: Count
    members: list[NamedEntity]


class GraphCommunities(ReadingAnswer):
    communities: list[Community]
    communities_in_all: Count
    modularity: float


@operation(needs=["read"], route=Route("GET", "/api/graph/communities"), answer=GraphCommunities)
def graph_communities(call: Call, arguments: CommunitiesArguments) -> Json:
    """Return the communities of closely related entities, the largest first."""
    with call.reading() as persona:
        network, computed = call.runtime.shared(Analyses).of(persona, communities, arguments.min_weight)
        shown = [network.ids[group[: arguments.members]].tolist() for group in computed.groups[: arguments.limit]]
        with persona.database.read() as connection:
            entities = dict(_named(connection, [id_ for group in shown for id_ in group]))
        return {
            **heading(call, persona),
            "communities": [
                {"size": len(whole), "members": [entities[id_] for id_ in group if id_ in entities]}
                for whole, group in zip(computed.groups, shown, strict=False)
            ],
            "communities_in_all": len(computed.groups),
            "modularity": _rounded(computed.modularity),
        }


class GrowthArguments(Arguments):
    interval: Annotated[Interval, OneOf(INTERVALS), http("The length of a step.")] = "month"
    limit: Annotated[int, Between(1, GROWTH_LIMIT), http("How many steps.")] = 24


class GrowthStep(TypedDict):
    begins: Annotated[str, Field(json_schema_extra={"format": "date"})]
    entities: Count
    relations: Count
    entities_in_all: Count
    relations_in_all: Count


class GraphGrowth(ReadingAnswer):
    interval: Interval
    growth: list[GrowthStep]
    earlier: NotRequired[Count]


@operation(needs=["read"], route=Route("GET", "/api/graph/growth"), answer=GraphGrowth)
def graph_growth(call: Call, arguments: GrowthArguments) -> Json:
    """Return how the graph grew, step by step."""
    interval = arguments.interval
    with call.reading() as persona:
        times = call.runtime.shared(Analyses).read(persona, creation_times)
        steps, earlier = growth(times, interval, call.settings.zone, arguments.limit)
        return {**heading(call, persona), "interval": interval, "growth": steps, **omit_empty(earlier=earlier or None)}


def _named(connection: apsw.Connection, ids: Iterable[int]) -> Sequence[tuple[int, Mapping[str, Any]]]:
    """Return those of the entities that still exist, with id, name and type."""
    entities = records.by_ids(connection, ids)
    return [
        (id_, {"id": entities[id_].entity_id, "name": entities[id_].name, "type": entities[id_].type})
        for id_ in ids
        if id_ in entities and entities[id_].merged_into is None
    ]


def _rounded(value: float) -> float:
    """Round to six digits; whole numbers stay as they are."""
    return value if isinstance(value, int) else float(f"{value:.6g}")
