"""Recall and embedding through the server, compared with the bare models doing the same work in a plain loop, in one run.

    python -m benchmarks.floor --embedder DIR --reranker DIR [--memories 10000] [--clients 1 8 50] [--deadline-ms 600]
                               [--equal-clients 8] [--backend auto] [--before torch] [--device cuda]

The floor embeds one query and scores top_k×3 pairs with sentence-transformers in the simplest way: one `encode`, then one `predict`.
A recall does that and everything else. Then it embeds the imported texts with one `encode`, as the
server embeds them: with the prefix, the day and the speaker. The bare models are measured just before and just after each measurement of the
server, which is idle meanwhile: a machine's speed drifts within minutes, and the drift cancels out in such a ratio.

With a deadline and several clients, not all answers are reranked, so every ratio has the share of those that are. `--equal-clients`
clients call a second server without a deadline, over the same memories: there every answer includes all the work of the floor.

`--before` measures another backend first, over the same memories, which get their vectors from it. The last lines say what both reached of the goals.
"""

import argparse
import asyncio
import datetime
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.latency import Bench, benched
from benchmarks.models import BACKENDS, arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import Server, running
from benchmarks.texts import question, sentence
from memory_mcp.encoders.model_families import prefixes_for

POOL = 15
ROUNDS = 20
# What two cores shall reach with int8 (docs/decisions/0039-auto-and-reranking.md): by callers, the figure, and how much of it at most, or at least.
GOALS = ((1, "p50_to_floor", "at most", 0.6), (8, "reranked", "at least", 1.0), (8, "p95_ms", "at most", 350.0))
GOALS += ((50, "p95_ms", "at most", 800.0), (50, "reranked", "at least", 0.6))


@dataclass(frozen=True, slots=True)
class Asked:
    """What so many clients got: the median wait in ms, answers per second, and what ran."""

    backend: str
    clients: int
    deadline_ms: int
    p50_ms: float
    p95_ms: float
    per_second: float
    reranked: float
    whole: float
    bare_seconds: float


class Bare:
    """The two models as anybody would call them."""

    def __init__(self, embedder: str, reranker: str, device: str) -> None:
        from sentence_transformers import CrossEncoder, SentenceTransformer  # noqa: PLC0415  takes seconds

        self._encode, self._score = SentenceTransformer(embedder, device=device), CrossEncoder(reranker, device=device)
        self._prefixes = prefixes_for(embedder, Path(embedder))

    def question_seconds(self, rounds: int = ROUNDS) -> float:
        """The median of what a question and its pairs take."""
        took = []
        for number in range(rounds):
            query = asked(number)
            pairs = [(query, f"user: {sentence(number * POOL + index)}") for index in range(POOL)]
            begun = time.perf_counter()
            self._encode.encode(self._prefixes.query + query, show_progress_bar=False)
            self._score.predict(pairs, show_progress_bar=False)
            took.append(time.perf_counter() - begun)
        return statistics.median(took)

    def memories_per_second(self, memories: int) -> float:
        """One pass over the texts of all memories."""
        day = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
        texts = [f"{self._prefixes.document}[{day}] user: {sentence(number)}" for number in range(memories)]
        begun = time.perf_counter()
        self._encode.encode(texts, show_progress_bar=False)
        return memories / (time.perf_counter() - begun)


def card(device: str) -> str | None:
    """What the driver calls the GPU; None without one."""
    import torch  # noqa: PLC0415  as above

    return torch.cuda.get_device_name() if device == "cuda" else None


def asked(number: int) -> str:
    """A new question, because cached results cost nothing."""
    return f"{question(number)} {number}"


async def stored(bench: Bench, http: httpx2.AsyncClient, arguments: argparse.Namespace) -> float:
    """Imports the memories; how many of them get their vector in a second once the import is over."""
    loaded = await settled(http)
    begun = time.perf_counter()
    await bench.fill(arguments.memories)
    lag = (await http.get("/ready")).json()["index_lag"]
    embedded = await settled(http)
    rate = lag / embedded if lag else arguments.memories / (time.perf_counter() - begun)
    bench.report(
        what="embedding", backend=arguments.backend, memories=arguments.memories, models_loaded_after_s=round(loaded, 1), lag_after_import=lag,
        memories_per_second=round(rate, 1), with_import_per_second=round(arguments.memories / (time.perf_counter() - begun), 1),
    )  # fmt: skip
    await bench.timed("save", bench.save, arguments.saves, 1)
    await settled(http)
    return rate


async def recalled(bench: Bench, bare: Bare, arguments: argparse.Namespace, clients: int, deadline_ms: int) -> Asked:
    """Measures recall with so many clients, and counts the pipelines that ran."""
    answers: list[dict[str, Any]] = []

    async def recall(number: int) -> None:
        answers.append(await bench.tool("recall", {"query": asked(number + 100_000 * clients), "top_k": 5}))

    count = max(arguments.recalls, clients * 4)
    await bench.hang_up()  # the bare models take minutes on a busy machine
    before = bare.question_seconds()
    took = await bench.timed("recall", recall, count, clients, deadline_ms=deadline_ms)
    beside = (before + bare.question_seconds()) / 2
    ran = [", ".join([answer["mode"], *["reranked"] * answer["reranked"], *answer["degraded"]]) for answer in answers]
    bench.report(
        what="answers", backend=arguments.backend, clients=clients, deadline_ms=deadline_ms, counted={how: ran.count(how) for how in sorted(set(ran))}
    )  # fmt: skip
    done = [answer for answer in answers if answer["reranked"]]
    whole = sum(not answer["degraded"] for answer in done)
    return Asked(arguments.backend, clients, deadline_ms, *took, round(len(done) / count, 3), round(whole / count, 3), beside)


