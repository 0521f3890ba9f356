"""One order out of several signals: what each row of the table adds, and that each can be taken out by its name."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rules import take_out
from memory_mcp.config.settings import Decay, Fusion, Settings
from memory_mcp.domain import Filters, Origin, Question, TimeRange
from memory_mcp.search import signals
from memory_mcp.search.candidates import Candidates, date_shares, joined
from memory_mcp.search.question import ParsedQuestion, QuestionTime
from memory_mcp.search.rerank import in_spreads
from memory_mcp.search.signals import (
    ANSWER_SHARE,
    ASKING_PENALTY,
    LEAST_WORDS,
    OTHER_LANGUAGE_SHARE,
    RECENT_WEIGHT,
    SUNK_SHARES,
    WITNESSES,
    contributions,
    score_all,
    sorted_rows,
    supported,
    why,
)
from memory_mcp.store.timestamps import to_text

NOW = datetime(2025, 10, 30, tzinfo=UTC)
EVERYTHING = Filters()
SCORES = st.floats(min_value=0, max_value=100)
ROWS = st.lists(st.tuples(SCORES, st.floats(min_value=-1, max_value=1) | st.none()), min_size=1, max_size=8)


def row(
    number=1, *, lexical=0.0, nearness=None, dense=None, told=None, asks=0.0, session=None, answers=None, verdict="", store=0, **fields
):
    """A candidate. `answers`: the number of the turn before it, which asks something."""
    at = to_text(told or NOW + timedelta(hours=number))
    origin = Origin(fields.pop("happened", at), session_id=session, told_at=at, asks=asks)
    unknown = float("nan")
    columns = {
        "lexical": lexical,
        "dense": unknown if dense is None else dense,
        "nearness": unknown if nearness is None else nearness,
        "dates": 0.0,
        "graph": 0.0,
        "retention": 0.0,
        "judged": 0.0,
        "cross_score": unknown,
        "cross_value": 0.0,
    }
    flags = {"is_foreign": False, "is_named": False, "is_assistants": False, "is_certain": False}
    return Candidates(
        keys=[(store, number)],
        origins=[origin],
        chunks=[None],
        times=[()],
        verdicts=[verdict],
        answers={} if answers is None else {(store, number): (store, answers)},
        **{name: np.array([fields.pop(name, value)], float) for name, value in columns.items()},
        **{name: np.array([fields.pop(name, value)], bool) for name, value in flags.items()},
    )


def asked(*, dates=(), mode="auto", wants_lately=False, looks_ahead=False, filters=EVERYTHING, decay=0.0, **fusion):
    """A question, with these weights of the fusion."""
    settings = Settings(fusion=Fusion(**fusion), decay=Decay(weight=decay))
    time = QuestionTime("a question", "a question", "a question", dates, looks_ahead, wants_lately=wants_lately)
    return ParsedQuestion(Question("a question", mode=mode, filters=filters), time, settings, NOW)


def weighed(rows, question=None, *, dense_weight=0.5, are_apart=False):
    return score_all(joined(rows), question or asked(), dense_weight=dense_weight, are_apart=are_apart)


def scores(rows, question=None, **how):
    """Number → score."""
    result = weighed(rows, question, **how)
    return {number: score for (_, number), score in zip(result.candidates.keys, result.score.tolist(), strict=True)}


def order(rows, question=None, **how):
    """The numbers, best first."""
    result = weighed(rows, question, **how)
    return [result.candidates.keys[index][1] for index in sorted_rows(result, range(len(rows)))]


def explained(rows, question=None, **how):
    result = weighed(rows, question, **how)
    return why(result, range(len(rows)))


def test_words_are_scaled_to_the_best_match():
    rows = [row(1, lexical=2.0), row(2, lexical=8.0)]
    assert scores(rows) == {1: 0.25, 2: 1.0}
    assert [each["lexical"] for each in explained(rows)] == [0.25, 1.0]


def test_meaning_and_words_are_weighed():
    rows = [row(1, lexical=4.0, nearness=0.2), row(2, lexical=1.0, nearness=0.8), row(3, nearness=0.5)]
    assert scores(rows, dense_weight=0.6) == pytest.approx({1: 0.4, 2: 0.6 + 0.1, 3: 0.3})


def test_a_candidate_without_a_vector_is_judged_by_its_words_alone():
    rows = [row(1, lexical=4.0), row(2, lexical=2.0, nearness=0.9), row(3, lexical=2.0, nearness=0.1)]
    assert scores(rows) == {1: 1.0, 2: 0.75, 3: 0.25}


def test_equal_cosines_and_no_word_divide_by_nothing():
    assert scores([row(1, nearness=0.5), row(2, nearness=0.5)]) == {1: 0.0, 2: 0.0}


def test_of_few_vectors_that_are_apart_the_last_one_is_as_near_as_it_is():
    rows = [row(1, lexical=1.0, nearness=0.6), row(2, lexical=1.0, nearness=0.54)]
    assert scores(rows, are_apart=True) == pytest.approx({1: 1.0, 2: 0.95})


def test_what_is_in_another_language_is_judged_by_its_meaning():
    rows = [row(1, lexical=2.0, nearness=0.5), row(2, nearness=0.9, is_foreign=True), row(3, nearness=0.1)]
    assert scores(rows) == pytest.approx({1: 0.25 + 0.5, 2: 0.5 + 0.5 * OTHER_LANGUAGE_SHARE, 3: 0.0})


def test_a_memory_of_a_named_date_is_raised():
    rows = [row(2, lexical=1.0), row(1, lexical=0.9, dates=1.0)]
    assert scores(rows, asked(date_boost=0.2)) == pytest.approx({1: 1.1, 2: 1.0})
    assert explained(rows, asked(date_boost=0.2))[1]["date"] is True


def test_a_named_year_counts_half_of_a_named_day_and_two_named_dates_no_more_than_one():
    day, year = TimeRange(NOW, NOW + timedelta(days=1)), TimeRange(NOW - timedelta(days=300), NOW + timedelta(days=60))
    told = (Origin(to_text(NOW + timedelta(hours=1))), ())
    shares = [date_shares(asked(dates=dates), [told])[0] for dates in ([day], [year], [day, day], [year, day], [])]
    assert shares == [1.0, 0.5, 1.0, 1.0, 0.0]


def test_where_the_latest_is_asked_for_the_later_counts_more_and_what_is_older_alike():
    rows = [row(days, lexical=1.0, told=NOW - timedelta(days=days), dates=1.0) for days in (0, 15, 30, 300)]
    question = asked(dates=[TimeRange(NOW - timedelta(days=30), NOW)], wants_lately=True)
    assert scores(rows, question) == pytest.approx({0: RECENT_WEIGHT, 15: RECENT_WEIGHT**0.5, 30: 1.0, 300: 1.0})
    assert order([row(0, lexical=0.2, told=NOW), row(300, lexical=1.0, told=NOW - timedelta(days=300))], question)[0] == 300


def test_a_memory_of_a_named_speaker_is_raised():
    rows = [row(2, lexical=1.0), row(1, lexical=0.9, is_named=True)]
    assert scores(rows, asked(speaker_boost=0.2)) == pytest.approx({1: 1.1, 2: 1.0})
    assert ["speaker" in each for each in explained(rows)] == [False, True]


def test_what_an_assistant_said_keeps_a_share_of_what_it_matches_but_not_of_its_date():
    rows = [row(1, lexical=1.0, dates=1.0, is_assistants=True), row(2, lexical=0.9)]
    assert scores(rows, asked(assistant_weight=0.3, date_boost=0.5)) == pytest.approx({1: 0.3 / 0.9 + 0.5, 2: 1.0})
    assert explained(rows, asked(assistant_weight=0.3))[0]["lexical"] == pytest.approx(0.333)


def test_what_else_the_session_holds_speaks_for_a_memory():
    rows = [
        row(0, lexical=1.0),
        *(row(n, lexical=share, session=session) for n, share, session in ((1, 0.8, "a"), (2, 0.8, "b"), (3, 0.6, "b"))),
    ]
    assert [each.get("session", 0) for each in explained(rows, asked(session_weight=1))] == pytest.approx(
        [0, 0, 0.6 / WITNESSES, 0.8 / WITNESSES]
    )
    assert order(rows, asked(session_weight=1)) == [0, 2, 1, 3]


def test_only_the_best_others_of_a_session_speak_for_a_memory():
    shares = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    rows = [row(number, lexical=share, session="one") for number, share in enumerate(shares)]
    expected = [sum(sorted(shares[:number] + shares[number + 1 :], reverse=True)[:WITNESSES]) / WITNESSES for number in range(len(shares))]
    assert weighed(rows).values["sessions"].tolist() == pytest.approx(expected)


def test_neither_memories_without_a_session_nor_those_of_two_stores_share_one():
    assert scores([row(1, lexical=1.0), row(2, lexical=1.0)]) == {1: 1.0, 2: 1.0}
    assert scores([row(1, lexical=1.0, session="one"), row(2, lexical=1.0, session="one", store=1)]) == {1: 1.0, 2: 1.0}


def test_the_session_weighs_as_much_as_the_words_do():
    """Where the order is by meaning alone, the words of the neighbours say nothing either."""
    rows = [row(number, lexical=1.0, nearness=0.5, session="one") for number in (1, 2)]
    assert list(scores(rows, dense_weight=1.0).values()) == [0, 0]
    assert list(scores(rows, asked(session_weight=0.3)).values()) == pytest.approx([0.5 * (1 + 0.3 / WITNESSES)] * 2)


def test_the_graph_weighs_less_beside_an_embedding_and_has_a_weight_of_its_own_where_it_is_asked():
    weights = {"graph_weight": 0.2, "graph_weight_dense": 0.04}
    assert scores([row(1, graph=0.5), row(2)], asked(**weights)) == pytest.approx({1: 0.1, 2: 0.0})
    assert scores([row(1, nearness=0.0, graph=0.5), row(2, nearness=0.0)], asked(**weights)) == pytest.approx({1: 0.02, 2: 0.0})
    assert scores([row(1, graph=0.5), row(2)], asked(mode="graph", **weights)) == pytest.approx({1: 0.25, 2: 0.0})


def test_the_parts_of_a_score_are_what_each_row_of_the_table_adds_and_make_it_up():
    rows = [
        row(1, lexical=2.0, nearness=0.4, session="a", asks=1.0, is_assistants=True, judged=-0.5),
        row(2, lexical=1.0, nearness=0.9, session="a", answers=1, dates=0.5, retention=0.3, cross_score=0.7, cross_value=0.2),
        row(3, nearness=0.1, verdict="stale", graph=0.5, is_named=True),
    ]
    result = weighed(rows, asked(decay=0.2, judged_weight=0.1))
    for place, of_row in enumerate(contributions(result, range(len(rows)))):
        assert sum(weight * value for weight, value in of_row.values()) == pytest.approx(result.score[place])
        assert all(weight * value for weight, value in of_row.values())
    assert list(contributions(result, [2])[0]) == [name for name in result.values if name in contributions(result, [2])[0]]


def test_use_and_judgements_add_what_they_weigh():
    rows = [row(1, lexical=1.0, retention=0.5), row(2, lexical=1.0, judged=-0.5), row(3, lexical=1.0)]
    question = asked(decay=0.2, judged_weight=0.1)
    assert scores(rows, question) == pytest.approx({1: 1.1, 2: 0.95, 3: 1.0})
    assert [each.get("freshness") for each in explained(rows, question)] == [0.1, None, None]
    assert [each.get("judged") for each in explained(rows, question)] == [None, -0.05, None]


@pytest.mark.parametrize("verdict", SUNK_SHARES)
def test_what_a_judgement_stands_against_keeps_a_share(verdict):
    assert scores([row(1, lexical=1.0, verdict=verdict)]) == pytest.approx({1: SUNK_SHARES[verdict]})


@pytest.mark.parametrize("asks", [1.0, 0.9])
def test_an_answer_gets_a_share_of_what_its_question_matches_and_the_place_of_a_short_one(asks):
    rows = [row(0, lexical=2.0, asks=asks, session="a"), row(1, lexical=1.0, session="a", answers=0), row(2, lexical=1.0, session="a")]
    found = scores(rows, asked(session_weight=0.0))
    question, answer = 1.0 - ASKING_PENALTY * asks, 0.5 + ANSWER_SHARE * asks
    expected = {0: answer, 1: question} if asks == 1.0 else {0: question, 1: answer}
    assert found == pytest.approx({**expected, 2: 0.5})


def test_a_longer_turn_that_ends_in_a_question_loses_less_and_none_falls_below_zero():
    assert scores([row(1, lexical=1.0, asks=0.5), row(2, asks=1.0)]) == pytest.approx({1: 1.0 - ASKING_PENALTY * 0.5, 2: 0.0})


def test_what_an_assistant_answers_gets_no_share():
    rows = [row(0, lexical=2.0, asks=0.9), row(1, lexical=1.0, answers=0, is_assistants=True)]
    assert scores(rows, asked(assistant_weight=0.3))[1] == pytest.approx(0.15)


def test_what_a_cross_encoder_found_is_added_by_its_weight():
    rows = [row(1, lexical=1.0), row(2, lexical=0.9, cross_value=1.0, cross_score=0.8)]
    assert scores(rows, asked(rerank_weight=0.25)) == pytest.approx({1: 1.0, 2: 1.15})
    assert [each.get("rerank") for each in explained(rows)] == [None, 0.8]


def test_what_a_cross_encoder_holds_for_about_alike_stands_as_it_stood():
    alike = [1 / (1 + exp(-logit)) for logit in (0.0, 0.5, 1.0)]
    assert list(in_spreads(alike, spread=1.0)) == [0.0, 0.0, 0.0]
    assert list(in_spreads([*alike, 0.999999, 0.000001], spread=1.0)[-2:]) == pytest.approx([1.4, -1.4])


def test_of_equals_that_of_a_named_date_comes_first_then_what_was_told_later():
    rows = [row(3, lexical=1.0), row(7, lexical=1.0), row(5, lexical=1.0), row(1, lexical=1.0, dates=0.5)]
    assert order(rows, asked(date_boost=0)) == [1, 7, 5, 3]


def test_the_latest_come_first_where_nothing_else_is_asked_for_and_the_nearest_of_what_is_to_come():
    rows = [row(1, dates=1.0), row(2, dates=1.0, is_assistants=True), row(3, dates=1.0), row(4, dates=0.5)]
    assert order(rows, asked(mode="recent")) == [3, 1, 2, 4]
    assert order(rows, asked(mode="recent", looks_ahead=True)) == [1, 2, 3, 4]


@given(ROWS, st.floats(min_value=0, max_value=1))
def test_every_candidate_is_ranked_once_between_0_and_1_best_first(found, weight):
    rows = [row(number, lexical=lexical, nearness=nearness, told=NOW) for number, (lexical, nearness) in enumerate(found)]
    result = weighed(rows, dense_weight=weight)
    ranked = sorted_rows(result, range(len(rows)))
    assert sorted(ranked) == list(range(len(rows)))
    assert all(0 <= score <= 1.000001 for score in result.score)
    assert [result.score[index] for index in ranked] == sorted(result.score, reverse=True)


@pytest.mark.parametrize(
    ("rows", "hits"),
    [
        ([row(1, lexical=1.0), row(2, lexical=LEAST_WORDS - 0.01), row(3)], [True, False, False]),
        ([row(1, lexical=1.0), row(2, dates=0.5), row(3, is_named=True), row(4, is_certain=True)], [True] * 4),
        ([row(1, lexical=1.0, asks=1.0), row(2, answers=1), row(3, answers=2)], [True, True, False]),
        ([row(1, nearness=0.5), row(2, nearness=0.24), row(3)], [True, False, True]),
    ],
)
def test_what_nothing_speaks_for_is_no_hit(rows, hits):
    result = weighed(rows, are_apart=True)
    assert supported(result, in_small_store=False).tolist() == hits


def test_where_all_vectors_may_be_near_or_all_that_passes_is_wanted_nothing_is_left_out():
    weak = [row(1, lexical=1.0, nearness=0.9), row(2, nearness=0.1)]
    assert supported(weighed(weak), in_small_store=False).all()
    ranged = asked(filters=Filters(date_range=TimeRange(NOW, NOW)))
    assert supported(weighed([row(1, lexical=1.0), row(2)], ranged), in_small_store=False).all()


@pytest.mark.parametrize("name", [signal.name for signal in signals.SIGNALS])
def test_each_row_can_be_taken_out_by_its_name(monkeypatch, name):
    monkeypatch.setattr(signals, "SIGNALS", signals.SIGNALS)
    rows = [
        row(
            1,
            lexical=1.0,
            nearness=0.5,
            dates=0.5,
            is_named=True,
            graph=1.0,
            retention=1.0,
            judged=1.0,
            cross_value=1.0,
            session="a",
            asks=0.5,
        ),
        replace(row(2, lexical=0.5, nearness=0.2, answers=1, verdict="hurt", is_assistants=False), is_assistants=np.array([True])),
        row(3, lexical=0.5, nearness=0.1, session="a", answers=1),
    ]
    question = asked(dates=[TimeRange(NOW - timedelta(days=30), NOW)], wants_lately=name == "recency", decay=0.1)
    before = weighed(rows, question)
    assert name in before.values
    take_out([name])
    after = weighed(rows, question)
    assert name not in after.values
    assert before.score.tolist() != after.score.tolist()
