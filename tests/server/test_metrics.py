"""What Prometheus reads at /metrics, who may read it, and that it names nobody."""

import threading

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from memory_mcp import extras
from memory_mcp.server.metrics import Metrics
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of many tests


def samples(http, **headers):
    """(name, labels) → value."""
    answer = http.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def calls(http, **headers):
    """(operation, outcome) → how many calls ended so."""
    counted = {name: value for name, value in samples(http, **headers).items() if name[0] == "memory_mcp_call_seconds_count"}
    return {(dict(labels)["operation"], dict(labels)["outcome"]): value for (_, *labels), value in counted.items()}


def test_calls_are_counted_by_operation_and_outcome_whichever_way_they_come(own_server, own_http, connect):
    nilou = connect(own_server, "nilou")
    key = nilou("remember", content="緑茶が好き")["key"]
    nilou("recall", query="緑茶")
    nilou.refusal("recall", query="緑茶", top_k=0)
    nilou.refusal("revise", key="memory_of_nobody", content="x")
    nilou.refusal("no_such_tool_of_ours")
    own_http.get("/api/memory", params={"key": key}, headers={"X-Persona": "nilou"}).raise_for_status()
    own_http.get("/api/memory", params={"key": "x"}, headers={"X-Persona": "nilou"})
    own_http.get("/p/nilou/ui/memories").raise_for_status()
    own_http.get("/ui/static/dashboard.css")
    own_http.get("/a/path/of/somebody")
    own_http.request("BREW", "/health")
    counted = calls(own_http)
    assert {
        ("remember", "ok"): 1,
        ("recall", "ok"): 1,
        ("recall", "refused"): 1,
        ("revise", "refused"): 1,
        ("an unknown name", "refused"): 1,
        ("GET /api/memory", "ok"): 1,
        ("GET /api/memory", "refused"): 1,
        ("GET /ui/memories", "ok"): 1,
        ("GET /ui/static/", "ok"): 1,
        ("GET an unknown address", "refused"): 1,
        ("another method /health", "refused"): 1,
    }.items() <= counted.items()


def test_no_persona_key_token_or_query_is_in_any_metric(own_server, own_http, connect):
    secret = create_token(own_server.data, name="wanderer", personas=None, scopes=["read", "write", "admin"], now=own_server.clock())[1]
    caller = connect(own_server, headers={"Authorization": f"Bearer {secret}", "X-Persona": "nilou"})
    key = caller("remember", content="睡蓮の踊り", tags=["踊り"])["key"]
    caller("recall", query="睡蓮")
    admin = {"Authorization": f"Bearer {secret}", "X-Persona": "nilou"}
    for path in ("/p/nilou/ui/memory", "/p/nilou/api/memory", "/nilou", "/api/memory/nilou", "/ui/nilou"):
        own_http.get(path, params={"key": key}, headers=admin)
    text = own_http.get("/metrics", headers=admin).text
    assert "memory_mcp_call_seconds" in text
    assert not [
        told for told in ("nilou", key, "睡蓮", "踊り", secret, secret.split("_")[1], "wanderer", str(own_server.data)) if told in text
    ]


def test_with_tokens_only_one_with_the_scope_admin_for_all_personas_reads_metrics(own_server, own_http):
    reader = create_token(own_server.data, name="", personas=None, scopes=["read", "write"], now=own_server.clock())[1]
    admin = create_token(own_server.data, name="", personas=None, scopes=["admin"], now=own_server.clock())[1]
    some = create_token(own_server.data, name="", personas=["nilou"], scopes=["admin"], now=own_server.clock())[1]
    stranger = own_http.get("/metrics")
    assert (stranger.status_code, "memory_mcp" in stranger.text) == (401, False)
    assert own_http.get("/metrics", headers={"Authorization": f"Bearer {reader}"}).status_code == 403
    told = samples(own_http, Authorization=f"Bearer {admin}")
    assert told["memory_mcp_refusals_total", ("reason", "token")] == 1
    assert told["memory_mcp_refusals_total", ("reason", "scope")] == 1
    assert told["memory_mcp_call_seconds_count", ("operation", "GET /metrics"), ("outcome", "refused")] == 2
    # They would tell whether other personas are there.
    assert own_http.get("/metrics", headers={"Authorization": f"Bearer {some}"}).status_code == 403


@pytest.mark.parametrize("host", ["memory.example.org", "192.168.1.5:8000"])
def test_without_tokens_only_this_machine_reads_metrics(serving, tmp_path, host):
    with serving(tmp_path, allowed_hosts=["memory.example.org", "192.168.1.5"]) as server, httpx2.Client(base_url=server.url) as http:
        answer = http.get("/metrics", headers={"Host": host})
        assert (answer.status_code, "memory token create" in answer.text or "memory-mcp token create" in answer.text) == (403, True)
        assert samples(http)


def test_what_the_rate_limit_turns_away_is_counted_as_busy(own_server, own_http):
    own_server.configure(rate_limit={"per_minute": 1, "burst": 2})
    assert [own_http.get("/ready").status_code for _ in range(3)] == [200, 200, 429]
    own_server.configure()
    told = samples(own_http)
    assert told["memory_mcp_refusals_total", ("reason", "rate_limit")] == 1
    assert told["memory_mcp_call_seconds_count", ("operation", "GET /ready"), ("outcome", "busy")] == 1


def test_an_answer_without_a_configured_model_is_counted_as_degraded(own_server, own_http, connect):
    own_server.configure(embeddings_model="/nowhere")
    nilou = connect(own_server, "nilou")
    nilou("remember", content="緑茶が好き")
    assert nilou("recall", query="緑茶")["degraded"]
    assert calls(own_http)["recall", "degraded"] == 1


def test_whoever_has_an_answer_finds_its_call_counted(own_server, own_http, monkeypatch):
    counted = []

    def slowly(_, record):
        threading.Event().wait(0.1)
        counted.append(record.operation)

    monkeypatch.setattr(Metrics, "observe", slowly)
    own_http.get("/health")
    assert counted == ["GET /health"]


def test_two_servers_of_one_process_count_apart(own_server, own_http, http):
    own_http.get("/health")
    own_http.get("/health")
    counted = calls(own_http)["GET /health", "ok"]
    http.get("/health")
    assert calls(own_http)["GET /health", "ok"] == counted == 2


def test_without_the_extra_the_refusal_names_it(serving, tmp_path, monkeypatch):
    monkeypatch.setitem(extras.EXTRAS, "metrics", ("a_package_that_nobody_has",))
    with serving(tmp_path) as server, httpx2.Client(base_url=server.url) as http:
        answer = http.get("/metrics")
        assert http.get("/health").status_code == 200
    assert answer.status_code == 501
    assert "[metrics]" in answer.json()["error"]


def test_metrics_are_read_in_the_other_format_too(own_http):
    answer = own_http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
