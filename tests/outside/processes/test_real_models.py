"""The whole pipeline in a real process with small real models: loaded late and swapped live."""

import json
import threading
from pathlib import Path

import httpx2
import pytest
from model_directories import make_embedder
from processes import RunningServer, serving

from memory_mcp.client.connection import Connection
from memory_mcp.errors import MemoryMCPError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTLE_SECONDS = 90


def settings(embedder: Path | None, reranker: Path | None = None) -> str:
    return json.dumps(
        {
            "embeddings_model": str(embedder) if embedder else None,
            "reranker_model": str(reranker) if reranker else None,
            "rerank_deadline_ms": 0,
            "inference_backend": "torch",
            "embeddings_languages": ["ja", "en"],
        }
    )


def ready(server: RunningServer) -> dict:
    return httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()


def settled(server: RunningServer, *loaded: str, dimension: int | None = None) -> dict:
    """/ready, once these models are loaded and nothing waits for a vector or for another generation."""
    pause = threading.Event()
    for _ in range(SETTLE_SECONDS * 4):
        told = ready(server)
        states = [told["models"][name]["state"] for name in loaded]
        index = told.get("index", {})
        done = not told["index_lag"] and not index.get("re_embedding")
        if set(states) == {"loaded"} and done and dimension in (None, told["models"]["embedder"].get("dimension")):
            return told
        pause.wait(0.25)
    pytest.fail(f"not settled: {told}\n{server.log.read_text()}")


def say(server: RunningServer, *contents: str, persona: str = "nilou") -> None:
    body = "".join(json.dumps({"content": content}) + "\n" for content in contents)
    httpx2.post(f"{server.url}/api/import", content=body, headers={"X-Persona": persona}, timeout=60, trust_env=False).raise_for_status()


def ask(server: RunningServer, query: str, persona: str = "nilou", **fields: object) -> dict:
    return Connection(server.url, persona=persona).call_tool("recall", {"query": query, **fields})


def test_real_models_are_loaded_beside_a_server_that_answers_and_everything_stored_meanwhile_gets_its_vector(
    tmp_path, embedder_directory, reranker_directory
):
    with serving(tmp_path, settings(embedder_directory, reranker_directory)) as server:
        say(server, "海辺で猫と散歩した", "山小屋で紅茶を飲んだ")
        assert ask(server, "海辺の猫")["hits"]
        told = settled(server, "embedder", "reranker")
        answer = ask(server, "海辺の猫", detail="why")
        assert told["mode"] == answer["mode"] == "hybrid"
        assert (answer["reranked"], answer["degraded"], answer["index_lag"]) == (True, [], 0)
        assert {"lexical", "dense", "rerank"} <= set(answer["hits"][0]["why"])


def test_a_model_of_another_dimension_takes_over_live_without_one_wrong_answer(tmp_path, embedder_directory):
    wider = make_embedder(tmp_path / "ruri-v3-wider", 48, seed=5)
    with serving(tmp_path, settings(embedder_directory)) as server:
        say(server, *(f"海辺の散歩 {number}" for number in range(60)))
        settled(server, "embedder")
        server.config.write_text(settings(wider))
        pause, modes = threading.Event(), set()
        for _ in range(SETTLE_SECONDS * 4):
            answer = ask(server, "海辺の散歩 7")
            assert answer["hits"][0]["content"] == "海辺の散歩 7"
            modes.add((answer["mode"], *answer["degraded"]))
            told = ready(server)
            if told["models"]["embedder"].get("dimension") == 48 and not told["index"]["re_embedding"] and not told["index_lag"]:
                break
            pause.wait(0.1)
        settled(server, "embedder", dimension=48)
        at_last = ask(server, "海辺の散歩 7")
        assert (at_last["mode"], at_last["degraded"]) == ("hybrid", [])
        assert modes <= {("hybrid",), ("hybrid", "embedder_previous")}


@pytest.mark.thorough
def test_entities_get_vectors_of_a_real_model_beside_the_serving(tmp_path, embedder_directory):
    config = {**json.loads(settings(embedder_directory)), "toolsets": ["core", "graph"], "upkeep": {"idle_seconds": 0}}

    def answer(server: RunningServer) -> str:
        try:
            return json.dumps(
                Connection(server.url, persona="nilou").call_tool("entity_neighbors", {"entity": "量子の話"}), ensure_ascii=False
            )
        except MemoryMCPError as error:
            return str(error)

    with serving(tmp_path, json.dumps(config)) as server:
        say(server, "[[みどり|Organization]]で歯の治療をした")
        settled(server, "embedder")
        pause, told = threading.Event(), ""
        for _ in range(SETTLE_SECONDS * 4):
            told = answer(server)
            if "by_meaning" in told or "none is near by meaning" in told:
                return
            pause.wait(0.25)
        pytest.fail(f"no entity has a vector: {told}")
