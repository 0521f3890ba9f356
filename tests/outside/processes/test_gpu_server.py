"""A server whose models move to a GPU and back while it runs, beside a process that takes all of the GPU's memory, and where there is no GPU."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import httpx2
import pytest
from model_directories import make_embedder
from processes import RunningServer, serving

from memory_mcp.client.connection import Connection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTLE_SECONDS = 90
PERSONA = "nilou"
# Each tensor is asked of the GPU, so that memory that others have taken is missed at once.
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
# Takes what is free, but for so many MB, and gives it back when its input ends.
HOG = """
import sys, torch
taken = []
for mb in (4096, 512, 64, 16, 2):
    try:
        while torch.cuda.mem_get_info()[0] >> 20 > mb + int(sys.argv[1]):
            taken.append(torch.empty(mb << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
print("full", flush=True)
sys.stdin.read()
"""


def settings(embedder: Path, reranker: Path | None, device: str, backend: str = "torch") -> str:
    return json.dumps(
        {
            "embeddings_model": str(embedder),
            "reranker_model": str(reranker) if reranker else None,
            "embeddings_device": device,
            "rerank_deadline_ms": 0,
            "inference_backend": backend,
            "embeddings_languages": ["ja", "en"],
        }
    )


@contextmanager
def full_gpu(spare_mb: int) -> Iterator[None]:
    """All but so much of the GPU's memory is taken inside the block."""
    with subprocess.Popen([sys.executable, "-c", HOG, str(spare_mb)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hog:
        assert hog.stdout
        assert hog.stdin
        assert hog.stdout.readline().strip() == "full"
        try:
            yield
        finally:
            hog.stdin.close()


def ready(server: RunningServer) -> dict:
    return httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()


def awaited(server: RunningServer, condition: Callable[[dict], bool]) -> dict:
    pause = threading.Event()
    for _ in range(SETTLE_SECONDS * 4):
        told = ready(server)
        if condition(told):
            return told
        pause.wait(0.25)
    pytest.fail(f"not settled: {told}\n{server.log.read_text()}")


def settled(told: dict) -> bool:
    return {model["state"] for model in told["models"].values()} <= {"loaded", "off"} and not told["index_lag"]


def on(server: RunningServer, place: str | None, config: str) -> dict:
    """/ready, once it says of both models that they run there."""

    def there(told: dict) -> bool:
        backends = [model.get("backend") for model in told["models"].values()]
        return settled(told) and all(backend.startswith(place) if place and backend else backend == place for backend in backends)

    server.config.write_text(config)
    return awaited(server, there)


def say(server: RunningServer, *contents: str) -> None:
    body = "".join(json.dumps({"content": content}) + "\n" for content in contents)
    httpx2.post(f"{server.url}/api/import", content=body, headers={"X-Persona": PERSONA}, timeout=60, trust_env=False).raise_for_status()


def ask(server: RunningServer, query: str) -> dict:
    return Connection(server.url, persona=PERSONA).call_tool("recall", {"query": query, "top_k": 5, "detail": "why"})


def contents(answer: dict) -> list[str]:
    return [hit["content"] for hit in answer["hits"]]


def vectors(server: RunningServer) -> list[tuple]:
    """Every stored vector, with its row, which a vector that was made again would have another of."""
    connection = apsw.Connection(str(server.data / PERSONA / "memory.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute("SELECT rowid, * FROM vectors ORDER BY rowid"))
    finally:
        connection.close()


@pytest.mark.usefixtures("gpu")
def test_models_move_to_the_gpu_and_back_and_nothing_is_embedded_again(tmp_path, embedder_directory, reranker_directory):
    def config(device: str) -> str:
        return settings(embedder_directory, reranker_directory, device)

    with serving(tmp_path, config("cpu")) as server:
        say(server, *(f"海辺の散歩 {number}、{number % 7}匹の猫" for number in range(100)))
        awaited(server, settled)
        stored, before = vectors(server), [contents(ask(server, f"{number}匹の猫")) for number in range(7)]
        for device, place in (("cuda", "torch on cuda ("), ("cpu", None), ("auto", "torch on cuda (")):
            told = on(server, place, config(device))
            assert not told["index"]["re_embedding"]
            assert vectors(server) == stored
            answers = [ask(server, f"{number}匹の猫") for number in range(7)]
            assert [contents(answer) for answer in answers] == before
            assert all(answer["reranked"] and not answer["degraded"] for answer in answers)


@pytest.mark.usefixtures("gpu")
def test_fifty_callers_at_once_get_the_answers_of_one(tmp_path, embedder_directory, reranker_directory):
    config, queries = settings(embedder_directory, reranker_directory, "cuda"), [f"{number}匹の猫と海辺" for number in range(50)]
    with serving(tmp_path, config) as server:
        say(server, *(f"海辺の散歩 {number}、{number % 50}匹の猫" for number in range(200)))
        awaited(server, settled)
        with ThreadPoolExecutor(50) as callers:
            at_once = list(callers.map(lambda query: contents(ask(server, query)), queries))
    with serving(tmp_path, config) as server:  # whose caches are empty
        awaited(server, settled)
        assert [contents(ask(server, query)) for query in queries] == at_once


@pytest.mark.usefixtures("gpu")
def test_a_gpu_filled_by_another_process_leaves_words_and_comes_back(tmp_path, reranker_directory):
    wide = make_embedder(tmp_path / "ruri-v3-wide", 1_024, max_tokens=1_024)
    with serving(tmp_path, settings(wide, reranker_directory, "cuda"), environment=UNCACHED) as server:
        say(server, "海辺で猫と散歩した", "山小屋で紅茶を飲んだ")
        awaited(server, settled)
        assert ask(server, "海辺の猫")["degraded"] == []
        long = "海辺で猫と散歩し、夕飯に蕎麦を食べた。" * 60
        with full_gpu(spare_mb=0):
            say(server, *(f"{number}日目。{long}" for number in range(64)))
            answer = ask(server, f"{long}？")
            assert answer["hits"]
            assert "embedder_failed" in answer["degraded"], server.log.read_text()
            assert "out of memory" in server.log.read_text()
            assert long not in server.log.read_text()
            told = awaited(server, lambda told: told["index"]["failing"])
            assert "out of memory" in told["index"]["last_error"]
        awaited(server, settled)
        answer = ask(server, f"{long}？？")
        assert (answer["degraded"], answer["index_lag"]) == ([], 0)
        assert server.process.poll() is None


@pytest.mark.usefixtures("gpu")
def test_a_server_that_starts_on_a_full_gpu_answers_by_words_and_loads_the_models_later(tmp_path, embedder_directory, reranker_directory):
    config = settings(embedder_directory, reranker_directory, "cuda")
    with ExitStack() as hog:
        hog.enter_context(full_gpu(spare_mb=16))
        with serving(tmp_path, config) as server:
            say(server, "海辺で猫と散歩した")
            told = awaited(server, lambda told: {model["state"] for model in told["models"].values()} == {"absent"})
            assert all("not enough memory" in model["error"] for model in told["models"].values())
            answer = ask(server, "海辺の猫")
            assert (contents(answer), answer["degraded"]) == (["海辺で猫と散歩した"], ["embedder_absent", "reranker_absent"])
            hog.close()
            awaited(server, settled)
            assert ask(server, "海辺の猫")["degraded"] == []


@pytest.mark.parametrize("backend", ["auto", pytest.param("torch", marks=pytest.mark.thorough)])
def test_without_a_gpu_cuda_leaves_the_models_absent_and_says_why(tmp_path, embedder_directory, reranker_directory, backend):
    with serving(tmp_path, settings(embedder_directory, reranker_directory, "cuda", backend), environment=NO_GPU) as server:
        say(server, "海辺で猫と散歩した")
        told = awaited(server, lambda told: {model["state"] for model in told["models"].values()} == {"absent"})
        assert all("embeddings_device is cuda, and torch finds no GPU here" in model["error"] for model in told["models"].values())
        answer = ask(server, "海辺の猫")
        assert (contents(answer), answer["degraded"]) == (["海辺で猫と散歩した"], ["embedder_absent", "reranker_absent"])


@pytest.mark.thorough
def test_without_a_gpu_auto_is_the_cpu(tmp_path, embedder_directory, reranker_directory):
    with serving(tmp_path, settings(embedder_directory, reranker_directory, "auto"), environment=NO_GPU) as server:
        say(server, "海辺で猫と散歩した")
        told = awaited(server, settled)
        assert [model["backend"] for model in told["models"].values()] == ["torch on cpu"] * 2
        assert ask(server, "海辺の猫")["degraded"] == []
