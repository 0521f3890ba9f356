"""The data directory of an earlier server, tests/data/stored_2026_11.zip, and the answers that this server gave from it.

    PYTHONPATH=CHECKOUT:tests/support python tests/support/stored_data.py     makes the archive anew with the server of that checkout

The archive holds a plain persona with a graph, earlier versions and a trash, an encrypted one with its master key, tokens, and answers.json.
"""

import json
import re
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from places import DATA
from processes import RunningServer, command, serving

ARCHIVE = DATA / "stored_2026_11.zip"
PLAIN, ENCRYPTED = "nilou", "さくら"
FULL = dict.fromkeys(("include_deleted", "include_secret", "include_versions", "include_context", "include_vectors"), "true")
QUESTIONS = ("京都 旅行", "健二", "Lena coffee", "カレー", "図書館")
_PASSING = {"ago", "now", "usage_count", "last_used_at", "error"}
NAMES = ("健二", "Lena", "京都")


def configuration(directory: Path, idle_seconds: int) -> str:
    """With an hour of idleness before any chore, what is stored stays as it was."""
    return json.dumps(
        {
            "embeddings_model": None,
            "reranker_model": None,
            "toolsets": ["core", "graph", "upkeep"],
            "upkeep": {"idle_seconds": idle_seconds},
            "summaries": {"enabled": False},
            "encryption": {"key_file": str(directory / "master.key")},
        }
    )


class Client:
    """Plain HTTP calls of one persona."""

    def __init__(self, server: RunningServer, persona: str, secret: str | None = None) -> None:
        token = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._url, self._headers = server.url, {"X-Persona": quote(persona), **token}

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {**self._headers, "Accept": "application/json, text/event-stream"}
        result = httpx2.post(f"{self._url}/mcp", json=call, headers=headers, timeout=60, trust_env=False).json()["result"]
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def get(self, path: str, **parameters: Any) -> httpx2.Response:
        return httpx2.get(self._url + path, params=parameters, headers=self._headers, timeout=60, trust_env=False)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = (
            httpx2.post(self._url + path, json=body, headers=self._headers, timeout=60, trust_env=False).raise_for_status().json()
        )
        return answer


def answers(server: RunningServer, secret: str) -> dict[str, Any]:
    """What a server says about everything stored, without what depends on the day."""
    told: dict[str, Any] = {}
    for persona in (PLAIN, ENCRYPTED):
        client = Client(server, persona, secret)
        told[f"{persona}: export"] = [json.loads(line) for line in client.get("/api/export", **FULL).raise_for_status().text.splitlines()]
        for query in QUESTIONS:
            hits = client.tool("recall", query=query, detail="full")["hits"]
            told[f"{persona}: {query}"] = [[hit["key"], hit["content"], hit["score"]] for hit in hits]
        for key in sorted(line["key"] for line in told[f"{persona}: export"] if "key" in line and "content" in line):
            told[f"{persona}: history of {key}"] = client.get("/api/history", key=key).json()
        for path in ("entities", "merges", "types", "snapshot"):
            told[f"{persona}: graph {path}"] = client.get(f"/api/graph/{path}").json()
        for name in NAMES:
            told[f"{persona}: neighbors of {name}"] = client.get("/api/graph/neighbors", entity=name).json()
            told[f"{persona}: path to {name}"] = client.get("/api/graph/paths", source="健二", target=name).json()
    return {question: without_today(answer) for question, answer in told.items()}


def without_today(value: Any) -> Any:
    """JSON without the fields that change from call to call or from day to day, and without the wording of refusals."""
    if isinstance(value, dict):
        return {name: without_today(each) for name, each in value.items() if name not in _PASSING}
    return [without_today(each) for each in value] if isinstance(value, list) else value


def as_then(answer: Any, then: Any) -> Any:
    """What an answer says of what an earlier one said: without fields that came since, and scores to one digit, since ranking improves."""
    if isinstance(answer, dict) and isinstance(then, dict):
        return {name: as_then(answer[name], then[name]) for name in then if name in answer}
    if isinstance(answer, list) and isinstance(then, list) and len(answer) == len(then):
        return [as_then(one, other) for one, other in zip(answer, then, strict=True)]
    return round(answer, 1) if isinstance(answer, float) else answer


def fill(server: RunningServer) -> None:
    nilou = Client(server, PLAIN)
    trip = nilou.tool(
        "remember", content="[[健二|Person]]と[[京都|Place]]へ旅行に行った。", occurred_at="2026-10-17", tags=["旅行"], importance=0.9
    )["key"]
    curry = nilou.tool("remember", content="夕飯はカレーだった。", occurred_at="2026-11-01", category="life", session_id="s1")["key"]
    nilou.tool(
        "remember", content="[[Lena|Person]] works at the library. We had coffee.", source="Lena", session_id="s1", state={"emotion": "joy"}
    )
    nilou.tool("remember", content="秘密の図書館の話。", privacy_level="secret", questions=["どこの話？"], metadata={"page": 3})
    lost = nilou.tool("remember", content="[[太郎|Person]]は健二の友だち。")["key"]
    nilou.tool("remember", content="健二は京都に引っ越した。", supersedes=trip)
    nilou.tool("revise", key=curry, content="夕飯はカレーとサラダだった。", reason="思い出した")
    nilou.tool("forget", keys=[lost], reason="違った")
    nilou.tool("relate", relations=["健二 > friend_of > Lena"], valid_from="2026-01-01")
    nilou.tool("update_context", emotion="joy", user_info={"name": "ハル"}, environment="庭")
    Client(server, ENCRYPTED).tool("remember", content="[[花子|Person]]と京都へ旅行に行った。", occurred_at="2026-11-03")


def settled(server: RunningServer) -> bool:
    ready = httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()
    return not ready["index_lag"] and not ready["chores"]["graph"]["due"]


def output_of(*arguments: str) -> str:
    """What the command prints, where nothing goes wrong."""
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _make() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        data, config = directory / "memory", directory / "config.json"
        output_of("key", "new", str(directory / "master.key"))
        with serving(directory, configuration(directory, 0)) as server:
            fill(server)
            while not settled(server):
                threading.Event().wait(0.2)
        output_of("encrypt", "-p", ENCRYPTED, "--config", str(config), "--data", str(data))
        created = output_of("token", "create", "--all-personas", "--scopes", "read,write,delete,export,admin", "--data", str(data))
        found = re.search(r"mmcp_\S+|[\w-]{30,}", created)
        assert found, created
        with serving(directory, configuration(directory, 3_600)) as server:
            said = {"secret": found[0], "answers": answers(server, found[0])}
        (directory / "answers.json").write_text(json.dumps(said, ensure_ascii=False, sort_keys=True), encoding="utf-8")
        passing = {".server.lock", ".server.json", "server.log", "config.json"}
        with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(directory.rglob("*")):
                if path.is_file() and path.name not in passing:
                    archive.write(path, path.relative_to(directory).as_posix())
    sys.stderr.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    _make()
