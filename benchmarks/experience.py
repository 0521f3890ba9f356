"""How many corrections a task needs: without memory, with `recall`, and with `advise`. No model judges: a scripted agent does what it is told.

    python -m benchmarks.experience [--half test] [--embedder multilingual-e5-small] [--out results.jsonl]

benchmarks/experience_development.tsv and experience_test.tsv have a task a line, in Japanese or English, with steps and a pitfall that nobody could guess:
language, task, two other ways to say it, strategy, steps, sign, what to do instead. experience_spoken_*.tsv have further ones, asked for as people speak, in
other vocabulary, and (`xx`) in the other language. Limits are chosen on the development halves, and the others are only asked. Each
task is reported as it went: of every third first steps that failed, then the right ones twice, and the pitfall. Then it comes again in other words,
among 300 other memories.

The agent follows the first steps that it is given, and heeds every pitfall. A correction is each step that it leaves out or should not do, a wrong
strategy, and a pitfall that it meets. Advice is wrong if it is given where the task's own experiences are taken away. What both calls cost is compared
in pairs, each text new to the caches: median and 95th percentile.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.report import Line, Report, machine
from benchmarks.texts import sentence
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.features.experience import reports
from memory_mcp.features.experience.advice import advice
from memory_mcp.features.experience.matches import Matches, matches
from memory_mcp.index import sync
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store.experience_text import Experience, read
from memory_mcp.store.vectors.index_cache import IndexCache

NOW = datetime(2026, 11, 23, 3, tzinfo=UTC)
OTHERS = 300
# How often each text is asked where costs are compared.
ROUNDS = 4
HALVES = ("development", "test", "spoken_development", "spoken_test")
NAIVE = {
    "ja": ("いつもの手順で進める", "最後に確認する"),
    "en": ("Do it the usual way", "Check at the end"),
    "xx": ("いつもの手順で進める", "Check at the end"),
}


@dataclass(frozen=True, slots=True)
class Task:
    """A task, the other ways to say it, and what is right for it."""

    language: str
    right: Experience
    asked: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the agent does."""

    steps: tuple[str, ...] = ()
    strategy: str = ""
    heeded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Bench:
    """A persona with the experiences of one half of the tasks in one language."""

    persona: Persona
    tasks: Sequence[Task]
    keys: dict[str, set[str]]
    settings: Settings
    models: Models
    indexes: IndexCache

    def matches(self, text: str) -> Matches:
        """What `advise` compares."""
        return matches(self.persona, text, models=self.models, settings=self.settings, indexes=self.indexes)

    def advised(self, text: str) -> Plan:
        """What an agent does that asks for advice."""
        found = advice(self.matches(text).all, settings=self.settings, now=NOW, limit=3)
        best: dict[str, Any] = dict(found.to_try[0]) if found.to_try else {}
        heeded = frozenset(str(entry["instead"]) for entry in found.beware if "instead" in entry)
        return Plan(tuple(best.get("steps", ())), str(best.get("strategy", "")), heeded)

    def recalled(self, text: str) -> Plan:
        """What an agent does that searches, with the same budget."""
        asked = question(settings=self.settings, now=NOW, query=text, top_k=5, max_tokens=600)
        hits = recall(self.persona, asked, models=self.models, settings=self.settings, now=NOW, indexes=self.indexes).hits
        known = [read(hit.text) for hit in hits if hit.memory.kind == "experience"]
        way = next((one for one in known if one.steps and not one.is_pitfall), Experience(""))
        return Plan(way.steps, way.strategy, frozenset(one.instead for one in known if one.instead))


def tasks(half: str) -> list[Task]:
    """The tasks of one half."""
    text = Path(__file__).with_name(f"experience_{half}.tsv").read_text(encoding="utf-8")
    return [
        Task(
            language,
            Experience(
                task,
                strategy=strategy,
                steps=tuple(step.strip() for step in steps.replace("｜", "|").split("|")),
                sign=sign,
                instead=instead,
            ),
            (first, second),
        )
        for language, task, first, second, strategy, steps, sign, instead in (line.split("\t") for line in text.splitlines())
    ]


def corrections(plan: Plan, right: Experience) -> int:
    """How often somebody must step in."""
    missing, needless = set(right.steps) - set(plan.steps), set(plan.steps) - set(right.steps)
    wrong_strategy = right.strategy == "parallel" and plan.strategy != "parallel"
    return len(missing) + len(needless) + wrong_strategy + bool(right.instead and right.instead not in plan.heeded)


