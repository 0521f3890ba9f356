"""Whose turn it is, what is put off and for how long, with a clock that jumps."""

from datetime import UTC, datetime, timedelta

import pytest

from memory_mcp.config.settings import VectorRebuild
from memory_mcp.jobs.index_schedule import Backoff, Ledger, passed

NOW = datetime(2025, 10, 30, 3, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_those_with_something_to_index_take_turns():
    ledger = Ledger()
    for name in ("a", "b", "c"):
        ledger.wake(name)
    assert [ledger.next_to_index(NOW, ()) for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_one_that_is_finished_or_put_off_has_no_turn():
    ledger = Ledger()
    for name in ("a", "b", "c"):
        ledger.wake(name)
    ledger.of("a").looked = 1
    ledger.of("b").backoff.failed(NOW)
    assert [ledger.next_to_index(NOW, ()) for _ in range(2)] == ["c", "c"]
    ledger.of("c").looked = 1
    assert ledger.next_to_index(NOW, ()) is None
    assert ledger.next_to_index(after(1), ()) == "b"


def test_a_wake_during_the_work_is_not_lost():
    ledger = Ledger()
    ledger.wake("a")
    task = ledger.of("a")
    began_with = task.woken
    ledger.wake("a")
    task.looked = began_with
    assert ledger.next_to_index(NOW, ()) == "a"


def test_other_models_than_before_are_something_to_look_at():
    ledger = Ledger()
    ledger.know(["a"])
    assert ledger.next_to_index(NOW, ("g",)) == "a"
    ledger.of("a").settled_for = ("g",)
    ledger.know(["a"])
    assert ledger.next_to_index(NOW, ("g",)) is None
    assert ledger.next_to_index(NOW, ("h", "g")) == "a"


def test_each_failure_doubles_the_wait_up_to_a_minute():
    backoff, waits = Backoff(), []
    for _ in range(9):
        backoff.failed(NOW)
        waits.append((backoff.until - NOW).total_seconds())
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    for _ in range(2_000):
        backoff.failed(NOW)
    backoff.clear()
    assert backoff.over(NOW)


def test_a_clock_that_is_set_back_puts_nothing_off_for_ever():
    backoff = Backoff()
    backoff.failed(NOW)
    assert not backoff.over(NOW)
    assert backoff.over(after(-3600))
    assert passed(NOW, after(-3600), 120)


@pytest.mark.parametrize(
    ("mode", "quiet_seconds", "expected"),
    [("idle", 29, None), ("idle", 30, "a"), ("auto", 0, "a"), ("manual", 10_000, None)],
)
def test_a_rebuild_waits_for_what_the_mode_says(mode, quiet_seconds, expected):
    ledger = Ledger()
    ledger.of("a").outdated = True
    rules = VectorRebuild(mode=mode, idle_seconds=30, min_interval=120)
    assert ledger.next_to_rebuild(after(quiet_seconds), NOW, rules) == expected


def test_two_rebuilds_of_one_persona_keep_their_distance_and_others_do_not_wait():
    ledger = Ledger()
    rules = VectorRebuild(mode="auto", min_interval=120)
    for name in ("a", "b"):
        ledger.of(name).outdated = True
    ledger.of("a").rebuilt_at = NOW
    assert ledger.next_to_rebuild(after(60), NOW, rules) == "b"
    ledger.of("b").outdated = False
    assert ledger.next_to_rebuild(after(119), NOW, rules) is None
    assert ledger.next_to_rebuild(after(120), NOW, rules) == "a"


def test_a_rebuild_on_request_waits_for_no_rule():
    ledger = Ledger()
    ledger.ask_for_rebuild("a")
    ledger.of("a").rebuilt_at = NOW
    assert ledger.next_to_rebuild(NOW, NOW, VectorRebuild(mode="manual")) == "a"
    ledger.of("a").answered = 1
    assert ledger.next_to_rebuild(NOW, NOW, VectorRebuild(mode="manual")) is None
