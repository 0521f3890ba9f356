"""The routes beside MCP: health, readiness, the list of personas, statistics."""

from pathlib import Path

import pytest
from starlette.routing import Route

import memory_mcp.server
from memory_mcp import __version__
from memory_mcp.server.http import routes


def test_health_says_alive(http):
    answer = http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


def test_a_route_takes_a_japanese_text_as_long_as_a_tool_does(http, name):
    stored = http.post("/api/memories", headers={"X-Persona": name}, json={"content": "猫は縁側で寝る。" * 12_500})
    assert (stored.status_code, stored.json()["stored"]) == (200, True)


def test_ready_says_what_works(http):
    told = http.get("/ready").json()
    assert told["ready"]
    assert told["mode"] == "keyword"
    assert told["models"] == {"embedder": {"state": "off"}, "reranker": {"state": "off"}}
    assert (told["index_lag"], told["config_error"], told["config_warnings"], told["restart_pending"]) == (0, None, [], [])


def test_ready_names_a_model_that_is_configured_and_absent(own_server, own_http):
    own_server.configure(embeddings_model="some/embedder")
    embedder = own_http.get("/ready").json()["models"]["embedder"]
    assert (embedder["state"], embedder["name"]) == ("absent", "some/embedder")
    assert embedder["error"]


def test_ready_tells_of_a_broken_edit_until_it_is_mended(own_server, own_http, connect):
    own_server.configure(reranker_top_n=2)
    caller = connect(own_server, "nilou")
    for number in range(4):
        caller("remember", content=f"花の思い出その{number}")
    own_server.config.write_text('{"reranker_top_n": 3,', encoding="utf-8")
    told = own_http.get("/ready").json()
    assert told["ready"]
    assert "is not valid JSON" in told["config_error"]
    assert len(caller("recall", query="花")["hits"]) == 2
    own_server.configure(reranker_top_n=3)
    assert own_http.get("/ready").json()["config_error"] is None
    assert len(caller("recall", query="花")["hits"]) == 3


def test_ready_tells_of_keys_that_nobody_knows_and_of_those_that_wait(own_server, own_http):
    own_server.configure(reranker_topn=3, server_port=9)
    told = own_http.get("/ready").json()
    (warning,) = told["config_warnings"]
    assert "'reranker_topn'" in warning
    assert "'reranker_top_n'" in warning
    assert told["restart_pending"] == ["server_port"]


def test_an_edited_timezone_shows_in_the_next_answer(own_server, connect):
    caller = connect(own_server, "nilou")
    assert caller("get_context")["now"] == "2025-10-30T12:00:00+09:00"
    own_server.configure(timezone="UTC")
    assert caller("get_context")["now"] == "2025-10-30T03:00:00+00:00"


def test_the_openapi_document_has_exactly_the_routes_there_are(http, server):
    told = http.get("/api/openapi.json").json()
    documented = {(path, method.upper()) for path, methods in told["paths"].items() for method in methods}
    app = server.mcp.http_app(path="/mcp")
    routes = [route for route in app.routes if isinstance(route, Route) and route.path != "/mcp"]
    assert documented == {(route.path, method) for route in routes for method in route.methods - {"HEAD"}}
    assert told["info"]["version"] == __version__


@pytest.fixture
def two_personas(own_http):
    for name, content in (("さくら", "桜餅"), ("nilou", "睡蓮")):
        own_http.post("/api/import", json={"content": content}, headers=[("X-Persona", name.encode())])
    return own_http


def test_the_personas_are_listed_with_their_counts(two_personas):
    assert two_personas.get("/api/personas").json() == {
        "personas": [
            {"name": "nilou", "memories": 1, "superseded": 0, "in_trash": 0},
            {"name": "さくら", "memories": 1, "superseded": 0, "in_trash": 0},
        ]
    }


def test_stats_are_those_of_one_persona(two_personas):
    told = two_personas.get("/api/stats", headers={"X-Persona": "nilou"}).json()
    assert (told["persona"], told["memories"], told["in_trash"], told["by_kind"]) == ("nilou", 1, 0, {"fact": 1})
    assert told["first"] == told["last"] == "2025-10-30T12:00:00+09:00"
    assert told["database_bytes"] > 0


@pytest.mark.parametrize("path", ["/api/stats", "/api/export", "/api/import"])
def test_a_refused_route_says_why_as_an_error(http, path):
    answer = http.request("POST" if path == "/api/import" else "GET", path, headers=[("X-Persona", "a"), ("X-Persona", "b")])
    assert answer.status_code == 400
    assert answer.json() == {"error": "the request has 2 different X-Persona headers: one call is for one persona. Send the header once."}


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/api/recall?topk=3", "unknown parameter 'topk'. Known parameters are query, top_k,"),
        ("GET", "/api/export?include_deletd=true", "unknown parameter 'include_deletd'. Known parameters are include_deleted,"),
        ("GET", "/api/stats?persona=nilou", "unknown parameter 'persona'. Leave it out"),
        ("POST", "/api/organize?undo=x", "unknown parameter 'undo'"),
        ("GET", "/p/nilou/api/history?id=1", "unknown parameter 'id'. Known parameters are key"),
    ],
)
def test_a_parameter_that_a_route_does_not_read_is_refused_with_those_it_reads(http, method, path, said):
    answer = http.request(method, path)
    assert (answer.status_code, said in answer.json()["error"]) == (400, True), answer.text


def test_whoever_looks_whether_the_server_is_alive_may_add_what_he_likes(http):
    assert [http.get(f"/{probe}?at=1").status_code for probe in ("health", "ready")] == [200, 200]


@pytest.mark.feature("graph")
def test_whatever_a_route_reads_from_its_query_is_in_the_document(http):
    """Only one module reads queries, and it reads the arguments that the document is made of."""
    package = Path(memory_mcp.server.__file__).parent
    readers = [source.relative_to(package).as_posix() for source in package.rglob("*.py") if "query_params" in source.read_text("utf-8")]
    assert readers == ["http/requests.py"]
    paths = http.get("/api/openapi.json").json()["paths"]
    for operation in routes.OPERATIONS:
        documented = paths[operation.route.path][operation.route.method.lower()].get("parameters", [])
        asked = list(operation.arguments.model_fields) if operation.route.reads_query else []
        assert [parameter["name"] for parameter in documented if "name" in parameter] == asked
    neighbors = paths["/api/graph/neighbors"]["get"]["parameters"]
    assert "min_confidence" in [parameter.get("name") for parameter in neighbors]
