"""The routes of the graph: what its tools tell, the analyses of the whole, and the whole as a file."""

import io
import json
from datetime import UTC, datetime

import networkx
import pytest

from memory_mcp.features.graph.analytics.measures import MEASURES
from memory_mcp.features.graph.operations import analytics, graph
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.server.operation import operations_of

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "graph"])]  # a persona with a graph for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


@pytest.fixture
def ask(http, name):
    """GET /api/graph/…, as a persona that nobody else is: the answer's object, or the words of a refusal with its status."""

    def ask(what, status=200, **params):
        answer = http.get(f"/api/graph/{what}", params=params, headers={"X-Persona": name})
        assert answer.status_code == status, answer.text
        return answer.json() if status == 200 else answer.json()["error"]

    return ask


@pytest.fixture
def towns(http, name):
    """Two circles of friends; 橋本 knows somebody of both."""
    left, right = "青木 石田 上野 江口".split(), "木村 久保 近藤 斎藤".split()
    pairs = [(one, other) for circle in (left, right) for one in circle for other in circle if one < other]
    stated = [f"{one}|Person > knows > {other}|Person" for one, other in [*pairs, ("橋本", "青木"), ("橋本", "木村")]]
    line = json.dumps({"content": "顔見知りの一覧", "occurred_at": "2025-08-01", "relations": stated})
    assert http.post("/api/import", content=line, headers={"X-Persona": name}).json()["stored"] == 1
    return left, right


def test_the_statistics_say_how_much_there_is_and_how_it_hangs_together(ask, towns, name):
    told = ask("statistics")
    assert {
        field: told[field] for field in ("persona", "entities", "relations", "pairs", "components", "largest_component", "isolated")
    } == {
        "persona": name,
        "entities": 9,
        "relations": 14,
        "pairs": 14,
        "components": 1,
        "largest_component": 9,
        "isolated": 0,
    }
    assert (told["by_type"], told["relations_by_type"]) == ({"Person": 9}, {"knows": 14})
    assert told["density"] == pytest.approx(14 / 36, abs=1e-6)
    assert 1 < told["mean_distance"] < 4
    light = ask("statistics", min_weight="0.9")
    assert (light["components"], light["relations"], light["relations_by_type"]) == (9, 0, {})
    assert light["by_type"] == {"Person": 9}
    assert "nbytes" not in told


@pytest.mark.parametrize("measure", MEASURES)
def test_whoever_counts_most_stands_first(ask, towns, measure):
    told = ask("analytics", measure=measure, limit="3")
    assert (told["measure"], len(told["scores"]), told["entities_in_all"]) == (measure, 3, 9)
    scores = [one["score"] for one in told["scores"]]
    assert scores == sorted(scores, reverse=True)
    first = {"betweenness": {"橋本"}}.get(measure, {"青木", "木村"})
    assert told["scores"][0]["name"] in first
    assert told["scores"][0]["type"] == "Person"


def test_communities_are_the_circles_of_friends(ask, towns):
    told = ask("communities", members="10")
    circles = [{member["name"] for member in group["members"]} for group in told["communities"]]
    assert len(circles) == told["communities_in_all"] == 2
    assert all(any(set(circle) <= found for found in circles) for circle in towns)
    assert [group["size"] for group in told["communities"]] == [5, 4]
    assert told["modularity"] > 0.3
    assert [len(group["members"]) for group in ask("communities", members="2", limit="1")["communities"]] == [2]


def test_growth_is_told_by_the_month(ask, towns):
    told = ask("growth")
    assert told["growth"] == [{"begins": "2025-08-01", "entities": 9, "relations": 14, "entities_in_all": 9, "relations_in_all": 14}]
    assert ask("growth", interval="day")["growth"][0]["begins"] == "2025-08-01"


def test_an_analysis_is_of_the_graph_as_it_is_now(ask, towns, persona):
    before = ask("statistics")
    persona("relate", relations=["橋本 > knows > 新顔"])
    after = ask("statistics")
    assert (after["entities"], after["relations"]) == (before["entities"] + 1, before["relations"] + 1)
    persona("unrelate", relation="橋本 > knows > 新顔")
    assert ask("analytics")["scores"][0]["name"] in ("青木", "木村")


@pytest.mark.parametrize(
    ("route", "tool", "arguments"),
    [
        ("neighbors", "entity_neighbors", {"entity": "田中", "depth": 2, "relation_types": ["works_on", "ends_on"], "limit": 5}),
        ("paths", "find_path", {"source": "田中", "target": "10月17日", "algorithm": "strongest"}),
        ("snapshot", "graph_snapshot", {"format": "json", "types": ["TimeUnit", "Task"]}),
        ("snapshot", "graph_snapshot", {}),
    ],
)
def test_a_route_tells_what_its_tool_tells(ask, persona, route, tool, arguments):
    persona("relate", relations=["田中 > works_on > プロジェクトA", "プロジェクトA > ends_on > 10月17日", "田中 > knows > 佐藤"])
    assert ask(route, **arguments) == persona(tool, **arguments)


def test_the_whole_graph_is_a_file_that_others_read(http, name, towns):
    answer = http.get("/api/graph/export", headers={"X-Persona": name})
    assert answer.headers["content-type"] == "application/graphml+xml"
    assert answer.headers["content-disposition"] == 'attachment; filename="graph.graphml"'
    assert networkx.read_graphml(io.BytesIO(answer.content)).size() == 14
    told = http.get("/api/graph/export", params={"format": "json"}, headers={"X-Persona": name}).json()
    assert len(networkx.node_link_graph(told, edges="edges")) == 9


