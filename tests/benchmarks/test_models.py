"""The models that benchmarks generate: loaded like published ones, with a tokenizer that has a piece for every row of the table."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.make_models import Shape, make_both
from benchmarks.texts import sentence
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder, load_reranker
from memory_mcp.encoders.worker_pool import ModelPool

pytestmark = pytest.mark.slow

SMALL = Shape(vocabulary=4_000, hidden=32, layers=3, heads=2, intermediate=64, positions=256)


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_both(tmp_path_factory.mktemp("made"), SMALL)


def test_the_server_loads_them_by_the_rules_for_the_real_ones(directories: tuple[Path, Path]):
    embedder, reranker = directories
    settings = Settings(embeddings_model=str(embedder), reranker_model=str(reranker))
    with ModelPool(1) as pool:
        loaded = load_embedder(settings, pool, Caches())
        assert loaded.dimension == SMALL.hidden
        assert "ruri-v3.1" in loaded.generation  # with ruri's prefixes
        vectors = loaded.embed_documents([sentence(1), sentence(2)])
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
        scorer = load_reranker(settings, pool, Caches())
        assert [scorer.covers(text) for text in ("猫", "a cat")] == [True, False]
        assert scorer.score("猫は?", [sentence(1)])


def test_every_row_of_the_table_has_a_piece_and_no_character_is_unknown(directories: tuple[Path, Path]):
    from tokenizers import Tokenizer  # noqa: PLC0415  as slow as the rest

    files = [directory / "tokenizer.json" for directory in directories]
    assert files[0].read_bytes() == files[1].read_bytes()
    tokenizer = Tokenizer.from_file(str(files[0]))
    assert tokenizer.get_vocab_size() == json.loads((directories[0] / "config.json").read_text())["vocab_size"] == SMALL.vocabulary
    ids = tokenizer.encode("検索クエリ: 田中さんと飲んだ珈琲がおいしかった。").ids
    assert tokenizer.token_to_id("<unk>") not in ids


def test_the_shape_that_is_meant_when_none_is_told_is_the_one_of_ruri_v3_30m():
    shape = Shape()
    assert (shape.vocabulary, shape.hidden, shape.layers) == (102_400, 256, 10)
