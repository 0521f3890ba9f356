"""What the models have answered is shared between personas, and nobody can tell from an answer that it was."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from fakes import HashingEmbedder
from langchain_core.embeddings import Embeddings

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.encoders.reranking import Pair, PooledReranker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.index.sync import apply_queue
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store.vectors.index_cache import IndexCache

SETTINGS = Settings(embeddings_model="counted", reranker_model="counted")
LOADED = ModelState("loaded", "counted")
SHARED = ("海辺で猫と散歩した", "山小屋で紅茶を飲んだ", "猫の名前はミケ")
QUERY = "猫と海辺"
OF_THE_MEMORY = {"id", "key", "created_at", "updated_at"}  # what differs between two memories of one content


class CountedEmbeddings(Embeddings):
    """Counts the texts that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._model = HashingEmbedder(64)

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return list(map(float, self._model.embed_query(text)))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [list(map(float, vector)) for vector in self._model.embed_documents(texts)]


class CountedJudge:
    """The same for pairs; the fewer characters lie between the lengths, the better."""

    def __init__(self) -> None:
        self.asked: list[Pair] = []

    def __call__(self, pairs: list[Pair]) -> list[float]:
        self.asked += pairs
        return [1 / (1 + abs(len(query) - len(text))) for query, text in pairs]


class World:
    """Personas that share models and caches, as those of one server do."""

    def __init__(self, personas: Personas, pool: ModelPool, now: Any, zone: Any) -> None:
        self.personas, self.now, self.zone = personas, now, zone
        self.embeddings, self.judge, self.caches, self.indexes = CountedEmbeddings(), CountedJudge(), Caches(), IndexCache()
        self.embedder = PooledEmbedder(self.embeddings, Identity("counted", 64, "counted:64"), pool, self.caches)
        self.models = Models(self.embedder, PooledReranker(self.judge, "counted", pool, self.caches), LOADED, LOADED)

    def say(self, name: str, *contents: str) -> None:
        with self.personas.writing(name) as persona:
            for content in contents:
                remember(persona, draft(content, now=self.now, zone=self.zone), now=self.now, zone=self.zone, privacy=Privacy())
            while apply_queue(persona, self.embedder, self.indexes, zone=self.zone).waiting:
                pass

    def ask(self, name: str, query: str = QUERY) -> dict[str, Any]:
        """The whole answer, without what two memories of one content differ in."""
        asked = question(settings=SETTINGS, now=self.now, query=query)
        with self.personas.reading(name) as persona:
            found = recall(persona, asked, models=self.models, settings=SETTINGS, now=self.now, indexes=self.indexes)
        told = asdict(found)
        for hit in told["hits"]:
            hit["memory"] = {name: value for name, value in hit["memory"].items() if name not in OF_THE_MEMORY}
        return told

    def asked(self) -> int:
        return len(self.embeddings.asked) + len(self.judge.asked)


@pytest.fixture
def world(personas: Personas, now: Any, zone: Any) -> Iterator[World]:
    with ModelPool(2) as pool:
        yield World(personas, pool, now, zone)


def test_what_one_persona_has_asked_is_not_asked_again_for_another_and_the_answers_are_alike(world: World) -> None:
    world.say("nilou", *SHARED)
    first = world.ask("nilou")
    before = world.asked()
    world.say("dehya", *SHARED)
    assert world.ask("dehya") == first
    assert world.asked() == before
    assert (first["mode"], first["reranked"], len(first["hits"])) == ("hybrid", True, len(SHARED))


def test_an_answer_from_the_caches_equals_one_that_was_computed(world: World) -> None:
    world.say("nilou", *SHARED)
    computed = world.ask("nilou")
    cached = world.ask("nilou")
    world.caches.clear()
    assert world.ask("nilou") == cached == computed


def test_a_question_that_another_has_asked_finds_only_ones_own(world: World) -> None:
    world.say("nilou", *SHARED, "猫と海辺のひみつはnilou")
    world.say("dehya", "猫と海辺のひみつはdehya")
    for name, other in (("nilou", "dehya"), ("dehya", "nilou")) * 2:
        told = json.dumps(world.ask(name), ensure_ascii=False, default=str)
        assert f"ひみつは{name}" in told
        assert f"ひみつは{other}" not in told
    assert world.ask("nobody", QUERY)["hits"] == ()


def test_a_key_of_the_caches_holds_no_text_and_no_name(world: World) -> None:
    world.say("nilou", *SHARED)
    world.ask("nilou")
    caches = (world.caches.query_vectors, world.caches.document_vectors, world.caches.scores)
    keys = [key for cache in caches for key in cache._entries]
    assert len(keys) == 1 + 2 * len(SHARED)
    assert {type(key) for key in keys} == {bytes}
    assert {len(key) for key in keys} == {16}


def test_a_text_that_differs_by_one_character_has_a_vector_and_a_score_of_its_own(world: World) -> None:
    world.say("nilou", "海辺で猫と散歩した")
    world.ask("nilou")
    before = world.asked()
    world.say("dehya", "海辺で犬と散歩した")
    world.ask("dehya")
    assert world.asked() == before + 2
