"""Whoever asks for an analysis of a graph waits a few seconds at most, whatever the libraries do, and nothing piles up."""

import threading

import numpy as np
import pytest
from graph_work import Here, counted

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.graph.analytics.analyses import Analyses
from memory_mcp.graph.analytics.deadline import Deadline
from memory_mcp.graph.merge_proposals import merge_proposals
from memory_mcp.graph.update.relation_edits import relate


@pytest.fixture
def told(nilou, now):
    """told("A B"): somebody knows somebody."""

    def told(ends):
        source, target = ends.split()
        relate(nilou, [StatedRelation(source, "knows", target, "Person", "Person")], now=now, privacy=Privacy())

    return told


@pytest.fixture
def done():
    return []


class Stubborn:
    """An analysis that takes until it is told to end."""

    def __init__(self):
        self.begun, self.ends, self.calls = threading.Event(), threading.Event(), 0

    def analysis(self, whole):
        self.calls += 1
        self.begun.set()
        assert self.ends.wait(60)
        return np.array(whole.ids)


@pytest.fixture
def stubborn():
    stubborn = Stubborn()
    yield stubborn
    stubborn.ends.set()


def test_one_analysis_runs_at_a_time_and_who_waits_too_long_is_told_so(nilou, told, done, eventually):
    analyses, inside = Analyses(Here(), deadline_seconds=0.3), []
    told("A B")
    with analyses.turn("Wait") as deadline:
        inside.append(deadline.do)
        with pytest.raises(AnalysisUnfinished, match="others are under way"):
            analyses.of(nilou, counted(done))
    assert (done, inside) == ([], ["Wait"])
    eventually(lambda: len(answered(analyses, nilou, counted(done))) == 2)
    assert done == [2]


def test_who_asked_for_what_takes_long_hears_so_in_time_and_what_it_finds_is_kept(nilou, personas, now, told, done, stubborn, eventually):
    analyses = Analyses(Here(), deadline_seconds=0.3)
    told("A B")
    given_up(analyses, nilou, stubborn)
    for analysis in (stubborn.analysis, counted(done)):
        with pytest.raises(AnalysisUnfinished, match="an earlier one that takes long is still under way"):
            analyses.of(nilou, analysis)
    with personas.writing("dehya") as dehya:
        relate(dehya, [StatedRelation("A", "knows", "B")], now=now, privacy=Privacy())
        eventually(lambda: len(answered(analyses, dehya, counted(done))) == 2)
    assert (stubborn.calls, set(done)) == (1, {2})
    stubborn.ends.set()
    eventually(lambda: len(answered(analyses, nilou, stubborn.analysis)) == 2)
    assert stubborn.calls == 1


def given_up(analyses, persona, stubborn):
    """Asks for what takes too long, until it has begun: on a busy machine the time may be over before."""
    while not stubborn.begun.is_set():
        with pytest.raises(AnalysisUnfinished, match=r"not done within|an earlier one that takes long"):
            analyses.of(persona, stubborn.analysis)


def answered(analyses, persona, analysis):
    try:
        return analyses.of(persona, analysis)[1]
    except AnalysisUnfinished:
        return ()


@pytest.mark.slow
def test_no_more_than_two_that_nobody_waits_for_are_under_way_at_once(personas, now, done):
    analyses, ending = Analyses(Here(), deadline_seconds=0.3), [Stubborn(), Stubborn()]
    try:
        for number in range(3):
            with personas.writing(f"persona-{number}") as persona:
                relate(persona, [StatedRelation("A", "knows", "B")], now=now, privacy=Privacy())
                if number < 2:
                    given_up(analyses, persona, ending[number])
                else:
                    with pytest.raises(AnalysisUnfinished, match="others that take long are still under way"):
                        analyses.of(persona, counted(done))
    finally:
        for one in ending:
            one.ends.set()
    assert done == []


def test_what_fails_is_told_to_whoever_waits_for_it(nilou, told):
    told("A B")

    def failing(whole):
        raise ArithmeticError("no such number")

    with pytest.raises(ArithmeticError, match="no such number"):
        Analyses(Here()).of(nilou, failing)


def test_what_fails_when_nobody_waits_any_more_is_in_the_log_with_its_cause(nilou, told, eventually, caplog):
    class Failing(Stubborn):
        def analysis(self, whole):
            super().analysis(whole)
            raise ArithmeticError("no such number")

    failing = Failing()
    told("A B")
    given_up(Analyses(Here(), deadline_seconds=0.05), nilou, failing)
    failing.ends.set()
    eventually(lambda: "ArithmeticError: no such number" in caplog.text)


def test_proposals_give_up_at_the_deadline(nilou, told):
    told("渡辺 渡邊")
    with nilou.database.read() as connection:
        assert merge_proposals(connection, 10)[1] == 1
        with pytest.raises(AnalysisUnfinished):
            merge_proposals(connection, 10, Deadline.after(0))