async def measure(arguments: argparse.Namespace, report: Report) -> None:
    """Every measurement once: the import, embedding and saving, then by each backend recalls under the deadline and without one, and the ratios."""
    backends = [*([arguments.before] if arguments.before else []), arguments.backend]
    circumstances = {"backend": arguments.backend, "before": arguments.before, "device": arguments.device, "card": card(arguments.device)}
    report.add([machine("floor", **circumstances, memories=arguments.memories)])
    bare = Bare(arguments.embedder, arguments.reranker, arguments.device)
    results: list[Asked] = []
    with tempfile.TemporaryDirectory(prefix="memory-mcp-floor-") as data:
        for number, backend in enumerate(backends):
            arguments.backend = backend
            results += await by_backend(bare, arguments, report, Path(data), is_first=number == 0)
    for backend in backends:
        report.add(_ratios([found for found in results if found.backend == backend]))
    report.add(_goals([found for found in results if found.deadline_ms], backends))


async def by_backend(bare: Bare, arguments: argparse.Namespace, report: Report, data: Path, *, is_first: bool) -> list[Asked]:
    """The recalls of one backend. The first one stores the memories."""
    settings = with_models(arguments)
    with running(settings, data) as server:
        async with benched(server, report) as (bench, http):
            bench.report(what="start", backend=arguments.backend, answers_after_s=round(server.started_in, 2))
            if is_first:
                embedding = await stored(bench, http, arguments)
            report.add([await loaded(server, http, arguments.backend)])
        if is_first:
            alone = bare.memories_per_second(arguments.memories)  # with no connection open, which the server would give up meanwhile
            ratio = {"of": "embedding", "bare_per_second": round(alone, 1), "throughput_to_floor": round(embedding / alone, 2)}
            report.add([{"what": "ratio", "backend": arguments.backend, **ratio}])
        async with benched(server, report) as (bench, _):
            results = [await recalled(bench, bare, arguments, clients, arguments.deadline_ms) for clients in arguments.clients]
            bench.report(what="memory", backend=arguments.backend, resident_mb=round(server.resident_mb(), 1))
    if arguments.equal_clients:
        with running({**settings, "rerank_deadline_ms": 0}, data) as server:
            async with benched(server, report) as (bench, http):
                await settled(http)
                results += [await recalled(bench, bare, arguments, clients, 0) for clients in arguments.equal_clients]
    return results


async def loaded(server: Server, http: httpx2.AsyncClient, backend: str) -> dict[str, Any]:
    """What runs the models once they are there, what the server says of the choice, and whether torch is in its memory."""
    seconds = await settled(http)
    models = (await http.get("/ready")).json()["models"]
    maps = Path(f"/proc/{server.pid}/maps").read_text(encoding="utf-8")  # noqa: ASYNC240  a file of the kernel
    return {
        "what": "models", "backend": backend, "loaded_after_s": round(seconds, 1), **{role: model.get("backend") for role, model in models.items()},
        "resident_mb": round(server.resident_mb(), 1), "torch_in_memory": "libtorch" in maps,
    }  # fmt: skip


def _ratios(results: list[Asked]) -> list[dict[str, Any]]:
    return [
        {
            "what": "ratio", "of": "recall", "backend": found.backend, "clients": found.clients, "deadline_ms": found.deadline_ms,
            "bare_models_ms": round(found.bare_seconds * 1e3, 1), "p50_to_floor": _to_floor(found),
            "throughput_to_floor": round(found.per_second * found.bare_seconds, 2), "reranked": found.reranked, "whole": found.whole,
        }
        for found in results
    ]  # fmt: skip


def _to_floor(found: Asked) -> float:
    return round(found.p50_ms / 1e3 / found.bare_seconds, 2)


def _goals(results: list[Asked], backends: list[str]) -> Iterator[dict[str, Any]]:
    """What each backend reached of each goal."""
    for clients, figure, bound, goal in GOALS:
        found = {
            result.backend: round(_to_floor(result) if figure == "p50_to_floor" else getattr(result, figure), 3)
            for result in results
            if result.clients == clients
        }
        if found:
            reached = found[backends[-1]]
            met = reached <= goal if bound == "at most" else reached >= goal
            yield {"what": "goal", "clients": clients, "figure": figure, bound: goal, **found, "met": met}


if __name__ == "__main__":
    parser = arguments_of(__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--recalls", type=int, default=60)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 50])
    parser.add_argument("--equal-clients", type=int, nargs="*", default=[8], help="ask without a deadline as well, so that all is reranked")
    parser.add_argument("--before", choices=BACKENDS, help="measure this backend first, over the same memories")
    given = parser.parse_args()
    asyncio.run(measure(given, Report(given.out)))
