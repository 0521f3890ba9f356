"""What get_context tells a model at the beginning of a conversation, beside what the conversation needs: benchmarks/needs/.

    python -m benchmarks.needs [--embedder multilingual-e5-small] [--out results.jsonl]

Each need names memories that must be shown and some that mislead: plans that moved or are off, what was replaced, chatter of another
conversation. By kind of need: the share of what is needed that is shown, how much misleads, the tokens of the answer as text, and what is shown
of the needed per 100 tokens. `start` needs what matters most, however old it is; `upcoming` plans that still hold; `topic` what the topic
is about; `session` the conversation that goes on.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.calls import Tools
from benchmarks.models import settled
from benchmarks.report import Report, machine
from benchmarks.server import Server, running
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.answer_text import answer_text

DIRECTORY = Path(__file__).parent / "needs"
STORES = ("haru", "nora")

Need = Mapping[str, Any]


def needs() -> list[Need]:
    """The needs of all stores."""
    return [json.loads(line) for line in (DIRECTORY / "needs.jsonl").read_text(encoding="utf-8").splitlines()]


def memories(store: str) -> bytes:
    """The memories of a store, as lines for /api/import."""
    return (DIRECTORY / f"{store}.jsonl").read_bytes()


async def answers(server: Server, *, with_model: bool) -> list[tuple[Need, dict[str, Any]]]:
    """What get_context answers to each need."""
    found: list[tuple[Need, dict[str, Any]]] = []
    for store in STORES:
        async with httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": store}, timeout=120, trust_env=False) as http:
            (await http.post("/api/import", content=memories(store))).raise_for_status()
            known = (await http.get("/api/openapi.json")).json()["paths"]["/api/context"]["get"]["parameters"]
            if with_model:
                await settled(http)
        accepted = {each.get("name") for each in known}  # an earlier server knows fewer
        async with Tools(server.url, store) as tools:
            for need in (each for each in needs() if each["store"] == store):
                wanted = {"query": need["query"], "session_id": need["session"]}
                given = {name: value for name, value in wanted.items() if value and name in accepted}
                found.append((need, await tools.call("get_context", given)))
    return found


def lines(found: list[tuple[Need, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """A line for each kind of need, one for all, and one for each need."""
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for need, answer in found:
        shown = {hit["key"] for hit in answer["hits"]}
        line = {
            "id": need["id"],
            "kind": need["kind"],
            "needed": round(len(shown & {*need["needed"]}) / len(need["needed"]), 3),
            "misleading": len(shown & {*need["misleading"]}),
            "tokens": estimate_tokens(answer_text(answer)),
            "missed": sorted({*need["needed"]} - shown),
            "misled": sorted(shown & {*need["misleading"]}),
        }
        by_kind[need["kind"]].append(line)
        by_kind["all"].append(line)
        yield {"what": "need", **line}
    for kind, of_kind in sorted(by_kind.items()):
        needed, tokens = (float(np.mean([line[name] for line in of_kind])) for name in ("needed", "tokens"))
        yield {
            "what": "needs",
            "kind": kind,
            "n": len(of_kind),
            "needed": round(needed, 3),
            "misleading": sum(line["misleading"] for line in of_kind),
            "tokens": round(tokens),
            "median tokens": round(float(np.median([line["tokens"] for line in of_kind]))),
            "needed per 100 tokens": round(100 * needed / tokens, 3),
        }


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", metavar="DIR", help="a directory, or multilingual-e5-small")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("needs", embedder=given.embedder)])
    settings = {"embeddings_model": given.embedder, "reranker_model": None, "upkeep": {"idle_seconds": 0}}
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
        clock = Path(directory, "clock")
        clock.write_text(needs()[0]["now"], encoding="utf-8")
        with running(settings, clock=clock) as server:
            report.add(lines(asyncio.run(answers(server, with_model=bool(given.embedder)))))


if __name__ == "__main__":
    _main()
