"""A server whose models run on another one: memories are found by meaning, and when that one fails, by words, which the answers say."""

import json

import httpx2
import pytest
from model_servers import model_server
from processes import serving

pytestmark = pytest.mark.slow


@pytest.fixture
def http():
    with httpx2.Client(headers={"X-Persona": "nilou"}, trust_env=False, timeout=60) as client:
        yield client


def test_recall_uses_models_on_another_server_and_says_so_when_they_fail(tmp_path, http, eventually):
    with model_server("tei", "cl-nagoya/ruri-v3-30m") as embedder, model_server("vllm", "judge") as reranker:
        embedder.key = "sk-hush"
        urls = {"embeddings_url": embedder.url, "reranker_url": reranker.url}
        config = {**urls, "reranker_model": "judge", "rerank_deadline_ms": 0, "embeddings_languages": ["ja"]}
        with serving(tmp_path, json.dumps(config), environment={"MEMORY_MCP_EMBEDDINGS_KEY": "sk-hush"}) as server:

            def ready():
                return http.get(f"{server.url}/ready").json()

            def recall(query):
                return http.get(f"{server.url}/api/recall", params={"query": query}).json()

            server.memory_mcp("remember", "健太は苺が好き。", "-p", "nilou")
            eventually(
                lambda: ready()["mode"] == "hybrid" and ready()["index_lag"] == 0 and ready()["models"]["reranker"]["state"] == "loaded"
            )
            states = ready()["models"]
            assert (states["embedder"]["backend"], states["reranker"]["backend"]) == ("Text Embeddings Inference 1.9.0", "vLLM")
            answer = recall("健太は何が好き？")
            assert (answer["mode"], answer["reranked"], answer["degraded"]) == ("hybrid", True, [])
            asked = len(embedder.bodies)
            assert recall("健太は何が好き？")["mode"] == "hybrid"
            assert len(embedder.bodies) == asked  # a question that was embedded is not embedded again

            embedder.fault = reranker.fault = lambda path, right: (500, {})
            answer = recall("苺が好きなのは誰？")
            assert answer["hits"]
            assert {"embedder_failed", "reranker_failed"} <= set(answer["degraded"])
            shown = http.get(f"{server.url}/api/config").text
            assert embedder.url in shown
        assert "sk-hush" not in shown + server.log.read_text(encoding="utf-8")
