"""The server compared with a simple script that uses the same models, in one run.

    python -m benchmarks.naive --embedder DIR --reranker DIR [--memories 2000] [--clients 8] [--out results.jsonl]
    python -m benchmarks.naive --embedder DIR --languages en --set DIR

The script keeps texts in SQLite and vectors in LangChain's FAISS wrapper, saves the wrapper after every write, takes the top_k×3
nearest, and scores them with `CrossEncoder.predict`: one padded batch, no cache. It is called in its own process without
HTTP, unlike the server. With --set, quality is measured, without a reranker.
"""

import argparse
import asyncio
import itertools
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.asking import asking
from benchmarks.floor import asked
from benchmarks.latency import benched
from benchmarks.models import arguments_of, settled, with_models
from benchmarks.report import Report, machine
from benchmarks.scores import means, of_question, paired_bootstrap
from benchmarks.server import Server, running
from benchmarks.sets import QUESTIONS, RetrievalSet, loaded
from benchmarks.texts import sentence

TOP_K, DEPTH = 5, 20


class Script:
    """Memories of one persona, as the few lines keep them that everybody writes first."""

    def __init__(self, directory: Path, embedder: str, reranker: str | None) -> None:
        from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415  takes seconds
        from sentence_transformers import CrossEncoder  # noqa: PLC0415

        self._directory = directory
        self._embeddings = HuggingFaceEmbeddings(
            model_name=embedder, model_kwargs={"device": "cpu"}, encode_kwargs={"normalize_embeddings": True}
        )
        self._reranker = CrossEncoder(reranker, device="cpu") if reranker else None
        self._database = sqlite3.connect(directory / "memory.sqlite", check_same_thread=False)
        self._database.execute("CREATE TABLE memories(key TEXT PRIMARY KEY, content TEXT)")
        self._store: Any = None

    def save(self, texts: Sequence[str], keys: Sequence[str]) -> None:
        """Stores the texts and writes the whole index."""
        from langchain_community.vectorstores import FAISS  # noqa: PLC0415

        self._database.executemany("INSERT INTO memories VALUES (?, ?)", zip(keys, texts, strict=True))
        self._database.commit()
        metadatas = [{"key": key} for key in keys]
        if self._store is None:
            self._store = FAISS.from_texts(list(texts), self._embeddings, metadatas=metadatas)
        else:
            self._store.add_texts(list(texts), metadatas=metadatas)
        self._store.save_local(str(self._directory / "vector_store"))

    def recall(self, query: str, top_k: int = TOP_K) -> list[str]:
        """The keys of the best."""
        found = self._store.similarity_search(query, k=top_k * 3 if self._reranker else top_k)
        if self._reranker:
            scores = self._reranker.predict([[query, document.page_content] for document in found], show_progress_bar=False)
            found = [document for document, _ in sorted(zip(found, scores, strict=True), key=lambda pair: pair[1], reverse=True)]
        return [document.metadata["key"] for document in found[:top_k]]


