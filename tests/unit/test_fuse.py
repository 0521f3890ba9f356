"""One order out of several scores."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.config.settings import Fusion
from memory_mcp.domain import Candidate, TimeRange
from memory_mcp.search.fuse import fuse

ANY_TIME = datetime(2025, 10, 30, tzinfo=UTC)
SCORES = st.floats(min_value=0, max_value=100) | st.none()
CANDIDATES = st.lists(st.tuples(SCORES, st.floats(min_value=-1, max_value=1) | st.none()), max_size=8)


@pytest.fixture
def happened(now):
    return {number: now + timedelta(hours=number) for number in range(10)}


def test_the_lexical_score_alone_is_scaled_to_its_best(happened):
    ranked = fuse([Candidate(1, lexical=2.0), Candidate(2, lexical=8.0)], Fusion(), [], happened)
    assert [(candidate.memory_id, candidate.score) for candidate in ranked] == [(2, 1.0), (1, 0.25)]
    assert [candidate.lexical_share for candidate in ranked] == [1.0, 0.25]


def test_meaning_and_words_are_weighed(happened):
    candidates = [Candidate(1, lexical=4.0, dense=0.2), Candidate(2, lexical=1.0, dense=0.8), Candidate(3, lexical=0.0, dense=0.5)]
    scores = {candidate.memory_id: candidate.score for candidate in fuse(candidates, Fusion(dense_weight=0.6), [], happened)}
    assert scores == pytest.approx({1: 0.4, 2: 0.6 + 0.1, 3: 0.3})


def test_a_candidate_without_a_vector_is_judged_by_its_words_alone(happened):
    candidates = [Candidate(1, lexical=4.0), Candidate(2, lexical=2.0, dense=0.9), Candidate(3, lexical=2.0, dense=0.1)]
    assert [candidate.score for candidate in fuse(candidates, Fusion(), [], happened)] == [1.0, 0.75, 0.25]


def test_equal_cosines_and_no_lexical_score_divide_by_nothing(happened):
    candidates = [Candidate(1, lexical=0.0, dense=0.5), Candidate(2, lexical=0.0, dense=0.5)]
    assert [candidate.score for candidate in fuse(candidates, Fusion(), [], happened)] == [0.0, 0.0]


def test_a_memory_from_a_named_date_is_raised(happened, now):
    day = TimeRange(now + timedelta(minutes=30), now + timedelta(minutes=90))  # where memory 1 is
    ranked = fuse([Candidate(2, lexical=1.0), Candidate(1, lexical=0.9)], Fusion(date_boost=0.2), [day], happened)
    assert [(candidate.memory_id, candidate.in_named_date) for candidate in ranked] == [(1, True), (2, False)]
    assert ranked[0].score == pytest.approx(1.1)


def test_a_memory_in_two_named_dates_is_raised_once(happened, now):
    day = TimeRange(now, now + timedelta(days=1))
    (raised,) = fuse([Candidate(1, lexical=1.0)], Fusion(date_boost=0.2), [day, day], happened)
    assert raised.score == pytest.approx(1.2)


def test_of_equals_the_later_comes_first(happened):
    ranked = fuse([Candidate(number, lexical=1.0) for number in (3, 7, 5)], Fusion(), [], happened)
    assert [candidate.memory_id for candidate in ranked] == [7, 5, 3]


def test_nothing_fused_is_nothing(happened):
    assert fuse([], Fusion(), [], happened) == []


@given(CANDIDATES, st.floats(min_value=0, max_value=1))
def test_every_candidate_is_ranked_once_between_0_and_1_best_first(scores, weight):
    candidates = [Candidate(number, lexical=lexical, dense=dense) for number, (lexical, dense) in enumerate(scores)]
    ranked = fuse(candidates, Fusion(dense_weight=weight), [], dict.fromkeys(range(len(scores)), ANY_TIME))
    assert sorted(candidate.memory_id for candidate in ranked) == list(range(len(scores)))
    assert all(0 <= candidate.score <= 1.000001 for candidate in ranked)
    assert [candidate.score for candidate in ranked] == sorted((candidate.score for candidate in ranked), reverse=True)
