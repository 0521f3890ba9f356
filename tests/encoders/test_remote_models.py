"""Models on other servers: which form they speak, what is refused, what a failure costs, and how another model there is noticed."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_servers import Kind, ModelServer, model_server
from places import SUPPORT
from pydantic import ValidationError

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import PooledEmbedder
from memory_mcp.encoders.loading.loaders import Exports, build_registry, load_embedder, load_reranker
from memory_mcp.encoders.loading.model_slot import embedder_spec, release
from memory_mcp.encoders.remote import connection, models
from memory_mcp.encoders.reranking import PooledReranker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

RURI = "cl-nagoya/ruri-v3-30m"
JUDGE = "hotchpotch/japanese-reranker-xsmall-v2"
EMBEDDING_KINDS: list[Kind] = ["tei", "vllm", "infinity", "ollama", "openai"]
RERANKING_KINDS: list[Kind] = ["tei", "vllm", "infinity", "cohere"]


@contextmanager
def embedder_at(server: ModelServer, directory: Path | None = None, **more: Any) -> Iterator[PooledEmbedder]:
    settings = Settings(embeddings_model=more.pop("name", RURI), embeddings_url=server.url, **more)
    with ModelPool(1) as pool:
        embedder = load_embedder(settings, pool, Caches(), Exports(directory))
        try:
            yield embedder
        finally:
            release(embedder)


@contextmanager
def reranker_at(server: ModelServer, url: str | None = None) -> Iterator[PooledReranker]:
    server.roles = {"reranker"}
    settings = Settings(reranker_model=server.model, reranker_url=url or server.url)
    with ModelPool(1) as pool:
        reranker = load_reranker(settings, pool, Caches())
        try:
            yield reranker
        finally:
            release(reranker)


@pytest.mark.parametrize("kind", EMBEDDING_KINDS)
def test_a_server_is_asked_what_it_speaks_and_gets_the_texts_with_their_prefixes(kind: Kind):
    with model_server(kind, RURI) as server, embedder_at(server) as embedder:
        server.bodies.clear()
        embedder.embed_query("猫の名前は？")
        embedder.embed_documents(["健太は苺が好き。"])
        texts = server.texts()
    assert "検索クエリ: 猫の名前は？" in texts
    assert "検索文書: 健太は苺が好き。" in texts
    assert (embedder.name, embedder.dimension, embedder.max_tokens is None) == (RURI, 48, kind not in {"tei", "vllm"})


@pytest.mark.parametrize("kind", RERANKING_KINDS)
def test_all_pairs_of_a_query_are_one_call(kind: Kind):
    with model_server(kind, JUDGE) as server, reranker_at(server, server.url + ("/v2" if kind == "cohere" else "")) as reranker:
        server.bodies.clear()
        scores = reranker.score("猫の名前は？", [f"犬の名前は{number}。" for number in range(14)] + ["猫の名前はミケ。"])
        assert len(server.bodies) == 1
    assert scores is not None
    assert max(scores) == scores[14]


def test_scores_without_bounds_are_brought_between_0_and_1():
    with model_server("vllm", JUDGE) as server:
        server.logits = True
        with reranker_at(server) as reranker:
            scores = reranker.score("猫の名前は？", ["猫の名前はミケ。", "The train leaves."])
    assert scores is not None
    assert 1 > scores[0] > scores[1] > 0


@pytest.mark.parametrize(("kind", "role"), [("tei", "embedder"), ("vllm", "embedder"), ("tei", "reranker"), ("infinity", "reranker")])
def test_a_server_with_another_model_is_refused_by_name(kind: Kind, role: str):
    load = load_embedder if role == "embedder" else load_reranker
    with model_server(kind, "BAAI/bge-m3") as server, ModelPool(1) as pool, pytest.raises(EncoderFailed, match=r"runs .*BAAI/bge-m3"):
        load(Settings(embeddings_url=server.url, reranker_url=server.url), pool, Caches())


@pytest.mark.parametrize("there", ["ruri-v3-30m", "/data/ruri-v3-30m", "other-organization/ruri-v3-30m"])
def test_a_model_is_known_without_its_organization(there: str):
    with model_server("vllm", there) as server, embedder_at(server) as embedder:
        assert embedder.traits.prefixes.query == "検索クエリ: "


def test_a_model_may_have_a_japanese_name():
    with model_server("vllm", "瑠璃・埋め込み") as server, embedder_at(server, name="瑠璃・埋め込み") as embedder:
        assert embedder.generation.startswith("瑠璃・埋め込み@")
        assert embedder.embed_query("猫").shape == (48,)


def test_a_reranker_is_no_embedder():
    with model_server("tei", RURI) as server:
        server.roles = {"reranker"}
        with pytest.raises(EncoderFailed, match="not as embedding"), embedder_at(server):
            pass


def test_where_the_form_is_set_nothing_else_is_asked():
    with model_server("openai", RURI) as server:
        with pytest.raises(EncoderFailed, match="does not answer as Text Embeddings Inference"), embedder_at(server, embeddings_api="tei"):
            pass
        with embedder_at(server, embeddings_api="openai") as embedder:
            assert embedder.dimension == 48


@pytest.mark.parametrize("kind", ["tei", "openai"])
def test_what_a_server_finds_too_much_is_sent_in_parts(kind: Kind):
    texts = [f"{number} 昨日は京都で蕎麦を食べた。" for number in range(20)] + ["長い話。" * 200]
    with model_server(kind, RURI) as server, embedder_at(server) as embedder:
        whole = embedder.embed_documents(texts)
        server.limit, server.characters = 5, 400
        with embedder_at(server) as careful:
            parts = careful.embed_documents(texts)
    assert parts[:20] == pytest.approx(whole[:20], abs=1e-6)
    assert np.isfinite(parts[20]).all()


BROKEN: dict[str, Any] = {
    "no JSON": lambda path, right: (200, b"<html>"),
    "another form": lambda path, right: (200, {"vectors": []}),
    "half the vectors": lambda path, right: (200, right[:-1]),
    "vectors of two lengths": lambda path, right: (200, [right[0][:5], *right[1:]]),
    "words for numbers": lambda path, right: (200, [["a", "b"] for _ in right]),
    "NaN": lambda path, right: (200, [[float("nan")] * 48 for _ in right]),
    "null": lambda path, right: (200, [[None] * 48 for _ in right]),
    "one number each": lambda path, right: (200, [0.5 for _ in right]),
    "nested too deeply": lambda path, right: (200, b"[" * 100_000),
    "a failure": lambda path, right: (500, {"error": "boom"}),
    "an inference that failed": lambda path, right: (424, {"error": "boom"}),
    "overload": lambda path, right: (429, {"error": "Model is overloaded"}),
    "too much, always": lambda path, right: (413, {}),
    "no such path": lambda path, right: (404, {}),
    "elsewhere": lambda path, right: (307, {}),
    "a connection that ends": lambda path, right: (0, None),
    "half an answer": lambda path, right: (-1, None),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_an_answer_that_cant_be_used_is_a_failure_that_quotes_no_memory(fault: str):
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        server.fault = BROKEN[fault]
        server.headers = {"Retry-After": "30", "Location": "http://169.254.169.254/"}
        for call in (lambda: embedder.embed_query("秘密の猫"), lambda: embedder.embed_documents(["秘密の犬", "鳥"])):
            with pytest.raises(EncoderFailed) as failure:
                call()
            assert "秘密" not in str(failure.value)
        if fault != "NaN" and fault != "null":  # that is about the vectors, and the server may be asked again
            server.bodies.clear()
            with pytest.raises(EncoderFailed):
                embedder.embed_query("もう一度")
            assert not server.bodies  # for a moment, it is left alone


def test_vectors_without_proof_of_the_same_model_are_not_taken():
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        server.fault = lambda path, right: (200, [*right[:-1], [float("nan")] * 48])
        with pytest.raises(EncoderFailed, match="changed"):
            embedder.embed_documents(["猫"])


@pytest.mark.parametrize(
    "answer",
    [
        {"results": []},
        {"results": [{"index": 0, "relevance_score": 0.5}] * 2},
        {"results": [{"index": 0, "relevance_score": True}, {"index": 1, "relevance_score": 0.1}]},
        {"results": [{"index": 0, "relevance_score": "0.5"}, {"index": 1, "relevance_score": 0.1}]},
        {"results": [{"index": 0, "relevance_score": 7.5}, {"index": 1, "relevance_score": 0.1}]},
        {"results": [{"index": 0}, {"index": 1}]},
        {"results": {"0": 1}},
        [],
        None,
    ],
)
def test_scores_that_are_not_one_for_each_text_are_a_failure(answer: Any):
    with model_server("vllm", JUDGE) as server, reranker_at(server) as reranker:
        server.fault = lambda path, right: (200, answer)
        with pytest.raises(EncoderFailed):
            reranker.score("猫", ["犬", "鳥"])


def test_an_idle_connection_that_was_closed_is_opened_again():
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        closes = iter([(0, None)])
        server.fault = lambda path, right: next(closes, (200, right))
        assert embedder.embed_query("猫").shape == (48,)


def test_a_server_that_hangs_costs_one_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(models, "QUERY_SECONDS", 0.2)
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        server.fault = lambda path, right: (-2, None)
        with pytest.raises(EncoderFailed, match="did not answer in time"):
            embedder.embed_query("猫")
        server.bodies.clear()
        with pytest.raises(EncoderFailed, match="did not answer in time"):
            embedder.embed_query("犬")
        assert not server.bodies
        server.hangs.set()


def test_an_answer_of_any_size_is_not_read(monkeypatch: pytest.MonkeyPatch):
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        monkeypatch.setattr(connection, "MAX_ANSWER_BYTES", 10_000)
        server.fault = lambda path, right: (200, b" " * 20_000)
        with pytest.raises(EncoderFailed, match="more than"):
            embedder.embed_query("猫")


def test_a_key_comes_from_the_environment_and_is_in_no_error(monkeypatch: pytest.MonkeyPatch):
    with model_server("vllm", RURI) as server:
        server.key = "sk-hush"
        with pytest.raises(EncoderFailed, match="set MEMORY_MCP_EMBEDDINGS_KEY"), embedder_at(server):
            pass
        monkeypatch.setenv("MEMORY_MCP_EMBEDDINGS_KEY", "sk-wrong")
        with pytest.raises(EncoderFailed) as failure, embedder_at(server):
            pass
        assert "sk-wrong" not in str(failure.value)
        monkeypatch.setenv("MEMORY_MCP_EMBEDDINGS_KEY", "sk-hush")
        with embedder_at(server) as embedder:
            assert embedder.embed_query("猫").shape == (48,)
        monkeypatch.setenv("MEMORY_MCP_EMBEDDINGS_KEY", "鍵")
        with pytest.raises(EncoderFailed, match="no header can hold"), embedder_at(server):
            pass


def test_no_proxy_of_the_environment_reads_what_is_sent_in_ones_own_network(monkeypatch: pytest.MonkeyPatch):
    with model_server("tei", RURI) as server, model_server("tei", RURI) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with embedder_at(server) as embedder:
            embedder.embed_query("猫")
        assert not proxy.bodies


@pytest.mark.parametrize("change", ["salt", "dimension"])
def test_no_vector_of_another_model_gets_into_an_index(change: str):
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        setattr(server, change, {"salt": "other weights", "dimension": 96}[change])
        with pytest.raises(EncoderFailed, match="changed while it was used"):
            embedder.embed_documents(["健太は苺が好き。"])
        assert embedder.changed  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", ["salt", "revision", "model"])
def test_a_change_that_only_questions_meet_is_noticed_within_a_minute(change: str, monkeypatch: pytest.MonkeyPatch):
    with model_server("tei", RURI) as server, embedder_at(server) as embedder:
        setattr(server, change, "other")
        assert embedder.embed_query("猫").shape == (48,)
        monkeypatch.setattr(models, "CHECK_SECONDS", 0.0)
        with pytest.raises(EncoderFailed, match=r"changed while it was used|runs other"):
            embedder.embed_query("犬")


def test_another_reranker_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(models, "CHECK_SECONDS", 0.0)
    with model_server("infinity", JUDGE) as server, reranker_at(server) as reranker:
        assert reranker.score("猫", ["猫"]) is not None
        server.salt = "other weights"
        with pytest.raises(EncoderFailed, match="changed while it was used"):
            reranker.score("犬", ["猫"])


def test_a_changed_model_is_loaded_again_as_another_generation(tmp_path: Path):
    settings = Settings(embeddings_model=RURI, reranker_model=None)
    with model_server("vllm", RURI) as server, ModelPool(1) as pool:
        settings = settings.model_copy(update={"embeddings_url": server.url})
        changed = threading.Semaphore(0)
        registry = build_registry(pool, Caches(), changed.release, Exports(tmp_path))
        registry.start(settings)
        try:
            assert changed.acquire(timeout=60)
            while (first := registry.current(settings).embedder) is None:
                assert changed.acquire(timeout=60)
            assert registry.current(settings).embedder_state.backend == "vLLM"
            server.salt = "other weights"
            with pytest.raises(EncoderFailed):
                first.embed_documents(["猫"])
            while (second := registry.current(settings).embedder) is None or second is first:
                assert changed.acquire(timeout=60)
            assert second.generation != first.generation
            assert second.embed_documents(["猫"]).shape == (1, 48)
        finally:
            registry.close()


def test_the_generation_outlives_a_restart_a_move_and_rounding_and_no_other_weights(tmp_path: Path):
    with model_server("vllm", RURI) as server:
        with embedder_at(server, tmp_path) as embedder:
            first = embedder.generation
        server.fault = lambda path, right: (
            200,
            {"data": [{**row, "embedding": [value + 1e-4 for value in row["embedding"]]} for row in right["data"]]},
        )
        with model_server("vllm", RURI) as moved, embedder_at(moved, tmp_path) as embedder:
            assert embedder.generation == first
        with embedder_at(server, tmp_path) as embedder:
            assert embedder.generation == first
        server.fault, server.salt = None, "other weights"
        with embedder_at(server, tmp_path) as embedder:
            second = embedder.generation
        server.salt = ""
        with embedder_at(server, tmp_path) as embedder:
            assert embedder.generation == first
    assert second != first
    with model_server("tei", RURI) as server:
        server.revision = "b2"
        with embedder_at(server, tmp_path) as embedder:
            third = embedder.generation
        server.revision = "b3"
        with embedder_at(server, tmp_path) as embedder:
            assert len({first, second, third, embedder.generation}) == 4


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"fingerprint": "x"}]', '[{"fingerprint": "x", "probe": "?"}]'])
def test_a_damaged_record_of_models_is_made_again(content: str, tmp_path: Path):
    (tmp_path / "served.json").write_text(content, encoding="utf-8")
    with model_server("vllm", RURI) as server, embedder_at(server, tmp_path):
        assert json.loads((tmp_path / "served.json").read_text(encoding="utf-8"))[0]["probe"]


def test_another_address_is_another_model_to_load_and_no_device_or_backend_is():
    one = embedder_spec(Settings(embeddings_url="http://gpu:8080"))
    assert one == embedder_spec(Settings(embeddings_url="http://gpu:8080/", embeddings_device="auto", inference_backend="onnx"))
    assert one != embedder_spec(Settings(embeddings_url="http://gpu2:8080"))
    assert one != embedder_spec(Settings())


@pytest.mark.parametrize(
    "url",
    ["http://gpu:8080", "http://10.0.0.3", "https://api.openai.com/v1", "http://tei.models.svc", "http://[::1]:80", "http://100.64.1.2"],
)
def test_an_address_in_ones_own_network_or_an_encrypted_one_is_allowed(url: str):
    assert Settings(embeddings_url=url, reranker_url=url).embeddings_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "http://8.8.8.8",
        "ftp://gpu",
        "gpu:8080",
        "",
        "https://user:pass@gpu",
        "https://gpu?key=1",
        "https://gpu#x",
        "http://",
    ],
)
def test_other_addresses_are_not(url: str):
    with pytest.raises(ValidationError):
        Settings(embeddings_url=url)
    with pytest.raises(ValidationError):
        Settings(reranker_url=url)


@pytest.mark.slow
def test_nothing_of_torch_or_onnx_is_imported():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from model_servers import model_server\n"
        "from memory_mcp.config.settings import Settings\n"
        "from memory_mcp.encoders.cache import Caches\n"
        "from memory_mcp.encoders.loading.loaders import load_embedder\n"
        "from memory_mcp.encoders.worker_pool import ModelPool\n"
        "with model_server('tei') as server, ModelPool(1) as pool:\n"
        "    embedder = load_embedder(Settings(embeddings_url=server.url), pool, Caches())\n"
        "    embedder.embed_query('猫'); embedder.close()\n"
        "print([name for name in ('torch', 'transformers', 'onnxruntime', 'tokenizers', 'langchain_core') if name in sys.modules])\n"
    )
    here = str(SUPPORT)
    done = subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr
