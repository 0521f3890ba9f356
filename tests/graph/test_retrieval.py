"""How the graph leads a search from its best answers to what else they speak of, and the search by the graph alone."""

import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget


@pytest.fixture
def band(say, nilou, now):
    """Who sings works for a client that ordered something: three memories, of which the question shares words with the first alone."""
    keys = [
        say("バンドのボーカルは[[早川|Person]]だよ").key,
        say("早川さんは白鷺クリニックに勤めている。[[白鷺クリニック|Organization]]は駅前").key,
        *(say(f"きょうは{dish}を食べた").key for dish in ("うどん", "そば", "カレー", "寿司", "天ぷら", "牛丼")),
    ]
    while update_graph(nilou, now):
        pass
    return keys


def keys_of(answer):
    return [hit.memory.key for hit in answer.hits]


def test_a_question_is_led_from_its_best_answer_to_what_else_that_speaks_of(band, ask):
    without = Settings(embeddings_model=None, reranker_model=None, fusion={"graph_weight": 0})
    assert keys_of(ask("ボーカルって誰", under=without)) == band[:1]
    found = ask("ボーカルって誰")
    assert keys_of(found) == band[:2]
    assert found.hits[1].why["graph"] > 0


def test_what_does_not_pass_the_filters_is_not_led_to(band, say, ask):
    assert keys_of(ask("ボーカルって誰", tags=["音楽"])) == []
    say("ボーカルは早川さん、ギターは宮本さん", tags=["音楽"])
    assert all("音楽" in hit.memory.tags for hit in ask("ボーカルって誰", tags=["音楽"]).hits)


def test_by_the_graph_alone_those_come_up_who_are_named_or_related(say, ask, nilou, now):
    deadline = say("プロジェクトAの締切は10月17日")
    who = say("田中さんは元気", relations=["田中 > works_on > プロジェクトA"])
    say("田んぼの中を歩いた")
    while update_graph(nilou, now):
        pass
    found = ask("田中さんの仕事", mode="graph")
    assert (found.mode, keys_of(found)) == ("graph", [who.key, deadline.key])
    assert ask("知らない人のこと", mode="graph").hits == ()


def test_within_what_the_graph_reaches_the_rest_of_the_question_decides(say, ask, nilou, now):
    deadline = say("プロジェクトAの締切は10月17日").key
    say("田中さんがプロジェクトAの担当になった", relations=["田中 > works_on > プロジェクトA"])
    for said in (
        "田中部長が休暇を取った",
        "田中様からメールが来た",
        "田中さんはコーヒーが好き",
        "田中さんの妹は医者",
        "田中さんは背が高い",
    ):
        say(said)
    elsewhere = say("別のプロジェクトの締切は来週").key
    while update_graph(nilou, now):
        pass
    found = ask("田中さんのプロジェクトの締切は？", mode="graph")
    assert keys_of(found)[0] == deadline
    assert found.hits[0].why.keys() >= {"graph", "lexical"}
    assert elsewhere not in keys_of(ask("田中さんのプロジェクトの締切は？", mode="graph", top_k=20))


def test_a_hub_with_many_memories_does_not_hide_what_is_a_hop_away(say, ask, nilou, now):
    deadline = say("プロジェクトAの締切は10月17日").key
    say("田中さんが担当になった", relations=["田中 > works_on > プロジェクトA"])
    for number in range(80):
        say(f"田中さんと散歩した、{number}回目")
    while update_graph(nilou, now):
        pass
    assert keys_of(ask("田中さんの締切は？", mode="graph"))[0] == deadline


def test_a_question_for_the_graph_that_names_nobody_begins_at_whom_its_words_find(band, ask):
    found = ask("ボーカルって誰", mode="graph")
    assert (found.mode, sorted(keys_of(found))) == ("graph", sorted(band[:2]))


def test_a_memory_in_the_trash_is_not_led_to(band, ask, nilou, now):
    forget(nilou, [band[1]], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert keys_of(ask("ボーカルって誰")) == band[:1]
