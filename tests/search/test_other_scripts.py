"""A word is found in another script by its sound: kana, kanji and Latin letters, whichever way the question writes it."""

import time
import unicodedata

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.words import LONGEST, WORDS_LIMIT, as_synonyms, in_other_scripts
from memory_mcp.store.lexical import stored_words
from memory_mcp.upkeep import purge


@pytest.fixture
def found(say, ask):
    """found(memory, query): what a search finds beside other memories, and the words that it says no memory has."""

    def found(memory, query):
        for number in range(25):
            say(f"庭の木に{number}回水をやった")
        say(memory)
        recalled = ask(query)
        return [hit.memory.content for hit in recalled.hits], list(recalled.unmatched)

    return found


@pytest.fixture
def others(nilou):
    """others(query): the words of a query that are found in other scripts, each with how these are searched."""

    def others(query):
        text = unicodedata.normalize("NFKC", query)
        with nilou.database.read() as connection:
            found = in_other_scripts(connection, nilou.words.stored, text)
        return {(text[spelling.start : spelling.end], spelling.phrase) for spelling in found}

    return others


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("沢渡さんは納期にきびしい", "さわたりさんはどんな人？"),
        ("お茶をいれた", "おちゃはある？"),
        ("おちゃをいれた", "お茶はある？"),
        ("おちゃをいれた", "茶はある？"),
        ("ご飯を炊いた", "ごはんはある？"),
        ("ごはんを炊いた", "ご飯はある？"),
        ("お酒をもらった", "おさけは好き？"),
        ("おさけをもらった", "お酒は好き？"),
        ("弁当をもらった", "おべんとうは好き？"),
        ("おしごとを変えた", "仕事は何？"),
        ("仕事を変えた", "おしごとは何？"),
        ("お寿司を食べた", "おすしは好き？"),
        ("おすしを食べた", "お寿司は好き？"),
        ("柚葉と電話で喧嘩した", "ゆずはとケンカした理由"),
        ("三冊を図書館で借りた", "としょかんでかりた本"),
        ("差し入れは煎餅がいい", "せんべいはいる？"),
        ("苺を植えた", "いちごはどこ？"),
        ("朔と喧嘩した", "ケンカの理由"),
        ("煎餅をもらった", "せんべいは好き？"),
        ("新しい眼鏡を買った", "めがねはどこで買った？"),
        ("理央さんは図書委員だ", "りおさんの委員会は？"),
        ("Pen friend Greta repairs old violins", "グレタは何を直す？"),
        ("Mary plays the cello", "メアリーの楽器は？"),
        ("Tomasz is on vacation", "とましゅはどこ？"),
        ("イングリッドは返事が早い", "Is Ingrid fast?"),
        ("千景はえびが苦手", "What does Chikage dislike?"),
        ("ちかげはえびが苦手", "What does Chikage dislike?"),
        ("北洋冷蔵との定例があった", "When do we meet Hokuyo Reizo?"),
    ],
)
def test_a_word_is_found_in_another_script(found, memory, query):
    assert found(memory, query)[0] == [memory]


@pytest.mark.parametrize(
    ("memory", "query", "word"),
    [
        ("Pen friend Greta repairs old violins", "グレタは何を直す？", "グレタ"),
        ("柚葉と電話で喧嘩した", "ケンカした理由", "ケンカ"),
        ("千景はえびが苦手", "What does Chikage dislike?", "Chikage"),
        ("イングリッドは返事が早い", "Is Ingrid fast?", "Ingrid"),
    ],
)
def test_what_is_found_by_its_sound_is_not_called_unmatched(found, memory, query, word):
    assert word not in found(memory, query)[1]


def test_a_word_that_no_memory_has_in_any_script_is_unmatched(found):
    hits, unmatched = found("Great weather today", "グレタ")
    assert (hits, unmatched) == ([], ["グレタ"])


def test_the_word_as_it_is_written_comes_first(say, ask):
    for number in range(25):
        say(f"庭の木に{number}回水をやった")
    say("喧嘩の話", source="x")
    say("けんかの話", source="y")
    hits = [hit.memory.content for hit in ask("けんかの理由").hits]
    assert hits == ["けんかの話", "喧嘩の話"]


