"""What a server process says of itself: its log as JSON, one object a line, and its metrics with everything that runs in the background."""

import json
import re

import httpx2
import pytest
from processes import ROOT, serving

from memory_mcp.server.call_record import Outcome

pytestmark = pytest.mark.slow

NO_MODELS = {"embeddings_model": None, "reranker_model": None}
DOCUMENTED = ROOT.joinpath("docs/monitoring.md").read_text(encoding="utf-8")


def configured(**settings):
    return json.dumps({**NO_MODELS, **settings})


def events(server):
    """The log's objects; every line must be one."""
    lines = server.log.read_text(encoding="utf-8").splitlines()
    assert lines
    return [json.loads(line) for line in lines]


def get(server, path, **headers):
    return httpx2.get(f"{server.url}{path}", headers=headers, trust_env=False)


def test_every_line_is_one_object_that_says_which_call_it_belongs_to(tmp_path):
    with serving(tmp_path, configured(log_format="json", log_level="debug", no_such_key=1)) as server:
        get(server, "/api/memories", **{"X-Persona": "nilou"}).raise_for_status()
        assert get(server, "/api/memory?key=x", **{"X-Persona": "nilou"}).status_code == 404
    found = events(server)
    assert all({"time", "level", "logger", "message"} <= set(event) for event in found)
    assert any("no_such_key" in event["message"] for event in found)  # said before the format was known
    assert [event["message"] for event in found if event["message"].startswith("Memory MCP listens on http://")]
    listed, missed = (event for event in found if event.get("operation", "").startswith("GET /api/memor") and "duration_ms" in event)
    assert (listed["operation"], listed["status"], listed["message"]) == ("GET /api/memories", 200, "GET /api/memories: ok")
    assert (missed["operation"], missed["status"], missed["message"]) == ("GET /api/memory", 404, "GET /api/memory: refused")
    assert missed["request"] > listed["request"]
    assert listed["duration_ms"] > 0
    assert "nilou" not in json.dumps([event for event in found if "request" in event])


def test_the_format_of_the_log_changes_with_config_json(tmp_path, eventually):
    with serving(tmp_path, configured(log_level="debug")) as server:
        get(server, "/health")
        assert re.search(r"GET /health: ok \(status=200, duration_ms=[\d.]+\)$", server.log.read_text(encoding="utf-8"), re.MULTILINE)
        server.config.write_text(configured(log_level="debug", log_format="json"), encoding="utf-8")
        get(server, "/api/memories")

        def is_json():
            get(server, "/health")
            return server.log.read_text(encoding="utf-8").splitlines()[-1].startswith("{")

        eventually(is_json)
    assert json.loads(server.log.read_text(encoding="utf-8").splitlines()[-1])["message"] == "stopped"


def test_every_metric_of_a_server_is_documented_and_so_is_every_outcome(tmp_path):
    pytest.importorskip("prometheus_client")
    with serving(tmp_path, configured()) as server:
        get(server, "/api/memories")
        told = get(server, "/metrics").raise_for_status().text
    families = set(re.findall(r"^# TYPE (memory_mcp_\w+)", told, re.MULTILINE))
    families = {family for family in families if not family.endswith("_created")}
    assert {"memory_mcp_call_seconds", "memory_mcp_index_lag", "memory_mcp_chore_failing_personas"} <= families
    assert {family for family in families if f"`{family}" not in DOCUMENTED} == set()
    assert [outcome for outcome in Outcome.__args__ if f"`{outcome}`" not in DOCUMENTED] == []
    assert re.search(r"^process_resident_memory_bytes \d", told, re.MULTILINE)
