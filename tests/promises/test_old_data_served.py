"""A server that is started over what an older server left answers at once, from all of it."""

import json
from urllib.parse import quote

import httpx2
import pytest
from older_stores import CURRY, EVERYONE, FIRST, STORES, OlderStore, make_everything, make_store, rows_of
from processes import serving

pytestmark = pytest.mark.slow

MCP_HEADERS = {"accept": "application/json, text/event-stream"}
KEYWORDS_ONLY = '{"embeddings_model": null, "reranker_model": null}'


def call(server, persona, tool, **arguments):
    """One tool call by one POST."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**MCP_HEADERS, "X-Persona": quote(persona)}
    result = httpx2.post(f"{server.url}/mcp", json=message, headers=headers, trust_env=False, timeout=60).json()["result"]
    assert not result.get("isError"), result
    return result["structuredContent"]


def names(server):
    told = httpx2.get(f"{server.url}/api/personas", trust_env=False, timeout=60).json()
    return {persona["name"] for persona in told["personas"]}


def test_every_older_memory_is_recalled_over_http_by_its_key_and_by_its_words(tmp_path):
    make_everything(tmp_path / "memory", tmp_path / "sprung")
    with serving(tmp_path, KEYWORDS_ONLY) as server:
        assert names(server) == set(EVERYONE)
        for name, store in EVERYONE.items():
            for row in STORES[store].rows:
                (hit,) = call(server, name, "recall", keys=[row["key"]])["hits"]
                assert hit["content"] == row["content"]
            assert CURRY["key"] in [hit["key"] for hit in call(server, name, "recall", query="カレー")["hits"]]
        assert call(server, "さくら", "get_context")["state"]["emotion"] == "joy"
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    before = {
        path: path.read_bytes()
        for path in (tmp_path / "memory").rglob("*")
        if path.is_file() and path.name[0] != "." and path.parent.name != ".personas"
    }
    with serving(tmp_path, KEYWORDS_ONLY) as server:
        assert names(server) == set(EVERYONE)
        assert server.stop() == 0
        assert "older server" not in server.log.read_text(encoding="utf-8")
    assert {path: path.read_bytes() for path in before} == before


def test_a_context_with_any_last_conversation_time_can_be_told(tmp_path):
    times = dict(enumerate(["2025-10-30T12:00:00", "long ago", 1761793200, ["x"], "", None]))
    files = {number: tmp_path / "memory" / f"persona-{number}" / "persona_context.json" for number in times}
    for number, last in times.items():
        make_store(files[number].with_name("memory.sqlite"), STORES["with tags"])
        odd = {"last_conversation_time": last, "current_emotion": {"joy": 0.5}, "user_info": {"name": None, "nickname": 7}, "goals": ["x"]}
        files[number].write_text(json.dumps(odd), encoding="utf-8")
    with serving(tmp_path, KEYWORDS_ONLY) as server:
        for number in times:
            told = call(server, f"persona-{number}", "get_context")
            assert any("is no time" in reason for reason in told.get("degraded", [])) == (number in (1, 2, 3))
            assert ("since_last_conversation" in told) == (number == 0)
            call(server, f"persona-{number}", "update_context", emotion="calm")
    assert all(json.loads(file.read_text(encoding="utf-8"))["goals"] == ["x"] for file in files.values())


def test_a_large_older_store_does_not_keep_the_others_waiting(tmp_path, eventually, thorough):
    count = 20_000 if thorough else 4_000
    rows = [{**CURRY, "key": f"memory_{number:014d}", "content": f"{number}番目の話"} for number in range(count)]
    path = tmp_path / "memory" / "large" / "memory.sqlite"
    make_store(path, OlderStore(FIRST, rows))
    make_store(tmp_path / "memory" / "small" / "memory.sqlite", STORES["with tags"])
    with serving(tmp_path, KEYWORDS_ONLY) as server:
        assert call(server, "small", "recall", query="カレー")["hits"]

        def adopted():
            told = httpx2.get(f"{server.url}/api/stats", headers={"X-Persona": "large"}, trust_env=False, timeout=60)
            assert told.status_code in (200, 503)
            assert told.status_code == 200 or told.headers["retry-after"]
            return told.status_code == 200

        eventually(adopted)
        assert call(server, "large", "recall", keys=[rows[-1]["key"]])["hits"][0]["content"] == rows[-1]["content"]
    assert len(rows_of(path)) == count
