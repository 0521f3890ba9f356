"""Upkeep in a real server: summaries come by themselves while nobody calls, worded by a chat model if one is configured."""

import json

import apsw
import httpx2
import pytest
from processes import serving

from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.sqlite.database import DATABASE_NAME

pytestmark = pytest.mark.slow

CONFIG = {
    "embeddings_model": None,
    "reranker_model": None,
    "upkeep": {"idle_seconds": 0},
    "summaries": {"quiet_minutes": 0, "interval_minutes": 0.01},
}
FAKE = {
    "chat_class": "langchain_core.language_models.fake_chat_models:FakeListChatModel",
    "arguments": {"responses": ["五つの町を旅した。"]},
}
LINES = "".join(
    json.dumps({"content": f"旅の{day}日目に{place}へ行った。", "session_id": "旅"}) + "\n" for day, place in enumerate("京奈金松萩")
)


@pytest.mark.parametrize(
    ("llm", "said", "made_by"),
    [
        ({}, "へ行った。", "extractive"),
        (FAKE, "五つの町を旅した。", "model"),
        ({"chat_class": "no_such_package:Chat"}, "へ行った。", "extractive, because the chat model failed"),
    ],
    ids=["by itself", "by a chat model", "by a chat model that is not there"],
)
def test_a_conversation_is_summarised_and_the_next_one_begins_with_it(tmp_path, eventually, llm, said, made_by):
    with serving(tmp_path, json.dumps({**CONFIG, "llm": llm})) as server:
        http = httpx2.Client(base_url=server.url, headers={"X-Persona": "nilou"}, trust_env=False, timeout=60)
        with http:
            http.post("/api/import", content=LINES.encode()).raise_for_status()

            def summaries():
                rows = map(json.loads, http.get("/api/export").text.splitlines())
                return [row for row in rows if row["kind"] == "summary"]

            eventually(summaries)
            (summary,) = summaries()
            assert said in summary["content"]
            assert summary["metadata"] == {"summary_of": "session", "subject": "旅", "made_by": made_by}
            chores = http.get("/ready").json()["chores"]
            assert chores["summaries"]["enabled"]
            assert chores["summaries"]["failing"] == []


def test_what_recall_showed_is_counted_when_the_server_stops(tmp_path):
    config = json.dumps({**CONFIG, "upkeep": {"idle_seconds": 3600}})
    with serving(tmp_path, config) as server:
        key = json.loads(server.memory_mcp("remember", "苺が好き", "-p", "nilou", "--json").stdout)["key"]
        server.memory_mcp("recall", "苺", "-p", "nilou")
        assert server.stop() == 0
    with serving(tmp_path, config) as server:
        (row,) = map(json.loads, server.memory_mcp("export", "-p", "nilou").stdout.splitlines())
        assert (row["key"], row["usage_count"]) == (key, 1)


def test_an_import_is_put_together_for_the_search_at_once_although_somebody_calls(tmp_path, eventually):
    with serving(tmp_path, json.dumps({**CONFIG, "upkeep": {"idle_seconds": 3600}})) as server:
        lines = "".join(json.dumps({"content": f"{number}冊目の本には海の話が書いてあった。"}) + "\n" for number in range(3_000))
        httpx2.post(
            f"{server.url}/api/import", content=lines, headers={"X-Persona": "nilou"}, trust_env=False, timeout=60
        ).raise_for_status()
        ready = {"url": f"{server.url}/ready", "trust_env": False}
        eventually(lambda: "last_done" in httpx2.get(**ready).json()["chores"]["segments"])
        assert not httpx2.get(**ready).json()["chores"]["segments"]["failing"]
        reader = apsw.Connection(str(tmp_path / "memory" / "nilou" / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
        assert not bm25_index.is_fragmented(reader)
        reader.close()
