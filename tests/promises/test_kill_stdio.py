"""SIGKILL of the process of `memory-mcp stdio` that serves, while others use it: what was acknowledged is there, and a call is done once."""

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import serving
from soundness import faults
from stdio_host import Refused, StdioHost
from writers import Caller

from memory_mcp.personas.server_lock import read_note

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

ROUNDS, THOROUGH_ROUNDS = 4, 30
NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'
BEFORE_THE_ANSWER = ("inside a write", "after the commit, before the answer", "after the commit, before the log")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(NO_MODELS)
    return tmp_path / "memory"


def kill_the_one_that_serves(hosts: list[StdioHost], data: Path) -> None:
    note = read_note(data)
    for host in hosts:
        if note and host.process.pid == note.process:
            hosts.remove(host)
            host.stop()


def write(host: StdioHost, name: str, stop: threading.Event) -> set[str]:
    """What was acknowledged. What is killed itself acknowledges no more."""
    acknowledged: set[str] = set()
    while not stop.is_set():
        content = f"{name}の{len(acknowledged)}"
        try:
            host("remember", content=content)
        except (Refused, BrokenPipeError):
            assert host.process.wait(60) < 0
            return acknowledged
        acknowledged.add(content)
    return acknowledged


@pytest.mark.timeout(900)
def test_whenever_the_process_that_serves_is_killed_the_others_lose_nothing(tmp_path: Path, data: Path, thorough: bool) -> None:
    acknowledged: set[str] = set()
    with ExitStack() as stack:
        hosts: list[StdioHost] = []
        for round_ in range(THOROUGH_ROUNDS if thorough else ROUNDS):
            while len(hosts) < 3:
                hosts.append(stack.enter_context(StdioHost(tmp_path, data)))
            stop = threading.Event()
            with ThreadPoolExecutor() as threads:
                writers = [threads.submit(write, host, f"{round_}回目{number}番", stop) for number, host in enumerate(hosts)]
                try:
                    while sum(len(host.messages) for host in hosts) < 30 * (round_ + 1):
                        threading.Event().wait(0.01)
                    kill_the_one_that_serves(hosts, data)
                    for host in hosts:  # they answer again
                        host("remember", content=f"{round_}回目の後、{host.process.pid}")
                finally:
                    stop.set()
                acknowledged |= {content for writer in writers for content in writer.result()}
            assert len(hosts) == 2
    stored = exported(tmp_path, data)
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    assert faults(data) == []


@pytest.mark.parametrize("moment", BEFORE_THE_ANSWER)
def test_a_write_that_may_be_done_is_sent_again_if_that_changes_nothing_and_else_its_caller_is_told(
    tmp_path: Path, data: Path, moment: str
) -> None:
    with StdioHost(tmp_path, data) as before:
        key = before("remember", content="一")["key"]
        before.end()
    for tool, arguments in (("remember", {"content": "二"}), ("revise", {"key": key, "content": "三"})):
        with StdioHost(tmp_path, data, moment=moment) as doomed:
            assert doomed.contents()
            with StdioHost(tmp_path, data) as other:
                assert other.contents()
                number = other.begin(tool, **arguments)
                assert doomed.process.wait(60) == -signal.SIGKILL
                if tool == "remember":
                    assert other.answer(number)["key"]
                else:
                    with pytest.raises(Refused, match="the server ended before it answered: whether this was done before is not known"):
                        other.answer(number)
                    assert other.contents() in ({"一", "二"}, {"三", "二"})
    assert sorted(exported(tmp_path, data)) in (["一", "二"], ["三", "二"])


def exported(directory: Path, data: Path) -> list[str]:
    """What all memories say, according to a server."""
    with serving(directory, NO_MODELS, data=data) as server, Caller(server, "default") as caller:
        return [memory["content"] for memory in caller.exported()]
