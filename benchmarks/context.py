"""How often get_context shows the memory that a question needs, with other layers and other λ, beside recall and the latest alone.

    python -m benchmarks.context --set corpus [--set DIR …] [--embedder DIR --languages en] [--max-tokens 800] [--out results.jsonl]

Every question of a set is sent as the topic of a conversation. Each variant is compared with the first one by a paired bootstrap.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.asking import Asking, asking
from benchmarks.report import Report, machine
from benchmarks.scores import paired_bootstrap
from benchmarks.sets import QUESTIONS, Asked, RetrievalSet, loaded

PLACES = 10
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "5/3/2, λ 0.7": {},
    "λ 0.5": {"mmr_lambda": 0.5},
    "λ 0.9": {"mmr_lambda": 0.9},
    "λ 1": {"mmr_lambda": 1.0},
    "3/5/2": {"recent": 3, "semantic": 5},
    "7/1/2": {"recent": 7, "semantic": 1},
    "5/3/0": {"summaries": 0},
    "0/10/0": {"recent": 0, "semantic": 10, "summaries": 0},
}


def needed(question: Asked, shown: Sequence[Collection[str]]) -> float:
    """The share of what the question needs that is shown."""
    return len(set(question.relevant) & set().union(*shown)) / len(question.relevant)


def measured(told: RetrievalSet, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One line for each variant, then one for recall and one for the latest alone."""
    questions = [question for question in told.questions if question.relevant]
    with asking(told, QUESTIONS) as place:
        first: dict[str, float] = {}
        for name in arguments.variants:
            settings = {**_models(arguments), "context": dict(VARIANTS[name])}
            began = place.contexts(settings, arguments.max_tokens, questions)
            found = {answer.question.id: needed(answer.question, answer.shown) for answer in began}
            first = first or found
            yield {
                **_line(told, name, found, first),
                "items": round(float(np.mean([len(answer.shown) for answer in began])), 1),
                "topical": round(float(np.mean([answer.layers.count("semantic") for answer in began])), 1),
            }
        yield _line(told, f"recall's first {PLACES}", _recalled(place, arguments, {}, questions), first)
        yield _line(told, f"the latest {PLACES}", _recalled(place, arguments, {"query": "", "mode": "recent"}, questions), first)


def _recalled(place: Asking, arguments: argparse.Namespace, fixed: Mapping[str, Any], questions: Sequence[Asked]) -> dict[str, float]:
    answers = place.answers(_models(arguments), {"top_k": PLACES, **fixed}, questions)
    return {answer.question.id: needed(answer.question, answer.ranked) for answer in answers}


def _line(told: RetrievalSet, variant: str, found: Mapping[str, float], first: Mapping[str, float]) -> dict[str, Any]:
    difference = paired_bootstrap(list(first.values()), list(found.values()))
    return {
        "what": "context", "set": told.name, "variant": variant, "n": len(found), "needed": round(float(np.mean(list(found.values()))), 4),
        "difference": difference.mean, "low": difference.low, "high": difference.high, "p": difference.p,
    }  # fmt: skip


def _models(arguments: argparse.Namespace) -> dict[str, Any]:
    languages = {"embeddings_languages": arguments.languages} if arguments.languages else {}
    return {"embeddings_model": arguments.embedder, "reranker_model": None, **languages}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", dest="sets", metavar="corpus|DIR", required=True, help="may be given several times")
    parser.add_argument("--variants", nargs="+", choices=tuple(VARIANTS), default=tuple(VARIANTS), help="the first one is compared with")
    parser.add_argument("--embedder", metavar="DIR")
    parser.add_argument("--languages", nargs="+", help="what the model knows (ja, en), if it doesn't say")
    parser.add_argument("--max-tokens", type=int, help="of each answer; left out: what get_context takes by itself")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("context", sets=[Path(name).name for name in given.sets])])
    for chosen in given.sets:
        report.add(measured(loaded(chosen), given))
