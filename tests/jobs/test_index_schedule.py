"""Which persona is next, and how long one is paused after a failure, with a clock that jumps."""

from datetime import UTC, datetime, timedelta

import pytest

from memory_mcp.config.settings import VectorRebuild
from memory_mcp.jobs.backoff import Backoff, elapsed
from memory_mcp.jobs.index_schedule import IndexSchedule

NOW = datetime(2025, 10, 30, 3, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_those_with_something_to_index_take_turns():
    schedule = IndexSchedule()
    for name in ("a", "b", "c"):
        schedule.note_write(name)
    assert [schedule.next_to_index(NOW, ()) for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_one_that_is_finished_or_put_off_has_no_turn():
    schedule = IndexSchedule()
    for name in ("a", "b", "c"):
        schedule.note_write(name)
    schedule.of("a").indexed_writes = 1
    schedule.of("b").backoff.failed(NOW)
    assert [schedule.next_to_index(NOW, ()) for _ in range(2)] == ["c", "c"]
    schedule.of("c").indexed_writes = 1
    assert schedule.next_to_index(NOW, ()) is None
    assert schedule.next_to_index(after(1), ()) == "b"


def test_a_wake_during_the_work_is_not_lost():
    schedule = IndexSchedule()
    schedule.note_write("a")
    task = schedule.of("a")
    began_with = task.writes
    schedule.note_write("a")
    task.indexed_writes = began_with
    assert schedule.next_to_index(NOW, ()) == "a"


def test_other_models_than_before_are_something_to_look_at():
    schedule = IndexSchedule()
    schedule.add(["a"])
    assert schedule.next_to_index(NOW, ("g",)) == "a"
    schedule.of("a").prepared_for = ("g",)
    schedule.add(["a"])
    assert schedule.next_to_index(NOW, ("g",)) is None
    assert schedule.next_to_index(NOW, ("h", "g")) == "a"


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
    assert elapsed(NOW, after(-3600), 120)


@pytest.mark.parametrize(
    ("mode", "quiet_seconds", "expected"),
    [("idle", 29, None), ("idle", 30, "a"), ("auto", 0, "a"), ("manual", 10_000, None)],
)
def test_a_rebuild_waits_for_what_the_mode_says(mode, quiet_seconds, expected):
    schedule = IndexSchedule()
    schedule.of("a").outdated = True
    rules = VectorRebuild(mode=mode, idle_seconds=30, min_interval=120)
    assert schedule.next_to_rebuild(after(quiet_seconds), NOW, rules) == expected


def test_two_rebuilds_of_one_persona_keep_their_distance_and_others_do_not_wait():
    schedule = IndexSchedule()
    rules = VectorRebuild(mode="auto", min_interval=120)
    for name in ("a", "b"):
        schedule.of(name).outdated = True
    schedule.of("a").rebuilt_at = NOW
    assert schedule.next_to_rebuild(after(60), NOW, rules) == "b"
    schedule.of("b").outdated = False
    assert schedule.next_to_rebuild(after(119), NOW, rules) is None
    assert schedule.next_to_rebuild(after(120), NOW, rules) == "a"


def test_a_rebuild_on_request_waits_for_no_rule():
    schedule = IndexSchedule()
    schedule.request_rebuild("a")
    schedule.of("a").rebuilt_at = NOW
    assert schedule.next_to_rebuild(NOW, NOW, VectorRebuild(mode="manual")) == "a"
    schedule.of("a").rebuilds_done = 1
    assert schedule.next_to_rebuild(NOW, NOW, VectorRebuild(mode="manual")) is None
