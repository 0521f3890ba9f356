"""Links from memory to memory: what says nearly the same, what may contradict what. They follow the memories, and decide nothing."""

from datetime import timedelta

import pytest
from fakes import HashingEmbedder

from memory_mcp.config.settings import Privacy
from memory_mcp.encoders.models import OFF, Models
from memory_mcp.features.graph.background import LINKS_EACH, link_similar
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.index import sync
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories
from memory_mcp.store.graph import memory_links
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors.index_cache import IndexCache


class Background:
    """What a server does while nobody calls, as far as it makes links."""

    def __init__(self, persona, zone, now):
        self.persona, self.zone, self.now = persona, zone, now
        self.indexes, self.embedder = IndexCache(), HashingEmbedder(64)
        self.models = Models(self.embedder, None, OFF, OFF)

    def weave(self):
        while update_graph(self.persona, self.now):
            pass

    def embed(self):
        while sync.apply_queue(self.persona, self.embedder, self.indexes, zone=self.zone).waiting:
            pass

    def link(self, least=0.6):
        steps = 0
        while link_similar(self.persona, self.models, self.indexes, least, self.now):
            steps += 1
            assert steps < 100
        return steps

    def everything(self):
        self.weave()
        self.embed()
        return self.link()

    def links(self, type_):
        with self.persona.database.read() as connection:
            rows = connection.execute(
                "SELECT s.content, t.content FROM memory_links l JOIN memories s ON s.id = l.source JOIN memories t ON t.id = l.target "
                "WHERE l.type = ? ORDER BY l.source, l.target",
                (type_,),
            )
            return [tuple(row) for row in rows]

    def suggested(self):
        with self.persona.database.read() as connection:
            return memory_links.contradictions(connection, 10)


@pytest.fixture
def background(nilou, zone, now):
    return Background(nilou, zone, now)


def test_what_says_nearly_the_same_is_linked_once_it_has_vectors(say, background):
    say("公園で友だちと犬の散歩をした")
    say("公園で友だちと猫の散歩をした")
    say("税金の書類を出した")
    background.weave()
    assert background.link() == 0
    background.embed()
    assert background.link() > 0
    assert background.links("semantic_similarity") == [("公園で友だちと犬の散歩をした", "公園で友だちと猫の散歩をした")]
    assert background.link() == 0


def test_a_memory_is_linked_to_the_nearest_few_alone(say, background, nilou):
    for number in range(30):
        say(f"公園で友だちと犬の散歩をした。{number}回目")
    background.everything()
    with nilou.database.read() as connection:
        made = connection.execute("SELECT count(*) FROM memory_links WHERE method = 'vectors'").get
    assert 0 < made <= 30 * LINKS_EACH


def test_a_changed_text_is_linked_anew(say, background, nilou, now):
    key = say("公園で友だちと犬の散歩をした").key
    say("公園で友だちと猫の散歩をした")
    background.everything()
    revise(nilou, key, Revision(content="税金の書類を出した"), now=now, privacy=Privacy())
    background.everything()
    assert background.links("semantic_similarity") == []


def test_a_contradiction_is_suggested_and_nothing_else_happens_to_either(say, background, nilou, now):
    say("田中さんの誕生日は10月3日です")
    later = say("田中さんの誕生日は9月3日です")
    background.weave()
    assert background.suggested() == ([(1, 2)], 1)
    with nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM memories WHERE deleted_at IS NULL AND supersedes IS NULL").get == 2
    forget(nilou, [later.key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert background.suggested() == ([], 0)


def test_what_denies_another_or_gives_it_another_value_is_newer(say, background):
    say("苺が好き")
    say("桃が嫌い")
    say("苺が嫌い")
    say("誕生日は10月3日")
    say("誕生日は9月3日")
    say("I can eat nuts")
    say("I can not eat nuts")
    background.weave()
    assert background.links("newer") == [
        ("苺が嫌い", "苺が好き"),
        ("誕生日は9月3日", "誕生日は10月3日"),
        ("I can not eat nuts", "I can eat nuts"),
    ]


def test_in_a_large_store_the_rarest_words_find_what_no_longer_holds(say, background, monkeypatch):
    monkeypatch.setattr(bm25_index, "MANY_ROWS", 20)
    long = "窓辺の古い棚に並ぶ本は夕方の光の中で読むと少しだけ苺の香りがするので"
    say(f"{long}好き")
    for number in range(40):
        say(f"窓辺の古い棚に並ぶ本を{number}回も夕方の光の中で読むと眠くなる")
    say(f"{long}嫌い")
    background.weave()
    assert background.links("newer") == [(f"{long}嫌い", f"{long}好き")]


def test_a_text_of_several_sentences_denies_nothing(say, background):
    say("苺が好き")
    say("苺が嫌い。でも林檎は好き。")
    background.weave()
    assert background.links("newer") == []


def test_relations_that_do_not_go_together_make_their_memories_contradict(say, background):
    say("引っ越しの話", relations=["鈴木 > lives_in > 東京"])
    say("荷物の話", relations=["鈴木 > lives_in > 大阪"])
    say("果物の話", relations=["佐藤 > likes > 苺"])
    say("市場の話", relations=["佐藤 > hates > 苺"])
    say("別の話", relations=["佐藤 > likes > 桃"])
    background.weave()
    assert background.links("contradiction") == [("引っ越しの話", "荷物の話"), ("果物の話", "市場の話")]


def test_what_was_replaced_contradicts_nothing_and_what_is_put_right_neither(say, background, nilou, now):
    old = say("プロジェクトAの締切は10月17日です")
    background.weave()
    say("プロジェクトAの締切は10月20日です", supersedes=old.key)
    background.weave()
    assert background.suggested() == ([], 0)
    wrong = say("プロジェクトAの締切は10月30日です")
    background.weave()
    assert background.suggested()[1] == 1
    revise(nilou, wrong.key, Revision(content="プロジェクトAの締切は10月20日です。みんなに言った"), now=now, privacy=Privacy())
    background.weave()
    assert background.suggested() == ([], 0)


def test_a_purged_memory_takes_its_links_along(say, background, nilou):
    say("田中さんの誕生日は10月3日です")
    say("田中さんの誕生日は9月3日です")
    background.everything()
    nilou.database.write(lambda connection: connection.execute("DELETE FROM memories WHERE id = 2"))
    assert background.links("newer") == []


@pytest.mark.slow
def test_what_a_memory_costs_does_not_grow_with_its_session(nilou, now, zone):
    """Counted in the steps of SQLite's machine: of its row in the lexical index, and of its links in the session."""

    def steps(size, session):
        moments = [(now - timedelta(minutes=number)).isoformat() for number in range(size)]
        drafts = [draft(f"{at}の話", now=now, zone=zone, session_id=session, occurred_at=at) for at in moments]
        keys = [told.key for told in remember_many(nilou, drafts, now=now, zone=zone, privacy=Privacy())]

        def count(connection):
            ids = [memory.id for memory in memories.by_keys(connection, [keys[0], keys[-1]]).values()]
            taken = []
            connection.set_progress_handler(lambda: taken.append(1) is not None, 10)
            bm25_index.refresh(connection, ids)
            memory_links.link_memories(connection, ids, now)
            connection.set_progress_handler(None)
            return len(taken)

        return nilou.database.write(count)

    steps(10, "warm")
    assert steps(1_000, "long") < 2 * steps(20, "short")
