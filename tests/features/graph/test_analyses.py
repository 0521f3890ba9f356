"""The analyses of a whole graph: the same numbers as networkx has, kept until the graph changes."""

import random
import subprocess
import sys
from zoneinfo import ZoneInfo

import networkx
import numpy as np
import pytest
from graph_work import Here, counted

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.features.graph.analytics.analyses import Analyses
from memory_mcp.features.graph.analytics.measures import MEASURES, communities, degree, eigenvector, growth, pagerank, paths, statistics
from memory_mcp.features.graph.query.neighbors import find_neighbors
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget
from memory_mcp.store.graph import network, overview
from memory_mcp.store.graph.network import Network

UTC = ZoneInfo("UTC")

ANALYSES = [*MEASURES.values(), statistics, communities]


def network_of(graph: networkx.Graph) -> Network:
    """The same graph as ours; nodes are numbers from 0 on."""
    edges = sorted((min(edge), max(edge), graph.edges[edge].get("weight", 1.0)) for edge in graph.edges)
    one, other, weight = (np.array(column) for column in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
    return Network(np.arange(len(graph)), one.astype(int), other.astype(int), weight.astype(float), len(edges))


def weighted(graph: networkx.Graph, seed: int) -> networkx.Graph:
    chance = random.Random(seed)
    for edge in graph.edges:
        graph.edges[edge]["weight"] = round(chance.uniform(0.05, 1), 4)
    return graph


def two_towns() -> networkx.Graph:
    """Two dense halves with one way between them, and somebody alone."""
    graph = networkx.disjoint_union(networkx.complete_graph(6), networkx.complete_graph(5))
    graph.add_edge(0, 6)
    graph.add_node(11)
    return graph


GRAPHS = {
    "random": weighted(networkx.gnp_random_graph(60, 0.1, seed=1), 1),
    "with hubs": weighted(networkx.barabasi_albert_graph(120, 3, seed=2), 2),
    "in pieces": weighted(networkx.gnp_random_graph(80, 0.015, seed=3), 3),
    "a star": networkx.star_graph(30),
    "a chain": networkx.path_graph(40),
    "of two sides": weighted(networkx.bipartite.random_graph(12, 15, 0.3, seed=4), 4),
    "two towns": two_towns(),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


def test_pagerank_is_what_networkx_says(graph):
    expected = networkx.pagerank(graph, weight="weight", tol=1e-10, max_iter=500)
    assert pagerank(network_of(graph)) == pytest.approx([expected[node] for node in range(len(graph))], abs=1e-5)


def test_the_degree_is_what_networkx_says(graph):
    assert degree(network_of(graph)).tolist() == [graph.degree(node) for node in range(len(graph))]


def test_the_eigenvector_is_what_networkx_says(graph):
    expected = networkx.eigenvector_centrality(graph, weight="weight", max_iter=100_000, tol=1e-10)
    assert eigenvector(network_of(graph)) == pytest.approx([expected[node] for node in range(len(graph))], abs=1e-4)


def test_betweenness_from_all_is_what_networkx_says(graph):
    expected = networkx.betweenness_centrality(graph)
    found = paths(network_of(graph))
    assert found.betweenness == pytest.approx([expected[node] for node in range(len(graph))], abs=1e-12)
    distances = [steps for lengths in dict(networkx.all_pairs_shortest_path_length(graph)).values() for steps in lengths.values() if steps]
    assert found.mean_distance == pytest.approx(np.mean(distances))
    assert found.sampled is None


def test_betweenness_among_the_most_related_puts_the_same_in_front():
    graph = networkx.barabasi_albert_graph(400, 2, seed=5)
    exact, sampled = (paths(network_of(graph), limit) for limit in (400, 100))
    assert (exact.sampled, sampled.sampled) == (None, 100)
    best, known = (set(np.argsort(-found.betweenness)[:10].tolist()) for found in (sampled, exact))
    assert len(best & known) >= 8
    assert len(sampled.betweenness) == 400
    assert sampled.mean_distance == pytest.approx(exact.mean_distance, rel=0.25)


def test_the_statistics_are_what_networkx_says(graph):
    found = statistics(network_of(graph))
    pieces = [len(piece) for piece in networkx.connected_components(graph)]
    assert (found.entities, found.pairs, found.components, found.largest_component, found.isolated) == (
        len(graph),
        graph.size(),
        len(pieces),
        max(pieces),
        networkx.number_of_isolates(graph),
    )
    assert found.density == pytest.approx(networkx.density(graph))
    assert found.clustering == pytest.approx(networkx.transitivity(graph))


def test_communities_are_those_that_are_related_among_themselves():
    found = communities(network_of(two_towns()))
    assert [set(group.tolist()) for group in found.groups] == [set(range(6)), set(range(6, 11))]
    parts = [set(group.tolist()) for group in found.groups]
    assert found.modularity == pytest.approx(networkx.community.modularity(two_towns(), [*parts, {11}]), abs=1e-6)


def test_communities_are_as_good_as_those_of_networkx_and_the_same_each_time(graph):
    whole = network_of(graph)
    found, again = communities(whole), communities(whole)
    louvain = networkx.community.louvain_communities(graph, weight="weight", seed=1)
    assert found.modularity >= networkx.community.modularity(graph, louvain, weight="weight") - 0.03
    assert [group.tolist() for group in found.groups] == [group.tolist() for group in again.groups]
    assert all(len(group) > 1 for group in found.groups)


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_of_nothing_and_of_one_there_is_something_to_say_too(nodes):
    whole = network_of(networkx.empty_graph(nodes))
    for analysis in MEASURES.values():
        found = analysis(whole)
        assert len(getattr(found, "betweenness", found)) == nodes
    figures = statistics(whole)
    assert (figures.entities, figures.components, figures.isolated, figures.density, figures.clustering) == (nodes, nodes, nodes, 0, 0)
    assert communities(whole).groups == ()
    assert paths(whole).mean_distance is None


@pytest.fixture
def told(nilou, now):
    """Relates the pairs of a text such as `A B, B C`."""

    def told(pairs, relation="knows"):
        relate(
            nilou, [StatedRelation(pair.split()[0], relation, pair.split()[1]) for pair in pairs.split(", ")], now=now, privacy=Privacy()
        )

    return told


def whole_of(persona, min_weight=0.0):
    with persona.database.read() as connection:
        return network.read(connection, min_weight)


def test_a_pair_with_several_relations_is_one_and_weighs_what_they_weigh_together(nilou, told):
    told("A B, B C")
    told("B A", relation="likes")
    whole = whole_of(nilou)
    assert (len(whole.ids), whole.relations, whole.one.tolist(), whole.other.tolist()) == (3, 3, [0, 1], [1, 2])
    assert whole.weight == pytest.approx([0.96, 0.8])


def test_weak_relations_can_be_left_out_and_their_ends_stay(nilou, told, say, now):
    say("佐藤さんと鈴木さんが来た")
    while update_graph(nilou, now):
        pass
    told("A B")
    strong = whole_of(nilou, 0.5)
    assert (len(strong.ids), strong.relations) == (4, 1)
    assert whole_of(nilou, 0.2).relations == 2


@pytest.fixture
def done():
    return []


def test_an_analysis_is_computed_once_until_the_graph_changes(nilou, told, say, done):
    analyses, analysis = Analyses(Here()), counted(done)
    told("A B")
    for _ in range(3):
        analyses.of(nilou, analysis)
    assert done == [2]
    say("誰も出てこない話")
    analyses.of(nilou, analysis)
    assert done == [2]
    told("B C")
    assert len(analyses.of(nilou, analysis)[1]) == 3
    assert done == [2, 3]
    analyses.of(nilou, analysis, 0.9)
    assert done == [2, 3, 3]


def test_whatever_changes_the_graph_changes_its_mark_and_nothing_else_does(nilou, say, now, told):
    def mark():
        with nilou.database.read() as connection:
            return overview.revision(connection)

    marks = [mark()]
    key = say("田中さんが来た").key
    marks.append(mark())
    told("田中 京都")
    marks.append(mark())
    unrelate(nilou, StatedRelation("田中", "knows", "京都"), reason=None, now=now, privacy=Privacy())
    marks.append(mark())
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    marks.append(mark())
    assert len(set(marks)) == len(marks)
    say("静かな一日")
    assert mark() == marks[-1]


def test_two_personas_with_the_same_graph_never_share_an_answer(personas, now, done):
    analyses, analysis = Analyses(Here()), counted(done)
    for name, ends in (("nilou", "AB"), ("dehya", "CD")):
        with personas.writing(name) as persona:
            relate(persona, [StatedRelation(ends[0], "knows", ends[1])], now=now, privacy=Privacy())
            with persona.database.read() as connection:
                marks = overview.revision(connection)
            assert marks
            analyses.of(persona, analysis)
    assert len(done) == 2


def test_what_is_old_or_too_much_is_forgotten(personas, now, done):
    moment = [0.0]
    analyses, analysis = Analyses(Here(), clock=lambda: moment[0], ttl_seconds=10, limit_bytes=5_000), counted(done)
    with personas.writing("nilou") as nilou:
        relate(nilou, [StatedRelation("A", "knows", "B")], now=now, privacy=Privacy())
        analyses.of(nilou, analysis)
        analyses.of(nilou, analysis)
        assert len(done) == 1
        moment[0] = 11.0
        analyses.of(nilou, analysis)
        assert len(done) == 2
    for number in range(20):
        with personas.writing(f"other-{number}") as persona:
            relate(persona, [StatedRelation("A", "knows", "B")], now=now, privacy=Privacy())
            analyses.of(persona, analysis)
            assert 0 < analyses.nbytes <= 5_000


def test_what_is_larger_than_all_there_is_room_for_is_answered_and_not_kept(nilou, told, done):
    analyses, analysis = Analyses(Here(), limit_bytes=10), counted(done)
    told("A B")
    assert len(analyses.of(nilou, analysis)[1]) == len(analyses.of(nilou, analysis)[1]) == 2
    assert (analyses.nbytes, len(done)) == (0, 2)


def test_growth_is_told_by_when_things_happened_in_the_days_of_the_zone(say, nilou, now, zone):
    say("田中さんに会った", occurred_at="2025-08-31T23:30:00+09:00", relations=["田中 > knows > 佐藤"])
    say("田中さんと鈴木さんに会った", occurred_at="2025-09-01T00:30:00+09:00")
    while update_graph(nilou, now):
        pass
    with nilou.database.read() as connection:
        found = overview.creation_times(connection)
    months, earlier = growth(found, "month", zone, 10)
    assert [(step["begins"], step["entities"], step["relations"]) for step in months] == [("2025-08-01", 2, 1), ("2025-09-01", 1, 1)]
    assert (months[-1]["entities_in_all"], months[-1]["relations_in_all"], earlier) == (3, 2, 0)
    latest, earlier = growth(found, "day", zone, 1)
    assert ([step["begins"] for step in latest], latest[0]["entities_in_all"], earlier) == (["2025-09-01"], 3, 1)
    weeks, _ = growth(found, "week", zone, 10)
    assert [step["begins"] for step in weeks] == ["2025-08-25", "2025-09-01"]
    assert [step["begins"] for step in growth(found, "year", zone, 10)[0]] == ["2025-01-01"]


def test_a_hub_leads_on_along_its_strongest_relations_only(nilou, say, now):
    for at in range(0, 260, 50):
        relate(
            nilou, [StatedRelation("店", "knows", f"客{number:03}") for number in range(at, min(at + 50, 260))], now=now, privacy=Privacy()
        )
    say("常連だ", relations=["店 > knows > 客259", "客259 > knows > 隠居"])
    with nilou.database.read() as connection:
        found = find_neighbors(connection, "店", UTC, 2, limit=300)
    assert len(found["neighbors"]) + found.get("more", 0) <= 202
    assert "隠居" in {near["name"] for near in found["neighbors"]}


@pytest.mark.slow
def test_a_server_that_nobody_asks_for_an_analysis_never_loads_their_libraries():
    loaded = "import sys, memory_mcp.app, memory_mcp.server.http.routes; print({'rustworkx', 'graspologic_native', 'scipy', 'networkx'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=60).stdout.strip() == "set()"
