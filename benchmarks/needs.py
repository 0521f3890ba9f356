"""What get_context tells a model at the beginning of a conversation, beside what the conversation needs: benchmarks/needs/.

    python -m benchmarks.needs [--half development] [--embedder multilingual-e5-small] [--out results.jsonl]

Each need names memories that must be shown and some that mislead: plans that moved or are off, what was replaced, chatter of another
conversation. By half and kind of need: the share of what is needed that is shown, how much misleads, the memories that are shown, the tokens of
the answer as text, and what is shown of the needed per 100 tokens. `core` is the share that is shown of what matters most, whatever is asked.
`start` needs what matters most, however old it is; `upcoming` plans that still hold; `topic` what the topic is about; `session` the conversation
that goes on. Tokens are those of o200k, or of the server's own estimate where npm can't bring the ranks. Keys are as long as the server's own.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.calls import Tools
from benchmarks.models import settled
from benchmarks.o200k import counted
from benchmarks.report import Report, machine
from benchmarks.server import Server, running
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.answer_text import answer_text
from memory_mcp.store.memories import new_key

DIRECTORY = Path(__file__).parent / "needs"
HALVES = ("development", "held-out")
CORE_IMPORTANCE, KEEP = 0.8, "keep"

Need = Mapping[str, Any]
Row = Mapping[str, Any]


def needs(halves: Collection[str] = HALVES) -> list[Need]:
    """The needs of the stores of these halves."""
    return [need for need in _lines("needs") if need["half"] in halves]


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DIRECTORY / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


async def answers(server: Server, asked: Sequence[Need], *, with_model: bool) -> list[tuple[Need, dict[str, Any]]]:
    """What get_context answers to each need."""
    found: list[tuple[Need, dict[str, Any]]] = []
    for store in dict.fromkeys(need["store"] for need in asked):
        rows = _lines(store)
        keys = {row["key"]: new_key() for row in rows}
        named = {key: own for own, key in keys.items()}
        async with httpx2.AsyncClient(base_url=server.url, headers={"X-Persona": store}, timeout=120, trust_env=False) as http:
            (await http.post("/api/import", content="\n".join(json.dumps(row) for row in with_keys(rows, keys)))).raise_for_status()
            known = (await http.get("/api/openapi.json")).json()["paths"]["/api/context"]["get"]["parameters"]
            while (await http.get("/ready")).json()["chores"]["graph"]["due"]:  # noqa: ASYNC110  what is newer is found in the background
                await asyncio.sleep(0.2)
            if with_model:
                await settled(http)
        accepted = {each.get("name") for each in known}  # an earlier server knows fewer
        async with Tools(server.url, store) as tools:
            for need in (each for each in asked if each["store"] == store):
                wanted = {"query": need["query"], "session_id": need["session"]}
                given = {name: value for name, value in wanted.items() if value and name in accepted}
                answer = await tools.call("get_context", given)
                shown = [named.get(hit["key"], hit["key"]) for hit in answer["hits"]]
                found.append(({**need, "core": _core(rows)}, {**answer, "shown": shown}))
    return found


def with_keys(rows: Iterable[Row], keys: Mapping[str, str]) -> Iterator[Row]:
    """The rows with these keys in place of their own."""
    for row in rows:
        yield {**row, **{name: keys[row[name]] for name in ("key", "supersedes") if row.get(name)}}


def _core(rows: Iterable[Row]) -> list[str]:
    return [row["key"] for row in rows if row.get("importance", 0) >= CORE_IMPORTANCE or KEEP in row.get("tags", ())]


def lines(found: Sequence[tuple[Need, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """A line for each half and kind of need, one for each half, and one for each need."""
    texts = [answer_text({name: value for name, value in answer.items() if name != "shown"}) for _, answer in found]
    contents = ["\n".join(hit["content"] for hit in answer["hits"]) for _, answer in found]
    exact = counted([*texts, *contents])
    yield {"what": "tokenizer", "name": "o200k" if exact else "estimate"}
    tokens = exact or [estimate_tokens(text) for text in [*texts, *contents]]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for (need, answer), whole, content in zip(found, tokens, tokens[len(texts) :], strict=False):
        shown = {*answer["shown"]}
        line = {
            "id": need["id"],
            "half": need["half"],
            "kind": need["kind"],
            "needed": round(len(shown & {*need["needed"]}) / len(need["needed"]), 3),
            "misleading": len(shown & {*need["misleading"]}),
            "core": round(len(shown & {*need["core"]}) / len(need["core"]), 3),
            "hits": len(shown),
            "tokens": whole,
            "overhead": round((whole - content) / max(len(shown), 1), 1),
            "missed": sorted({*need["needed"]} - shown),
            "misled": sorted(shown & {*need["misleading"]}),
        }
        for kind in (need["kind"], "all"):
            groups[need["half"], kind].append(line)
        yield {"what": "need", **line}
    for (half, kind), of_kind in sorted(groups.items()):
        mean = {name: float(np.mean([line[name] for line in of_kind])) for name in ("needed", "core", "hits", "tokens", "overhead")}
        yield {
            "what": "needs",
            "half": half,
            "kind": kind,
            "n": len(of_kind),
            "needed": round(mean["needed"], 3),
            "misleading": sum(line["misleading"] for line in of_kind),
            "core": round(mean["core"], 3),
            "hits": round(mean["hits"], 1),
            "tokens": round(mean["tokens"]),
            "median tokens": round(float(np.median([line["tokens"] for line in of_kind]))),
            "overhead of a hit": round(mean["overhead"], 1),
            "needed per 100 tokens": round(100 * mean["needed"] / mean["tokens"], 3),
        }


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, help="only the stores of this half")
    parser.add_argument("--embedder", metavar="DIR", help="a directory, or multilingual-e5-small")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    given = parser.parse_args()
    report = Report(given.out)
    report.add([machine("needs", embedder=given.embedder)])
    settings = {"embeddings_model": given.embedder, "reranker_model": None, "summaries": {"enabled": False}, "upkeep": {"idle_seconds": 0}}
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
        clock = Path(directory, "clock")
        asked = needs([given.half] if given.half else HALVES)
        clock.write_text(asked[0]["now"], encoding="utf-8")
        with running(settings, clock=clock) as server:
            report.add(lines(asyncio.run(answers(server, asked, with_model=bool(given.embedder)))))


if __name__ == "__main__":
    _main()
