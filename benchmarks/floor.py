"""Recall through the server beside the bare models doing the same work in a plain loop, in one run.

    python -m benchmarks.floor --embedder DIR --reranker DIR [--memories 10000] [--clients 1 8 50] [--deadline-ms 600]
                               [--backend onnx-int8]

The floor embeds one query and scores top_k×3 pairs with sentence-transformers as anybody would: one `encode`, one `predict`,
one after the other. A recall does that and everything else. Figures of one run are ratios; a machine's own speed drops out.
"""

import argparse
import asyncio
import collections
import statistics
import time

import httpx2

from benchmarks.latency import Bench
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import running
from benchmarks.texts import question, sentence

POOL = 15


def asked(number: int) -> str:
    """A question that nobody has asked before: what is remembered costs nothing."""
    return f"{question(number)} {number}"


def floor(embedder: str, reranker: str, rounds: int) -> float:
    """Seconds for one query and its pairs, the median of `rounds`."""
    from sentence_transformers import CrossEncoder, SentenceTransformer  # noqa: PLC0415  takes seconds

    encode, score = SentenceTransformer(embedder, device="cpu"), CrossEncoder(reranker, device="cpu")
    took = []
    for number in range(rounds):
        query = asked(number)
        pairs = [(query, f"user: {sentence(number * POOL + place)}") for place in range(POOL)]
        begun = time.perf_counter()
        encode.encode(query, show_progress_bar=False)
        score.predict(pairs, show_progress_bar=False)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


async def measure(arguments: argparse.Namespace) -> None:
    """The server first, then the floor: both models would not fit beside each other in a fair way."""
    with running(with_models(arguments)) as server:
        async with (
            httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": "bench"}, timeout=120) as http,
            Bench(server, http, Report(arguments.out)) as bench,
        ):
            bench.report(**machine("floor"))
            bench.report(what="start", answers_after_s=round(server.started_in, 2))
            loaded = await settled(http)
            await bench.fill(arguments.memories)
            embedded = await settled(http)
            bench.report(
                what="embedding", models_loaded_after_s=round(loaded, 1), memories_per_second=round(arguments.memories / embedded, 1)
            )
            await bench.timed("save", bench.save, arguments.saves, 1)
            await settled(http)
            ended: collections.Counter[str] = collections.Counter()

            async def recall(number: int) -> None:
                answer = await bench.tool("recall", {"query": asked(number + 100_000 * clients), "top_k": 5})
                ended[", ".join([answer["mode"], *["reranked"] * answer["reranked"], *answer["degraded"]])] += 1

            results = {}
            for clients in arguments.clients:
                ended.clear()
                results[clients] = await bench.timed("recall", recall, max(arguments.recalls, clients * 4), clients)
                bench.report(what="answers", backend=arguments.backend, clients=clients, counted=dict(ended))
            bench.report(what="memory", resident_mb=round(server.resident_mb(), 1))
    bare = floor(arguments.embedder, arguments.reranker, 20)
    bench.report(what="floor", bare_models_ms=round(bare * 1e3, 1), per_second=round(1 / bare, 1))
    for clients, (p50, per_second) in results.items():
        bench.report(
            what="ratio", clients=clients, p50_to_floor=round(p50 / 1e3 / bare, 2), throughput_to_floor=round(per_second * bare, 2)
        )


if __name__ == "__main__":
    parser = arguments_of(__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--recalls", type=int, default=60)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 50])
    asyncio.run(measure(parser.parse_args()))
