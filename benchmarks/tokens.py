"""How many tokens answers cost a model: those of recall and get_context to every question of a set, and the list of tools.

    python -m benchmarks.tokens [--set everyday] [--set DIR …] [--out results.jsonl]

Without a model. Tokens are those of o200k, or of `estimate_tokens` where npm can't bring its ranks; `tokenizer` says which. `text` is the answer as
text, `median` its median, `structured` the answer as JSON, `content` what its memories say. `per_hit` is what the text has besides that, for each
memory, and `line` what a memory's line has. Keys are as the server makes them. The tools are counted as JSON, as most vendors send them, and as the
declarations of functions that OpenAI makes of them.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.asking import asking
from benchmarks.o200k import counted
from benchmarks.report import Report, machine
from benchmarks.sets import Asked, RetrievalSet, loaded
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.answer_text import answer_text, memory_line
from memory_mcp.server.mcp.tools import tools_of
from memory_mcp.store.memories import new_key

NO_MODELS = {"embeddings_model": None, "reranker_model": None}
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "recall": ("recall", {}),
    "recall, detail=index": ("recall", {"detail": "index"}),
    "get_context": ("get_context", {}),
}
KEY_FIELDS = ("key", "supersedes")
TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "object": "object", "array": "string[]"}


def measured(retrieval_set: RetrievalSet) -> Iterator[dict[str, Any]]:
    """A line for each kind of call."""
    with asking(_with_own_keys(retrieval_set)) as runner:
        for name, (tool, fixed) in CALLS.items():

            def call(question: Asked, tool: str = tool, fixed: Mapping[str, Any] = fixed) -> tuple[str, dict[str, Any]]:
                return tool, {"query": question.query, **fixed}

            answers = [answer for _, answer in runner.tool_answers(NO_MODELS, call, retrieval_set.questions)]
            hits = [hit for answer in answers for hit in answer["hits"]]
            texts, structured = list(map(answer_text, answers)), list(map(_compact, answers))
            contents, lines = [hit["content"] for hit in hits], [f"{memory_line(hit)}\n" for hit in hits]
            counts = iter(tokens([*texts, *structured, *contents, *lines]))
            text, json_, content, line = (list(islice(counts, len(each))) for each in (texts, structured, contents, lines))
            yield {
                "what": "tokens", "set": retrieval_set.name, "call": name, "n": len(answers), "hits": round(len(hits) / len(answers), 1),
                "text": round(fmean(text)), "median": median(text), "structured": round(fmean(json_)),
                "content": round(sum(content) / len(answers)), "per_hit": round((sum(text) - sum(content)) / len(hits), 1),
                "line": round((sum(line) - sum(content)) / len(hits), 1),
            }  # fmt: skip


def tools() -> dict[str, Any]:
    """The tools of the toolset `core` as a client sends them to its model."""
    sent = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools_of(["core"])]
    json_, functions = tokens([_compact(sent), _functions(sent)])
    return {
        "what": "tokens",
        "call": "tools/list",
        "tokenizer": "o200k" if counted([""]) else "estimate",
        "json": json_,
        "functions": functions,
    }


def tokens(texts: Sequence[str]) -> list[int]:
    """The tokens of each text."""
    return counted(texts) or [estimate_tokens(text) for text in texts]


def _functions(sent: Iterable[Mapping[str, Any]]) -> str:
    """The tools as OpenAI is known to show them to its models."""
    lines = ["namespace functions {"]
    for tool in sent:
        schema = tool["parameters"]
        lines += [f"// {tool['description']}", f"type {tool['name']} = (_: {{"]
        for name, spec in schema["properties"].items():
            lines += [f"// {spec['description']}"] if "description" in spec else []
            lines.append(f"{name}{'' if name in schema.get('required', ()) else '?'}: {TYPES[spec['type']]},")
        lines.append("}) => any;")
    return "\n".join([*lines, "}"])


def _with_own_keys(retrieval_set: RetrievalSet) -> RetrievalSet:
    keys = {row["key"]: new_key() for rows in retrieval_set.memories.values() for row in rows}

    def renamed(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**row, **{name: keys[row[name]] for name in KEY_FIELDS if row.get(name)}}

    return replace(retrieval_set, memories={store: [renamed(row) for row in rows] for store, rows in retrieval_set.memories.items()})


def _compact(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", dest="sets", metavar="corpus|everyday|DIR", default=[], help="may be given several times")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("tokens", sets=[Path(name).name for name in given.sets]), tools()])
    for chosen in given.sets:
        report.add(measured(loaded(chosen)))