def test_a_word_in_latin_letters_or_katakana_that_the_store_has_is_looked_for_in_no_other(say, others):
    say("Maya likes tea")
    say("マヤはお茶が好き")
    assert others("マヤは？") == others("Where is Maya?") == set()


def test_a_kanji_by_itself_is_a_word_where_no_ending_follows(say, others):
    say("桜を植えた。漕いだ")
    assert others("さくらは？ こいでは？") == {("さくら", "桜")}


@pytest.mark.parametrize(
    "query", ["これはいつもどおりですか", "たくさんある", "どうしてそうなったのか", "take it", "SQL", "node", "もっとください"]
)
def test_grammar_and_short_words_are_not_looked_for(say, others, query):
    for text in ("いつ 一真 大空 手毛 木戸 様々 王手 野手 多家 スクール 同士", "竹 下 市 手 目 気"):
        say(text)
    assert others(query) == set()


@pytest.mark.parametrize("query", ["青空のそらいろ", "それは何", "うそらしい", "麦茶をむぎゅっと"])
def test_two_kana_inside_other_words_are_no_word(say, others, query):
    say("ソラとムギとソレとウソ")
    assert others(query) == set()


def test_numbers_have_no_reading(say, others):
    say("八百屋で千二百円を使った。十一")
    assert others("やおはどこ？ せんにひゃくはいくら？ じゅういちは？") == set()


def test_the_part_of_a_longer_run_of_kanji_is_found_at_its_ends(say, others):
    say("沢渡課長と国立図書館前駅で会った")
    assert others("さわたりは？") == {("さわたり", "沢渡")}
    assert others("としょは？") == set()


def test_what_is_stored_or_revised_later_is_found(say, others, nilou, now):
    assert others("さわたりは？") == set()
    key = say("沢渡さんは納期にきびしい").key
    assert others("さわたりは？") == {("さわたり", "沢渡")}
    revise(nilou, key, Revision(content="柚葉さんは納期にきびしい"), now=now, privacy=Privacy())
    assert others("ゆずはは？") == {("ゆずは", "柚葉")}


def test_no_word_of_an_erased_memory_is_kept(say, others, nilou, now):
    key = say("Pen friend Greta repairs old violins").key
    assert others("グレタ") == {("グレタ", "greta")}
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    purge.erase(nilou, [key], rule="test", now=now)
    assert others("グレタ") == set()
    assert not nilou.words.stored._latin._known


def test_words_that_are_read_while_memories_are_erased_are_not_kept(say, others, nilou):
    say("沢渡さんに会った")
    stored = nilou.words.stored

    class ErasedMeanwhile:
        """A connection; what it reads is erased before anybody has it."""

        def __init__(self, connection):
            self._connection = connection

        def execute(self, sql, values):
            stored.clear()
            return self._connection.execute(sql, values)

    with nilou.database.read() as connection:
        stored.update(ErasedMeanwhile(connection))
    assert stored.read_as("さわたり") == []
    assert others("さわたり") == {("さわたり", "沢渡")}


def test_a_large_store_is_read_by_several_questions(say, others, monkeypatch):
    monkeypatch.setattr(stored_words, "READ_AT_ONCE", 2)
    for text in ("海へ行った", "山へ行った", "沢渡さんと会った"):
        say(text)
    assert others("さわたりは？") == set()
    assert others("さわたりは？") == {("さわたり", "沢渡")}


def test_an_empty_store_has_no_words(others):
    assert others("さわたりさんとグレタと Chikage は？") == set()


