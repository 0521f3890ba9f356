"""Entities by meaning: a vector for each that follows its names and the memories that name it, and what it finds."""

import numpy as np
import pytest
from fakes import HashingEmbedder
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.encoders.models import Models, ModelState, Replacement
from memory_mcp.errors import EncoderFailed
from memory_mcp.features.graph import entity_edits
from memory_mcp.features.graph.background import EMBEDDED_AT_ONCE, embed_entities
from memory_mcp.graph.query.entities_by_meaning import entities_by_meaning
from memory_mcp.index import sync
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store import erasure, memories
from memory_mcp.store.graph.entities import entity_vectors, records
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache


def models_of(embedder):
    state = ModelState("loaded", embedder.name, embedder.dimension)
    return Models(embedder, None, state, ModelState("off"))


class Minds:
    """A persona with an embedding model."""

    def __init__(self, persona, now, zone, embedder):
        self.persona, self.now, self.zone, self.embedder, self.indexes = persona, now, zone, embedder, IndexCache()

    @property
    def models(self):
        return models_of(self.embedder)

    def settle(self):
        """Embeds all that waits: memories, then entities."""
        sync.prepare(self.persona, self.embedder, [self.embedder.generation])
        while sync.apply_queue(self.persona, self.embedder, self.indexes, zone=self.zone).waiting:
            pass
        steps = 1
        while embed_entities(self.persona, self.models):
            steps += 1
            assert steps < 100
        return steps

    def vectors(self, generation=None):
        """The vector of each entity, by its name."""
        with self.persona.database.read() as connection:
            ids, found = entity_vectors.everything(connection, generation or self.embedder.generation)
            known = records.by_ids(connection, ids.tolist())
        return {known[one].name: vector for one, vector in zip(ids.tolist(), found, strict=True)}

    def meant(self, text):
        return [entity.name for entity, _ in entities_by_meaning(self.persona, text, self.models).entities]

    def ask(self, query, models=None, **fields):
        asked = question(settings=Settings(), now=self.now, query=query, **{"detail": "why", **fields})
        return recall(self.persona, asked, models=models or self.models, settings=Settings(), now=self.now, indexes=self.indexes)


@pytest.fixture
def minds(nilou, now, zone):
    return Minds(nilou, now, zone, HashingEmbedder(256))


@pytest.fixture
def dentist(say, minds, nilou, now):
    """みどり, a dentist: her memory and its key. 佐藤 and 京都 are somebody and something else."""
    key = say("[[みどり|Organization]]で歯の治療をした").key
    say("佐藤さんと赤坂駅へ行った")
    entity_edits.change(nilou, "みどり", EntityChange(description="近所の歯医者"), now=now, privacy=Privacy())
    minds.settle()
    return key


def test_who_is_described_is_found_by_what_is_said_of_them(dentist, minds):
    assert minds.meant("あの歯医者") == ["みどり"]
    assert minds.meant("量子コンピュータの論文") == []


def test_a_question_for_the_graph_that_names_nobody_is_led_by_whom_it_means_and_says_so(dentist, minds):
    answer = minds.ask("あの歯医者", mode="graph")
    assert [hit.memory.key for hit in answer.hits] == [dentist]
    assert [name for name, _ in answer.meant] == ["みどり"]
    assert answer.degraded == ()
    assert minds.ask("みどりはどこ", mode="graph").meant == ()


def test_beside_a_name_the_rest_of_a_question_for_the_graph_counts_by_meaning_too(dentist, minds, say):
    for number in range(3):
        say(f"みどりの看板 {number}")
    minds.settle()
    hits = minds.ask("みどりで治療した歯", mode="graph").hits
    assert hits[0].memory.key == dentist
    assert hits[0].why.keys() >= {"graph", "lexical", "dense"}


