"""One order out of several scores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.config.settings import Fusion
from memory_mcp.domain import Candidate, Origin, TimeRange
from memory_mcp.search.fuse import ANSWER_SHARE, ASKING_PENALTY, OTHER_LANGUAGE_SHARE, RECENT_WEIGHT, WITNESSES, Hints, fuse
from memory_mcp.store.timestamps import to_text

ANY_TIME = datetime(2025, 10, 30, tzinfo=UTC)
SCORES = st.floats(min_value=0, max_value=100) | st.none()
CANDIDATES = st.lists(st.tuples(SCORES, st.floats(min_value=-1, max_value=1) | st.none()), max_size=8)


@pytest.fixture
def origins(now):
    told = [to_text(now + timedelta(hours=number)) for number in range(10)]
    return {number: Origin(time, told_at=time) for number, time in enumerate(told)}


@pytest.fixture
def no_hints(origins):
    return Hints([], (), origins)


def in_sessions(now, *sessions: str | None) -> Hints:
    """Memory 0 is from the first of these sessions, memory 1 from the second, and so on."""
    return Hints([], (), {number: Origin(to_text(now), session_id=session) for number, session in enumerate(sessions)})


def test_the_lexical_score_alone_is_scaled_to_its_best(no_hints):
    ranked = fuse([Candidate(1, lexical=2.0), Candidate(2, lexical=8.0)], Fusion(), no_hints)
    assert [(candidate.memory_id, candidate.score) for candidate in ranked] == [(2, 1.0), (1, 0.25)]
    assert [candidate.lexical_share for candidate in ranked] == [1.0, 0.25]


def test_meaning_and_words_are_weighed(no_hints):
    candidates = [Candidate(1, lexical=4.0, nearness=0.2), Candidate(2, lexical=1.0, nearness=0.8), Candidate(3, lexical=0.0, nearness=0.5)]
    scores = {candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(), no_hints, dense_weight=0.6)}
    assert scores == pytest.approx({1: 0.4, 2: 0.6 + 0.1, 3: 0.3})


def test_a_candidate_without_a_vector_is_judged_by_its_words_alone(no_hints):
    candidates = [Candidate(1, lexical=4.0), Candidate(2, lexical=2.0, nearness=0.9), Candidate(3, lexical=2.0, nearness=0.1)]
    assert [candidate.score for candidate in fuse(candidates, Fusion(), no_hints)] == [1.0, 0.75, 0.25]


def test_equal_cosines_and_no_lexical_score_divide_by_nothing(no_hints):
    candidates = [Candidate(1, lexical=0.0, nearness=0.5), Candidate(2, lexical=0.0, nearness=0.5)]
    assert [candidate.score for candidate in fuse(candidates, Fusion(), no_hints)] == [0.0, 0.0]


def test_a_memory_from_a_named_date_is_raised(origins, now):
    day = TimeRange(now + timedelta(minutes=30), now + timedelta(minutes=90))  # where memory 1 is
    ranked = fuse([Candidate(2, lexical=1.0), Candidate(1, lexical=0.9)], Fusion(date_boost=0.2), Hints([day], (), origins))
    assert [(candidate.memory_id, candidate.date_share) for candidate in ranked] == [(1, 1.0), (2, 0.0)]
    assert ranked[0].score == pytest.approx(1.1)


def test_where_the_latest_is_asked_for_the_later_counts_more_and_what_is_older_alike(now):
    told = {number: to_text(now - timedelta(days=days)) for number, days in enumerate((0, 15, 30, 300))}
    hints = Hints(
        [TimeRange(now - timedelta(days=30), now)],
        (),
        {number: Origin(time, told_at=time) for number, time in told.items()},
        is_recent=True,
    )
    ranked = fuse([Candidate(number, lexical=1.0) for number in told], Fusion(), hints)
    assert {candidate.memory_id: candidate.score for candidate in ranked} == pytest.approx(
        {0: RECENT_WEIGHT, 1: RECENT_WEIGHT**0.5, 2: 1.0, 3: 1.0}
    )
    assert fuse([Candidate(0, lexical=0.2), Candidate(3, lexical=1.0)], Fusion(), hints)[0].memory_id == 3


def test_a_memory_in_two_named_dates_is_raised_once(origins, now):
    day = TimeRange(now, now + timedelta(days=1))
    (raised,) = fuse([Candidate(1, lexical=1.0)], Fusion(date_boost=0.2), Hints([day, day], (), origins))
    assert raised.score == pytest.approx(1.2)


def test_a_memory_of_a_named_speaker_is_raised(origins, now):
    said = {**origins, 1: Origin(to_text(now), source="健太")}
    ranked = fuse([Candidate(2, lexical=1.0), Candidate(1, lexical=0.9)], Fusion(speaker_boost=0.2), Hints([], {"健太"}, said))
    assert [(candidate.memory_id, candidate.by_named_speaker) for candidate in ranked] == [(1, True), (2, False)]
    assert ranked[0].score == pytest.approx(1.1)


def test_what_else_the_session_holds_speaks_for_a_memory(now):
    candidates = [Candidate(0, lexical=1.0), Candidate(1, lexical=0.8), Candidate(2, lexical=0.8), Candidate(3, lexical=0.6)]
    ranked = fuse(candidates, Fusion(session_weight=1), in_sessions(now, None, "one", "two", "two"))
    assert {candidate.memory_id: candidate.session_share for candidate in ranked} == pytest.approx(
        {0: 0, 1: 0, 2: 0.6 / WITNESSES, 3: 0.8 / WITNESSES}
    )
    assert [candidate.memory_id for candidate in ranked] == [0, 2, 1, 3]


def test_only_the_best_others_of_a_session_speak_for_a_memory(now):
    shares = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    candidates = [Candidate(number, lexical=share) for number, share in enumerate(shares)]
    ranked = fuse(candidates, Fusion(), in_sessions(now, *["one"] * len(shares)))
    expected = {
        number: sum(sorted(shares[:number] + shares[number + 1 :], reverse=True)[:WITNESSES]) / WITNESSES for number in range(len(shares))
    }
    assert {candidate.memory_id: candidate.session_share for candidate in ranked} == pytest.approx(expected)


def test_memories_without_a_session_share_none(now):
    ranked = fuse([Candidate(0, lexical=1.0), Candidate(1, lexical=1.0)], Fusion(), in_sessions(now, None, None))
    assert [candidate.score for candidate in ranked] == [1.0, 1.0]


def test_the_session_weighs_as_much_as_the_words_do(now):
    """Where the order is by meaning alone, the words of the neighbours say nothing either."""
    candidates = [Candidate(0, lexical=1.0, nearness=0.5), Candidate(1, lexical=1.0, nearness=0.5)]
    hints = in_sessions(now, "one", "one")
    assert [candidate.score for candidate in fuse(candidates, Fusion(), hints, dense_weight=1.0)] == [0, 0]
    halves = fuse(candidates, Fusion(session_weight=0.3), hints, dense_weight=0.5)
    assert [candidate.score for candidate in halves] == pytest.approx([0.5 * (1 + 0.3 / WITNESSES)] * 2)


def test_the_graph_weighs_less_beside_an_embedding(origins):
    hints = Hints([], (), origins, graph={1: 0.5})
    by_words = fuse([Candidate(1, lexical=0.0), Candidate(2, lexical=0.0)], Fusion(graph_weight=0.2), hints)
    assert [candidate.score for candidate in by_words] == pytest.approx([0.1, 0.0])
    by_both = fuse([Candidate(1, nearness=0.0), Candidate(2, nearness=0.0)], Fusion(graph_weight=0.2, graph_weight_dense=0.04), hints)
    assert [candidate.score for candidate in by_both] == pytest.approx([0.02, 0.0])


def test_of_equals_the_later_comes_first(no_hints):
    ranked = fuse([Candidate(number, lexical=1.0) for number in (3, 7, 5)], Fusion(), no_hints)
    assert [candidate.memory_id for candidate in ranked] == [7, 5, 3]


def test_of_few_vectors_the_last_one_is_as_near_as_it_is(no_hints):
    candidates = [Candidate(1, lexical=1.0, nearness=0.6), Candidate(2, lexical=1.0, nearness=0.54)]
    apart = replace(no_hints, are_apart=True)
    assert {candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(), apart, dense_weight=0.5)} == pytest.approx(
        {1: 1.0, 2: 0.95}
    )


def test_what_is_in_another_language_is_judged_by_its_meaning(no_hints):
    candidates = [Candidate(1, lexical=2.0, nearness=0.5), Candidate(2, nearness=0.9, in_other_language=True), Candidate(3, nearness=0.1)]
    scores = {candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(), no_hints, dense_weight=0.5)}
    assert scores == pytest.approx({1: 0.25 + 0.5, 2: 0.5 + 0.5 * OTHER_LANGUAGE_SHARE, 3: 0.0})


def test_nothing_fused_is_nothing(no_hints):
    assert fuse([], Fusion(), no_hints) == []


@given(CANDIDATES, st.floats(min_value=0, max_value=1))
def test_every_candidate_is_ranked_once_between_0_and_1_best_first(scores, weight):
    candidates = [Candidate(number, lexical=lexical, nearness=dense) for number, (lexical, dense) in enumerate(scores)]
    ranked = fuse(candidates, Fusion(), Hints([], (), dict.fromkeys(range(len(scores)), Origin(to_text(ANY_TIME)))), dense_weight=weight)
    assert sorted(candidate.memory_id for candidate in ranked) == list(range(len(scores)))
    assert all(0 <= candidate.score <= 1.000001 for candidate in ranked)
    assert [candidate.score for candidate in ranked] == sorted((candidate.score for candidate in ranked), reverse=True)


@pytest.fixture
def conversation(now):
    """Memory 0 asks something, and memory 1 is the turn after it."""
    origins = {number: Origin(to_text(now), session_id="one") for number in range(3)}
    return Hints([], (), {**origins, 0: origins[0]._replace(asks=1.0)}, questions={1: 0})


@pytest.mark.parametrize("asks", [1.0, 0.9])
def test_an_answer_gets_a_share_of_what_its_question_matches_and_the_place_of_a_short_one(conversation, asks):
    hints = replace(conversation, origins={**conversation.origins, 0: conversation.origins[0]._replace(asks=asks)})
    candidates = [Candidate(0, lexical=2.0), Candidate(1, lexical=1.0), Candidate(2, lexical=1.0)]
    scores = {candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(session_weight=0.0), hints)}
    question, answer = 1 - ASKING_PENALTY * asks, 0.5 + ANSWER_SHARE * asks
    assert scores == pytest.approx({0: answer, 1: question, 2: 0.5} if asks == 1.0 else {0: question, 1: answer, 2: 0.5})


def test_a_longer_turn_that_ends_in_a_question_is_lowered_less(conversation):
    longer = replace(conversation, origins={**conversation.origins, 0: conversation.origins[0]._replace(asks=0.25)})
    scores = {candidate.memory_id: candidate.score for candidate in fuse([Candidate(0, lexical=2.0)], Fusion(), longer)}
    assert scores == pytest.approx({0: 1 - ASKING_PENALTY / 4})


def test_what_an_assistant_answers_gets_no_share(conversation):
    said = {**conversation.origins, 1: conversation.origins[1]._replace(source="assistant")}
    hints = replace(conversation, origins=said, assistants={"assistant"})
    candidates = [Candidate(0, lexical=2.0), Candidate(1, lexical=1.0)]
    scores = {
        candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(session_weight=0.0, assistant_weight=1.0), hints)
    }
    assert scores[1] == pytest.approx(0.5)


def test_a_question_that_matches_nothing_has_no_score_below_zero(conversation):
    assert [candidate.score for candidate in fuse([Candidate(0, lexical=0.0)], Fusion(), conversation)] == [0.0]


def test_a_named_year_counts_half_of_a_named_day(origins, now):
    """Too much happens in a year for it to decide."""
    day, year = TimeRange(now, now + timedelta(days=1)), TimeRange(now - timedelta(days=200), now + timedelta(days=165))
    by_day, by_year = (fuse([Candidate(1, lexical=1.0)], Fusion(date_boost=1.0), Hints([span], (), origins))[0] for span in (day, year))
    assert (by_day.date_share, by_year.date_share) == (1.0, 0.5)
    assert (by_day.score, by_year.score) == (2.0, 1.5)
