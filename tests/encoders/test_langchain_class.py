"""A LangChain class from configuration: what is taken, what is refused, what makes two of them the same."""

from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.langchain_class import construct, generation_of
from memory_mcp.encoders.loading.loaders import load_embedder, why_missing
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

FAKE = "langchain_core.embeddings:DeterministicFakeEmbedding"


def test_the_class_is_made_with_its_arguments():
    made = construct(FAKE, {"size": 7})
    assert isinstance(made, DeterministicFakeEmbedding)
    assert made.size == 7


@pytest.mark.parametrize(
    ("path", "arguments", "why"),
    [
        ("langchain_core.embeddings", {}, "package.module:Class"),
        ("no_such_package.embeddings:Embeddings", {}, "Install its package"),
        ("langchain_core.embeddings:NoSuchClass", {}, "NoSuchClass"),
        ("pathlib:Path", {}, "not a subclass of"),
        ("os:getcwd", {}, "not a subclass of"),
        (FAKE, {}, "rejects embeddings_arguments"),
        ("langchain_core.embeddings:Embeddings", {}, "rejects embeddings_arguments"),
    ],
)
def test_what_cant_be_used_says_why(path: str, arguments: dict[str, int], why: str):
    with pytest.raises(EncoderFailed, match=why):
        construct(path, arguments)


def test_how_a_service_is_reached_does_not_make_another_generation_and_what_it_computes_does():
    one = generation_of("m", FAKE, {"model": "small", "api_key": "a", "base_url": "x", "timeout": 1}, 8)
    assert generation_of("m", FAKE, {"model": "small", "api_key": "b", "base_url": "y"}, 8) == one
    assert generation_of("m", FAKE, {"model": "large", "api_key": "a"}, 8) != one
    assert generation_of("m", FAKE, {"model": "small"}, 9) != one
    assert generation_of("m", "other:Class", {"model": "small"}, 8) != one


def test_it_takes_the_place_of_the_local_model():
    settings = Settings(embeddings_model="named", embeddings_class=FAKE, embeddings_arguments={"size": 7})
    assert why_missing(settings, "embedder") is None
    with ModelPool(1) as pool:
        embedder = load_embedder(settings, pool, Caches())
        assert (embedder.name, embedder.dimension) == ("named", 7)


@pytest.mark.slow
def test_langchains_class_for_local_models_takes_options_of_its_own(embedder_directory: Path):
    arguments = {
        "model_name": str(embedder_directory),
        "model_kwargs": {"device": "cpu", "local_files_only": True},
        "encode_kwargs": {"normalize_embeddings": True, "truncate_dim": 16},
        "query_encode_kwargs": {"normalize_embeddings": True, "truncate_dim": 16, "prompt": "query: "},
    }
    settings = Settings(
        embeddings_model="own", embeddings_class="langchain_huggingface:HuggingFaceEmbeddings", embeddings_arguments=arguments
    )
    with ModelPool(1) as pool:
        embedder = load_embedder(settings, pool, Caches())
        assert embedder.dimension == 16
        assert embedder.embed_query("猫") == pytest.approx(np.asarray(embedder.embed_documents(["query: 猫"])[0]), abs=1e-5)