def learn(bench: Bench) -> None:
    """Report every task as it went."""
    for number, task in enumerate(bench.tasks):
        right = task.right
        way = Experience(right.task, strategy=right.strategy, steps=right.steps)
        told = [(Experience(right.task, steps=NAIVE[task.language]), "failed")] if number % 3 == 0 else []
        told += [(way, "worked"), (way, "worked")]
        told += [(Experience(right.task, sign=right.sign, instead=right.instead), "failed")] if right.instead else []
        for said, outcome in told:
            done = reports.report(
                bench.persona,
                reports.Report(said, outcome),  # type: ignore[arg-type]
                bench.matches(right.task).all,
                "",
                now=NOW,
                zone=bench.settings.zone,
                privacy=bench.settings.privacy,
            )
            bench.keys.setdefault(right.task, set()).update(done.counted)
    for number in range(OTHERS):
        told_by = draft(sentence(number), now=NOW, zone=bench.settings.zone)
        remember(bench.persona, told_by, now=NOW, zone=bench.settings.zone, privacy=bench.settings.privacy)
    if embedder := bench.models.embedder:
        sync.prepare(bench.persona, embedder, [embedder.generation])
        while sync.apply_queue(bench.persona, embedder, bench.indexes, zone=bench.settings.zone).waiting:
            pass


def lines_of(bench: Bench, language: str, half: str) -> Iterator[Line]:
    """The figures of one language."""
    heading = {"half": half, "language": language, "encoder": bench.settings.embeddings_model or "words"}
    asked = [(task, text) for task in bench.tasks for text in task.asked]
    ways: dict[str, Callable[[str], Plan]] = {"none": lambda _: Plan(), "recall": bench.recalled, "advise": bench.advised}
    for way, plan in ways.items():
        total = sum(corrections(plan(text), task.right) for task, text in asked)
        yield {"what": "corrections", **heading, "memory": way, "n": len(asked), "per_task": round(total / len(asked), 3)}
    found = [(bench.keys[task.right.task], bench.matches(text).sure) for task, text in asked]
    first = [bool(near) and near[0].memory.key in own for own, near in found]
    wrong = [any(match.memory.key not in own for match in near) for own, near in found]
    yield {"what": "matched", **heading, "n": len(asked), "right_first": _share(first), "wrong_advice_with_own_removed": _share(wrong)}
    tokens = [
        estimate_tokens(str(entry))
        for _, text in asked
        for entry in [advice(bench.matches(text).all, settings=bench.settings, now=NOW, limit=3)]
    ]
    yield {"what": "tokens", **heading, "median": statistics.median(tokens), "most": max(tokens)}


def costs_of(bench: Bench, language: str, half: str) -> Iterator[Line]:
    """What a call of each kind costs, alternating, each with a text that is new to it: the CPU time, and the time that passes on a quiet machine."""
    pairs: list[dict[str, tuple[float, float]]] = []
    for number, text in enumerate(text for _ in range(ROUNDS) for task in bench.tasks for text in task.asked):
        ways: list[tuple[str, Callable[[str], Plan]]] = [("advise", bench.advised), ("recall", bench.recalled)]
        pairs.append({name: _cost(way, f"{text} ({number} {name})") for name, way in (ways if number % 2 else ways[::-1])})
    heading = {"half": half, "language": language, "encoder": bench.settings.embeddings_model or "words", "n": len(pairs)}
    for kind, what in enumerate(("cpu_ms", "passed_ms")):
        took = {name: sorted(pair[name][kind] for pair in pairs) for name in ("advise", "recall")}
        yield {
            "what": what,
            **heading,
            **{name: round(statistics.median(times) * 1000, 2) for name, times in took.items()},
            **{f"{name}_p95": round(times[int(len(times) * 0.95)] * 1000, 2) for name, times in took.items()},
            "median_ratio": round(statistics.median(pair["advise"][kind] / pair["recall"][kind] for pair in pairs), 3),
        }


def _cost(way: Callable[[str], Plan], text: str) -> tuple[float, float]:
    begun = time.process_time(), time.perf_counter()
    way(text)
    return time.process_time() - begun[0], time.perf_counter() - begun[1]


def _share(of: Sequence[bool]) -> float:
    return round(sum(of) / len(of), 3)


@contextmanager
def models_of(settings: Settings) -> Iterator[Models]:
    """The embedder of these settings alone, in this process."""
    pool = ModelPool()
    try:
        embedder = load_embedder(settings, pool, Caches()) if settings.embeddings_model else None
        state = ModelState("loaded" if embedder else "off", settings.embeddings_model)
        yield Models(embedder, None, state, ModelState("off"))
    finally:
        pool.close()


def main() -> None:
    """Prints a JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="test")
    parser.add_argument("--embedder", metavar="NAME", help="by words alone without one")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    arguments = parser.parse_args()
    settings = Settings(embeddings_model=arguments.embedder, reranker_model=None)
    out = Report(arguments.out)
    out.add([machine("experience")])
    with tempfile.TemporaryDirectory() as directory, models_of(settings) as models:
        personas = Personas(Path(directory, "memory"))
        for language in dict.fromkeys(task.language for task in tasks(arguments.half)):
            chosen = [task for task in tasks(arguments.half) if task.language == language]
            with personas.writing(language) as persona:
                bench = Bench(persona, chosen, {}, settings, models, IndexCache())
                learn(bench)
                out.add([*lines_of(bench, language, arguments.half), *costs_of(bench, language, arguments.half)])
        personas.close()


if __name__ == "__main__":
    main()
