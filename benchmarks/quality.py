"""How well recall finds what was asked for, on sets of memories and questions, and what each part of the pipeline brings.

    python -m benchmarks.quality --set corpus [--set DIR …] [--ablate dates neighbours …] [--add guesses questions] [--out results.jsonl]
    python -m benchmarks.quality --set DIR --embedder DIR [--reranker DIR] --languages en --ablate dense words
    python -m benchmarks.quality --set DIR --embedder DIR --reranker DIR --cascade
    python -m benchmarks.quality --set corpus --mode graph
    python -m benchmarks.quality --compare before.jsonl after.jsonl

`corpus` and `everyday` are the repository's own sets. Any other is a directory with a corpus.jsonl and a queries.jsonl: see benchmarks/sets.py.
Without a model everything is found by its words. Every figure is one JSON line, every question another.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.asking import Answer, asking
from benchmarks.report import Report, ablated, compared, machine, summary
from benchmarks.rules import ROWS, RULES
from benchmarks.sets import QUESTIONS, RetrievalSet, loaded


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed pipeline: settings by their dotted keys, arguments of recall, fields that are not stored.

    With `guesses`, only questions with a guessed answer are asked. With `hurry`, the server reranks as under load. `rules_out`: what it searches without.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    without: frozenset[str] = QUESTIONS
    guesses: bool = False
    hurry: str | None = None
    rules_out: tuple[str, ...] = ()


# What each name takes away. Variants that store the same thing share one data directory.
ABLATIONS: Mapping[str, Variant] = {
    **{name: Variant(rules_out=(name,)) for name in (*ROWS, *RULES)},
    "graph": Variant(settings={"fusion.graph_weight": 0.0, "fusion.graph_weight_dense": 0.0}),
    "dense": Variant(arguments={"mode": "keyword"}),
    "words": Variant(settings={"fusion.dense_weight": 1.0}),
    "reranker": Variant(settings={"reranker_model": None}),
    "neighbours": Variant(without=QUESTIONS | {"session_id"}),
    "speakers": Variant(without=QUESTIONS | {"source"}),
    "assistants": Variant(settings={"fusion.assistant_weight": 1.0}),
}
# What is left of reranking when there is less and less time, with five memories on a page.
CASCADE: Mapping[str, Variant] = {
    "five, reranked from 15": Variant(arguments={"top_k": 5}),
    "five, those five reranked": Variant(arguments={"top_k": 5}, hurry="shortened"),
    "five, their beginnings reranked": Variant(arguments={"top_k": 5}, hurry="cut"),
    "five, not reranked": Variant(arguments={"top_k": 5}, settings={"reranker_model": None}),
}
ADDITIONS: Mapping[str, Variant] = {"guesses": Variant(guesses=True), "questions": Variant(without=frozenset())}


def measured(retrieval_set: RetrievalSet, arguments: argparse.Namespace, report: Report) -> None:
    """Queries a set once as configured and once for each ablation and addition."""
    questions = [question for question in retrieval_set.questions if arguments.half in ("both", question.half)]
    variants = {
        "full": Variant(),
        **{f"without {name}": ABLATIONS[name] for name in (ABLATIONS if "all" in arguments.ablate else arguments.ablate)},
        **{f"with {name}": ADDITIONS[name] for name in arguments.add},
        **(CASCADE if arguments.cascade else {}),
    }
    full: list[Answer] = []
    for without in dict.fromkeys(variant.without for variant in variants.values()):
        with asking(retrieval_set, without) as runner:
            for name, variant in variants.items():
                if variant.without == without:
                    settings = _settings(arguments, variant)
                    asked = [question for question in questions if question.guess or not variant.guesses]
                    mode = {"mode": arguments.mode} if arguments.mode else {}
                    wanted = {**mode, **variant.arguments}
                    answers = runner.answers(
                        settings, wanted, asked, guesses=variant.guesses, hurry=variant.hurry, rules_out=variant.rules_out
                    )
                    report.add(summary(retrieval_set.name, name, answers))
                    full = full or answers
                    if len(answers) == len(full):
                        report.add([ablated(retrieval_set.name, name, full, answers)])
                    _check_not_degraded(answers, variant)


def _settings(arguments: argparse.Namespace, variant: Variant) -> dict[str, Any]:
    languages = arguments.languages
    tree: dict[str, Any] = {
        "embeddings_model": arguments.embedder,
        "reranker_model": arguments.reranker,
        "rerank_deadline_ms": 0,
        **({"embeddings_languages": languages, "reranker_languages": languages} if languages else {}),
    }
    for key, value in {**dict(arguments.setting), **variant.settings}.items():
        *groups, name = key.split(".")
        group_values = tree
        for group in groups:
            group_values = group_values.setdefault(group, {})
        group_values[name] = value
    return tree


def _check_not_degraded(answers: Iterable[Answer], variant: Variant) -> None:
    """Ends the run if answers were degraded, except for the lack of a model that is turned off or does not know the language."""
    expected = {"rerank_shortened", "rerank_cut"} if variant.hurry else set()
    reasons = {reason for answer in answers for reason in answer.degraded if not reason.endswith(("_language", "_off"))}
    degraded = sorted(reasons - expected)
    if degraded:
        raise SystemExit(f"answers were degraded: {', '.join(degraded)}")


def _setting(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("write it as key=value, such as fusion.date_boost=0.4")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", dest="sets", metavar="corpus|everyday|DIR", help="may be given several times")
    parser.add_argument("--mode", help="of recall, for every variant that does not change it: graph, keyword, semantic")
    parser.add_argument("--half", choices=("both", "development", "held-out"), default="both", help="of the questions of an own set")
    parser.add_argument("--embedder", metavar="DIR", help="a directory, or multilingual-e5-small")
    parser.add_argument("--reranker", metavar="DIR")
    parser.add_argument("--languages", nargs="+", help="what the models know (ja, en), if they don't say")
    parser.add_argument(
        "--ablate", nargs="+", choices=("all", *ABLATIONS), default=(), help="ask again without this part; all: without each"
    )
    parser.add_argument("--add", nargs="+", choices=tuple(ADDITIONS), default=(), help="ask again with what a client may tell")
    parser.add_argument("--cascade", action="store_true", help="ask again for five, with less and less time to rerank; wants --reranker")
    parser.add_argument(
        "--setting", action="append", type=_setting, default=[], metavar="KEY=VALUE", help="in config.json, for every variant"
    )
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="two results, by a paired bootstrap")
    parser.add_argument("--variants", nargs=2, metavar=("BEFORE", "AFTER"), help="with --compare: which variant of each file")
    parser.add_argument("--resamples", type=int, default=10_000)
    arguments = parser.parse_args()
    if bool(arguments.compare) == bool(arguments.sets):
        parser.error("give --set or --compare")
    if arguments.cascade and not arguments.reranker:
        parser.error("--cascade wants --reranker")
    return arguments


def _main() -> None:
    arguments = _arguments()
    report = Report(arguments.out)
    if arguments.compare:
        before, after = arguments.compare
        report.add(compared(before, after, arguments.variants, arguments.resamples))
        return
    report.add([machine("quality", sets=[Path(name).name for name in arguments.sets], settings=dict(arguments.setting))])
    for name in arguments.sets:
        measured(loaded(name), arguments, report)


if __name__ == "__main__":
    _main()
