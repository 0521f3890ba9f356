"""Refused calls in the operations log."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.server.refusal_log import LINES_OF_ALL, LINES_OF_ONE, WINDOW_SECONDS, RefusalLog
from memory_mcp.store.operations import LOG_NAME, OperationsLog

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(tmp_path, clock):
    operations = OperationsLog(tmp_path)
    yield RefusalLog(operations, lambda: NOON, clock)
    operations.close()


@pytest.fixture
def lines(tmp_path):
    return lambda: [json.loads(line) for line in (tmp_path / LOG_NAME).read_text(encoding="utf-8").splitlines()]


def test_a_refusal_says_who_tried_what_and_why_not(log, lines):
    log.note(reason="scope", token="0123456789", client="127.0.0.1", asked="forget")
    (line,) = lines()
    assert line.pop("operation_id")
    assert line == {
        "timestamp": "2025-10-30T03:00:00.000000+00:00",
        "operation": "refused",
        "success": False,
        "reason": "scope",
        "token": "0123456789",
        "client": "127.0.0.1",
        "asked": "forget",
    }


def test_one_caller_gets_few_lines_a_minute_and_the_rest_is_counted(log, lines, clock):
    for _ in range(1_000):
        log.note(reason="token", token=None, client="10.0.0.1")
    assert len(lines()) == LINES_OF_ONE
    clock.seconds += WINDOW_SECONDS
    log.note(reason="token", token=None, client="10.0.0.1")
    assert lines()[-1]["suppressed"] == 1_000 - LINES_OF_ONE
    log.note(reason="token", token=None, client="10.0.0.1")
    assert "suppressed" not in lines()[-1]


def test_a_flood_from_a_thousand_addresses_neither_fills_the_log_nor_hides_a_token(log, lines):
    for number in range(1_000):
        log.note(reason="token", token=None, client=f"10.0.{number // 256}.{number % 256}")
    assert len(lines()) == LINES_OF_ALL
    log.note(reason="persona", token="0123456789", client="127.0.0.1", persona="alice")
    assert lines()[-1]["token"] == "0123456789"
