"""A persona's store and its pools with models: one order by meaning and words, one reranking, and every absence said aloud."""

import time

import pytest
from fakes import HashingEmbedder, OverlapReranker

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Feedback, Filters
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.index.sync import apply_queue
from memory_mcp.personas.names import pool_store
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search import pipeline
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.search.stores import Pools
from memory_mcp.store import feedback, memories
from memory_mcp.store.vectors.index_cache import IndexCache

LOADED, ABSENT = ModelState("loaded", "fake"), ModelState("absent", "fake", error="gone")
SETTINGS = Settings(embeddings_model="fake", reranker_model="fake")
MODEL = HashingEmbedder(256)


@pytest.fixture
def indexes():
    return IndexCache()


@pytest.fixture
def team(personas):
    with personas.writing(pool_store("team")) as pool:
        yield pool


@pytest.fixture
def tell(now, zone, indexes):
    """Stores texts, embedded by this model unless it is None."""

    def tell(store, *contents, by=MODEL):
        for content in contents:
            remember(store, draft(content, now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        while by and apply_queue(store, by, indexes, zone=zone).waiting:
            pass

    return tell


@pytest.fixture
def ask(nilou, team, now, indexes):
    def ask(query, reranker=None, pools=None, deadline=None, **fields):
        asked = question(settings=SETTINGS, now=now, query=query, **{"detail": "why", **fields})
        models = Models(MODEL, reranker, LOADED, LOADED if reranker else ABSENT)
        stores = Pools((team,)) if pools is None else pools
        return recall(nilou, asked, stores, models=models, settings=SETTINGS, now=now, indexes=indexes, deadline=deadline)

    return ask


def told(answer):
    return [(hit.memory.content, hit.pool) for hit in answer.hits]


def test_meaning_and_words_of_both_stores_make_one_order(nilou, team, tell, ask):
    tell(nilou, "猫と海辺を散歩した", "紅茶を飲んだ")
    tell(team, "海辺の猫の名前はミケ", "図書館で本を返した")
    answer = ask("海辺の猫の名前")
    assert told(answer)[:2] == [("海辺の猫の名前はミケ", "team"), ("猫と海辺を散歩した", "")]
    assert (answer.mode, answer.degraded, answer.index_lag) == ("hybrid", ("reranker_absent",), 0)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert set(answer.hits[0].why) >= {"lexical", "dense"}


def test_the_cross_encoder_reads_the_best_of_all_stores_together_within_its_deadline(nilou, team, tell, ask):
    tell(nilou, "猫と海辺を散歩した")
    tell(team, "海辺の猫の名前はミケ")
    answer = ask("海辺の猫の名前", OverlapReranker())
    assert (answer.reranked, answer.degraded, told(answer)[0]) == (True, (), ("海辺の猫の名前はミケ", "team"))
    late = ask("海辺の猫の名前", OverlapReranker(), deadline=time.monotonic() - 1)
    assert (late.reranked, late.degraded, told(late)[0]) == (False, ("rerank_deadline",), ("海辺の猫の名前はミケ", "team"))


def test_a_pool_whose_vectors_are_of_another_model_is_found_by_its_words(nilou, team, tell, ask):
    tell(nilou, "猫と海辺を散歩した")
    tell(team, "海辺の猫の名前はミケ", by=HashingEmbedder(128))
    answer = ask("海辺の猫の名前", OverlapReranker())
    assert told(answer)[0] == ("海辺の猫の名前はミケ", "team")
    assert "dense" not in answer.hits[0].why
    assert answer.degraded == ("reembedding",)


def test_a_new_persona_has_the_meaning_of_its_pools(nilou, team, tell, ask):
    tell(team, "海辺の猫の名前はミケ")
    answer = ask("海辺の猫の名前", OverlapReranker())
    assert (answer.mode, told(answer)) == ("hybrid", [("海辺の猫の名前はミケ", "team")])


def test_sessions_of_one_name_in_two_stores_are_two_sessions(nilou, team, now, zone, ask):
    for store, contents in ((nilou, ("京都で紅葉を見た", "紅葉の色")), (team, ("関係のない話", "別の話"))):
        for content in contents:
            remember(store, draft(content, session_id="s1", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    with_pool, alone = ask("紅葉の話", mode="keyword", detail="why"), ask("紅葉の話", mode="keyword", detail="why", pools=Pools())
    assert [hit.why.get("session") for hit in with_pool.hits if not hit.pool] == [hit.why.get("session") for hit in alone.hits]


def test_without_pools_the_answer_is_that_of_the_store_alone(nilou, tell, ask, now, indexes):
    tell(nilou, "猫と海辺を散歩した", "紅茶を飲んだ")
    models = Models(MODEL, OverlapReranker(), LOADED, LOADED)
    asked = question(settings=SETTINGS, now=now, query="海辺の猫", detail="why")
    alone = pipeline.recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes)
    assert ask("海辺の猫", OverlapReranker(), pools=Pools()) == alone
    assert ask("海辺の猫", OverlapReranker()).hits == alone.hits  # an empty pool changes nothing


def test_a_question_and_its_answer_are_weighed_beside_a_pool_as_without_one(nilou, now, zone, ask):
    for content in ("夕飯は何がいい？", "カレーがいい、夕飯にはナンも欲しい"):
        told = draft(content, source="健太", session_id="s1", now=now, zone=zone)
        remember(nilou, told, now=now, zone=zone, privacy=Privacy())
    beside, alone = (ask("夕飯は何がいい", mode="keyword", detail="why", pools=pools) for pools in (None, Pools()))
    assert [(hit.score, hit.why) for hit in beside.hits] == [(hit.score, hit.why) for hit in alone.hits]


def test_a_judgement_counts_beside_a_pool(nilou, team, tell, ask, now):
    tell(nilou, "苺のタルトが好き")
    tell(team, "苺のタルトを焼いた")

    def judge(connection):
        (memory,) = memories.recent(connection, Filters(), 1)
        feedback.add(connection, memory.id, [Feedback("helped", now, "run", "苺")])

    nilou.database.write(judge)
    assert {hit.pool: "judged" in hit.why for hit in ask("苺のタルト", mode="keyword", detail="why").hits} == {"": True, "team": False}
