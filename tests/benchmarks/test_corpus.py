"""The repository's own sets are whole: every reference exists, every date is one, every kind of question is there."""

import re
from collections import Counter
from datetime import datetime

from benchmarks.sets import ANSWERED_FILE, CHANGE, GUESSES_FILE, MULTI_HOP, NONE, Asked, Row, lines, loaded
from benchmarks.sets import CORPUS as DIRECTORY
from memory_mcp.domain import KINDS
from memory_mcp.transfer.line_fields import FIELDS

CORPUS, EVERYDAY = loaded("corpus"), loaded("everyday")
MEMORIES: dict[str, Row] = {row["key"]: row for rows in CORPUS.memories.values() for row in rows}
EVERYDAY_MEMORIES: dict[str, Row] = {row["key"]: row for rows in EVERYDAY.memories.values() for row in rows}
CATEGORIES = {"time", "preference", CHANGE, "negation", "person", "paraphrase", "detail", MULTI_HOP, NONE}
EVERYDAY_CATEGORIES = {
    "date-relative", "date-absolute", "upcoming", "recent", CHANGE, "synonym", "kana", "crosslingual", "typo", "person", "detail",
    "preference", "negation", NONE,
}  # fmt: skip


def _happened(row: Row) -> datetime:
    return datetime.fromisoformat(row["occurred_at"])


def _questions(category: str) -> list[Asked]:
    return [question for question in CORPUS.questions if question.category == category]


def test_three_characters_remember_at_least_110_things_each_and_no_id_is_used_twice():
    assert len(CORPUS.memories) == 3
    assert all(len(rows) >= 110 for rows in CORPUS.memories.values())
    assert len(MEMORIES) == sum(len(rows) for rows in CORPUS.memories.values())
    assert all(key.startswith(f"{store}-") for store, rows in CORPUS.memories.items() for key in (row["key"] for row in rows))


def test_every_memory_is_a_line_that_import_takes():
    for row in MEMORIES.values():
        assert set(row) <= set(FIELDS), row["key"]
        assert all(FIELDS[name][1](value) for name, value in row.items()), row["key"]
        assert row["content"] == row["content"].strip() != "", row["key"]
        assert row["kind"] in KINDS, row["key"]
        assert row["source"], row["key"]


def test_every_memory_is_dated_within_one_year():
    moments = [_happened(row) for row in MEMORIES.values()]
    assert all(moment.tzinfo for moment in moments)
    assert (max(moments) - min(moments)).days <= 366


def test_no_two_memories_say_the_same():
    assert [text for text, count in Counter(row["content"] for row in MEMORIES.values()).items() if count > 1] == []


def test_the_turns_of_a_session_stand_in_their_order():
    sessions: dict[str, list[datetime]] = {}
    for row in MEMORIES.values():
        if "session_id" in row:
            sessions.setdefault(row["session_id"], []).append(_happened(row))
    assert len(sessions) >= 30
    assert all(moments == sorted(set(moments)) for moments in sessions.values())


def test_there_are_long_memories_for_questions_about_a_detail():
    lengths = [len(row["content"]) for row in MEMORIES.values()]
    assert sum(500 <= length <= 2500 for length in lengths) >= 12
    assert max(lengths) <= 2500


def test_there_are_questions_of_every_kind_in_both_halves():
    counts = Counter(question.category for question in CORPUS.questions)
    assert set(counts) == CATEGORIES
    assert counts[MULTI_HOP] >= 60
    assert counts[NONE] >= 30
    assert counts.total() - counts[MULTI_HOP] >= 170
    for category in CATEGORIES:
        halves = Counter(question.half for question in _questions(category))
        assert set(halves) == {"development", "held-out"}
        assert abs(halves["development"] - halves["held-out"]) <= len(CORPUS.memories), category


def test_no_question_is_asked_twice():
    assert len({question.id for question in CORPUS.questions}) == len(CORPUS.questions)
    assert len({(question.store, question.query) for question in CORPUS.questions}) == len(CORPUS.questions)


def test_a_question_is_answered_by_memories_of_its_own_character_from_before_it_was_asked():
    for question in CORPUS.questions:
        referred = (*question.relevant, *question.outdated)
        assert len(set(referred)) == len(referred), question.id
        assert {key.split("-")[0] for key in referred} <= {question.store}, question.id
        assert question.now, question.id
        asked = datetime.fromisoformat(question.now)
        assert asked.tzinfo, question.id
        assert all(_happened(MEMORIES[key]) < asked for key in referred), question.id


def test_only_what_nobody_said_has_no_answer_and_a_chain_has_two_links_or_more():
    assert all(bool(question.relevant) == (question.category != NONE) for question in CORPUS.questions)
    assert all(len(question.relevant) >= 2 for question in _questions(MULTI_HOP))


def test_what_is_outdated_is_older_than_what_is_true_now():
    changed = [question for question in CORPUS.questions if question.outdated]
    assert len(changed) >= 20
    for question in changed:
        newest = max(_happened(MEMORIES[key]) for key in question.relevant)
        assert all(_happened(MEMORIES[key]) < newest for key in question.outdated), question.id


