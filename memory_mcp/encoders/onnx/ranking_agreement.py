"""How alike two precisions of one model rank: measured on texts such as those that will be searched.

Random or foreign texts would say little: how much int8 changes depends on what the model is asked. Where fp32 itself hardly tells
the texts apart, any order is as good as its own, and noise would agree with it: such a query counts for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory_mcp.encoders.batches import batches_by_length
from memory_mcp.encoders.embedding import BATCH
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Agreement, Export
from memory_mcp.encoders.onnx.models import OnnxCrossEncoder, OnnxEmbeddings
from memory_mcp.encoders.onnx.tokenization import Tokenizers
from memory_mcp.encoders.protocols import Vectors
from memory_mcp.encoders.reranking import CHUNK, Pair
from memory_mcp.text.tokens import tokens

EMBEDDER_TOP = 10
POOL = 15  # what a search for five hands to the reranker
EMBEDDER_QUERIES = 100
RERANKER_QUERIES = 30
SAME_SCORE = 0.01  # of a cross-encoder, from 0 to 1: two texts that are nearer than that may change places
FEWEST_PAIRS = POOL - 1  # apart in a pool, for its query to tell anything: one text that stands out from the others makes so many
QUERY_CHARACTERS = 40  # of a text make a query like those that people ask

Floats = npt.NDArray[np.float64]
Predict = Callable[[list[Pair]], Sequence[float]]
EmbedTexts = Callable[[list[str]], list[Vectors]]
Alike = Callable[[Floats, Floats], float | None]

# For a data directory without memories: enough to see that nothing is broken, too few to trust.
SENTENCES = tuple(
    f"{who}{what}"
    for who in ("母は", "健太が昨日、", "来月、", "She ", "ニィロウは子どもの頃、", "隣の猫は")
    for what in (
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
    """Compares int8 with fp32 of an exported model, and writes down what came out. `own`: the texts are memories.

    `accepted`: int8 may be used without proof, as long as nothing speaks against it.

    Raises:
        EncoderFailed: it can't be loaded.
    """
    export, tokenizers = export_directory.read(directory), Tokenizers()
    if export.role == "embedder":
        exact, quick = OnnxEmbeddings(directory, "fp32", tokenizers), OnnxEmbeddings(directory, "int8", tokenizers)
        pairs = ((exact.embed_queries, exact.embed_documents), (quick.embed_queries, quick.embed_documents))
        found = embedders_agree(*pairs, texts, own)
    else:
        scorers = OnnxCrossEncoder(directory, "fp32", tokenizers), OnnxCrossEncoder(directory, "int8", tokenizers)
        found = rerankers_agree(*scorers, texts, own)
    export = replace(export, agreement=found, int8_accepted=accepted)
    export_directory.write(export, directory)
    return export


def embedders_agree(
    exact: tuple[EmbedTexts, EmbedTexts], quick: tuple[EmbedTexts, EmbedTexts], texts: Sequence[str], own: bool
) -> Agreement:
    """For two ways to embed (queries, documents): whether the beginning of a text finds the same other texts."""
    asked = _spread(len(texts), EMBEDDER_QUERIES)
    first, second = (_cosines(queries, documents, texts, asked) for queries, documents in (exact, quick))
    for row, place in enumerate(asked):
        first[row, place] = second[row, place] = -2  # a text that finds itself proves nothing
    return _agreement(list(first), list(second), _same_best, len(texts), own)


def rerankers_agree(exact: Predict, quick: Predict, texts: Sequence[str], own: bool) -> Agreement:
    """Whether two precisions of a cross-encoder order alike the text that a query is from, and those that share most words with it."""
    words = [set(tokens(text)) for text in texts]
    first, second = [], []
    for place in _spread(len(texts), RERANKER_QUERIES):
        others = (number for number in range(len(texts)) if number != place)
        pool = [place, *sorted(others, key=lambda number: -len(words[place] & words[number]))[:POOL]]
        pairs = [(texts[place][:QUERY_CHARACTERS], texts[number]) for number in pool]
        first.append(_scores(exact, pairs))
        second.append(_scores(quick, pairs))
    return _agreement(first, second, _same_order, len(texts), own)


def _agreement(first: Sequence[Floats], second: Sequence[Floats], alike: Alike, texts: int, own: bool) -> Agreement:
    both = [(share, one, other) for one, other in zip(first, second, strict=True) if (share := alike(one, other)) is not None]
    share, correlation = (
        (round(float(np.mean(figures)), 4) if figures else 0.0)
        for figures in ([share for share, *_ in both], [_spearman(one, other) for _, one, other in both])
    )
    return Agreement(texts, len(first), correlation, own, share, len(both))


def _spread(count: int, most: int) -> list[int]:
    """So many places, evenly over all."""
    return [number * count // min(count, most) for number in range(min(count, most))]


def _cosines(queries: EmbedTexts, documents: EmbedTexts, texts: Sequence[str], asked: Sequence[int]) -> Floats:
    vectors: dict[int, Vectors] = {}
    for batch in batches_by_length(dict(enumerate(texts)), BATCH):
        vectors.update(zip(batch, documents([texts[number] for number in batch]), strict=True))
    questions = [queries([texts[place][:QUERY_CHARACTERS]])[0] for place in asked]
    return (np.stack(questions) @ np.stack([vectors[number] for number in range(len(texts))]).T).astype(np.float64)


def _scores(predict: Predict, pairs: list[Pair]) -> Floats:
    found: dict[int, float] = {}
    for batch in batches_by_length({number: text for number, (_, text) in enumerate(pairs)}, CHUNK):
        found.update(zip(batch, predict([pairs[number] for number in batch]), strict=True))
    return np.array([found[number] for number in range(len(pairs))])


def _same_best(one: Floats, other: Floats) -> float | None:
    """The share of the best by `other` that are so by `one` too; None where more than half of all are as good as its best."""
    are_best = one >= np.sort(one)[-EMBEDDER_TOP:][0]
    return None if np.mean(are_best) > 0.5 else float(np.mean(are_best[np.argsort(-other, kind="stable")[:EMBEDDER_TOP]]))


def _same_order(one: Floats, other: Floats) -> float | None:
    """The share of the pairs that `one` tells apart which `other` puts in the same order; None where those are too few."""
    places, against = np.triu_indices(len(one), 1)
    gaps = one[places] - one[against]
    apart = np.abs(gaps) > SAME_SCORE
    return None if apart.sum() < FEWEST_PAIRS else float(np.mean(((other[places] - other[against]) * gaps > 0)[apart]))


def _spearman(one: Floats, other: Floats) -> float:
    ranks = [np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(np.float64) for scores in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if len(one) > 1 else 1.0
