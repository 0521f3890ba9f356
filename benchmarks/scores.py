"""Metrics of ranked answers: recall, MRR and nDCG of one question, and how well a score separates answerable questions from others."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

METRICS = ("R@1", "R@5", "R@10", "MRR", "nDCG@10")
DEPTH = 10


def of_question(relevant: Collection[str], ranked: Sequence[Collection[str]]) -> dict[str, float]:
    """The metrics of one question. Each rank of `ranked` holds the ids of its memory; each id counts once.

    R@k is the share of the relevant ids in the first k ranks, MRR the reciprocal rank of the first relevant one within 10, and
    nDCG@10 has gains of 0 and 1 (Järvelin and Kekäläinen 2002).
    """
    left, gains = set(relevant), []
    for ids in ranked[:DEPTH]:
        matched = left & set(ids)
        gains.append(len(matched))
        left -= matched
    recalls = {f"R@{k}": sum(gains[:k]) / len(relevant) for k in (1, 5, DEPTH)}
    first = next((1 / rank for rank, gain in enumerate(gains, start=1) if gain), 0.0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), DEPTH) + 1))
    gained = sum((gain > 0) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
    return {**recalls, "MRR": first, "nDCG@10": gained / ideal}


def rank_of(wanted: Collection[str], ranked: Sequence[Collection[str]]) -> int | None:
    """The rank, from 1, of the first memory with one of these ids."""
    return next((rank for rank, ids in enumerate(ranked, start=1) if set(ids) & set(wanted)), None)


def means(questions: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric."""
    return {metric: round(float(np.mean([question[metric] for question in questions])), 4) for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Separation:
    """How well a score separates two kinds of questions.

    `auroc`: the probability that an answerable question scores higher than an unanswerable one, ties half (0.5: no separation).
    `accuracy`: the best balanced accuracy of one `threshold`; chosen on the same questions, so it is optimistic.
    """

    auroc: float
    accuracy: float
    threshold: float


def separation(answerable: Sequence[float], unanswerable: Sequence[float]) -> Separation:
    """The separation of the best scores of answerable questions from those of unanswerable ones."""
    have, lack = np.asarray(answerable, dtype=float), np.asarray(unanswerable, dtype=float)
    above = (have[:, None] > lack[None, :]).mean() + (have[:, None] == lack[None, :]).mean() / 2
    best = max(
        (
            (((have >= threshold).mean() + (lack < threshold).mean()) / 2, threshold)
            for threshold in np.unique(np.concatenate([have, lack]))
        ),
        key=lambda accuracy_and_threshold: accuracy_and_threshold[0],
    )
    return Separation(round(float(above), 4), round(float(best[0]), 4), round(float(best[1]), 4))


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of B − A over pairs, with a 95 % interval and the two-sided probability of such a difference by chance."""

    mean: float
    low: float
    high: float
    p: float


def paired_bootstrap(before: Sequence[float], after: Sequence[float], resamples: int = 10_000, seed: int = 0) -> Difference:
    """Resamples the questions with replacement (Efron and Tibshirani 1993; percentile interval)."""
    differences = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    chosen = np.random.default_rng(seed).integers(0, len(differences), size=(resamples, len(differences)))
    drawn = differences[chosen].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    beyond = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(1.0, 2 * (int(beyond) + 1) / (resamples + 1))
    return Difference(round(float(differences.mean()), 4), round(float(low), 4), round(float(high), 4), round(p, 4))
