"""What `confidence` of an answer is worth, in one process, and the weights and limits of memory_mcp/search/confidence.py.

    python -m benchmarks.confidence [--set everyday --set corpus --set DIR …] [--embedder multilingual-e5-small] [--few 12] [--fit] [--out results.jsonl]

Besides those of a set, the questions of benchmarks/unanswered.tsv are asked: set, store, question. `--few`: each store is divided into stores of so many
memories, and asked what these answer. `figures` has, for each kind of question (`answered`; `near`: nobody answered it, but much like it was said;
`unanswered`), the share of each confidence; of the answers called sure, the share that shows a needed memory among five. `curve`: the same for tenths
of all answers, from the least to the most confident. `--fit` fits weights and limits to these questions, and prints them with the figures that they
have on the half that they were not fitted to, for each half in turn.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experience import models_of
from benchmarks.report import Line, Report, machine
from benchmarks.sets import QUESTIONS, Asked, RetrievalSet, loaded
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models, Vectors
from memory_mcp.index import sync
from memory_mcp.personas.registry import Personas
from memory_mcp.search import confidence, pipeline
from memory_mcp.search.confidence import Evidence, Fitted
from memory_mcp.search.question import question
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ImportOptions, import_lines

KINDS = ("answered", "near", "unanswered")
WORDS = ("nothing like it", "maybe", "sure")
# The largest share of answered questions that may be called like nothing, of unanswered ones that may be called sure, and the least share of right answers
# among the sure, with a margin to what is wanted: 0.03, 0.05, 0.9.
MOST_SILENCED, MOST_SURE, LEAST_RIGHT = 0.025, 0.04, 0.92
_RIDGE = 0.01


@dataclass(frozen=True, slots=True)
class Told:
    """A question, what its answer was called, and why; `is_right`: a needed memory is among the hits. None: without any evidence."""

    asked: Asked
    kind: str
    called: str | None
    evidence: Evidence | None
    is_right: bool


def asked_of(retrieval_set: RetrievalSet) -> list[Asked]:
    """The questions of a set, and those that nobody answered."""
    listed = Path(__file__).with_name("unanswered.tsv").read_text(encoding="utf-8").splitlines()
    now = {asked.store: asked.now for asked in retrieval_set.questions}
    unanswered = [
        Asked(f"unanswered-{number}", store, query, (), "unanswered", now[store], half=("development", "held-out")[number % 2])
        for number, (name, store, query) in enumerate(line.split("\t") for line in listed)
        if name == retrieval_set.name
    ]
    return [*retrieval_set.questions, *unanswered]


def in_parts(retrieval_set: RetrievalSet, questions: Sequence[Asked], few: int) -> tuple[RetrievalSet, list[Asked]]:
    """The set in stores of `few` memories, with the questions that one of these answers; others are asked of one after another."""
    memories, asked = {}, []
    for store, rows in retrieval_set.memories.items():
        parts = {f"{store}-{start}": rows[start : start + few] for start in range(0, len(rows) - few + 1, few)}
        memories.update(parts)
        of_store = [each for each in questions if each.store == store]
        asked += [
            replace(each, store=name)
            for name, part in parts.items()
            for each in of_store
            if each.relevant and {row["key"] for row in part} >= set(each.relevant)
        ]
        names = list(parts)
        asked += [
            replace(each, store=names[number % len(names)]) for number, each in enumerate(each for each in of_store if not each.relevant)
        ]
    return replace(retrieval_set, memories=memories), asked


def told(retrieval_set: RetrievalSet, questions: Sequence[Asked], models: Models, settings: Settings) -> Iterator[Told]:
    """What the answers to these questions are called."""
    seen: list[Evidence] = []
    known: Callable[..., Evidence] = confidence.evidence

    def noted(*arguments: Any) -> Evidence:
        seen.append(known(*arguments))
        return seen[-1]

    now, indexes = max((each.now for each in questions if each.now), default="2026-11-28T00:00:00+00:00"), IndexCache()
    confidence.evidence = noted  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        stack.callback(setattr, confidence, "evidence", known)
        personas = Personas(Path(directory))
        stack.callback(personas.close)
        for store, rows in retrieval_set.memories.items():
            _fill(personas, store, rows, datetime.fromisoformat(now), models, settings, indexes)
            same = retrieval_set.same_text(store)
            for asked in (each for each in questions if each.store == store):
                at = datetime.fromisoformat(asked.now or now).astimezone(UTC)
                seen.clear()
                with personas.reading(store) as persona:
                    query = question(settings=settings, now=at, query=asked.query, top_k=5)
                    answer = pipeline.recall(persona, query, models=models, settings=settings, now=at, indexes=indexes)
                is_right = any(set(asked.relevant) & same.get(hit.memory.key, frozenset()) for hit in answer.hits)
                kind = "answered" if asked.relevant else "unanswered" if asked.category == "unanswered" else "near"
                yield Told(asked, kind, answer.confidence, seen[-1] if seen else None, is_right)


def _fill(
    personas: Personas,
    store: str,
    rows: Sequence[Mapping[str, Any]],
    now: datetime,
    models: Models,
    settings: Settings,
    indexes: IndexCache,
) -> None:
    lines = [json.dumps({name: value for name, value in row.items() if name not in QUESTIONS}, ensure_ascii=False) for row in rows]
    options = ImportOptions(now=now, zone=settings.zone, privacy=settings.privacy)
    import_lines(lambda: personas.writing(store), [(number, line.encode()) for number, line in enumerate(lines, 1)], options)
    if models.embedder:
        with personas.writing(store) as persona:
            sync.prepare(persona, models.embedder, [models.embedder.generation])
            while sync.apply_queue(persona, models.embedder, indexes, zone=settings.zone).waiting:
                pass


def figures(answers: Sequence[Told], called: Sequence[str | None]) -> Line:
    """The shares of what answers were called, by kind, and how many of the sure ones are right."""
    shares = {
        kind: {word: _share([said == word for each, said in zip(answers, called, strict=True) if each.kind == kind]) for word in WORDS}
        for kind in KINDS
        if any(each.kind == kind for each in answers)
    }
    sure = [each.is_right for each, said in zip(answers, called, strict=True) if said == "sure"]
    counted = {kind: sum(each.kind == kind for each in answers) for kind in KINDS}
    return {"what": "figures", "n": counted, **shares, "sure_and_right": _share(sure)}


def curve(answers: Sequence[Told], fitted: Fitted) -> Iterator[Line]:
    """For tenths of the answers, from the least to the most confident, the log-odds and the share that is right."""
    known = sorted((fitted.odds(each.evidence), each.is_right) for each in answers if each.evidence)
    for tenth, part in enumerate(np.array_split(np.array(known), 10), 1):
        yield {"what": "curve", "tenth": tenth, "from": round(float(part[0, 0]), 2), "right": round(float(part[:, 1].mean()), 3)}


def fit(answers: Sequence[Told], which: Sequence[int]) -> Fitted:
    """A logistic regression of which answers are right, the right and the others with equal weight, and the limits that keep the wanted shares. `which`:
    the evidence that there is."""
    known = [each for each in answers if each.evidence]
    rows = np.array([each.evidence for each in known])[:, which]
    right = np.array([each.is_right for each in known])
    weights = np.zeros(len(Evidence._fields))
    bias, weights[list(which)] = logistic(rows, right, np.where(right, 0.5 / right.sum(), 0.5 / (~right).sum()))
    fitted = Fitted(bias, Evidence(*map(float, weights)), 0.0, 0.0)
    return _with_limits(fitted, known)


def logistic(rows: Vectors, right: Vectors, weight: Vectors) -> tuple[float, Vectors]:
    """The bias and the weights of a logistic regression. `rows`: of shape (cases, values); `right` and `weight`: of shape (cases,), the weights add up to 1."""
    mean, spread = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    design = np.c_[(rows - mean) / spread, np.ones(len(rows))]
    ridge = _RIDGE * np.diag([*[1.0] * rows.shape[1], 0.0])
    solved = np.zeros(design.shape[1])
    for _ in range(20):  # Newton's method
        chance = 1 / (1 + np.exp(-design @ solved))
        slope = design.T @ (weight * (chance - right)) + ridge @ solved
        solved -= np.linalg.solve((design.T * (weight * chance * (1 - chance))) @ design + ridge, slope)
    return float(solved[-1] - (solved[:-1] * mean / spread).sum()), solved[:-1] / spread


def _with_limits(fitted: Fitted, known: Sequence[Told]) -> Fitted:
    odds = np.array([fitted.odds(each.evidence) for each in known])  # type: ignore[arg-type]
    answered = np.array([each.kind == "answered" for each in known])
    right = np.array([each.is_right for each in known])
    sure = next(
        limit for limit in np.sort(odds) if (odds[~answered] >= limit).mean() <= MOST_SURE and right[odds >= limit].mean() >= LEAST_RIGHT
    )
    return replace(fitted, nothing=round(float(np.quantile(odds[answered], MOST_SILENCED)), 2), sure=round(float(sure), 2))


def called_by(fitted: Fitted, answers: Sequence[Told]) -> list[str | None]:
    """What these weights call the answers."""
    return [fitted.called(each.evidence) if each.evidence else each.called for each in answers]


def _share(of: Sequence[bool]) -> float:
    return round(sum(of) / len(of), 3) if of else 0.0


def main() -> None:
    """Prints a JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", dest="sets", metavar="everyday|corpus|DIR")
    parser.add_argument("--embedder", metavar="NAME", help="by words alone without one")
    parser.add_argument("--few", type=int, metavar="N", help="in stores of so many memories")
    parser.add_argument("--fit", action="store_true", help="fit weights and limits to these questions")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    arguments = parser.parse_args()
    settings, report = Settings(embeddings_model=arguments.embedder, reranker_model=None), Report(arguments.out)
    report.add([machine("confidence", embedder=arguments.embedder)])
    every: list[Told] = []
    with models_of(settings) as models:
        for name in arguments.sets or ("everyday", "corpus"):
            retrieval_set = loaded(name)
            questions = asked_of(retrieval_set)
            if arguments.few:
                retrieval_set, questions = in_parts(retrieval_set, questions, arguments.few)
            answers = list(told(retrieval_set, questions, models, settings))
            report.add([{**figures(answers, [each.called for each in answers]), "set": retrieval_set.name}])
            every += answers
    report.add([{**figures(every, [each.called for each in every]), "set": "all"}])
    report.add(curve(every, confidence.WITH_VECTORS if models.embedder else confidence.BY_WORDS))
    if arguments.fit:
        which = range(6) if models.embedder else range(4)
        report.add([{"what": "fitted", "values": str(fit(every, which))}])
        halves = [[each for each in every if each.asked.half == half] for half in ("development", "held-out")]
        for fitted_to, half in (halves, halves[::-1]):
            report.add([{**figures(half, called_by(fit(fitted_to, which), half)), "set": "the half that had no say"}])


if __name__ == "__main__":
    main()