def test_without_a_model_names_and_words_alone_find_somebody_and_the_answer_says_so(dentist, minds):
    off = unloaded_models(Settings(embeddings_model=None))
    answer = minds.ask("あの歯医者", models=off, mode="graph")
    assert ([hit.memory.key for hit in answer.hits], answer.meant, answer.degraded) == ([dentist], (), ("embedder_off",))
    assert minds.ask("量子コンピュータ", models=off, mode="graph").hits == ()
    assert minds.ask("みどりはどこ", models=off, mode="graph").degraded == ()
    minds.embedder.failing = True
    assert minds.ask("あの歯医者は", mode="graph").degraded == ("embedder_failed",)


def test_entities_wait_until_the_memories_that_name_them_have_their_vectors(minds, say):
    say("[[みどり|Organization]]で歯の治療をした")
    sync.prepare(minds.persona, minds.embedder, [minds.embedder.generation])
    for number in range(sync.BATCH):
        say(f"みどりの看板 {number}")
    assert sync.apply_queue(minds.persona, minds.embedder, minds.indexes, zone=minds.zone).waiting
    assert not embed_entities(minds.persona, minds.models)
    assert minds.vectors() == {}
    minds.settle()
    assert minds.vectors().keys() == {"みどり"}


def test_a_vector_is_the_name_and_three_parts_in_ten_of_what_the_memories_say(dentist, minds, nilou):
    embedder = minds.embedder
    with nilou.database.read() as connection:
        (memory,) = memories.by_keys(connection, [dentist]).values()
        _, pieces = stored_vectors.of_memories(connection, embedder.generation, [memory.id])
        (said,) = connection.execute(
            "SELECT said FROM entity_vectors v JOIN entities e ON e.id = v.entity WHERE e.name = 'みどり'"
        ).fetchone()
    assert said == "みどり: 近所の歯医者"
    expected = 0.7 * embedder.embed_query(said) + 0.3 * pieces[0]
    assert np.allclose(minds.vectors()["みどり"], expected / np.linalg.norm(expected), atol=1e-5)
    assert all(abs(np.linalg.norm(vector) - 1) < 1e-5 for vector in minds.vectors().values())


def test_a_vector_follows_the_name_the_memories_and_merges_and_is_not_made_again_otherwise(dentist, minds, say, nilou, now):
    def changes():
        before, asked = minds.vectors(), minds.embedder.documents_asked
        minds.settle()
        after = minds.vectors()
        names = {
            name for name in {*before, *after} if name not in before or name not in after or not np.array_equal(before[name], after[name])
        }
        return names, minds.embedder.documents_asked - asked

    assert changes() == (set(), 0)
    key = say("佐藤さんは歯が痛い").key
    assert changes() == ({"佐藤"}, 1)  # the memory alone is embedded: what the name says is known
    revise(nilou, key, Revision(content="佐藤さんは元気"), now=now, privacy=Privacy())
    assert changes() == ({"佐藤"}, 1)
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert changes() == ({"佐藤"}, 0)
    entity_edits.change(nilou, "赤坂駅", EntityChange(aliases=("京都の駅",)), now=now, privacy=Privacy())
    assert changes() == ({"赤坂駅"}, 1)
    entity_edits.delete(nilou, "赤坂駅", now=now)
    assert "赤坂駅" not in minds.vectors()


def test_who_is_one_with_another_has_no_vector_of_its_own_until_they_are_two_again(minds, say, nilou, now):
    say("佐藤さんが来た")
    say("[[さっちゃん|Person]]が歌った")
    minds.settle()
    before = minds.vectors()
    number = entity_edits.merge_entities(nilou, "さっちゃん", "佐藤", reason=None, now=now, privacy=Privacy()).number
    minds.settle()
    assert set(minds.vectors()) == {"佐藤"}
    entity_edits.undo_merge(nilou, number, now=now)
    minds.settle()
    after = minds.vectors()
    assert set(after) == set(before)
    assert all(np.array_equal(after[name], before[name]) for name in before)


def test_what_is_erased_for_good_has_no_share_in_any_vector_any_more(dentist, minds, say, nilou, now):
    other = say("[[みどり]]の予約は金曜日").key
    minds.settle()
    forget(nilou, [other], reason=None, dry_run=False, now=now, privacy=Privacy())

    def erase(connection):
        erasure.erase(connection, list(memories.by_keys(connection, [other]).values()), now, "test")

    nilou.database.write(erase)
    assert "みどり" not in minds.vectors()
    minds.settle()
    assert "みどり" in minds.vectors()


