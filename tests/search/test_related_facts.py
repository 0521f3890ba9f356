"""What is related to a memory names the fact that it changes, whatever is stored beside it."""

import random
from datetime import timedelta

import pytest
from fakes import HashingEmbedder
from unloaded_models import unloaded_models

from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.index import sync
from memory_mcp.search.related import RELATED_LIMIT, related
from memory_mcp.store import memories
from memory_mcp.store.graph import memory_links
from memory_mcp.store.graph.memory_links import Link
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors.index_cache import IndexCache

PAIRS = {
    "毎朝コーヒーを二杯飲む": "コーヒーは医者に止められて、今は麦茶にしている",
    "職場は渋谷のデザイン事務所": "渋谷の事務所を辞めて、独立した",
    "ピアノのレッスンは毎週火曜の夕方": "ピアノのレッスンが木曜に移った",
    "娘の保育園はひまわり園": "娘はひまわり園から小学校に上がった",
    "スマホはPixel 7を使っている": "Pixel 7が壊れたのでiPhoneに買い替えた",
    "夕食は七時に食べる": "夕食の時間は八時半に変わった",
    "猫のトイレは洗面所に置いている": "猫のトイレを廊下に移動した",
    "来月の同窓会は銀座の店で開く": "同窓会の場所は新橋の居酒屋になった",
    "マンションの家賃は九万円": "更新で家賃が九万五千円に上がった",
    "ジムは駅前のティップネスに通っている": "ティップネスは退会した",
    "妻はチョコレートが好き": "妻は最近チョコレートを控えている",
    "My desk is on the fourth floor": "I moved my desk down to the second floor",
    "We deploy every Thursday with Jenkins": "Deploys now go out through GitHub Actions, Jenkins is retired",
    "My sister Anna lives in Leeds": "Anna has moved from Leeds to Bristol",
    "I take the 8:15 train to work": "The 8:15 train was cut, so I take the 7:50 now",
    "Our dog eats grain-free kibble": "The dog gets a raw diet these days instead of kibble",
    "The project codename is Falcon": "Falcon has been renamed to Osprey",
    "I am learning Spanish on Duolingo": "I gave up Spanish and deleted Duolingo",
    "My dentist is Dr. Patel": "Dr. Patel retired, my new dentist is Dr. Gomez",
    "The wifi password is on the fridge": "The wifi password note moved from the fridge to the drawer",
}
OTHERS = [
    "{}号室の鍵を探した",
    "庭の木に{}回水をやった",
    "社内の会議で資料を{}枚配った",
    "the bus was {} minutes late",
    "My brother sent {} photos from his trip",
]


@pytest.fixture
def near(nilou, settings, now, zone):
    def near(stored):
        known = {similar.key for similar in stored.similar}
        return related(nilou, stored.key, known, models=unloaded_models(settings), zone=zone, now=now, indexes=None)

    return near


def test_a_changed_fact_is_among_what_is_related_to_its_change(say, near, now):
    told = [*PAIRS, *(text.format(number) for text in OTHERS for number in range(3, 23))]
    random.Random(3).shuffle(told)
    for text in told:
        say(text)
    missed = []
    for old, new in PAIRS.items():
        found = [memory.content for memory in near(say(new, at=now + timedelta(days=1)))]
        assert len(found) <= RELATED_LIMIT
        missed += [new] if old not in found else []
    assert len(missed) <= len(PAIRS) // 10, missed


def test_long_and_strange_texts_have_something_related_or_nothing(say, near):
    fact = say("むぎはチキン味のカリカリしか食べない。")
    for text in ("漢" * 100_000, '"' * 50_000 + " OR NEAR(" * 5_000, "\u202e😀" * 20_000, "。" * 100):
        assert near(say(text)) == []
    assert [memory.key for memory in near(say("むぎがチキン味に飽きた。" + "草" * 100_000))] == [fact.key]


def test_what_is_in_the_trash_expired_or_gone_is_not_related(say, near, nilou, now):
    fact = say("むぎはチキン味のカリカリしか食べない。", expires_at="")
    change = say("むぎがチキン味に飽きた。")
    assert [memory.key for memory in near(change)] == [fact.key]
    nilou.database.write(lambda connection: connection.execute("UPDATE memories SET deleted_at = created_at WHERE key = ?", (fact.key,)))
    nilou.database.write(lambda connection: bm25_index.rebuild(connection))
    assert near(change) == []


def test_a_damaged_word_index_fails_no_answer(say, near, nilou):
    say("むぎはチキン味のカリカリしか食べない。")
    change = say("むぎがチキン味に飽きた。")
    nilou.database.write(lambda connection: connection.execute("DROP TABLE lexical"))
    assert near(change) == []


def test_links_in_a_circle_end(say, ask, nilou, now):
    first, second = say("プリウスに乗ってる"), say("プリウスからヤリスに乗り換えた", at=now + timedelta(days=1))

    def ids(connection):
        return [memory.id for memory in memories.by_keys(connection, [first.key, second.key]).values()]

    def link(connection):
        one, other = ids(connection)
        memory_links.add(connection, [Link(one, other, "newer", 1.0, 0.8, "rule"), Link(other, one, "newer", 1.0, 0.8, "rule")], now)

    nilou.database.write(link)
    assert {hit.memory.key for hit in ask("プリウス").hits} == {first.key, second.key}


class Counting(HashingEmbedder):
    """Counts the texts that it embeds, as the cache of a real model has each of them once."""

    def __init__(self):
        super().__init__(256)
        self.texts = []

    def embed_documents(self, texts, *, is_awaited=False):
        self.texts += texts
        return super().embed_documents(texts, is_awaited=is_awaited)


def test_the_text_is_embedded_as_the_index_embeds_it(say, nilou, zone, now):
    embedder, indexes = Counting(), IndexCache()

    def settle():
        sync.prepare(nilou, embedder, [embedder.generation])
        while sync.apply_queue(nilou, embedder, indexes, zone=zone).waiting:
            pass

    fact = say("むぎはチキン味のカリカリしか食べない。")
    say("庭の木に水をやった")
    settle()
    models = Models(embedder, None, ModelState("loaded", embedder.name, embedder.dimension), ModelState("off"))
    change = say("むぎがチキン味に飽きた。")
    before, asked = len(embedder.texts), embedder.queries_asked
    found = related(nilou, change.key, (), models=models, zone=zone, now=now, indexes=indexes)
    assert [memory.key for memory in found] == [fact.key]
    (text,) = embedder.texts[before:]
    settle()
    assert set(embedder.texts[before:]) == {text}
    assert embedder.queries_asked == asked
