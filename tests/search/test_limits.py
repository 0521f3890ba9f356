"""No question takes for ever: its words are bounded, and a search ends when its time is over or nobody waits for it."""

import threading

import pytest

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Question
from memory_mcp.errors import SearchUnfinished
from memory_mcp.language.tokens import LONGEST_KATAKANA, QUERY_TOKENS_LIMIT
from memory_mcp.search.question import parsed_question
from memory_mcp.search.words import as_synonyms, in_other_scripts

ENDLESS = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT max(n) FROM number"
LONGER_THAN_ANY_TEST_SECONDS = 3_600.0


@pytest.mark.parametrize("unit", ["ー", "アー", "から", "ラララライ", "a", "ア・", "苺", "ｱ"])
def test_no_phrase_of_a_question_grows_with_it(nilou, say, now, unit):
    say(unit * 3_000)
    for question in (Question(query=unit * 4_000), Question(query=unit, hypothetical=unit * 4_000)):
        with nilou.database.read() as connection:
            sounds = as_synonyms(question.query, in_other_scripts(connection, nilou.words.stored, question.query))
        terms = parsed_question(question, now, Settings()).terms(beside_vectors=False, same_sound=sounds)
        synonyms = [phrase for each in (*terms.synonyms, *terms.same_sound) for phrase in (each.word, *each.others)]
        phrases = [*terms.tokens, *terms.phrases, *terms.words, *synonyms]
        assert max((len(phrase.split()) for phrase in phrases), default=0) <= LONGEST_KATAKANA
        assert len(terms.tokens) <= 3 * QUERY_TOKENS_LIMIT


def test_a_question_of_thousands_of_long_marks_finds_the_memory_of_many(say, ask):
    stored = say("ー" * 199_990)
    assert [hit.memory.key for hit in ask("ー" * 2_000).hits] == [stored.key]


def test_a_statement_without_end_is_ended_and_the_store_is_read_on(nilou, say, ask):
    say("京都へ行った")
    given_up = threading.Event()
    threading.Timer(0.2, given_up.set).start()
    with (
        time_limit.limited(LONGER_THAN_ANY_TEST_SECONDS, given_up.is_set),
        pytest.raises(SearchUnfinished, match="its caller has closed the connection"),
        nilou.database.read() as connection,
    ):
        connection.execute(ENDLESS).fetchall()
    assert len(ask("京都").hits) == 1
    with nilou.database.read() as connection:  # whatever connection it is, nobody ends what it does now
        assert connection.execute(
            "SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n)"
        ).get


def test_a_search_whose_time_is_over_says_so_and_the_next_one_is_answered(say, ask):
    say("京都へ行った")
    with time_limit.limited(0.0), pytest.raises(SearchUnfinished, match=r"not done within 0 s: .* Ask in fewer words"):
        ask("京都")
    with time_limit.limited(LONGER_THAN_ANY_TEST_SECONDS):
        assert len(ask("京都").hits) == 1
    assert len(ask("京都").hits) == 1


def test_a_limit_holds_for_its_own_thread_and_not_for_the_writer(nilou, say):
    with time_limit.limited(0.0):
        stored = threading.Thread(target=say, args=("京都へ行った",))
        stored.start()
        stored.join()
        nilou.database.write(lambda connection: connection.execute("UPDATE memories SET importance = 0.9"))
    with nilou.database.read() as connection:
        assert connection.execute("SELECT importance FROM memories").get == 0.9
