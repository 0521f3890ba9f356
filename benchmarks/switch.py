"""A change of the embedder while a client asks every second: how long it takes, and whether the answers stay right.

    python -m benchmarks.switch [--memories 1000 10000] [--model package|instant] [--out results.jsonl]

The memories of one store of `everyday`, and sentences beside them. `package`: what stands in for a model that is absent gives way to the configured one, which has
the same weights, so that what answers lose meanwhile is lost by the change; needs the extra `offline`. `instant`: a model that takes no time gives way to another
one, so that the time is the server's own.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks.report import Report, machine
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, Server, running
from benchmarks.sets import NONE, Asked, loaded
from benchmarks.texts import sentence
from memory_mcp.encoders.model_families import prefixes_for
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.models import PackagedEmbeddings

STORE, SHOWN, EVERY_SECONDS = "mio", 5, 1.0


class Package(Embeddings):
    """The model of the package, as a model of another name."""

    def __init__(self) -> None:
        directory = package.directory()
        if directory is None:
            raise SystemExit(package.fault())
        self._model = PackagedEmbeddings(directory, prefixes_for(package.NAME))

    def embed_query(self, text: str) -> list[float]:
        return list(map(float, self._model.embed_query(text)))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(map(float, vector)) for vector in self._model.embed_documents(texts)]


class Instant(Embeddings):
    """Random vectors."""

    def __init__(self, version: int) -> None:
        self._version = version

    def embed_query(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.blake2b(f"{self._version} {text}".encode(), digest_size=8).digest())
        return list(map(float, np.random.default_rng(seed).standard_normal(384)))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def _instant(version: int) -> dict[str, Any]:
    arguments = {"embeddings_class": "benchmarks.switch:Instant", "embeddings_arguments": {"version": version}}
    return {"embeddings_model": f"instant-{version}", **arguments, "embeddings_languages": ["ja", "en"]}


MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "package": (
        {"embeddings_model": "nobody/absent", "embeddings_fallback": package.NAME},
        {"embeddings_model": "multilingual-e5-small-again", "embeddings_class": "benchmarks.switch:Package"},
    ),
    "instant": (_instant(1), _instant(2)),
}


@dataclass
class Answers:
    """What a client got: of each question the share of the needed memories among the first, how many answers were empty, the slowest, and the states of the models."""

    recall: dict[str, list[float]] = field(default_factory=dict)
    empty: int = 0
    slowest_ms: float = 0.0
    states: Counter[str] = field(default_factory=Counter)

    def ask(self, http: httpx2.Client, question: Asked) -> dict[str, Any]:
        """Asks one question; an error ends the run."""
        begun = time.perf_counter()
        reply = http.get("/api/recall", params={"query": question.query, "top_k": SHOWN, "detail": "index"})
        answer: dict[str, Any] = reply.raise_for_status().json()
        self.slowest_ms = max(self.slowest_ms, (time.perf_counter() - begun) * 1e3)
        shown = {hit["key"] for hit in answer["hits"]}
        self.recall.setdefault(question.id, []).append(len(shown & set(question.relevant)) / len(question.relevant))
        self.empty += not shown
        self.states[" ".join([answer["mode"], *answer["degraded"]])] += 1
        return answer

    def line(self, when: str, beside: "Answers", **facts: Any) -> dict[str, Any]:
        """The figures, and those of `beside` for the same questions asked as often."""
        asked = [(one, float(np.mean(beside.recall[key]))) for key, values in self.recall.items() for one in values]
        means = [round(float(value), 4) for value in np.mean(asked, axis=0)] if asked else [None, None]
        return {
            "what": when,
            **facts,
            "asked": len(asked),
            "R@5": means[0],
            "R@5 of these before": means[1],
            "empty": self.empty,
            "slowest_ms": round(self.slowest_ms),
            "states": dict(self.states),
        }


def measured(memories: int, model: str) -> list[dict[str, Any]]:
    """The figures for a store of so many memories."""
    everyday, (first, second) = loaded("everyday"), MODELS[model]
    questions = [each for each in everyday.questions if each.store == STORE and each.category != NONE]
    own = [{name: value for name, value in row.items() if name != "questions"} for row in everyday.memories[STORE]]
    others = [{"content": sentence(number), "source": "user"} for number in range(memories - len(own))]
    common = {"reranker_model": None, "upkeep": {"idle_seconds": 0}}
    with tempfile.TemporaryDirectory(prefix="memory-mcp-switch-") as directory:
        clock = Path(directory, "clock")
        clock.write_text(next(each.now for each in questions if each.now) or "", encoding="utf-8")
        with (
            running({**common, **first}, data=Path(directory, "memory"), clock=clock) as server,
            httpx2.Client(base_url=server.url, headers={"X-Persona": STORE}, timeout=IMPORT_TIMEOUT_SECONDS) as http,
        ):
            body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (*own, *others))
            http.post("/api/import", content=body.encode()).raise_for_status()
            while not _is_embedded(http):
                time.sleep(EVERY_SECONDS)
            return _switched(server, http, {**common, **second}, questions, {"memories": memories, "model": model})


def _switched(
    server: Server, http: httpx2.Client, settings: dict[str, Any], questions: Sequence[Asked], facts: dict[str, Any]
) -> list[dict[str, Any]]:
    before, meanwhile, after = Answers(), Answers(), Answers()
    for question in questions:
        before.ask(http, question)
    server.config.write_text(json.dumps(settings), encoding="utf-8")
    begun, number, answer = time.perf_counter(), 0, {"degraded": ["not yet"], "mode": ""}
    while answer["degraded"] or answer["mode"] != "hybrid" or not _is_embedded(http, settings["embeddings_model"]):
        time.sleep(EVERY_SECONDS)
        answer = meanwhile.ask(http, questions[number % len(questions)])
        number += 1
    seconds = time.perf_counter() - begun
    for question in questions:
        after.ask(http, question)
    switch = {"seconds": round(seconds, 1), "memories_per_second": round(facts["memories"] / seconds, 1)}
    return [
        before.line("before", before, **facts),
        {**meanwhile.line("meanwhile", before, **facts), **switch},
        after.line("after", before, **facts),
    ]


def _is_embedded(http: httpx2.Client, name: str | None = None) -> bool:
    """Whether every memory has its vector, by the configured model of this name, or else by any."""
    ready = http.get("/ready").json()
    models = ready["models"]
    model = models["embedder"] if name or "fallback" not in models else models["fallback"]
    is_loaded = model["state"] == "loaded" and name in (None, model["name"])
    return is_loaded and not ready["index_lag"] and not ready["index"]["re_embedding"]


def main() -> None:
    """Prints a JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[1_000])
    parser.add_argument("--model", choices=tuple(MODELS), default="package")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    arguments = parser.parse_args()
    report = Report(arguments.out)
    report.add([machine("switch")])
    for memories in arguments.memories:
        report.add(measured(memories, arguments.model))


if __name__ == "__main__":
    main()