def test_questions_are_in_more_than_one_language():
    english = [question for question in CORPUS.questions if not re.search("[ぁ-んァ-ヶ一-龠]", question.query)]
    assert 10 <= len(english) < len(CORPUS.questions) / 4


def test_some_memories_say_which_questions_they_answer_and_none_of_them_is_asked():
    told = {row["key"]: row["questions"] for row in lines(DIRECTORY / ANSWERED_FILE)}
    assert len(told) >= 60
    assert told.keys() <= MEMORIES.keys()
    assert all(MEMORIES[key]["questions"] == questions for key, questions in told.items())
    assert {question.query for question in CORPUS.questions}.isdisjoint(asked for questions in told.values() for asked in questions)


def test_answers_were_guessed_to_questions_that_have_one():
    guessed = {question.id: question.guess for question in CORPUS.questions if question.guess}
    assert guessed == {row["id"]: row["guess"] for row in lines(DIRECTORY / GUESSES_FILE)}
    assert len(guessed) >= 40
    contents = {row["content"] for row in MEMORIES.values()}
    assert contents.isdisjoint(guessed.values())
    assert all(question.relevant for question in CORPUS.questions if question.guess)


def test_the_everyday_set_has_two_personas_with_at_least_120_memories_that_import_takes():
    assert set(EVERYDAY.memories) == {"dev", "mio"}
    assert all(len(rows) >= 120 for rows in EVERYDAY.memories.values())
    assert len(EVERYDAY_MEMORIES) == sum(len(rows) for rows in EVERYDAY.memories.values())
    for store, rows in EVERYDAY.memories.items():
        for row in rows:
            assert row["key"].startswith(f"{store}-"), row["key"]
            assert set(row) <= set(FIELDS), row["key"]
            assert all(FIELDS[name][1](value) for name, value in row.items()), row["key"]
            assert row["content"] == row["content"].strip() != "", row["key"]
            assert row.get("kind", "fact") in KINDS, row["key"]
    assert len({row["content"] for row in EVERYDAY_MEMORIES.values()}) == len(EVERYDAY_MEMORIES)


def test_everyday_memories_were_all_told_before_any_question_and_some_of_them_speak_of_later():
    first_asked = min(datetime.fromisoformat(question.now or "") for question in EVERYDAY.questions)
    stored = [datetime.fromisoformat(row["created_at"]) for row in EVERYDAY_MEMORIES.values()]
    happened = [_happened(row) for row in EVERYDAY_MEMORIES.values() if "occurred_at" in row]
    assert all(moment.tzinfo for moment in (first_asked, *stored, *happened))
    assert max(stored) < first_asked
    assert sum(moment > first_asked for moment in happened) >= 12
    assert len(happened) <= len(stored) / 4


def test_an_everyday_memory_replaces_an_older_one_of_its_persona_that_answers_nothing_any_more():
    replaced = {row["key"]: row["supersedes"] for row in EVERYDAY_MEMORIES.values() if "supersedes" in row}
    assert len(replaced) >= 6
    for key, old in replaced.items():
        assert key.split("-")[0] == old.split("-")[0]
        assert EVERYDAY_MEMORIES[old]["created_at"] < EVERYDAY_MEMORIES[key]["created_at"], key
    assert set(replaced.values()).isdisjoint(key for question in EVERYDAY.questions for key in question.relevant)


def test_there_are_at_least_12_everyday_questions_of_every_kind_in_both_halves():
    counts = Counter(question.category for question in EVERYDAY.questions)
    assert set(counts) == EVERYDAY_CATEGORIES
    assert min(counts.values()) >= 12
    assert counts[NONE] >= 25
    for category in EVERYDAY_CATEGORIES:
        halves = Counter(question.half for question in EVERYDAY.questions if question.category == category)
        assert abs(halves["development"] - halves["held-out"]) <= len(EVERYDAY.memories), category


def test_an_everyday_question_is_asked_once_and_refers_to_memories_of_its_own_persona():
    assert len({question.id for question in EVERYDAY.questions}) == len(EVERYDAY.questions)
    assert len({(question.store, question.query) for question in EVERYDAY.questions}) == len(EVERYDAY.questions)
    for question in EVERYDAY.questions:
        referred = (*question.relevant, *question.outdated)
        assert len(set(referred)) == len(referred), question.id
        assert set(referred) <= {row["key"] for row in EVERYDAY.memories[question.store]}, question.id
        assert bool(question.relevant) == (question.category != NONE), question.id
        assert bool(question.outdated) == (question.category == CHANGE), question.id


def test_an_answer_to_an_everyday_question_is_in_its_memories_and_what_is_outdated_is_older():
    for question in EVERYDAY.questions:
        assert any(question.answer in EVERYDAY_MEMORIES[key]["content"] for key in question.relevant) or not question.answer, question.id
        if question.outdated:
            newest = max(EVERYDAY_MEMORIES[key]["created_at"] for key in question.relevant)
            assert all(EVERYDAY_MEMORIES[key]["created_at"] < newest for key in question.outdated), question.id
