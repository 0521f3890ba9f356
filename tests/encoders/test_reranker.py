"""What every reranker keeps to: the fake, a real cross-encoder directory, and models on other servers."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import OverlapReranker
from model_servers import model_server

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_reranker
from memory_mcp.encoders.loading.model_slot import release
from memory_mcp.encoders.models import Reranker
from memory_mcp.encoders.worker_pool import ModelPool

QUERY = "猫の名前は?"
TEXTS = ["猫の名前はミケ。", "I like coffee.", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 9, "猫", "名前", "犬の散歩をした"]
AN_HOUR = 3_600
# Who asks last finds some scores known, and has the rest scored in another batch: docs/decisions/0011-onnx.md has what that means for int8.
SAME = {"fake": 0.0, "tei": 0.0, "cohere": 0.0, "directory": 1e-5, "onnx": 1e-5, "int8": 0.005}


@pytest.fixture(
    scope="module",
    params=["fake", "tei", "cohere", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("directory", "onnx", "int8"))],
)
def reranker(request: pytest.FixtureRequest) -> Iterator[Reranker]:
    if request.param == "fake":
        yield OverlapReranker()
        return
    if request.param in {"tei", "cohere"}:
        with model_server(request.param, "reranker") as server, ModelPool(1) as pool:
            server.roles = {"reranker"}
            url = server.url + ("/v2" if request.param == "cohere" else "")
            loaded = load_reranker(Settings(reranker_model="reranker", reranker_url=url), pool, Caches())
            yield loaded
            release(loaded)
        return
    directory: Path = request.getfixturevalue("reranker_directory" if request.param == "directory" else "exported_reranker")
    settings = Settings(
        reranker_model=str(directory),
        inference_backend="torch" if request.param == "directory" else "onnx",
        onnx_precision="int8" if request.param == "int8" else "fp32",
    )
    with ModelPool(2) as pool:
        yield load_reranker(settings, pool, Caches())


def test_each_text_gets_a_score_from_0_to_1(reranker: Reranker):
    scores = reranker.score(QUERY, TEXTS)
    assert scores is not None
    assert len(scores) == len(TEXTS)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(scores)) > 1


def test_scores_are_in_the_order_of_the_texts(reranker: Reranker):
    scores = reranker.score(QUERY, TEXTS)
    turned = reranker.score(QUERY, TEXTS[::-1])
    assert scores is not None
    assert turned == pytest.approx(scores[::-1], abs=1e-5)


def test_a_text_that_comes_twice_gets_the_same_score_twice(reranker: Reranker):
    scores = reranker.score(QUERY, ["猫", "犬", "猫"])
    assert scores is not None
    assert scores[0] == scores[2]


def test_no_texts_are_no_scores(reranker: Reranker):
    assert reranker.score(QUERY, []) == []


def test_past_the_deadline_there_are_no_scores(reranker: Reranker):
    assert reranker.score("a query that nobody has asked before", TEXTS, deadline=time.monotonic() - 1) is None


def test_with_time_enough_all_are_scored_whatever_would_be_enough(reranker: Reranker):
    assert reranker.score(QUERY, TEXTS, time.monotonic() + AN_HOUR, at_least=2) == reranker.score(QUERY, TEXTS)


def test_in_time_there_are(reranker: Reranker):
    assert reranker.score(QUERY, TEXTS, deadline=time.monotonic() + AN_HOUR) == reranker.score(QUERY, TEXTS)


@pytest.mark.parametrize("text", ["", "\n", "\ud83d", "🎂", "a" * 5_000, "\x00"])
def test_no_text_is_too_strange(reranker: Reranker, text: str):
    scores = reranker.score(text, [text, "猫"])
    assert scores is not None
    assert all(0 <= score <= 1 for score in scores)


def test_threads_may_ask_at_once(reranker: Reranker, request: pytest.FixtureRequest):
    answers: list[list[float] | None] = []
    threads = [threading.Thread(target=lambda: answers.append(reranker.score(QUERY, TEXTS))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert all(answer == pytest.approx(answers[0], abs=SAME[request.node.callspec.id]) for answer in answers)