@pytest.mark.parametrize(
    "text",
    [
        "か" * 20_000,
        "かさんかくん" * 3_000,
        "カ" * 20_000,
        "カン" * 10_000,
        "karin " * 3_000,
        "a" * 20_000,
        "さわたりは" * 4_000,
        "グレタ、" * 5_000,
        "ー" * 20_000,
    ],
)
def test_a_long_query_stays_bounded(say, nilou, text):
    for word in ("沢渡 火花 歌火 香花 華火 佳歌 加賀 花咲 家々", "Greta karin carine", "カリン カン グレタ"):
        say(word)
    with nilou.database.read() as connection:
        in_other_scripts(connection, nilou.words.stored, "さわたり")
        begun = time.process_time()
        meant = as_synonyms(text, in_other_scripts(connection, nilou.words.stored, text))
        assert time.process_time() - begun < 0.5
    assert len(meant) <= WORDS_LIMIT
    assert all(len(each.others) <= 10 * LONGEST * stored_words.LIMIT for each in meant)


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("台所にゴキブリが出た", "ごきぶりは？"),
        ("朔とけんかした", "ケンカの理由"),
        ("むぎを公園で拾った", "ムギはどこにいた？"),
        ("ムギは茶トラの猫だ", "むぎの猫種は？"),
        ("ムギは茶トラの猫だ", "むぎ"),
        ("黒猫のソラが来た", "散歩はそらとどこへ？"),
        ("ラーメンの店へ行った", "らーめんはどこ？"),
        ("めがねを新しくした", "メガネはいつ買った？"),
    ],
)
def test_a_word_in_the_other_kana_is_found_and_not_called_unmatched(found, memory, query):
    hits, unmatched = found(memory, query)
    assert hits == [memory]
    assert not {"ケンカ", "ムギ", "メガネ"} & set(unmatched)


def test_a_word_is_found_in_both_kana_at_once(say, ask):
    say("ケンカは嫌いだ")
    say("朔とけんかした")
    assert len(ask("ケンカ").hits) == 2


def test_the_spelling_of_the_question_comes_first(say, ask):
    for number in range(25):
        say(f"庭の木に{number}回水をやった")
    say("けんかの話")
    say("ケンカの話", source="x")
    say("けんかの話", source="y")
    assert ask("ケンカ").hits[0].memory.content == "ケンカの話"


def test_a_name_in_other_letters_counts_like_a_word(say, ask):
    for number in range(25):
        say(f"庭の木に{number}回水をやった")
    say("Greta Lindholm repairs old violins for a living")
    say("年末は30日に帰る。4日から仕事")
    assert ask("グレタの仕事は？").hits[0].memory.content.startswith("Greta")


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("今朝は5 km走った", "何キロ走った？"),
        ("容量は8GBだ", "何ギガ？"),
        ("Pixel90にした", "Pixel 90は？"),
        ("Pixel 90にした", "Pixel90は？"),
    ],
)
def test_a_unit_and_a_number_are_found_as_others_write_them(found, memory, query):
    assert found(memory, query)[0] == [memory]


def test_a_part_of_a_katakana_word_is_not_the_word(found):
    hits, unmatched = found("健康診断を受けた。けんこうが一番", "ケンカ")
    assert (hits, unmatched) == ([], ["ケンカ"])


NAMES = [
    ("iPhone14", "iPhone 14"),
    ("Hero12", "Hero 12"),
    ("RTX4090", "RTX 4090"),
    ("PS5", "PS 5"),
    ("wifi6", "Wi-Fi 6"),
    ("iOS18.1", "iOS 18.1"),
    ("ver2.5", "ver 2.5"),
    ("Python3.11", "Python 3.11"),
    ("iPhone15Pro", "iPhone 15 Pro"),
    ("R2", "R 2"),
    ("F1", "F 1"),
    ("5G", "5 G"),
    ("3DS", "3 DS"),
    ("wifi", "Wi Fi"),
    ("hifi", "hi fi"),
    ("ebook", "e book"),
    ("email", "e mail"),
    ("tshirt", "T shirt"),
]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        *NAMES,
        *((several, one) for one, several in NAMES),
        ("WH-1000XM5", "WH 1000XM5"),
        ("AirPods", "air pods"),
        ("Hero12", "GoPro Hero 12"),
    ],
)
def test_a_name_is_found_whether_written_as_one_word_or_as_several(found, stored, asked):
    memory = f"GoProと{stored}の話"
    hits, unmatched = found(memory, f"{asked}は？")
    assert memory in hits
    assert unmatched == []


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("A4用紙がない", "bought a 4 pack"),
        ("a 4 packを買った", "A4"),
        ("at5を見た", "at 5"),
        ("34番の席", "3 4と"),
        ("thecatの歌", "the cat"),
    ],
)
def test_words_that_are_no_name_are_not_looked_for_as_one(found, memory, query):
    assert memory not in found(memory, query)[0]
