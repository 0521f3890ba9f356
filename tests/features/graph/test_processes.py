"""Analyses run beside the server: the same is found, whatever goes wrong there is told, and no process outlives its use."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import networkx
import numpy as np
import odd_analyses
import pytest

from memory_mcp.errors import AnalysisUnfinished
from memory_mcp.features.graph.analytics.analyses import Deadline, Processes
from memory_mcp.features.graph.analytics.measures import MEASURES, communities, pagerank, statistics
from memory_mcp.store.graph.network import Network

pytestmark = pytest.mark.slow

EDGES = np.array(sorted(networkx.barabasi_albert_graph(50, 3, seed=1).edges))
GRAPH = Network(np.arange(50), EDGES[:, 0].copy(), EDGES[:, 1].copy(), np.full(len(EDGES), 0.5), len(EDGES))


class InTime(Processes):
    """Analyses for which there is time enough."""

    def run(self, analysis, network, seconds=60.0):
        return super().run(analysis, network, Deadline.after(seconds))


@pytest.fixture
def processes():
    processes = InTime()
    yield processes
    processes.close()


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("analysis", [*MEASURES.values(), statistics, communities])
def test_the_same_is_found_beside_the_server_as_in_it(processes, analysis):
    here, beside = analysis(GRAPH), processes.run(analysis, GRAPH)
    assert type(beside) is type(here)
    assert repr(beside) == repr(here)


def test_one_process_has_one_analysis_after_the_other_and_goes_behind_the_server(processes):
    pids = {int(processes.run(odd_analyses.whose_process, GRAPH)[0]) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert processes.run(odd_analyses.priority, GRAPH)[0] > os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize(
    ("analysis", "why"), [("failing", "ArithmeticError: no such number"), ("panicking", "panics.Panicked: index out of bounds")]
)
def test_what_fails_is_told_with_its_trace_and_the_process_goes_on(processes, analysis, why):
    before = processes.run(odd_analyses.whose_process, GRAPH)
    with pytest.raises(RuntimeError, match=f"{analysis} broke off: {why}") as raised:
        processes.run(getattr(odd_analyses, analysis), GRAPH)
    assert "odd_analyses.py" in "".join(raised.value.__notes__)
    assert processes.run(odd_analyses.whose_process, GRAPH) == before


def test_what_a_library_prints_is_no_answer(processes, capfd):
    for _ in range(2):
        assert processes.run(odd_analyses.talking, GRAPH).tolist() == GRAPH.ids.tolist()
    processes.close()
    assert capfd.readouterr().err.count("so many: 50") == 2


def test_a_process_that_ends_in_the_middle_is_told_of_and_the_next_analysis_has_another(processes, caplog):
    with pytest.raises(AnalysisUnfinished, match=r"dying broke off: its process ended.* Try again"):
        processes.run(odd_analyses.dying, GRAPH)
    assert "dying broke off" in caplog.text
    assert len(processes.run(pagerank, GRAPH)) == 50


def test_a_process_that_ended_while_it_waited_is_replaced(processes):
    pid = int(processes.run(odd_analyses.whose_process, GRAPH)[0])
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert processes.run(odd_analyses.whose_process, GRAPH)[0] != pid
    assert not lives(pid)


def test_what_takes_too_long_is_ended_and_the_next_analysis_has_another_process():
    processes = InTime()
    pid = int(processes.run(odd_analyses.whose_process, GRAPH)[0])
    with pytest.raises(AnalysisUnfinished, match=r"not done within 0.5 s.*min_weight"):
        processes.run(odd_analyses.endless, GRAPH, 0.5)
    assert not lives(pid)
    assert len(processes.run(pagerank, GRAPH)) == 50
    processes.close()


def test_a_process_that_nobody_wants_any_more_is_ended(eventually):
    processes = InTime(idle_seconds=0.05)
    pid = int(processes.run(odd_analyses.whose_process, GRAPH)[0])
    eventually(lambda: not lives(pid))
    assert len(processes.run(pagerank, GRAPH)) == 50
    processes.close()


def test_two_at_once_have_a_process_each_and_closing_ends_what_is_under_way(processes):
    refused = []

    def asking():
        with pytest.raises(AnalysisUnfinished) as raised:
            processes.run(odd_analyses.endless, GRAPH)
        refused.append(raised.value)

    thread = threading.Thread(target=asking)
    thread.start()
    assert len(processes.run(pagerank, GRAPH)) == 50
    processes.close()
    thread.join(60)
    assert len(refused) == 1
    with pytest.raises(AnalysisUnfinished, match="the server stops"):
        processes.run(pagerank, GRAPH)


def test_a_process_ends_with_its_server_even_where_that_was_killed(eventually):
    server = (
        "import sys, odd_analyses, test_processes as here\n"
        "print(int(here.InTime().run(odd_analyses.whose_process, here.GRAPH)[0]), flush=True)\n"
        "sys.stdin.read()"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-c", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        pid = int(process.stdout.readline())
        assert lives(pid)
        process.kill()
    eventually(lambda: not lives(pid))


def test_an_analysis_whose_server_is_gone_ends_all_the_same():
    program = "from memory_mcp.features.graph.analytics import worker; worker.ALONE_SECONDS = 1; worker.main()"
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}) as process:
        pickle.dump((odd_analyses.endless, GRAPH), process.stdin)
        process.stdin.close()
        assert process.wait(60) == -signal.SIGALRM


def test_where_no_process_can_be_started_that_is_told(processes, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(AnalysisUnfinished, match="no process could be started: No such file"):
        processes.run(pagerank, GRAPH)
    monkeypatch.undo()
    assert len(processes.run(pagerank, GRAPH)) == 50


def test_modules_of_the_directory_in_which_the_server_was_started_are_none_of_its(processes, tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert len(processes.run(pagerank, GRAPH)) == 50
