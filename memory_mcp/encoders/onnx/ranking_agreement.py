"""Measures how similarly int8 and fp32 of one model rank, on texts like those that will be searched.

Random texts would prove little, because the effect of int8 depends on the input. If fp32 itself gives nearly equal scores to the
texts of a query, any order is as good as its own, and noise would agree with it: such a query does not count.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory_mcp.encoders.batches import batches_by_length
from memory_mcp.encoders.embedding import BATCH
from memory_mcp.encoders.models import Vectors
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Agreement, Export
from memory_mcp.encoders.onnx.models import OnnxCrossEncoder, OnnxEmbeddings
from memory_mcp.encoders.onnx.tokenization import Tokenizers
from memory_mcp.encoders.reranking import BATCH_PAIRS, Pair
from memory_mcp.language.tokens import tokens

EMBEDDER_TOP = 10
POOL = 15  # candidates that a search with top_k 5 passes to the reranker
EMBEDDER_QUERIES = 100
RERANKER_QUERIES = 30
SAME_SCORE = 0.01  # of a cross-encoder, from 0 to 1: texts whose scores differ by less may change order
MIN_DISTINCT_PAIRS = POOL - 1  # with different scores, for a query to count: the pairs of one text with all others
QUERY_CHARACTERS = 40  # the start of a text, as a query of typical length

Floats = npt.NDArray[np.float64]
Predict = Callable[[list[Pair]], Sequence[float]]
EmbedTexts = Callable[[list[str]], list[Vectors]]
Comparison = Callable[[Floats, Floats], float | None]

# For a data directory without memories: enough to notice a broken model, too few to trust one.
SENTENCES = tuple(
    f"{subject}{predicate}"
    for subject in ("母は", "健太が昨日、", "来月、", "She ", "ニィロウは子どもの頃、", "隣の猫は")
    for predicate in (
        "京都へ旅行に行った。",
        "苺のケーキを焼いてくれた。",
        "仕事で失敗して、少し落ち込んでいた。",
        "planned a trip to the sea with an old friend.",
        "ピアノの発表会のことを楽しそうに話した。",
        "said that coffee keeps them awake at night.",
        "約束を忘れて、三十分も遅れて来た。",
        "雨の日は窓のそばで眠っている。",
    )
)


def measure(directory: Path, texts: Sequence[str], own: bool, accepted: bool = False) -> Export:
    """Compares int8 with fp32 of an exported model and stores the result in its export.json. `own`: the texts are memories.

    `accepted`: int8 may be used if its agreement is unproven, but not if it ranks differently.

    Raises:
        EncoderFailed: the model can't be loaded.
    """
    export, tokenizers = export_directory.read(directory), Tokenizers()
    if export.role == "embedder":
        exact, quick = OnnxEmbeddings(directory, "fp32", tokenizers), OnnxEmbeddings(directory, "int8", tokenizers)
        pairs = ((exact.embed_queries, exact.embed_documents), (quick.embed_queries, quick.embed_documents))
        agreement = embedders_agree(*pairs, texts, own)
    else:
        scorers = OnnxCrossEncoder(directory, "fp32", tokenizers), OnnxCrossEncoder(directory, "int8", tokenizers)
        agreement = rerankers_agree(*scorers, texts, own)
    export = replace(export, agreement=agreement, int8_accepted=accepted)
    export_directory.write(export, directory)
    return export


def embedders_agree(
    exact: tuple[EmbedTexts, EmbedTexts], quick: tuple[EmbedTexts, EmbedTexts], texts: Sequence[str], own: bool
) -> Agreement:
    """Compares two pairs of functions (embed queries, embed documents): does the start of a text find the same other texts?"""
    query_indexes = _spread(len(texts), EMBEDDER_QUERIES)
    first, second = (_cosines(queries, documents, texts, query_indexes) for queries, documents in (exact, quick))
    for row, index in enumerate(query_indexes):
        first[row, index] = second[row, index] = -2  # a text that finds itself proves nothing
    return _agreement(list(first), list(second), _same_best, len(texts), own)


def rerankers_agree(exact: Predict, quick: Predict, texts: Sequence[str], own: bool) -> Agreement:
    """Compares two cross-encoders: do they order the text that a query is from, and those that share most words with it, in the same way?"""
    words = [set(tokens(text)) for text in texts]
    first, second = [], []
    for query in _spread(len(texts), RERANKER_QUERIES):
        others = (number for number in range(len(texts)) if number != query)
        pool = [query, *sorted(others, key=lambda number: -len(words[query] & words[number]))[:POOL]]
        pairs = [(texts[query][:QUERY_CHARACTERS], texts[number]) for number in pool]
        first.append(_scores(exact, pairs))
        second.append(_scores(quick, pairs))
    return _agreement(first, second, _same_order, len(texts), own)


def _agreement(first: Sequence[Floats], second: Sequence[Floats], compare: Comparison, texts: int, own: bool) -> Agreement:
    conclusive = [(share, exact, quick) for exact, quick in zip(first, second, strict=True) if (share := compare(exact, quick)) is not None]
    share, correlation = (
        (round(float(np.mean(figures)), 4) if figures else 0.0)
        for figures in ([share for share, *_ in conclusive], [_spearman(exact, quick) for _, exact, quick in conclusive])
    )
    return Agreement(texts, len(first), correlation, own, share, len(conclusive))


def _spread(count: int, limit: int) -> list[int]:
    """`limit` indexes at most, evenly spread over `count` texts."""
    return [number * count // min(count, limit) for number in range(min(count, limit))]


def _cosines(queries: EmbedTexts, documents: EmbedTexts, texts: Sequence[str], query_indexes: Sequence[int]) -> Floats:
    vectors: dict[int, Vectors] = {}
    for batch in batches_by_length(dict(enumerate(texts)), BATCH):
        vectors.update(zip(batch, documents([texts[number] for number in batch]), strict=True))
    query_vectors = [queries([texts[index][:QUERY_CHARACTERS]])[0] for index in query_indexes]
    return (np.stack(query_vectors) @ np.stack([vectors[number] for number in range(len(texts))]).T).astype(np.float64)


def _scores(predict: Predict, pairs: list[Pair]) -> Floats:
    scores: dict[int, float] = {}
    for batch in batches_by_length({number: text for number, (_, text) in enumerate(pairs)}, BATCH_PAIRS):
        scores.update(zip(batch, predict([pairs[number] for number in batch]), strict=True))
    return np.array([scores[number] for number in range(len(pairs))])


def _same_best(exact: Floats, quick: Floats) -> float | None:
    """The share of `quick`'s best texts that are among `exact`'s best; None if more than half of all texts score as high as those."""
    are_best = exact >= np.sort(exact)[-EMBEDDER_TOP:][0]
    return None if np.mean(are_best) > 0.5 else float(np.mean(are_best[np.argsort(-quick, kind="stable")[:EMBEDDER_TOP]]))


def _same_order(exact: Floats, quick: Floats) -> float | None:
    """The share of the pairs with different `exact` scores that `quick` puts in the same order; None if there are too few."""
    left, right = np.triu_indices(len(exact), 1)
    gaps = exact[left] - exact[right]
    distinct = np.abs(gaps) > SAME_SCORE
    return None if distinct.sum() < MIN_DISTINCT_PAIRS else float(np.mean(((quick[left] - quick[right]) * gaps > 0)[distinct]))


def _spearman(exact: Floats, quick: Floats) -> float:
    ranks = [np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(np.float64) for scores in (exact, quick)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if len(exact) > 1 else 1.0