def script_lines(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The speed of the script, in this process."""
    with tempfile.TemporaryDirectory(prefix="memory-mcp-naive-") as directory:
        script = Script(Path(directory), arguments.embedder, arguments.reranker)
        begun = time.perf_counter()
        script.save([sentence(number) for number in range(arguments.memories)], [f"k{number}" for number in range(arguments.memories)])
        took = time.perf_counter() - begun
        yield {"what": "import", "by": "script", "memories": arguments.memories, "per_second": round(arguments.memories / took, 1)}
        numbers = itertools.count(10_000_000)
        yield _timed("save", arguments.saves, 1, lambda _: script.save([sentence(number := next(numbers))], [f"k{number}"]))
        for clients in (1, arguments.clients):
            asks = itertools.count(100_000 * clients)
            yield _timed("recall", arguments.recalls, clients, lambda _, asks=asks: script.recall(asked(next(asks))))  # type: ignore[misc]
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    yield {"what": "resident", "by": "script", "mb": round(resident / 1024, 1)}


def _timed(what: str, count: int, clients: int, call: Callable[[int], object]) -> dict[str, Any]:
    waits: list[float] = []

    def one(number: int) -> None:
        begun = time.perf_counter()
        call(number)
        waits.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(one, range(count)))
    took = time.perf_counter() - begun
    waits.sort()
    return {
        "what": what, "by": "script", "clients": clients, "count": count, "p50_ms": round(statistics.median(waits) * 1e3, 1),
        "p95_ms": round(waits[int(len(waits) * 0.95)] * 1e3, 1), "per_second": round(count / took, 1),
    }  # fmt: skip


async def server_lines(server: Server, arguments: argparse.Namespace, report: Report) -> None:
    """The speed of this server, over HTTP."""
    async with benched(server, report) as (bench, http):
        await settled(http)
        await bench.fill(arguments.memories)
        embedded = await settled(http)
        bench.report(what="embedding", by="server", per_second=round(arguments.memories / embedded, 1))
        await bench.timed("save", bench.save, arguments.saves, 1, by="server")
        await settled(http)
        for clients in (1, arguments.clients):
            reranked: list[bool] = []

            async def recall(number: int, many: int = clients, done: list[bool] = reranked) -> None:
                answer = await bench.tool("recall", {"query": asked(number + 100_000 * many), "top_k": TOP_K})
                done.append(answer["reranked"])

            await bench.timed("recall", recall, arguments.recalls, clients, by="server")
            bench.report(what="answers", by="server", clients=clients, reranked=round(sum(reranked) / len(reranked), 3))
        bench.report(what="resident", by="server", mb=round(server.resident_mb(), 1))


def quality_lines(told: RetrievalSet, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Of one set: the script's vectors, this server with the same model, and the difference."""
    scored: dict[str, dict[str, dict[str, float]]] = {"script": {}}
    for store, rows in told.memories.items():
        same = told.same_text(store)
        with tempfile.TemporaryDirectory(prefix="memory-mcp-naive-") as directory:
            script = Script(Path(directory), arguments.embedder, None)
            script.save([row["content"] for row in rows], [row["key"] for row in rows])
            for question in told.questions:
                if question.store == store and question.relevant:
                    ranked = [same[key] for key in script.recall(question.query, DEPTH)]
                    scored["script"][question.id] = of_question(question.relevant, ranked)
    settings = {"embeddings_model": arguments.embedder, "reranker_model": None, "embeddings_languages": arguments.languages}
    with asking(told, QUESTIONS) as place:
        answers = place.answers(settings, {}, [question for question in told.questions if question.relevant])
    scored["server"] = {answer.question.id: of_question(answer.question.relevant, answer.ranked) for answer in answers}
    for by, found in scored.items():
        yield {"what": "quality", "set": told.name, "by": by, "n": len(found), **means(list(found.values()))}
    for metric in ("R@5", "R@10"):
        pairs = [(scored["script"][name][metric], scored["server"][name][metric]) for name in scored["script"]]
        gain = paired_bootstrap([before for before, _ in pairs], [after for _, after in pairs])
        yield {
            "what": "difference",
            "set": told.name,
            "metric": metric,
            "difference": gain.mean,
            "low": gain.low,
            "high": gain.high,
            "p": gain.p,
        }


def _main(arguments: argparse.Namespace) -> None:
    if arguments.script_alone:
        for line in script_lines(arguments):
            print(json.dumps(line), flush=True)
        return
    report = Report(arguments.out)
    report.add([machine("naive")])
    if arguments.set:
        report.add(quality_lines(loaded(arguments.set), arguments))
        return
    command = [sys.executable, "-m", "benchmarks.naive", *sys.argv[1:], "--script-alone"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        report.add(json.loads(line) for line in process.stdout or ())
    if process.returncode:
        raise SystemExit("the script failed")
    with running(with_models(arguments)) as server:
        asyncio.run(server_lines(server, arguments, report))


if __name__ == "__main__":
    parser = arguments_of(__doc__, required=False)
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--recalls", type=int, default=64)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--set", metavar="corpus|everyday|DIR", help="measure quality on this set instead of speed")
    parser.add_argument("--languages", nargs="+", help="with --set: what the model knows (ja, en), if it doesn't say")
    parser.add_argument("--script-alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.embedder or not (given.set or given.reranker):
        parser.error("give --embedder, and --reranker or --set")
    _main(given)
