"""A word is found in katakana, in hiragana and in kanji, whichever way the question writes it."""

import pytest

from memory_mcp.text.spellings import spelled_otherwise


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


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("台所にゴキブリが出た", "ごきぶりは？"),
        ("朔とけんかした", "ケンカの理由"),
        ("むぎを公園で拾った", "ムギはどこにいた？"),
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


@pytest.mark.parametrize("query", ["どうしてですか", "それはいつでしたか", "まだですか"])
def test_grammar_is_looked_for_in_no_other_kana(query):
    assert spelled_otherwise(query) == []


def test_a_part_of_a_katakana_word_is_not_the_word(found):
    hits, unmatched = found("健康診断を受けた。けんこうが一番", "ケンカ")
    assert (hits, unmatched) == ([], ["ケンカ"])


@pytest.mark.parametrize(
    ("memory", "query"), [("朔と喧嘩した", "ケンカの理由"), ("煎餅をもらった", "せんべいは好き？"), ("苺を植えた", "いちごはどこ？")]
)
def test_a_noun_in_kana_is_found_in_kanji(found, memory, query):
    hits, unmatched = found(memory, query)
    assert hits == [memory]
    assert "ケンカ" not in unmatched
