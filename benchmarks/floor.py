"""Recall and embedding through the server beside the bare models doing the same work in a plain loop, in one run.

    python -m benchmarks.floor --embedder DIR --reranker DIR [--memories 10000] [--clients 1 8 50] [--deadline-ms 600]
                               [--equal-clients 8] [--backend onnx-int8]

The floor embeds one query and scores top_k×3 pairs with sentence-transformers as anybody would: one `encode`, one `predict`,
one after the other. A recall does that and everything else. Then it embeds what was imported by one `encode` of all texts, as the
server embeds them: with the prefix, the day and who said it. Figures of one run are ratios; a machine's own speed drops out.

Under the deadline several clients at once are not all reranked, so every ratio has the share that was beside it. `--equal-clients`
ask a second server without a deadline, over the same memories: there every answer is all the work that the floor does.
"""

import argparse
import asyncio
import datetime
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.latency import Bench, benched
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import running
from benchmarks.texts import question, sentence
from memory_mcp.encoders.prefixes import prefixes_for

POOL = 15
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """What so many clients got: the median wait in ms, answers per second, and what ran."""

    clients: int
    deadline_ms: int
    p50_ms: float
    per_second: float
    reranked: float
    whole: float


@dataclass(frozen=True, slots=True)
class Floor:
    """What the bare models take: seconds for a question and its pairs, and how many memories they embed in a second."""

    question_seconds: float
    memories_per_second: float


def asked(number: int) -> str:
    """A question that nobody has asked before: what is remembered costs nothing."""
    return f"{question(number)} {number}"


def floor(embedder: str, reranker: str, memories: int, rounds: int = ROUNDS) -> Floor:
    """The median of `rounds` questions, and one pass over the texts of all memories."""
    from sentence_transformers import CrossEncoder, SentenceTransformer  # noqa: PLC0415  takes seconds

    encode, score = SentenceTransformer(embedder, device="cpu"), CrossEncoder(reranker, device="cpu")
    prefixes = prefixes_for(embedder, Path(embedder))
    took = []
    for number in range(rounds):
        query = asked(number)
        pairs = [(query, f"user: {sentence(number * POOL + place)}") for place in range(POOL)]
        begun = time.perf_counter()
        encode.encode(prefixes.query + query, show_progress_bar=False)
        score.predict(pairs, show_progress_bar=False)
        took.append(time.perf_counter() - begun)
    day = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    texts = [f"{prefixes.document}[{day}] user: {sentence(number)}" for number in range(memories)]
    begun = time.perf_counter()
    encode.encode(texts, show_progress_bar=False)
    return Floor(statistics.median(took), memories / (time.perf_counter() - begun))


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


async def recalled(bench: Bench, arguments: argparse.Namespace, clients: int, deadline_ms: int) -> Asked:
    """So many clients ask, and what ran is counted."""
    answers: list[dict[str, Any]] = []

    async def recall(number: int) -> None:
        answers.append(await bench.tool("recall", {"query": asked(number + 100_000 * clients), "top_k": 5}))

    count = max(arguments.recalls, clients * 4)
    p50, per_second = await bench.timed("recall", recall, count, clients, deadline_ms=deadline_ms)
    ran = [", ".join([answer["mode"], *["reranked"] * answer["reranked"], *answer["degraded"]]) for answer in answers]
    bench.report(
        what="answers", backend=arguments.backend, clients=clients, deadline_ms=deadline_ms, counted={how: ran.count(how) for how in sorted(set(ran))}
    )  # fmt: skip
    done = [answer for answer in answers if answer["reranked"]]
    whole = sum(not answer["degraded"] for answer in done)
    return Asked(clients, deadline_ms, p50, per_second, round(len(done) / count, 3), round(whole / count, 3))


async def measure(arguments: argparse.Namespace, report: Report) -> None:
    """The servers first, then the floor: both models would not fit beside each other in a fair way."""
    report.add([machine("floor", backend=arguments.backend, memories=arguments.memories)])
    settings = with_models(arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="memory-mcp-floor-") as data:
        with running(settings, Path(data)) as server:
            async with benched(server, report) as (bench, http):
                bench.report(what="start", answers_after_s=round(server.started_in, 2))
                embedding = await stored(bench, http, arguments)
                results += [await recalled(bench, arguments, clients, arguments.deadline_ms) for clients in arguments.clients]
                bench.report(what="memory", resident_mb=round(server.resident_mb(), 1))
        if arguments.equal_clients:
            with running({**settings, "rerank_deadline_ms": 0}, Path(data)) as server:
                async with benched(server, report) as (bench, http):
                    await settled(http)
                    results += [await recalled(bench, arguments, clients, 0) for clients in arguments.equal_clients]
    bare = floor(arguments.embedder, arguments.reranker, arguments.memories)
    report.add(_ratios(bare, embedding, results))


def _ratios(bare: Floor, embedding: float, results: list[Asked]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [
        {
            "what": "floor", "bare_models_ms": round(bare.question_seconds * 1e3, 1), "per_second": round(1 / bare.question_seconds, 1),
            "memories_per_second": round(bare.memories_per_second, 1),
        },
        {"what": "ratio", "of": "embedding", "throughput_to_floor": round(embedding / bare.memories_per_second, 2)},
    ]  # fmt: skip
    return told + [
        {
            "what": "ratio", "of": "recall", "clients": found.clients, "deadline_ms": found.deadline_ms,
            "p50_to_floor": round(found.p50_ms / 1e3 / bare.question_seconds, 2),
            "throughput_to_floor": round(found.per_second * bare.question_seconds, 2), "reranked": found.reranked, "whole": found.whole,
        }
        for found in results
    ]  # fmt: skip


if __name__ == "__main__":
    parser = arguments_of(__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--recalls", type=int, default=60)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 50])
    parser.add_argument("--equal-clients", type=int, nargs="*", default=[8], help="ask without a deadline as well, so that all is reranked")
    given = parser.parse_args()
    asyncio.run(measure(given, Report(given.out)))
