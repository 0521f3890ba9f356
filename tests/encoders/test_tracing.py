"""A traced model answers as it did op by op, and one that can't be traced goes on as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_mcp.encoders.model_families import prefixes_for
from memory_mcp.encoders.reranking import Pair
from memory_mcp.encoders.torch.models import TorchCrossEncoder, TorchEmbeddings

pytestmark = pytest.mark.slow
TEXTS = ["猫", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 7, "I like coffee.", ""]
PAIRS: list[Pair] = [("猫の名前は?", text) for text in TEXTS]


@pytest.fixture
def untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_mcp.encoders.torch.models.trace", lambda *_: False)


def embedded(directory: Path) -> np.ndarray:
    loaded = TorchEmbeddings(directory, "cpu", prefixes_for("m", directory), "m")
    return np.array([*loaded.embed_documents(TEXTS), loaded.embed_query("猫")])


def test_vectors_are_the_same(embedder_directory: Path, request: pytest.FixtureRequest):
    quick = embedded(embedder_directory)
    request.getfixturevalue("untraced")
    assert quick == pytest.approx(embedded(embedder_directory), abs=1e-5)


def test_scores_are_the_same(reranker_directory: Path, request: pytest.FixtureRequest):
    quick = TorchCrossEncoder(reranker_directory, "cpu", "m")
    request.getfixturevalue("untraced")
    assert list(quick(PAIRS)) == pytest.approx(list(TorchCrossEncoder(reranker_directory, "cpu", "m")(PAIRS)), abs=1e-5)


def test_several_queries_at_once_are_the_same_as_one_by_one(embedder_directory: Path):
    loaded = TorchEmbeddings(embedder_directory, "cpu", prefixes_for("m", embedder_directory), "m")
    one_by_one = np.array([loaded.embed_query(text) for text in TEXTS])
    assert np.array(loaded.embed_queries(TEXTS)) == pytest.approx(one_by_one, abs=1e-5)


def test_a_pass_that_answers_otherwise_when_traced_is_not_replaced(reranker_directory: Path, monkeypatch: pytest.MonkeyPatch):
    def wrong(module: Any, _example: object, **_options: object) -> Any:
        return lambda *tensors: tuple(result + 1 for result in module(*tensors))

    monkeypatch.setattr("torch.jit.trace", wrong)
    loaded = TorchCrossEncoder(reranker_directory, "cpu", "m")
    assert "forward" not in vars(loaded.model[0].auto_model)
    assert all(0 <= score <= 1 for score in loaded(PAIRS))


def test_a_pass_whose_trace_holds_for_one_shape_only_is_not_replaced(reranker_directory: Path, monkeypatch: pytest.MonkeyPatch):
    def rigid(module: Any, example: tuple[Any, ...], **_options: object) -> Any:
        def run(*tensors: Any) -> Any:
            if tensors[0].shape != example[0].shape:
                raise RuntimeError("The size of tensor a must match the size of tensor b")
            return module(*tensors)

        return run

    monkeypatch.setattr("torch.jit.trace", rigid)
    loaded = TorchCrossEncoder(reranker_directory, "cpu", "m")
    assert "forward" not in vars(loaded.model[0].auto_model)
    assert all(0 <= score <= 1 for score in loaded(PAIRS))
