"""Whoever asks for an analysis of a graph waits a few seconds at most, whatever the libraries do, and nothing piles up."""

import odd_analyses
import pytest
from graph_work import Here, counted

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.features.graph.analytics.analyses import Analyses, Deadline
from memory_mcp.features.graph.merge_proposals import merge_proposals
from memory_mcp.features.graph.relation_edits import relate


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


def answered(analyses, persona, analysis):
    try:
        return analyses.of(persona, analysis)[1]
    except AnalysisUnfinished:
        return ()


@pytest.mark.slow
def test_what_takes_too_long_is_refused_in_time_and_the_next_caller_is_served(nilou, told, done):
    told("A B")
    hurried, patient = Analyses(deadline_seconds=0.5), Analyses(Here(), deadline_seconds=60.0)
    for _ in range(2):
        with pytest.raises(AnalysisUnfinished, match=r"not done within 0.5 s"):
            hurried.of(nilou, odd_analyses.endless)
        assert len(patient.of(nilou, counted(done))[1]) == 2
    hurried.close()


def test_what_fails_is_told_to_whoever_waits_for_it(nilou, told):
    told("A B")

    def failing(whole):
        raise ArithmeticError("no such number")

    with pytest.raises(ArithmeticError, match="no such number"):
        Analyses(Here()).of(nilou, failing)


def test_proposals_give_up_at_the_deadline(nilou, told):
    told("渡辺 渡邊")
    with nilou.database.read() as connection:
        assert merge_proposals(connection, 10)[1] == 1
        with pytest.raises(AnalysisUnfinished):
            merge_proposals(connection, 10, Deadline.after(0))
