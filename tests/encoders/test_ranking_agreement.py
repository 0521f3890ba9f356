"""What is said of how alike two precisions rank."""

import random

import numpy as np
import pytest

from memory_mcp.encoders.fakes import HashingEmbedder, OverlapReranker
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.onnx.export_directory import Agreement, Export, Padding, check_agreement
from memory_mcp.encoders.onnx.ranking_agreement import SENTENCES, embedders_agree, rerankers_agree
from memory_mcp.errors import EncoderFailed

FAKE = HashingEmbedder(256)


def embed(texts: list[str]) -> list[np.ndarray]:
    return list(FAKE.embed_documents(texts))


def away(texts: list[str]) -> list[np.ndarray]:
    """Texts that were near are far then."""
    return [-vector for vector in embed(texts)]


def score(pairs: list[tuple[str, str]]) -> list[float]:
    return [(OverlapReranker().score(query, [text]) or [0.0])[0] for query, text in pairs]


def export(role: Role, found: Agreement, accepted: bool = False) -> Export:
    return Export(
        role=role, model="m", fingerprint="", dimension=None, max_tokens=256, query_prefix="", document_prefix="", prefix_version="",
        pooling=None, normalised=True, activation=None, inputs=(), padding=Padding(0, "", 0, "right"), truncation_side="right", opset=17,
        difference=0.0, sha256={}, agreement=found, int8_accepted=accepted,
    )  # fmt: skip


def noise(pairs: list[tuple[str, str]]) -> list[float]:
    return [random.Random(f"{query} {text}").random() for query, text in pairs]


def few_relevant(pairs: list[tuple[str, str]]) -> list[float]:
    """As a good cross-encoder answers to most pools: what fits stands out, and all the rest is next to nothing in any order."""
    return [0.9 if text.startswith(query) else near_nothing for (query, text), near_nothing in zip(pairs, nothing(pairs), strict=True)]


def nothing(pairs: list[tuple[str, str]]) -> list[float]:
    return [one / 200 for one in noise(pairs)]


def test_a_model_agrees_with_itself_and_may_be_used():
    found = embedders_agree((embed, embed), (embed, embed), SENTENCES, own=True)
    assert (found.alike, found.spearman, found.texts, found.telling) == (1, 1, len(SENTENCES), len(SENTENCES))
    check_agreement(export("embedder", found))
    found = rerankers_agree(score, score, SENTENCES, own=True)
    assert (found.alike, found.queries) == (1, 30)
    check_agreement(export("reranker", found))


def test_a_model_that_turns_everything_round_is_found_out():
    found = embedders_agree((embed, embed), (embed, away), SENTENCES, own=True)
    assert found.alike < 0.5
    assert found.spearman < 0
    with pytest.raises(EncoderFailed, match="of its 10 best texts are among the 10 best of fp32, and 80% are required"):
        check_agreement(export("embedder", found))
    found = rerankers_agree(score, lambda pairs: [1 - one for one in score(pairs)], SENTENCES, own=True)
    with pytest.raises(EncoderFailed, match="in the same order, and 95% are required"):
        check_agreement(export("reranker", found))


def test_noise_is_refused_and_accepting_does_not_help_it():
    found = rerankers_agree(few_relevant, noise, SENTENCES, own=True)
    assert found.telling == found.queries
    assert 0.2 < found.alike < 0.8
    for accepted in (False, True):
        with pytest.raises(EncoderFailed, match="Set onnx_precision to fp32"):
            check_agreement(export("reranker", found, accepted))


def test_noise_proves_nothing_where_fp32_itself_tells_nothing_apart():
    found = rerankers_agree(nothing, noise, SENTENCES, own=True)
    assert (found.telling, found.alike) == (0, 0)
    with pytest.raises(EncoderFailed, match="for only 0 of 30 queries"):
        check_agreement(export("reranker", found))


def test_an_embedder_for_which_everything_is_the_same_tells_nothing():
    def collapsed(texts: list[str]) -> list[np.ndarray]:
        return embed(["a"]) * len(texts)

    assert embedders_agree((collapsed, collapsed), (embed, away), SENTENCES, own=True).telling == 0


def test_texts_that_score_next_to_nothing_may_change_places_and_one_that_fits_may_not():
    def otherwise(pairs: list[tuple[str, str]]) -> list[float]:
        return [one if one > 0.5 else 0.005 - one for one in few_relevant(pairs)]

    assert rerankers_agree(few_relevant, otherwise, SENTENCES, own=True).alike == 1


def test_a_model_that_scores_everything_alike_keeps_no_order():
    assert rerankers_agree(score, lambda pairs: [0.5] * len(pairs), SENTENCES, own=True).alike == 0


def test_built_in_sentences_prove_nothing_until_somebody_accepts_that():
    found = embedders_agree((embed, embed), (embed, embed), SENTENCES, own=False)
    with pytest.raises(EncoderFailed, match=r"too few memories.*export-onnx` again when there are 50 memories.*--accept-int8"):
        check_agreement(export("embedder", found))
    check_agreement(export("embedder", found, accepted=True))


@pytest.mark.parametrize(("width", "tells"), [(0.001, False), (0.3, True)])
def test_only_scores_that_differ_visibly_have_an_order(width: float, tells: bool):
    def forth(pairs: list[tuple[str, str]]) -> list[float]:
        return [0.5 + width * len(text) / 100 for _, text in pairs]

    def back(pairs: list[tuple[str, str]]) -> list[float]:
        return [0.5 - width * len(text) / 100 for _, text in pairs]

    found = rerankers_agree(forth, back, SENTENCES, own=True)
    assert (found.telling > 0, found.alike) == (tells, 0)
