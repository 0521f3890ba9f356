"""Files are read in processes of their own: whatever is in a file, the server goes on, and what a process sends has a bound."""

import os
import sys
import threading

import pytest

from memory_mcp.errors import InvalidInput, Overloaded
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.processes import ReadingProcesses
from memory_mcp.transfer.formats.worker import PART_BYTES, PART_LINES, Asked, Counted, End, Failed, Part, Recognized, answers
from memory_mcp.transfer.line_fields import LINE_LIMIT_BYTES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def processes():
    processes = ReadingProcesses()
    yield processes
    processes.close()


def asked(path, format_=Format.AUTO):
    return Asked(path, format_, "nilou")


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(processes, path):
    with processes.reading(asked(path)) as reading:
        return list(reading.answers())


def shape(told):
    return [(type(answer), [len(answer.lines), len(answer.refused)]) if isinstance(answer, Part) else answer for answer in told]


def test_a_file_is_recognized_counted_and_read_in_order(processes, tmp_path):
    path = written(tmp_path / "a.jsonl", "".join(f'{{"content": "{number}"}}\n' for number in range(PART_LINES + 1)))
    told = [answer for answer in read(processes, path) if not (isinstance(answer, Part) and not answer.lines)]
    assert shape(told) == [
        Recognized(Format.JSON_LINES),
        Counted(PART_LINES + 1),
        Recognized(Format.JSON_LINES),
        (Part, [PART_LINES, 0]),
        (Part, [1, 0]),
        End(""),
    ]
    assert [place for place, _ in told[3].lines[:2]] == ["line 1", "line 2"]


def test_no_part_and_no_line_is_longer_than_what_is_stored_at_once(tmp_path):
    lines = [b'{"content": "' + b"a" * size + b'"}' for size in (PART_BYTES // 2, PART_BYTES // 2, 9, 3 * LINE_LIMIT_BYTES, 9, 9)]
    path = written(tmp_path / "a.jsonl", b"\n".join(lines))
    parts = [answer for answer in answers(asked(path)) if isinstance(answer, Part) and answer.lines]
    placed = [line for part in parts for line in part.lines]
    assert [place for place, _ in placed] == [f"line {number}" for number in range(1, 7)]
    assert max(len(line) for _, line in placed) == LINE_LIMIT_BYTES + 1
    assert max(sum(len(line) for _, line in part.lines) for part in parts) <= PART_BYTES + LINE_LIMIT_BYTES


def test_blank_lines_are_skipped_in_bulk_and_counted_in_places(tmp_path):
    lines = [b"\xef\xbb\xbf{}", *[b""] * 3_000_000, b"[]", b" \t\r", b" " * 20_000, b"{}", b"  ", b" " * (LINE_LIMIT_BYTES + 2), b"a", b" "]
    told = list(answers(asked(written(tmp_path / "a.jsonl", b"\n".join(lines)))))
    assert [line for answer in told if isinstance(answer, Part) for line in answer.lines] == [
        ("line 1", lines[0]),
        ("line 3000002", b"[]"),
        ("line 3000005", b"{}"),
        ("line 3000007", b" " * (LINE_LIMIT_BYTES + 1)),
        ("line 3000008", b"a"),
    ]
    assert len(told) < 20  # of one part there is little to tell


def test_a_file_of_blank_lines_has_nothing_to_import(tmp_path):
    told = list(answers(asked(written(tmp_path / "a.jsonl", b"\n" * 1_000_000))))
    assert "the file has nothing to import" in str(told[-1].refusal)
    assert len(told) == 3


def test_small_files_share_a_process_and_a_large_one_takes_its_memory_with_it(processes, tmp_path, eventually):
    small = written(tmp_path / "a.txt", "a")
    pids = set()
    for _ in range(2):
        with processes.reading(asked(small)) as reading:
            list(reading.answers())
            pids.add(reading._worker._process.pid)
    assert len(pids) == 1
    with processes.reading(asked(written(tmp_path / "b.txt", "a" * 2_000_000))) as reading:
        list(reading.answers())
        large = reading._worker._process
    eventually(lambda: large.poll() is not None)


def test_what_takes_too_long_to_read_is_ended_and_said(tmp_path):
    processes = ReadingProcesses(limit_seconds=0.001)
    with pytest.raises(InvalidInput, match=r"a part of it takes more than 0.001 s"):
        read(processes, written(tmp_path / "a.txt", "a"))
    processes.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_file_that_would_need_too_much_memory_is_refused_and_others_are_read(tmp_path):
    processes = ReadingProcesses(memory_limit_bytes=300 * 1024**2)
    with pytest.raises(InvalidInput, match="that takes more than 300 MiB of memory"):
        read(processes, written(tmp_path / "a.json", '{"memories": [[' + ("[]," * 4_000_000)[:-1] + "]]}"))
    assert isinstance(read(processes, written(tmp_path / "a.txt", "a"))[-1], End)
    processes.close()


@pytest.mark.parametrize("during", ["before", "after"])
def test_an_import_that_is_ended_ends_its_process(processes, tmp_path, during):
    path = written(tmp_path / "a.jsonl", b'{"content": "a"}\n' * 100_000)
    with processes.reading(asked(path)) as reading:
        told = reading.answers()
        if during == "after":
            next(told)
        threading.Thread(target=reading.stop).start()
        with pytest.raises(InvalidInput, match="the import was ended"):
            list(told)


def test_a_process_that_dies_is_told_of_and_the_next_file_has_another(processes, tmp_path):
    path = written(tmp_path / "a.jsonl", b'{"content": "a"}\n' * 100_000)
    with processes.reading(asked(path)) as reading:
        told = reading.answers()
        next(told)
        os.kill(reading._worker._process.pid, 9)
        with pytest.raises(InvalidInput, match="the process that read it has ended"):
            list(told)
    assert isinstance(read(processes, written(tmp_path / "a.txt", "a"))[-1], End)


def test_what_was_not_foreseen_is_told_with_its_trace(tmp_path, monkeypatch):
    monkeypatch.setattr("memory_mcp.transfer.formats.worker.parts_of", lambda *_: {}["nothing"])
    (failed,) = answers(asked(tmp_path))
    assert isinstance(failed, Failed)
    assert (failed.refusal, failed.failure) == (None, "KeyError: 'nothing'")
    assert "worker.py" in failed.trace


def test_where_no_process_can_be_started_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Overloaded, match="no process could be started"):
        read(ReadingProcesses(), written(tmp_path / "a.txt", "a"))
