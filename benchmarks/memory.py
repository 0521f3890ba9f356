"""How soon a server answers after its start, and what it takes of the memory, by words alone or with models.

    python -m benchmarks.memory [--embedder DIR --reranker DIR [--backend onnx-int8]] [--memories 10000] [--clients 8]

Resident memory is asked after the start, when the models are loaded, when the memories are stored and have their vectors, and
after recalls by several clients at once. Linux only.
"""

import argparse
import asyncio
import time

from benchmarks.calls import Tools
from benchmarks.latency import benched
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, running


async def measure(arguments: argparse.Namespace, report: Report) -> None:
    """One server, one line for each moment."""
    wanted = bool(arguments.embedder or arguments.reranker)
    kind = arguments.backend if wanted else "no models"
    begun = time.perf_counter()
    with running(with_models(arguments) if wanted else NO_MODELS) as server:
        async with Tools(server.url, "bench") as tools:
            await tools.call("recall", {"query": "昨日の夕飯"})
        answered = time.perf_counter() - begun
        report.add([{"what": "start", "models": kind, "announced_s": round(server.started_in, 2), "answered_s": round(answered, 2)}])

        def resident(moment: str, **facts: float) -> None:
            report.add([{"what": "resident", "models": kind, "moment": moment, "mb": round(server.resident_mb(), 1), **facts}])

        resident("started")
        async with benched(server, report) as (bench, http):
            if wanted:
                loaded = await settled(http)
                resident("models loaded", after_s=round(answered + loaded, 1))
            await bench.fill(arguments.memories)
            embedded = await settled(http)
            resident("stored", memories=arguments.memories, vectors_after_s=round(embedded, 1))
            await bench.timed("recall", bench.recall, arguments.recalls, arguments.clients)
            resident("recalled", memories=arguments.memories, clients=arguments.clients)


if __name__ == "__main__":
    parser = arguments_of(__doc__, required=False)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--recalls", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    given = parser.parse_args()
    lines = Report(given.out)
    lines.add([machine("memory")])
    asyncio.run(measure(given, lines))
