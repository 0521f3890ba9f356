"""A cross-encoder that has learned nothing: whatever it says, the order of words and meaning stands."""

from datetime import timedelta
from pathlib import Path

import pytest
from fakes import OverlapReranker

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_reranker
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.search.rerank import MOST_SPREADS

# Loading it needs torch, which takes seconds to import.
pytestmark = pytest.mark.slow

LOADED, OFF = ModelState("loaded", "fake"), ModelState("off")
SETTINGS = Settings(embeddings_model=None, reranker_model="fake")
ASKED = {
    "犬の名前は？": "犬の名前はコタロウ。",
    "会議は何曜日？": "会議は毎週木曜にある。",
    "旅行の費用は？": "旅行の費用は十二万円だった。",
    "好きな果物は？": "果物では苺がいちばん好き。",
    "What is the cat called?": "The cat is called Mike.",
    "Where does Tom work?": "Tom works at the library.",
}
OTHERS = (
    "犬と散歩した。",
    "会議が長くて疲れた。",
    "旅行の写真を整理した。",
    "果物を買って帰った。",
    "The cat slept all day.",
    "Tom called me at work.",
)


@pytest.fixture
def hits(nilou, say, now):
    """hits(query, reranker): what is found, with scores."""
    for number, text in enumerate((*ASKED.values(), *OTHERS)):
        say(text, at=now - timedelta(days=number))

    def hits(query, reranker=None, settings=SETTINGS):
        models = Models(None, reranker, OFF, LOADED if reranker else OFF)
        asked = question(settings=settings, now=now, query=query, top_k=10)
        return recall(nilou, asked, models=models, settings=settings, now=now).hits

    return hits


def moved_apart(fused, reranked):
    """By how much the fused scores of two memories differ that stand the other way round; the most of all such pairs."""
    scores = {hit.memory.key: hit.score for hit in fused}
    order = [scores[hit.memory.key] for hit in reranked]
    return max((later - earlier for at, earlier in enumerate(order) for later in order[at:]), default=0.0)


def test_random_weights_move_nothing_that_does_not_stand_side_by_side(hits, reranker_directory: Path):
    with ModelPool(1) as pool:
        untrained = load_reranker(Settings(reranker_model=str(reranker_directory), inference_backend="torch"), pool, Caches())
        for query, answer in ASKED.items():
            fused, reranked = hits(query), hits(query, untrained)
            assert {hit.memory.key for hit in reranked} == {hit.memory.key for hit in fused}
            assert moved_apart(fused, reranked) < 0.05
            assert reranked[0].memory.content == answer


def test_the_opposite_of_the_truth_moves_no_more_than_its_weight_allows(hits):
    class Contrary(OverlapReranker):
        def _score(self, query_tokens, text):
            return 1 - super()._score(query_tokens, text)

    for weight in (0.05, 0.25):
        under = SETTINGS.model_copy(update={"fusion": SETTINGS.fusion.model_copy(update={"rerank_weight": weight})})
        for query in ASKED:
            assert moved_apart(hits(query), hits(query, Contrary(), under)) <= 2 * MOST_SPREADS * weight


def test_with_a_weight_of_zero_no_model_reads(hits):
    class Unread(OverlapReranker):
        def score(self, *_, **__):
            raise AssertionError("the model reads")

    off = SETTINGS.model_copy(update={"fusion": SETTINGS.fusion.model_copy(update={"rerank_weight": 0.0})})
    for query in ASKED:
        assert hits(query, Unread(), off) == hits(query)
