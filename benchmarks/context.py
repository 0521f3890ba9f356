"""How often get_context shows the memory that a question needs, with other layers and other λ, compared with recall and with only the latest.

    python -m benchmarks.context --set corpus [--set DIR …] [--diaries 1500] [--embedder DIR --languages en] [--max-tokens 800] [--out results.jsonl]

Every question of a set is sent as the topic of a conversation. Each variant is compared with the first one by a paired bootstrap.
`needed` is the share of the relevant memories that are shown, at least in part, `readable` the share shown word for word anywhere, and
`answered` the share of questions whose answer is shown, of those whose answer a memory contains word for word. With
`--diaries` each set is also measured with long memories: consecutive ones joined up to so many characters. Summaries are those that
the server makes from sentences of the memories, and exist only in the variants that name them.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.asking import Asking, Began, asking
from benchmarks.diaries import diaries
from benchmarks.report import Report, machine
from benchmarks.scores import paired_bootstrap
from benchmarks.sets import QUESTIONS, Asked, RetrievalSet, loaded

PLACES = 10
LAYERS = ("semantic", "recent", "summary")
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "5/3/1, λ 0.7": {},
    "λ 0.5": {"context": {"mmr_lambda": 0.5}},
    "λ 0.9": {"context": {"mmr_lambda": 0.9}},
    "λ 1": {"context": {"mmr_lambda": 1.0}},
    "3/5/1": {"context": {"recent": 3, "semantic": 5}},
    "7/1/1": {"context": {"recent": 7, "semantic": 1}},
    "5/3/0": {"context": {"summaries": 0}},
    "0/10/0": {"context": {"recent": 0, "semantic": 10, "summaries": 0}},
}
# Once they are made they stay: these come last.
SUMMARISED: Mapping[str, Mapping[str, Any]] = {
    "5/3/1 with summaries": {},
    "3/5/1 with summaries": {"context": {"recent": 3, "semantic": 5}},
    "5/5/0 beside summaries": {"context": {"semantic": 5, "summaries": 0}},
}
NO_SUMMARIES = {"summaries": {"enabled": False}}
# The clock does not advance, so a session must count as ended at once.
EVERY_SUMMARY = {"summaries": {"enabled": True, "quiet_minutes": 0}}


def needed(question: Asked, shown: Sequence[Collection[str]]) -> float:
    """The share of the relevant memories that is shown."""
    return len(set(question.relevant) & set().union(*shown)) / len(question.relevant)


def answered(began: Began) -> bool:
    """Whether the answer of the set is shown word for word."""
    return _plain(began.question.answer) in "\n".join(map(_plain, began.texts))


def readable(passages: Sequence[str], began: Began) -> float:
    """The share of these passages that is shown word for word."""
    shown = [_plain(text) for text in began.texts]
    return sum(any(_plain(passage) in text for text in shown) for passage in passages) / len(passages)


def measured(retrieval_set: RetrievalSet, arguments: argparse.Namespace, pieces: RetrievalSet | None = None) -> Iterator[dict[str, Any]]:
    """One line for each variant, then one for recall and one for only the latest memories. `pieces`: the set that this one was joined from."""
    questions = [question for question in retrieval_set.questions if question.relevant]
    passages = _passages(pieces or retrieval_set)
    # An answer that no memory contains word for word can't be searched for.
    tellable = {
        asked.id for asked in questions if asked.answer and any(_plain(asked.answer) in _plain(text) for text in passages[asked.id])
    }
    with asking(retrieval_set, QUESTIONS) as runner:
        first: dict[str, float] = {}

        def line(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
            began = runner.contexts({**_models(arguments), **settings}, arguments.max_tokens, questions)
            shares = {answer.question.id: needed(answer.question, answer.shown) for answer in began}
            first.update(first or shares)
            return {
                **_line(retrieval_set, name, shares, first),
                "readable": _mean([readable(passages[answer.question.id], answer) for answer in began]),
                "answered": _mean([answered(answer) for answer in began if answer.question.id in tellable]),
                "items": _mean([len(answer.shown) for answer in began]),
                **{layer: _mean([answer.layers.count(layer) for answer in began]) for layer in LAYERS},
            }

        for name in arguments.variants:
            if name in VARIANTS:
                yield line(name, {**VARIANTS[name], **NO_SUMMARIES})
        yield _line(retrieval_set, f"recall's first {PLACES}", _recalled(runner, arguments, {}, questions), first)
        yield _line(retrieval_set, f"the latest {PLACES}", _recalled(runner, arguments, {"query": "", "mode": "recent"}, questions), first)
        for name in arguments.variants:
            if name in SUMMARISED:
                yield line(name, {**SUMMARISED[name], **EVERY_SUMMARY})


def _passages(pieces: RetrievalSet) -> dict[str, list[str]]:
    """The texts of the relevant memories of each question."""
    texts = {(store, row["key"]): row["content"] for store, rows in pieces.memories.items() for row in rows}
    return {question.id: [texts[question.store, key] for key in question.relevant] for question in pieces.questions}


def _plain(text: str) -> str:
    return " ".join(text.split())


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 3) if values else None


def _recalled(runner: Asking, arguments: argparse.Namespace, fixed: Mapping[str, Any], questions: Sequence[Asked]) -> dict[str, float]:
    answers = runner.answers({**_models(arguments), **NO_SUMMARIES}, {"top_k": PLACES, **fixed}, questions)
    return {answer.question.id: needed(answer.question, answer.ranked) for answer in answers}


def _line(retrieval_set: RetrievalSet, variant: str, shares: Mapping[str, float], first: Mapping[str, float]) -> dict[str, Any]:
    difference = paired_bootstrap(list(first.values()), list(shares.values()))
    return {
        "what": "context", "set": retrieval_set.name, "variant": variant, "n": len(shares), "needed": round(float(np.mean(list(shares.values()))), 4),
        "difference": difference.mean, "low": difference.low, "high": difference.high, "p": difference.p,
    }  # fmt: skip


def _models(arguments: argparse.Namespace) -> dict[str, Any]:
    languages = {"embeddings_languages": arguments.languages} if arguments.languages else {}
    return {"embeddings_model": arguments.embedder, "reranker_model": None, **languages}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--set", action="append", dest="sets", metavar="corpus|everyday|DIR", required=True, help="may be given several times"
    )
    parser.add_argument(
        "--variants", nargs="+", choices=(*VARIANTS, *SUMMARISED), default=(*VARIANTS, *SUMMARISED), help="the first one is compared with"
    )
    parser.add_argument("--diaries", type=int, metavar="CHARACTERS", help="each set once more, as memories of so many characters")
    parser.add_argument("--embedder", metavar="DIR")
    parser.add_argument("--languages", nargs="+", help="what the model knows (ja, en), if it doesn't say")
    parser.add_argument("--max-tokens", type=int, help="of each answer; left out: what get_context takes by itself")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("context", sets=[Path(name).name for name in given.sets])])
    for chosen in given.sets:
        retrieval_set = loaded(chosen)
        report.add(measured(retrieval_set, given))
        if given.diaries:
            report.add(measured(diaries(retrieval_set, given.diaries), given, retrieval_set))
