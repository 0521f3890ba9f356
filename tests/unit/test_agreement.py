"""What is said of how alike two precisions rank."""

import numpy as np
import pytest

from memory_mcp.encoders.agreement import SENTENCES, embedders_agree, rerankers_agree
from memory_mcp.encoders.fakes import HashingEmbedder, OverlapReranker

FAKE = HashingEmbedder(256)


def embed(texts: list[str]) -> list[np.ndarray]:
    return list(FAKE.embed_documents(texts))


def away(texts: list[str]) -> list[np.ndarray]:
    """Texts that were near are far then."""
    return [-vector for vector in embed(texts)]


def score(pairs: list[tuple[str, str]]) -> list[float]:
    return [(OverlapReranker().score(query, [text]) or [0.0])[0] for query, text in pairs]


def test_a_model_agrees_with_itself():
    found = embedders_agree((embed, embed), (embed, embed), SENTENCES, own=True)
    assert (found.overlap, found.spearman, found.texts, found.own) == (1, 1, len(SENTENCES), True)
    assert found.is_enough
    assert rerankers_agree(score, score, SENTENCES, own=False).overlap == 1


def test_a_model_that_turns_everything_round_is_found_out():
    found = embedders_agree((embed, embed), (embed, away), SENTENCES, own=True)
    assert found.overlap < 0.5
    assert found.spearman < 0
    assert not found.is_enough
    assert not rerankers_agree(score, lambda pairs: [1 - one for one in score(pairs)], SENTENCES, own=True).is_enough


@pytest.mark.parametrize(("width", "agrees"), [(0.001, True), (0.3, False)])
def test_scores_that_are_all_but_equal_may_change_places(width: float, agrees: bool):
    def forth(pairs: list[tuple[str, str]]) -> list[float]:
        return [0.5 + width * len(text) / 100 for _, text in pairs]

    def back(pairs: list[tuple[str, str]]) -> list[float]:
        return [0.5 - width * len(text) / 100 for _, text in pairs]

    assert rerankers_agree(forth, back, SENTENCES, own=True).is_enough is agrees
