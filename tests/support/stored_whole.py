"""A data directory with everything that a server stores, tests/data/stored_2026_11_27.zip, and what could be asked of that server.

    PYTHONPATH=CHECKOUT:tests/support python tests/support/stored_whole.py     makes both anew with the server of that checkout

The archive holds the vectors of a packaged model, a graph, reports and judgements, a conversation, a pool, an installed pack, an encrypted
persona and tokens; answers.json has the exports. tests/data/surface_2026_11_27.json has the commands with their options, the settings with
their defaults, the tools with their arguments and the routes with their parameters.
"""

import json
import re
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import typer
from places import DATA
from processes import RunningServer, serving
from stored_data import ENCRYPTED, FULL, PLAIN, QUESTIONS, Client, fill, output_of, settled, without_today

from memory_mcp.cli import app
from memory_mcp.config.settings import documented_keys
from memory_mcp.server.application import TOOLSETS
from memory_mcp.server.mcp.tools import tools_of

ARCHIVE = DATA / "stored_2026_11_27.zip"
SURFACE = DATA / "surface_2026_11_27.json"
TEAM, INSTALLED = "team", "leon"
WHOLE = {**FULL, "include_conversations": "true"}


def configuration(directory: Path, idle_seconds: int) -> str:
    """Every part switched on. With an hour of idleness before any chore, what is stored stays as it was."""
    return json.dumps(
        {
            "embeddings_model": "multilingual-e5-small",
            "reranker_model": None,
            "toolsets": ["core", "graph", "experience", "upkeep"],
            "pools": {TEAM: {"readers": [PLAIN, INSTALLED], "writers": [PLAIN]}},
            "upkeep": {"idle_seconds": idle_seconds},
            "summaries": {"enabled": False},
            "encryption": {"key_file": str(directory / "master.key")},
        }
    )


def told(server: RunningServer, secret: str) -> dict[str, Any]:
    """Everything that is stored, and which memories the searches by words find."""
    answers: dict[str, Any] = {}
    for persona in (PLAIN, ENCRYPTED, INSTALLED):
        client = Client(server, persona, secret)
        lines = client.get("/api/export", **WHOLE).raise_for_status().text.splitlines()
        answers[f"{persona}: export"] = [without_today(json.loads(line)) for line in lines]
        answers[f"{persona}: operations"] = without_today(client.get("/api/operations", limit=100).json()["operations"])
        for query in QUESTIONS:
            hits = client.tool("recall", query=query, mode="keyword", top_k=20)["hits"]
            answers[f"{persona}: found by {query}"] = sorted(hit["key"] for hit in hits)
    conversation = Client(server, PLAIN, secret).get("/api/conversation", id="evening")
    return {**answers, "conversation": without_today(conversation.json())}


def surface() -> dict[str, Any]:
    """What clients, scripts and configurations name: commands, settings, tools and routes."""
    tools = {tool.name: sorted(tool.parameters["properties"]) for name in TOOLSETS for tool in tools_of([name])}
    return {
        "commands": dict(_commands(typer.main.get_command(app), "memory-mcp")),
        "settings": {key: default for key, default, _ in documented_keys()},
        "tools": tools,
    }


def routes(description: Mapping[str, Any]) -> dict[str, list[str]]:
    """The routes of an OpenAPI document with the names of their parameters and of the fields of their bodies."""
    return {
        f"{method.upper()} {path}": sorted(
            {*(each.get("name") or each["$ref"] for each in spec.get("parameters", [])), *_body_fields(spec)}
        )
        for path, methods in description["paths"].items()
        for method, spec in methods.items()
    }


def _body_fields(spec: Mapping[str, Any]) -> Iterator[str]:
    for content in spec.get("requestBody", {}).get("content", {}).values():
        yield from content.get("schema", {}).get("properties", {})


def _commands(group: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    options = sorted(option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts))
    yield name, options
    for child, spec in sorted(getattr(group, "commands", {}).items()):
        yield from _commands(spec, f"{name} {child}")


def _fill(server: RunningServer) -> None:
    fill(server)
    nilou = Client(server, PLAIN)
    reported = nilou.tool(
        "report", task="旅行の計画を立てる", outcome="worked", steps=["宿を先に取る", "電車を調べる"], lesson="宿が先", run="r1"
    )
    nilou.tool("report", task="旅行の計画を立てる", outcome="failed", sign="宿がない", instead="日をずらす", severity=3, run="r2")
    nilou.tool("advise", task="旅行の計画を立てる")
    shown = nilou.tool("recall", query="京都 旅行")["hits"][0]["key"]
    nilou.tool("judge", keys=[shown, *reported["made"][:1]], verdict="helped")
    nilou.tool("remember", content="図書館の会議は毎月第一月曜。", pool=TEAM, tags=["決まり"])
    turn = {
        "id": "evening",
        "number": 1,
        "model": "openai:gpt",
        "messages": [{"role": "user", "text": "京都はどうだった？"}, {"role": "assistant", "text": "楽しかったそうです。"}],
    }
    nilou.post("/api/conversation", {**turn, "recalled": [shown], "title": "夜の話"})


def _settled(server: RunningServer) -> bool:
    ready = httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()
    return ready["models"]["embedder"]["state"] == "loaded" and settled(server)


def _make() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        data, config = directory / "memory", directory / "config.json"
        output_of("key", "new", str(directory / "master.key"))
        with serving(directory, configuration(directory, 0)) as server:
            _fill(server)
            pack = str(directory / "given.pack")
            for arguments in (
                ("make", pack, "--name", "lib", "--signer", "ハル", "--pool", TEAM, "-p", PLAIN),
                ("install", pack, "-p", INSTALLED),
            ):
                assert (done := server.memory_mcp("pack", *arguments)).returncode == 0, done.stderr
            while not _settled(server):
                threading.Event().wait(0.2)
            description = httpx2.get(f"{server.url}/api/openapi.json", timeout=60, trust_env=False).raise_for_status().json()
        output_of("encrypt", "-p", ENCRYPTED, "--config", str(config), "--data", str(data))
        created = output_of("token", "create", "--all-personas", "--scopes", "read,write,delete,export,admin", "--data", str(data))
        found = re.search(r"mmcp_\S+|[\w-]{30,}", created)
        assert found, created
        with serving(directory, configuration(directory, 3_600)) as server:
            answers = {"secret": found[0], "answers": told(server, found[0])}
        (directory / "answers.json").write_text(json.dumps(answers, ensure_ascii=False, sort_keys=True), encoding="utf-8")
        passing = {".server.lock", ".server.json", "server.log", "config.json"}
        with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(directory.rglob("*")):
                if path.is_file() and path.name not in passing:
                    archive.write(path, path.relative_to(directory).as_posix())
    SURFACE.write_text(json.dumps({**surface(), "routes": routes(description)}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    sys.stderr.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    _make()
