"""Puts a set into a fresh server and asks its questions through the public doors: /api/import, /ready and the tool `recall`."""

import asyncio
import contextlib
import functools
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from benchmarks.calls import Tools
from benchmarks.server import IMPORT_TIMEOUT_SECONDS, Server, running
from benchmarks.sets import Asked, RetrievalSet, Row

SETTLE_SECONDS = 3_600
TOP_K = 20
MAX_TOKENS = 20_000
UPLOAD_ROWS = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of recall: the memory ids of each hit (several if they share its text), the best score, and the pipeline that ran."""

    question: Asked
    ranked: tuple[frozenset[str], ...]
    best_score: float
    mode: str
    reranked: bool
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Began:
    """An answer of get_context: the memory ids of each memory shown, its layer, and its text."""

    question: Asked
    shown: tuple[frozenset[str], ...]
    layers: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Asking:
    """One set in one data directory: loaded once, queried once for each variant of the settings."""

    retrieval_set: RetrievalSet
    data: Path
    clock: Path
    without: frozenset[str] = frozenset()

    @functools.cached_property
    def _same(self) -> dict[str, dict[str, frozenset[str]]]:
        return {store: self.retrieval_set.same_text(store) for store in self.retrieval_set.memories}

    @property
    def _loaded(self) -> Path:
        """A file that exists once every memory is stored."""
        return self.data.with_name("loaded")

    def answers(
        self,
        settings: Mapping[str, Any],
        arguments: Mapping[str, Any],
        questions: Sequence[Asked],
        *,
        guesses: bool = False,
        hurry: str | None = None,
        rules_out: Sequence[str] = (),
    ) -> list[Answer]:
        """The answers of a server with these settings; `arguments` go to every call of recall, with `guesses` those of the questions too.

        With `hurry` it reranks as under load, and it searches without the rules `rules_out`: see `clocked`.
        """

        def call(question: Asked) -> tuple[str, dict[str, Any]]:
            guessed = {"hypothetical": question.guess} if guesses else {}
            asked = {"query": question.query, "top_k": TOP_K, "detail": "index", "max_tokens": MAX_TOKENS}
            return "recall", {**asked, **guessed, **arguments}

        return [
            Answer(
                question,
                self._ids(question, answer),
                answer["hits"][0]["score"] if answer["hits"] else answer.get("best_score", 0.0),
                answer["mode"],
                answer["reranked"],
                tuple(answer["degraded"]),
            )
            for question, answer in self.tool_answers(settings, call, questions, hurry, rules_out)
        ]

    def contexts(self, settings: Mapping[str, Any], max_tokens: int | None, questions: Sequence[Asked]) -> list[Began]:
        """The answers of get_context with each question as the topic of a conversation."""

        def call(question: Asked) -> tuple[str, dict[str, Any]]:
            return "get_context", {"query": question.query, **({"max_tokens": max_tokens} if max_tokens else {})}

        return [
            Began(
                question,
                self._ids(question, answer),
                tuple(hit["_source"] for hit in answer["hits"]),
                tuple(hit["content"] for hit in answer["hits"]),
            )
            for question, answer in self.tool_answers(settings, call, questions)
        ]

    def tool_answers(
        self,
        settings: Mapping[str, Any],
        call: Callable[[Asked], tuple[str, dict[str, Any]]],
        questions: Sequence[Asked],
        hurry: str | None = None,
        rules_out: Sequence[str] = (),
    ) -> list[tuple[Asked, dict[str, Any]]]:
        """The answers of a tool of a server with these settings; `call` returns the tool's name and arguments for a question."""
        # The clock does not advance in these runs, so the server would never be idle for long enough.
        with running(
            {**settings, "upkeep": {"idle_seconds": 0}}, data=self.data, clock=self.clock, hurry=hurry, without=rules_out
        ) as server:
            return asyncio.run(self._call_all(server, settings, call, questions))

    async def _call_all(
        self, server: Server, settings: Mapping[str, Any], call: Callable[[Asked], tuple[str, dict[str, Any]]], questions: Sequence[Asked]
    ) -> list[tuple[Asked, dict[str, Any]]]:
        if not self._loaded.exists():
            await self._load(server)
            self._loaded.touch()
        await _settle(server, settings)
        answers = []
        for store in self.retrieval_set.memories:
            async with Tools(server.url, quote(store)) as tools:
                for question in questions:
                    if question.store == store:
                        self._set_clock(question.now)
                        answers.append((question, await tools.call(*call(question))))
        return answers

    def _ids(self, question: Asked, answer: Mapping[str, Any]) -> tuple[frozenset[str], ...]:
        same = self._same[question.store]
        # A summary made by the server has no memory id of the set.
        return tuple(same.get(hit["key"], frozenset()) for hit in answer["hits"])

    async def _load(self, server: Server) -> None:
        """Every memory of every store; one that is refused ends the run."""
        self._set_clock(max((question.now for question in self.retrieval_set.questions if question.now), default=None))
        for store, rows in self.retrieval_set.memories.items():
            async with _client(server, store) as http:
                for begin in range(0, len(rows), UPLOAD_ROWS):
                    body = b"".join(self._line(row) for row in rows[begin : begin + UPLOAD_ROWS])
                    counted = (await http.post("/api/import", content=body, timeout=IMPORT_TIMEOUT_SECONDS)).raise_for_status().json()
                    if counted["stored"] + counted["already_known"] != len(rows[begin : begin + UPLOAD_ROWS]):
                        raise SystemExit(f"{self.retrieval_set.name}: not everything was stored: {counted}")

    def _line(self, row: Row) -> bytes:
        return json.dumps({name: value for name, value in row.items() if name not in self.without}, ensure_ascii=False).encode() + b"\n"

    def _set_clock(self, now: str | None) -> None:
        if now is None:
            self.clock.unlink(missing_ok=True)
        else:
            self.clock.write_text(now, encoding="utf-8")


@contextlib.contextmanager
def asking(retrieval_set: RetrievalSet, without: frozenset[str] = frozenset()) -> Iterator[Asking]:
    """Queries a set in a temporary data directory. `without`: fields of memories that are not stored."""
    with tempfile.TemporaryDirectory(prefix="memory-mcp-quality-") as directory:
        yield Asking(retrieval_set, Path(directory, "memory"), Path(directory, "clock"), without)


@contextlib.asynccontextmanager
async def _client(server: Server, store: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": store}, timeout=120) as http:
        yield http


async def _settle(server: Server, settings: Mapping[str, Any]) -> None:
    """Waits until the configured models (or the fallback) are loaded, every memory has its vector, and its entities are in the graph.

    If the settings turn on summaries explicitly, it also waits for those that are due when the server starts.
    """
    chores = ["graph", *(["summaries"] if settings.get("summaries", {}).get("enabled") else [])]
    wanted = [kind for kind in ("embedder", "reranker") if settings[{"embedder": "embeddings_model", "reranker": "reranker_model"}[kind]]]
    begun = time.perf_counter()
    async with httpx2.AsyncClient(base_url=server.url, timeout=120) as http:
        while True:
            ready = (await http.get("/ready")).json()
            models = ready["models"]
            states = {
                kind: models.get("fallback", models[kind])["state"] if kind == "embedder" else models[kind]["state"] for kind in wanted
            }
            if set(states.values()) <= {"loaded"} and not ready["index_lag"] and not any(ready["chores"][chore]["due"] for chore in chores):
                return
            if "absent" in states.values() or time.perf_counter() - begun > SETTLE_SECONDS:
                raise SystemExit(f"the models are not there, or the index does not catch up: {ready}")
            await asyncio.sleep(0.5)
