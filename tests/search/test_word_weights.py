"""A search by words gives a word of a Japanese question the weight of one word, whatever the script: the many tokens of another word don't outweigh a name in Latin letters."""

import pytest

from memory_mcp.language.analysis import analysis
from memory_mcp.search.question import search_tokens


@pytest.mark.parametrize(
    ("query", "named", "alike"),
    [
        ("OSのバージョンは？", "仕事で使っているOSは去年の秋からずっとUbuntu", "本番のリージョンは大阪"),
        ("Redisのレプリケーションはどうした？", "Redisは二台の構成にした", "アプリケーションの審査が通った"),
        ("INC-88のオペレーターは？", "INC-88は藤井さんが受けた", "コーディネーターとオペラを見た"),
        ("V60のフィルターは？", "V60の紙は近所の店で買う", "ヒーターとルーターを買いかえた"),
        ("栞のコンサートは？", "栞は来月舞台に立つ", "コンセントとアンサートを直した"),
    ],
)
def test_a_name_stands_before_a_word_that_shares_a_part_of_another(found, query, named, alike):
    assert found(query, alike, named)[0] == named


@pytest.mark.parametrize(
    ("query", "named", "grammar"),
    [
        ("なんでKafkaじゃないの？", "Kafkaは費用が高すぎた", "じゃなくて、明日じゃないと無理だよ"),
        ("なんでRustじゃなくてGoなの？", "チームの全員が書けるのはGo", "昨日じゃなくて今日なんだよ、なんでだろう"),
    ],
)
def test_a_name_stands_before_the_colloquial_grammar_of_its_question(found, query, named, grammar):
    assert found(query, grammar, named)[0] == named


@pytest.mark.parametrize(
    ("query", "answer", "other"),
    [
        ("ジムにはまだ通ってる？", "ジムは二か月でやめた。今は朝に走る", "企画が通った。来年の四月に発売"),
    ],
)
def test_what_is_asked_for_stands_before_what_is_said_of_it(found, query, answer, other):
    assert found(query, answer, other)[0] == answer


def test_two_names_stand_before_one(found):
    both = "KafkaからNATSへ移した"
    assert found("KafkaとNATSのメッセージングの違いは？", "ステージングの違いはもうない", "Kafkaは三台で動かす", both)[0] == both


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("コーヒーメーカーはどれ？", "コーヒーは手で淹れる"),
        ("クラウドサーバーは何を使ってる？", "サーバーは石狩のものを借りている"),
        ("バージョンアップはいつ？", "新しいバージョンが出るのは春"),
        ("スポーツジムは行ってる？", "ジムには週に二回"),
    ],
)
def test_a_compound_still_finds_the_words_that_it_begins_and_ends_with(found, query, part):
    assert found(query, part) == [part]


def test_a_compound_is_found_by_the_word_that_it_contains(found):
    assert found("サーバーはどこ？", "クラウドサーバーは石狩にある", "オブザーバーとして出た")[0] == "クラウドサーバーは石狩にある"


def test_a_verb_of_one_kanji_is_not_looked_for_as_the_kanji_of_another_verb(found):
    dog = "犬の名前は小太郎"
    assert found("犬は飼ってる？", "保育園は九時から", dog)[0] == dog


def test_beside_vectors_each_token_counts_once():
    assert search_tokens(analysis("OSのバージョンは？"), analysis("")).count("os") > 1
    beside = search_tokens(analysis("OSのバージョンは？"), analysis(""), beside_vectors=True)
    assert (beside.count("os"), len(beside)) == (1, len(set(beside)))
