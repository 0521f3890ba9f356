"""Fits the weights of memory_mcp/features/experience/likeness.py, and says what they are worth at another model.

    python -m benchmarks.likeness --embedder multilingual-e5-small [--fit] [--half spoken_test]

The tasks of each half of benchmarks/experience_*.tsv in one language are divided into stores of all, of 5 and of 1. Each store is asked for its own tasks in
other words, for these with the right one taken away, and for the tasks of the other stores. Fitted is a logistic regression of whether the nearest
experience is the right one, in which each of these kinds of each kind of store has the same weight; the bias makes 0.5 the limit that lets `FOREIGN` of the
tasks pass that no experience is about.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.confidence import logistic
from benchmarks.experience import HALVES, Task, models_of, tasks
from benchmarks.report import Line, Report, machine
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Embedder, Vectors
from memory_mcp.features.experience import likeness
from memory_mcp.features.experience.likeness import Evidence

FITTED_TO = ("development", "spoken_development")
FOREIGN = 0.025
# Of all, so many, and one.
SIZES = (10_000, 5, 1)
NEAR = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """The evidence of the experience that is most like a task, in a store of this kind, its chance, and whether it is the right one; None: no experience is.
    `place`: that of the right one."""

    kind: str
    evidence: Evidence
    chance: float
    is_right: bool | None
    place: int


def judged(half: str, embedder: Embedder) -> Iterator[Judged]:
    """All that is asked of the stores of a half."""
    known = likeness.ordinary(embedder)
    for language in dict.fromkeys(task.language for task in tasks(half)):
        of_language = [task for task in tasks(half) if task.language == language]
        for size in SIZES:
            for start in range(0, len(of_language), size):
                store = of_language[start : start + size]
                others = [task for task in of_language if task not in store]
                for task, is_own in [*((task, True) for task in store), *((task, False) for task in others)]:
                    for text in task.asked:
                        asked = known.apart(embedder.embed_query(text)[None], are_asked=True)[0]
                        kind = f"{half} {language} {size}"
                        if is_own:
                            yield _first(kind, known, embedder, asked, store, task)
                        if rest := [each for each in store if each is not task]:
                            yield _first(kind, known, embedder, asked, rest, None)


def _first(kind: str, known: likeness.Ordinary, embedder: Embedder, asked: Vectors, store: Sequence[Task], right: Task | None) -> Judged:
    texts = [text for task in store for text in (task.right.task, task.right.text())]
    owners = [(number // 2, number % 2 == 0) for number in range(len(texts))]
    found = likeness.evidence(known, asked, embedder.embed_documents(texts), owners, len(store))
    ranked = sorted(found, key=lambda number: likeness.likeness(found[number]), reverse=True)
    place = next((place for place, number in enumerate(ranked) if store[number] is right), -1)
    return Judged(kind, found[ranked[0]], known.chance(found[ranked[0]]), None if right is None else place == 0, place)


def fit(answers: Sequence[Judged]) -> tuple[float, Evidence]:
    """The bias and the weights."""
    groups = [(each.kind, each.is_right is None) for each in answers]
    weights = np.array([(1 if group[1] else 0.5) / groups.count(group) for group in groups])
    rows = np.array([each.evidence for each in answers])
    bias, solved = logistic(rows, np.array([bool(each.is_right) for each in answers]), weights / weights.sum())
    odds = bias + rows @ solved
    foreign = np.array([group[1] for group in groups])
    order = np.argsort(-odds[foreign])
    passed = np.cumsum(weights[foreign][order]) / weights[foreign].sum()
    limit = odds[foreign][order][np.searchsorted(passed, FOREIGN)]
    return round(float(bias - limit), 2), Evidence(*(round(float(value), 2) for value in solved))


def figures(answers: Sequence[Judged]) -> Iterator[Line]:
    """Of each kind of store the share of tasks that are known, those whose experience is among the first, and those of others that are taken for known."""
    for kind in dict.fromkeys(each.kind for each in answers):
        own = [each for each in answers if each.kind == kind and each.is_right is not None]
        foreign = [each for each in answers if each.kind == kind and each.is_right is None]
        known = sum(bool(each.is_right) and each.chance >= likeness.SURE for each in own)
        passed = sum(each.chance >= likeness.SURE for each in foreign)
        near = sum(each.chance >= likeness.NEAR for each in foreign)
        yield {
            "what": "known",
            "store": kind,
            "n": len(own),
            "known": round(known / len(own), 3),
            "first": round(sum(bool(each.is_right) for each in own) / len(own), 3),
            f"first_{NEAR}_and_near": round(sum(each.place < NEAR and each.chance >= likeness.NEAR for each in own) / len(own), 3),
            "n_of_others": len(foreign),
            "others_taken_for_known": round(passed / len(foreign), 3),
            "others_near": round(near / len(foreign), 3),
        }


def main() -> None:
    """Prints a JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", action="append", dest="halves", choices=HALVES)
    parser.add_argument("--embedder", metavar="NAME", required=True)
    parser.add_argument("--fit", action="store_true", help="fit weights to these tasks, too")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    arguments = parser.parse_args()
    report = Report(arguments.out)
    report.add([machine("likeness", embedder=arguments.embedder)])
    with models_of(Settings(embeddings_model=arguments.embedder, reranker_model=None)) as models:
        if not models.embedder:
            return
        known = likeness.ordinary(models.embedder)
        report.add([{"what": "shipped tasks", "mean": round(known.mean, 2), "spread": round(known.spread, 2)}])
        answers = [each for half in arguments.halves or FITTED_TO for each in judged(half, models.embedder)]
        if arguments.fit:
            bias, weights = fit(answers)
            report.add([{"what": "fitted", "bias": bias, "weights": str(weights)}])
        report.add(figures(answers))


if __name__ == "__main__":
    main()
