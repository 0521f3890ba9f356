"""`memory-mcp weights`: shown before they are applied, in force once they are, and taken back."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from processes import RunningServer, serving

pytestmark = pytest.mark.slow

TOPICS = ("旅行", "弁当", "猫", "請求書", "引っ越し", "誕生日", "健康診断", "写真", "自転車", "英会話", "庭木", "確定申告")
JUDGED = "2026-01-01T00:00:00Z"


def lines() -> bytes:
    """Of each topic what somebody judged helpful, told alone, and a conversation whose every turn has the word."""
    rows = []
    for topic in TOPICS:
        for ask in (f"{topic}の予定", f"{topic}の相談"):
            verdict = {"verdict": "helped", "at": JUDGED, "run": ask, "query": ask}
            rows.append({"content": f"{ask}は、{ask}は机の上", "feedback": [verdict]})
            rows += [{"content": f"{ask}{mark}", "session_id": ask} for mark in ("だね", "かな", "だよ")]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def server(tmp_path: Any) -> Iterator[RunningServer]:
    with serving(tmp_path, json.dumps({"embeddings_model": None, "reranker_model": None})) as server:
        yield server


def test_weights_are_shown_applied_shown_again_and_taken_back(server: RunningServer) -> None:
    nilou = httpx2.Client(base_url=server.url, headers={"X-Persona": "nilou"}, timeout=60, trust_env=False)

    def run(*words: str) -> str:
        done = server.memory_mcp(*words, "-p", "nilou")
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def first() -> str:
        return str(nilou.get("/api/recall", params={"query": "旅行の予定"}).json()["hits"][0]["content"])

    def own() -> dict[str, float]:
        return dict(nilou.get("/api/recall/figures").json().get("weights", {}))

    nilou.post("/api/import", content=lines()).raise_for_status()
    by_config = first()
    shown = run("weights")
    assert "24 judged queries\n  fusion.session_weight: 0.0\n" in shown
    assert " now, 1.000 with them\napply them with: memory-mcp weights --apply --persona nilou\n" in shown
    assert (own(), first()) == ({}, by_config)

    assert "they are in force" in run("weights", "--apply")
    assert own() == {"session_weight": 0.0}
    assert "weights of its own: fusion.session_weight 0\n" in run("figures")
    assert first() == "旅行の予定は、旅行の予定は机の上" != by_config
    again = run("weights", "--apply")
    assert "weights of its own: fusion.session_weight 0\n" in again
    assert "no better weights than those in force" in again

    assert run("weights", "--reset") == "nilou has the weights of config.json\n"
    assert (own(), first()) == ({}, by_config)
    nilou.close()
