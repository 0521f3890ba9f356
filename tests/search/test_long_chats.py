"""Short statements among the long answers of an assistant."""

import pytest

from memory_mcp.config.settings import Fusion, Settings

LONG_ANSWER = "京都旅行の計画についてお答えします。京都は見どころが多く、京都旅行の計画は季節で変わります。" * 12


@pytest.fixture
def chat(say):
    """A person's short statements, each answered at length in the same words."""
    say("京都旅行は妹と行くことにした", source="user", session_id="chat", occurred_at="2025-10-20T10:00")
    say(LONG_ANSWER, source="assistant", session_id="chat", occurred_at="2025-10-20T10:01")
    for fruit in ("苺", "林檎", "梨", "桃", "柿", "葡萄"):
        say(f"{fruit}が好き", source="user")


def contents(recalled):
    return [hit.memory.content for hit in recalled.hits]


def test_what_a_person_said_stands_before_the_answers_that_repeat_it(chat, ask):
    assert contents(ask("京都旅行の計画は誰と？"))[0] == "京都旅行は妹と行くことにした"


def test_a_question_for_the_answer_finds_it(chat, ask):
    assert contents(ask("京都旅行の計画について、あなたは何て言った？"))[0] == LONG_ANSWER


def test_the_weight_of_assistants_is_a_setting(chat, ask):
    equal = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(assistant_weight=1))
    assert contents(ask("京都旅行の計画", under=equal))[0] == LONG_ANSWER


def test_a_statement_is_found_among_more_answers_than_there_are_candidates(say, ask):
    say("京都旅行は妹と", source="user")
    for number in range(8):
        say(f"京都旅行の計画 {number}", source="Assistant")
    few = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(candidates_per_source=3))
    assert contents(ask("京都旅行の計画", under=few))[0] == "京都旅行は妹と"


def test_short_turns_lend_each_other_their_words_and_long_ones_do_not(say, ask):
    say("果物は何が好き？", session_id="short", occurred_at="2025-10-20T10:00")
    say("うん、苺かな", session_id="short", occurred_at="2025-10-20T10:01")
    say("楽器は何が好き？" + "なるほど、それは面白いですね。" * 30, session_id="long", occurred_at="2025-10-20T10:00")
    say("うん、笛かな", session_id="long", occurred_at="2025-10-20T10:01")
    assert "うん、苺かな" in contents(ask("果物"))
    assert "うん、笛かな" not in contents(ask("楽器"))


def test_a_question_for_what_happened_lately_lists_what_people_said_before_the_answers(say, ask):
    for hour, (source, content) in enumerate(
        [("user", "新しい毛布を買った"), ("assistant", "いい毛布ですね"), ("user", "むぎが吐いた"), ("bot", "心配ですね")]
    ):
        say(content, source=source, occurred_at=f"2025-10-29T{hour + 9:02}:00")
    for query in ("最近何があった？", "昨日は何があった？"):
        assert contents(ask(query, top_k=3)) == ["むぎが吐いた", "新しい毛布を買った", "心配ですね"]
    newest = ["心配ですね", "むぎが吐いた", "いい毛布ですね"]
    equal = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(assistant_weight=1))
    assert contents(ask("最近何があった？", under=equal, top_k=3)) == newest
    assert contents(ask(mode="recent", top_k=3)) == newest