def test_a_name_that_only_an_erased_memory_held_stands_beside_no_vector(minds, say, nilou, now):
    say("[[みどり]]の予約")
    only = say("[[みどり|緑の館]]").key
    minds.settle()

    def said():
        with nilou.database.read() as connection:
            return [row[0] for row in connection.execute("SELECT said FROM entity_vectors")]

    assert said() == ["みどり 緑の館"]
    forget(nilou, [only], reason=None, dry_run=False, now=now, privacy=Privacy())
    nilou.database.write(lambda connection: erasure.erase(connection, list(memories.by_keys(connection, [only]).values()), now, "test"))
    assert said() == []
    minds.settle()
    assert said() == ["みどり"]


def test_another_model_gets_vectors_of_its_own_and_those_of_the_earlier_one_go(dentist, minds):
    earlier = minds.embedder
    minds.embedder = HashingEmbedder(64, "another")
    assert entities_by_meaning(minds.persona, "あの歯医者", minds.models).skipped == "reembedding"
    minds.settle()
    assert entities_by_meaning(minds.persona, "あの歯医者", minds.models).entities
    assert minds.vectors(earlier.generation) == {}


def test_the_vectors_of_a_model_that_is_away_wait_for_it(dentist, minds):
    configured, stand_in = minds.embedder, HashingEmbedder(96, "stand-in")
    minds.embedder = stand_in
    away = Models(None, None, ModelState("absent", configured.name, error="gone"), ModelState("off"), fallback=stand_in)
    sync.prepare(minds.persona, stand_in, [stand_in.generation])
    while sync.apply_queue(minds.persona, stand_in, minds.indexes, zone=minds.zone).waiting:
        pass
    embed_entities(minds.persona, away)
    assert minds.vectors().keys() == minds.vectors(configured.generation).keys() == {"みどり", "佐藤", "赤坂駅"}
    found = entities_by_meaning(minds.persona, "あの歯医者", away)
    assert ([entity.name for entity, _ in found.entities], found.replaced) == (["みどり"], Replacement("embedder_fallback", "stand-in"))
    minds.embedder = configured
    asked = configured.documents_asked
    minds.settle()
    assert configured.documents_asked == asked
    assert minds.vectors(stand_in.generation) == {}


def test_a_model_that_fails_changes_nothing_and_is_asked_again(minds, say):
    say("佐藤さんが来た")
    minds.settle()
    say("鈴木さんが来た")
    sync.apply_queue(minds.persona, minds.embedder, minds.indexes, zone=minds.zone)
    minds.embedder.failing = True
    with pytest.raises(EncoderFailed):
        embed_entities(minds.persona, minds.models)
    assert set(minds.vectors()) == {"佐藤"}
    minds.embedder.failing = False
    minds.settle()
    assert set(minds.vectors()) == {"佐藤", "鈴木"}


def test_many_entities_take_several_steps(minds, nilou, now, say):
    say("はじめに")
    nilou.database.write(
        lambda connection: [
            records.create(connection, f"第{number}号", "Object", 1.0, now, made_by="user") for number in range(EMBEDDED_AT_ONCE + 5)
        ]
    )
    assert minds.settle() == 2
    assert len(minds.vectors()) == EMBEDDED_AT_ONCE + 5


def test_nobody_is_found_in_another_persona(dentist, minds, personas, now, zone):
    with personas.writing("collei") as collei:
        other = Minds(collei, now, zone, minds.embedder)
        assert entities_by_meaning(collei, "あの歯医者", other.models).skipped == "nothing_embedded_yet"
        assert other.ask("あの歯医者", mode="graph").hits == ()


def test_a_question_for_the_graph_finds_the_memory_that_states_a_relation_of_whom_it_names(say, ask):
    key = say("担当が決まった", relations=["田中|Person > works_on > プロジェクトA"]).key
    say("佐藤さんが来た")
    assert [hit.memory.key for hit in ask("田中さんの仕事は？", mode="graph").hits] == [key]
