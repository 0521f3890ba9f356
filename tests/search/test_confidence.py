"""How sure an answer is as a whole."""

import numpy as np
import pytest

from memory_mcp.search.confidence import BY_WORDS, WITH_VECTORS, Evidence, _ahead

TOLD = [
    f"{day}日は{what}。" for day, what in enumerate(["雨が降った", "図書館へ行った", "部屋を掃除した", "友だちと歩いた", "早く寝た"] * 5, 1)
]
NOTHING = Evidence(held=0.0, lacking=2.0, covered=0.0, dated=0.0, agreement=0.0, ahead=0.0)


@pytest.fixture
def confidence(say, ask):
    """confidence(query): how sure the answer is of a persona that knows of a cat, among other things."""
    for text in [*TOLD, "むぎの予防接種は「すみれ動物病院」に予約した。"]:
        say(text)
    return lambda query, **arguments: ask(query, **arguments).confidence


def test_an_answer_with_all_rare_words_of_the_question_is_sure(confidence):
    assert confidence("すみれ動物病院の予防接種の予約") == "sure"


@pytest.mark.parametrize("query", ["ゴルフ", "宝くじ", "What is the Wi-Fi password?"])
def test_where_no_memory_has_a_word_of_the_question_nothing_is_like_it(confidence, query):
    assert confidence(query) == "nothing like it"


def test_an_answer_with_a_part_of_the_question_is_neither(confidence):
    assert confidence("むぎの体重は何キロ？") == "maybe"


@pytest.mark.parametrize("arguments", [{"mode": "recent"}, {"date_range": "2020-01-01..2030-01-01"}, {"mode": "graph"}])
def test_what_a_filter_or_the_graph_finds_has_no_confidence(confidence, arguments):
    assert confidence("ゴルフ", **arguments) is None


def test_a_persona_with_one_memory_answers_what_it_holds(say, ask):
    say("むぎの予防接種は「すみれ動物病院」に予約した。")
    assert ask("すみれ動物病院の予防接種の予約").confidence != "nothing like it"
    assert ask("ゴルフ").confidence == "nothing like it"


@pytest.mark.parametrize("fitted", [WITH_VECTORS, BY_WORDS])
def test_without_any_evidence_nothing_is_like_the_question(fitted):
    assert fitted.called(NOTHING) == "nothing like it"


@pytest.mark.parametrize(
    ("nearness", "ahead"),
    [([0.2, 0.5, np.nan, 0.4], 0.2), ([0.5], 1.0), ([-0.1, -0.3], 0.0), ([np.nan, 0.5, -0.5], 1.0), ([0.5, 0.5], 0.0)],
)
def test_ahead_is_a_share_of_the_nearness_of_the_nearest(nearness, ahead):
    assert _ahead(np.array(nearness)) == pytest.approx(ahead)
