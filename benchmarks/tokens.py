"""How many tokens answers cost a model: those of recall and get_context to every question of a set, and the list of tools.

    python -m benchmarks.tokens --set everyday [--set DIR …] [--out results.jsonl]

Without a model. Tokens are those of `estimate_tokens`; `text` is the answer as text, `structured` as JSON, `content` what its memories say. `per_hit` is
what the text has besides that, for each memory. Keys are as long as the server's own.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.asking import asking
from benchmarks.report import Report, machine
from benchmarks.sets import Asked, RetrievalSet, loaded
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.answer_text import answer_text
from memory_mcp.server.mcp.tools import tools_of

NO_MODELS = {"embeddings_model": None, "reranker_model": None}
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "recall": ("recall", {}),
    "recall, detail=index": ("recall", {"detail": "index"}),
    "get_context": ("get_context", {}),
}
KEY = "memory_20261114210000_{:>08}"
KEY_FIELDS = ("key", "supersedes")


def measured(retrieval_set: RetrievalSet) -> Iterator[dict[str, Any]]:
    """A line for each kind of call."""
    with asking(_with_long_keys(retrieval_set)) as runner:
        for name, (tool, fixed) in CALLS.items():

            def call(question: Asked, tool: str = tool, fixed: Mapping[str, Any] = fixed) -> tuple[str, dict[str, Any]]:
                return tool, {"query": question.query, **fixed}

            answers = [answer for _, answer in runner.tool_answers(NO_MODELS, call, retrieval_set.questions)]
            hits = [hit for answer in answers for hit in answer["hits"]]
            text, content = (
                sum(estimate_tokens(answer_text(answer)) for answer in answers),
                sum(estimate_tokens(hit["content"]) for hit in hits),
            )
            yield {
                "what": "tokens", "set": retrieval_set.name, "call": name, "n": len(answers), "hits": round(len(hits) / len(answers), 1),
                "text": round(text / len(answers)), "structured": round(sum(map(_tokens, answers)) / len(answers)),
                "content": round(content / len(answers)), "per_hit": round((text - content) / len(hits), 1),
            }  # fmt: skip


def tools() -> dict[str, Any]:
    """The tools of the toolset `core` as a client sends them to its model."""
    sent = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools_of(["core"])]
    return {"what": "tokens", "call": "tools/list", "text": _tokens(sent)}


def _with_long_keys(retrieval_set: RetrievalSet) -> RetrievalSet:
    numbers = {row["key"]: str(number) for rows in retrieval_set.memories.values() for number, row in enumerate(rows)}

    def renamed(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**row, **{name: KEY.format(numbers[row[name]]) for name in KEY_FIELDS if row.get(name)}}

    return replace(retrieval_set, memories={store: [renamed(row) for row in rows] for store, rows in retrieval_set.memories.items()})


def _tokens(answer: Any) -> int:
    return estimate_tokens(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--set", action="append", dest="sets", metavar="corpus|everyday|DIR", required=True, help="may be given several times"
    )
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("tokens", sets=[Path(name).name for name in given.sets]), tools()])
    for chosen in given.sets:
        report.add(measured(loaded(chosen)))
