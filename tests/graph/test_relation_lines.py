"""Relations as text: a memory is found by what its writer stated with it, and recall tells what the graph states of whom a question names."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.features.graph import entity_edits, relation_edits
from memory_mcp.graph.query.retrieval import LINES, LINES_WITHOUT_SHARED_WORD
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.store.lexical import bm25_index


@pytest.fixture
def relate(nilou, now):
    def relate(*told):
        stated = [StatedRelation(*(part.strip() for part in one.split(">"))) for one in told]
        relation_edits.relate(nilou, stated, now=now, privacy=Privacy())

    return relate


def keys_of(answer):
    return [hit.memory.key for hit in answer.hits]


def test_a_memory_is_found_by_the_relations_that_its_writer_stated(say, ask):
    for said in ("健太は元気", "京都へ行った", "カレーを食べた", "雨が降った", "本を読んだ", "健太は京都へ行った"):
        say(said)
    key = say("今日の会話のまとめ", relations=["健太 > 飼っている > ダイズ"]).key
    assert keys_of(ask("健太は何を飼っている？"))[0] == key
    assert keys_of(ask("ダイズ")) == [key]
    assert keys_of(ask("ダイズ", mode="graph")) == [key]


def test_what_a_memory_says_itself_counts_more_than_what_was_stated_with_another(say, ask):
    stated = say("まとめ", relations=["健太 > 飼う > 犬"]).key
    said = say("犬を飼う").key
    assert keys_of(ask("犬を飼う")) == [said, stated]


def test_its_neighbours_in_the_session_are_not_found_by_what_was_stated_with_it(say, ask):
    say("前の話", session_id="s")
    key = say("まとめ", session_id="s", relations=["健太 > 飼っている > ダイズ"]).key
    say("後の話", session_id="s")
    assert keys_of(ask("ダイズ")) == [key]


def test_what_was_stated_stays_searchable_after_a_revision_and_goes_with_the_trash(say, ask, nilou, now):
    key = say("まとめ", relations=["健太 > 飼っている > ダイズ"]).key
    revise(nilou, key, Revision(content="きょうのまとめ"), now=now, privacy=Privacy())
    assert keys_of(ask("ダイズ")) == [key]
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    found = ask("ダイズ")
    assert (found.hits, found.relations) == ((), ())
    revise(nilou, key, Revision(restore=True), now=now, privacy=Privacy())
    assert keys_of(ask("ダイズ")) == [key]


def test_it_is_found_by_the_name_that_an_entity_is_given_and_no_more_when_that_is_deleted(say, ask, nilou, now):
    key = say("まとめ", relations=["健太 > 飼っている > ダイズ"]).key
    entity_edits.change(nilou, "ダイズ", EntityChange(name="小麦", aliases=()), now=now, privacy=Privacy())
    assert (keys_of(ask("小麦")), keys_of(ask("ダイズ"))) == ([key], [])
    entity_edits.delete(nilou, "小麦", now=now)
    assert ask("小麦").hits == ()


def test_rows_of_before_relations_had_words_are_made_anew(say, ask, nilou):
    key = say("まとめ", relations=["健太 > 飼っている > ダイズ"]).key
    say("別の話")

    def as_before(connection):
        connection.execute("UPDATE lexical SET previous = '' WHERE rowid = 1")
        connection.execute("UPDATE lexical SET previous = 'stale' WHERE rowid = 2")
        connection.execute("UPDATE properties SET value = '1.1' WHERE name = 'lexical_version'")

    nilou.database.write(as_before)
    assert ask("ダイズ").hits == ()
    nilou.database.write(bm25_index.rebuild_if_outdated)
    assert (keys_of(ask("ダイズ")), keys_of(ask("stale"))) == ([key], [])
    with nilou.database.read() as connection:
        assert not bm25_index.is_outdated(connection)


def test_recall_tells_what_was_related_outside_of_any_memory(relate, ask):
    relate("健太 > 飼っている > ダイズ", "ダイズ > is_a > 柴犬", "健太 > lives_in > 京都", "佐藤 > 飼っている > 猫")
    found = ask("健太は何を飼っている？")
    assert (found.hits, found.relations) == ((), ("健太 > 飼っている > ダイズ",))
    assert ask("柴犬を飼っているのは誰？").relations == ("ダイズ > is_a > 柴犬", "健太 > 飼っている > ダイズ")
    assert ask("健太の犬種は？", mode="graph").relations == ("健太 > 飼っている > ダイズ", "ダイズ > is_a > 柴犬")
    assert ask("健太と京都の関係は？").relations[0] == "健太 > lives_in > 京都"


def test_where_no_word_of_the_question_is_in_a_relation_the_strongest_few_are_told(relate, ask, say):
    say("まとめ", relations=["健太 > 飼っている > ダイズ"])
    relate(*(f"健太 > friend_of > 友{number}号" for number in range(6)), "健太 > 飼っている > ダイズ")
    told = ask("健太のペットは？").relations
    assert len(told) == LINES_WITHOUT_SHARED_WORD
    assert told[0] == "健太 > 飼っている > ダイズ"


def test_no_more_relations_are_told_than_the_budget_has_room_for(relate, ask, say):
    relate(*(f"健太 > 飼っている > 犬{number}号" for number in range(40)))
    say("健太は犬を飼っている。" * 100)
    assert len(ask("健太が飼っている犬").relations) == LINES
    small = ask("健太が飼っている犬", max_tokens=200)
    assert 0 < len(small.relations) < LINES
    assert sum(map(estimate_tokens, (*small.relations, *(hit.text for hit in small.hits)))) <= 200
    least = ask("健太が飼っている犬", max_tokens=50)
    assert least.relations == ()
    assert least.hits[0].text.startswith("健太は犬を")


def test_who_is_only_named_together_nobody_is_told_and_no_relation_passes_a_filter(relate, ask, say, nilou, now):
    say("[[健太]]と[[佐藤]]が来た", tags=["来客"])
    assert ask("健太は？").relations == ()
    relate("健太 > likes > 苺")
    assert ask("健太は？").relations == ("健太 > likes > 苺",)
    assert ask("健太は？", tags=["来客"]).relations == ()
    assert ask("健太は？", mode="recent").relations == ()


def test_a_relation_that_is_over_is_told_with_its_days(ask, nilou, now):
    worked = StatedRelation("健太", "works_at", "みどり産業")
    relation_edits.relate(nilou, [worked], now=now, privacy=Privacy(), when=RelationValidity(valid_to="2015-03-31"))
    assert ask("健太の仕事は？").relations == ("健太 > works_at > みどり産業 (..2015-03-31)",)


def test_what_was_taken_back_is_told_no_more_and_merged_ones_go_by_their_one_name(relate, ask, nilou, now):
    relate("健太 > likes > 苺", "健太 > similarity > 佐藤")
    assert set(ask("健太は？").relations) == {"健太 > likes > 苺", "健太 — similarity — 佐藤"}
    relation_edits.unrelate(nilou, StatedRelation("健太", "likes", "苺"), reason=None, now=now, privacy=Privacy())
    assert ask("健太は？").relations == ("健太 — similarity — 佐藤",)


def test_a_question_that_names_nobody_is_told_no_relation(relate, ask):
    relate("健太 > likes > 苺")
    assert ask("天気は？").relations == ()
