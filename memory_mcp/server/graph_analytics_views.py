"""What a client sees of the analyses of a whole graph. Names are read here, of the few entities that are shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import apsw
import numpy as np

from memory_mcp.graph.analytics.betweenness import Between, between
from memory_mcp.graph.analytics.centrality import MEASURES
from memory_mcp.graph.analytics.communities import communities
from memory_mcp.graph.analytics.growth import Interval, growth
from memory_mcp.graph.analytics.statistics import statistics
from memory_mcp.personas.registry import Persona
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, told
from memory_mcp.store.graph import overview
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.overview import creation_times


def statistics_view(call: Call, persona: Persona, min_weight: float) -> dict[str, Any]:
    """The graph in figures."""
    analyses = call.runtime.analyses
    _, found = analyses.of(persona, statistics, min_weight)
    network, ways = analyses.of(persona, between, min_weight)
    types = _by_type(call, persona, min_weight)
    figures = {name: _rounded(value) for name, value in asdict(found).items() if name != "nbytes"}
    distance = None if ways.mean_distance is None else _rounded(ways.mean_distance)
    sampled = told(sampled=ways.starts if ways.starts < len(network.ids) else None)
    return {
        **heading(call, persona),
        **figures,
        "mean_distance": distance,
        **sampled,
        "by_type": types.entities,
        "relations_by_type": types.relations,
    }


def _by_type(call: Call, persona: Persona, min_weight: float) -> overview.Types:
    if min_weight == 0.0:
        return call.runtime.analyses.read(persona, overview.counts_by_type)
    with persona.database.read() as connection:
        return overview.counts_by_type(connection, min_weight)


def analytics_view(call: Call, persona: Persona, measure: str, limit: int, min_weight: float) -> dict[str, Any]:
    """Who counts most by a measure."""
    network, found = call.runtime.analyses.of(persona, MEASURES[measure], min_weight)
    scores = found.betweenness if isinstance(found, Between) else found
    best = np.argsort(-scores, kind="stable")[:limit]
    sampled = found.starts if isinstance(found, Between) and found.starts < len(scores) else None
    score_of = dict(zip(network.ids[best].tolist(), scores[best].tolist(), strict=True))
    with persona.database.read() as connection:
        shown = [{**named, "score": _rounded(score_of[id_])} for id_, named in _named(connection, score_of)]
    return {**heading(call, persona), "measure": measure, "scores": shown, "entities_in_all": len(scores), **told(sampled=sampled)}


def communities_view(call: Call, persona: Persona, limit: int, members: int, min_weight: float) -> dict[str, Any]:
    """Who belongs together, the largest groups first."""
    network, found = call.runtime.analyses.of(persona, communities, min_weight)
    shown = [network.ids[group[:members]].tolist() for group in found.groups[:limit]]
    with persona.database.read() as connection:
        named = dict(_named(connection, [id_ for group in shown for id_ in group]))
    return {
        **heading(call, persona),
        "communities": [
            {"size": len(whole), "members": [named[id_] for id_ in group if id_ in named]}
            for whole, group in zip(found.groups, shown, strict=False)
        ],
        "communities_in_all": len(found.groups),
        "modularity": _rounded(found.modularity),
    }


def growth_view(call: Call, persona: Persona, interval: Interval, limit: int) -> dict[str, Any]:
    """What came to the graph, step by step."""
    steps, earlier = growth(call.runtime.analyses.read(persona, creation_times), interval, call.settings.zone, limit)
    grown = [{**asdict(step), "begins": step.begins.isoformat()} for step in steps]
    return {**heading(call, persona), "interval": interval, "growth": grown, **told(earlier=earlier or None)}


def _named(connection: apsw.Connection, ids: Iterable[int]) -> Sequence[tuple[int, Mapping[str, Any]]]:
    """Those of them that are still there, with what tells them apart."""
    found = records.by_ids(connection, ids)
    return [
        (id_, {"id": found[id_].entity_id, "name": found[id_].name, "type": found[id_].type})
        for id_ in ids
        if id_ in found and found[id_].merged_into is None
    ]


def _rounded(value: float) -> float:
    """To six digits; whole numbers stay as they are."""
    return value if isinstance(value, int) else float(f"{value:.6g}")
