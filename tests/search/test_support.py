"""What is no hit: memories that only share common words, grammar or a common entity with the question."""

from datetime import timedelta

import pytest


def contents(recalled) -> list[str]:
    return [hit.memory.content for hit in recalled.hits]


@pytest.fixture
def days(say, now):
    """Thirty memories, enough for words to be common."""
    for day in range(30):
        say(f"庭の木に水をやった、{day}日目", at=now - timedelta(days=60 - day))


def test_honorifics_particles_and_what_asks_find_nothing(days, say, ask):
    say("灰原くんの出張は大阪")
    say("轟さんの好物は何？")
    assert contents(ask("三雲くんの趣味は何でしたか？")) == []


def test_a_particle_between_other_scripts_finds_nothing(say, ask):
    say("CIはGitHub Actions。")
    assert contents(ask("ORMは？")) == []
    assert contents(ask("CIは？")) == ["CIはGitHub Actions。"]


def test_one_hiragana_finds_itself_where_nothing_else_is_asked_for(days, say, ask):
    say("あ")
    assert contents(ask("あ")) == ["あ"]


def test_a_question_of_nothing_but_grammar_finds_what_says_the_same(days, say, ask):
    say("これはどういうこと？")
    assert contents(ask("どういうこと？")) == ["これはどういうこと？"]


def test_what_nearly_everything_says_finds_nothing_beside_a_word_that_nobody_said(days, ask):
    assert contents(ask("庭の池の深さは？")) == []


def test_what_nearly_everything_says_is_found_if_nothing_else_is_asked_for(days, ask):
    assert len(ask("庭", top_k=5).hits) == 5


def test_a_memory_that_shares_little_beside_a_far_better_one_is_no_hit(days, say, ask):
    say("北洋冷蔵との契約は月額42万円、更新は毎年三月")
    say("更衣室の鍵が壊れた")
    assert contents(ask("北洋冷蔵との契約の更新はいつ？")) == ["北洋冷蔵との契約は月額42万円、更新は毎年三月"]


def test_in_a_small_store_one_shared_word_is_enough(say, ask):
    say("北洋冷蔵との契約は月額42万円、更新は毎年三月")
    say("更衣室の鍵が壊れた")
    assert len(ask("北洋冷蔵との契約の更新はいつ？").hits) == 2


@pytest.mark.parametrize("query", ["作りたいものは？", "見られなかったのは？", "お茶をいれたのは？"])
def test_in_a_small_store_a_part_of_a_word_is_not_enough(say, ask, query):
    for memory in ("借りた本を返した", "られつを直した", "生まれたのは春"):
        say(memory)
    assert contents(ask(query)) == []


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("かんたんな味つけ", "みかんは？"), ("りんかくがぼやける", "りんごは好き？"), ("おにごっこをした", "おにぎりの具は？"),
        ("I want to start jogging", "What art do I like?"), ("The net is broken", "What is .NET?"), ("C++を勉強中", "C#は？"),
    ],
)  # fmt: skip
def test_in_a_small_store_half_of_another_word_is_not_enough(say, ask, memory, query):
    say(memory)
    say("母の誕生日は9月14日")
    assert contents(ask(query)) == []


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("朝は味噌汁を飲む", "おみそ汁はいつ？"), ("朝はおみそしるを飲む", "味噌汁は？"), ("朝はごはん派", "御飯かパンか"), ("御飯を炊く", "ごはんは？"),
        ("昨日鮨を食べた", "おすしは？"), ("昨日お寿司を食べた", "鮨は？"), ("Wi-Fiが遅い", "ワイファイは？"), ("ワイファイが遅い", "wifiは？"),
        ("Tシャツを買った", "T-shirtは？"), ("ヘッドホンはWH-1000XM5", "WH1000XM5は？"), ("We run A/B tests", "AB test?"), ("R＆Bを聴く", "R&Bは？"),
        ("She has a Ph.D. in physics", "PhD?"), ("コンビニは24/7", "24/7は？"), ("友達は@hana_chan", "hana_chanは？"), ("タグは#gohan", "gohanは？"),
        ("佐佐木さんは課長", "佐々木は？"), ("𠮷田さんは先生", "吉田さんは？"), ("山﨑さんは先生", "山崎さんは？"),
    ],
)  # fmt: skip
def test_one_word_is_found_however_it_is_written(say, ask, memory, query):
    say(memory)
    say("母の誕生日は9月14日")
    assert contents(ask(query))[:1] == [memory]


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("ねこを飼った", "ねこは？"),
        ("いちごを摘んだ", "私のいちごはどこ？"),
        ("はなびを見た", "夏のはなびは？"),
        ("りんごとみかん", "みかんはある？"),
    ],
)
def test_in_a_small_store_a_word_in_hiragana_is_enough(say, ask, memory, query):
    say(memory)
    say("借りた本を返した")
    assert contents(ask(query)) == [memory]


def test_the_memory_of_a_named_day_is_a_hit_without_a_word_in_common(days, say, ask, now):
    say("カレーを食べた", occurred_at=(now - timedelta(days=1)).isoformat())
    assert contents(ask("昨日、北洋冷蔵から電話があった？")) == ["カレーを食べた"]


def test_what_passes_a_filter_by_time_is_a_hit_without_a_word_in_common(days, say, ask, now):
    say("カレーを食べた", at=now)
    assert contents(ask("北洋冷蔵", date_range="今日")) == ["カレーを食べた"]


def test_an_entity_that_half_of_the_memories_name_makes_no_hit(say, ask, now):
    for day in range(30):
        say(f"[[健太|Person]]は{day}回目の水やり", at=now - timedelta(days=60 - day))
    say("[[健太|Person]]は北洋冷蔵に勤めている")
    assert contents(ask("北洋冷蔵に勤めているのは？")) == ["[[健太|Person]]は北洋冷蔵に勤めている"]


def test_in_a_small_store_a_name_in_hiragana_that_has_a_particle_in_it_is_found(say, ask):
    for text in ("さくらは苺が好き。", "健太は毎朝パンを食べる。", "夕飯はいくら丼だった。", "犬はこのくらい大きい。"):
        say(text)
    assert {hit.memory.content for hit in ask("さくらが食べるものは？").hits} == {"さくらは苺が好き。", "健太は毎朝パンを食べる。"}
    assert [hit.memory.content for hit in ask("くらい？").hits] == ["犬はこのくらい大きい。"]