@pytest.mark.parametrize(
    ("what", "params", "status", "said"),
    [
        ("analytics", {"measure": "beauty"}, 400, "pagerank, degree, eigenvector, betweenness"),
        ("analytics", {"limit": "101"}, 400, "it runs from 1 to 100"),
        ("analytics", {"limit": "-1"}, 400, "a whole number from 1 to 100"),
        ("statistics", {"min_weight": "2"}, 400, "min_weight is 2"),
        ("statistics", {"min_weight": "nan"}, 400, "a number from 0 to 1"),
        ("communities", {"members": "x"}, 400, "members is 'x'"),
        ("growth", {"interval": "century"}, 400, "month, day, week, year"),
        ("snapshot", {"format": "svg"}, 400, "vis or json"),
        ("neighbors", {}, 400, "entity is missing"),
        ("neighbors", {"entity": "誰か"}, 404, "no entity is named"),
        ("paths", {"source": "青木"}, 400, "target is missing"),
        ("paths", {"source": "青木", "target": "木村", "max_depth": "7"}, 400, "it runs from 1 to 6"),
        ("export", {"format": "gexf"}, 400, "graphml or json"),
        ("export", {"include_secret": "yes"}, 400, "true or false"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_what_can(ask, towns, what, params, status, said):
    assert said in ask(what, status, **params)


def test_asking_about_a_persona_that_does_not_exist_creates_nothing(server, http, name):
    routes = [operation.route for operation in operations_of(graph, analytics) if operation.route]
    assert len(routes) == 9
    for route in routes:
        asked = {
            "/api/graph/neighbors": {"entity": "x"},
            "/api/graph/paths": {"source": "x", "target": "y"},
            "/api/graph/memory-links": {"key": "x"},
        }.get(route.path)
        answer = http.get(route.path, params=asked, headers={"X-Persona": name})
        assert answer.status_code == (404 if route.path.endswith(("neighbors", "paths", "links")) else 200), route.path
    assert not server.directory_of(name).exists()


def test_what_nobody_is_called_is_not_looked_for_at_length(ask, towns, http, name):
    endless = "あ" * 1_001
    assert "1,000 are the limit" in ask("neighbors", 400, entity=endless)
    assert "1,000 are the limit" in ask("entity", 400, entity=endless)
    answer = http.post("/api/graph/merges", json={"entity": "青木", "into": endless}, headers={"X-Persona": name})
    assert answer.status_code == 400
    assert "1,000 are the limit" in answer.json()["error"]


def test_a_memory_tells_to_which_it_is_linked_and_how(ask, http, server, name):
    day = "2025-08-0{}T12:00:00+09:00"
    rows = [
        {"content": f"{number}日目は海で泳いだ。", "key": f"memory_{number}", "session_id": "旅", "occurred_at": day.format(number)}
        for number in range(1, 7)
    ]
    rows.append({"content": "旅は六日だった。", "key": "memory_all", "supersedes": "memory_6"})
    rows.append({"content": "[[田中]]は海が好き", "key": "memory_likes"})
    http.post("/api/import", content="".join(json.dumps(row) + "\n" for row in rows), headers={"X-Persona": name})
    assert ask("memory-links", key="memory_4") == {
        "persona": name,
        "key": "memory_4",
        "links": [],
        "in_all": 0,
        "note": "the memory waits to be linked, which is done while nobody calls",
    }
    with server.runtime.personas.writing(name) as persona:
        while update_graph(persona, NOON):
            pass
    told = ask("memory-links", key="memory_4")
    assert {(one["type"], one.get("direction"), one["memory"]["key"]) for one in told["links"]} == {
        ("temporal_sequence", "from", "memory_3"),
        ("temporal_sequence", "to", "memory_5"),
        *(("same_session", None, f"memory_{other}") for other in (1, 2, 3, 5, 6)),
    }
    assert told["in_all"] == 7
    one = ask("memory-links", key="memory_4", types=["same_session"], limit="1")
    assert ([link["memory"]["key"] for link in one["links"]], one["in_all"]) == (["memory_6"], 5)
    (replaced,) = ask("memory-links", key="memory_all")["links"]
    assert (replaced["type"], replaced["direction"], replaced["memory"]["superseded_by"]) == ("reference", "to", "memory_all")
    assert "no memory has the key" in ask("memory-links", 404, key="memory_x")
    assert "key is missing" in ask("memory-links", 400)
    refused = ask("memory-links", 400, key="memory_4", types=["same_session", "same_sesion"])
    assert "there is no type 'same_sesion'" in refused
    assert "temporal_sequence, same_session, reference, semantic_similarity, contradiction, newer" in refused
    assert ask("memory-links", key="memory_4", types=["contradiction"])["links"] == []


def test_a_memory_in_the_trash_is_linked_to_nothing(ask, http, server, name, persona):
    keys = [persona("remember", content=f"{number}日目は海で泳いだ。", session_id="旅")["key"] for number in range(2)]
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, NOON):
            pass
    assert ask("memory-links", key=keys[0])["in_all"] == 2
    persona("forget", keys=[keys[1]])
    assert ask("memory-links", key=keys[0])["in_all"] == 0
    assert "it is in the trash" in ask("memory-links", 404, key=keys[1])
