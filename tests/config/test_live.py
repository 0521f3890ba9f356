"""config.json while the server runs, edited in every way that editors have."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_mcp.config import live
from memory_mcp.config.live import LiveConfig
from memory_mcp.config.reading import load
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"reranker_top_n": 3}')
    return path


@pytest.fixture
def config(path):
    return LiveConfig(path)


@pytest.fixture
def followed(path):
    """A config whose changes are followed by its own threads, and an event that tells of each."""
    changed = threading.Event()
    config = LiveConfig(path, on_change=lambda settings: changed.set())
    config.start()
    yield config, changed
    config.stop()


def write_in_place(path, tree):
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))


def replace_by_rename(path, tree):
    beside = path.with_suffix(".swp")
    write_in_place(beside, tree)
    beside.replace(path)


EDITORS = pytest.mark.parametrize("edit", [write_in_place, replace_by_rename])


def test_a_missing_file_means_defaults(tmp_path):
    config = LiveConfig(tmp_path / "config.json")
    assert config.current() == Settings()
    assert config.error is None


def test_a_file_that_cannot_be_used_stops_the_start(path):
    path.write_text("{")
    with pytest.raises(ConfigError, match="not valid JSON"):
        LiveConfig(path)


@EDITORS
def test_the_next_call_sees_an_edit(config, path, edit):
    assert config.current().reranker_top_n == 3
    edit(path, {"reranker_top_n": 7})
    assert config.current().reranker_top_n == 7


@EDITORS
def test_a_call_that_began_before_an_edit_ends_under_its_own_settings(config, path, edit):
    began_with = config.current()
    edit(path, {"reranker_top_n": 7})
    config.current()
    assert began_with.reranker_top_n == 3


@EDITORS
@pytest.mark.parametrize("broken", ["{", '{"reranker_top_n": 99}', "[]", "[" * 100_000])
def test_a_broken_edit_keeps_the_last_good_settings_until_it_is_mended(config, path, edit, broken, caplog):
    edit(path, broken)
    assert config.current().reranker_top_n == 3
    assert config.error is not None
    assert "config.json" in config.error
    config.current()
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    edit(path, {"reranker_top_n": 7})
    assert config.current().reranker_top_n == 7
    assert config.error is None


def test_a_file_that_is_just_being_saved_in_its_place_is_no_broken_edit(config, path, caplog):
    path.write_text("")
    assert config.current().reranker_top_n == 3
    assert config.error is None
    write_in_place(path, {"reranker_top_n": 9})
    assert config.current().reranker_top_n == 9
    assert not caplog.records


def test_a_file_that_stays_empty_is_told(config, path, eventually):
    path.write_text("")
    eventually(lambda: config.current() and config.error and "was emptied" in config.error)
    assert config.current().reranker_top_n == 3
    write_in_place(path, {"reranker_top_n": 9})
    assert config.current().reranker_top_n == 9
    assert config.error is None


def test_a_broken_edit_that_is_undone_leaves_no_error(config, path):
    good = path.read_text()
    path.write_text("{")
    config.current()
    path.write_text(good)
    assert config.current().reranker_top_n == 3
    assert config.error is None


def test_a_deleted_file_keeps_the_last_good_settings_and_is_read_when_it_is_back(config, path):
    path.unlink()
    assert config.current().reranker_top_n == 3
    assert "was deleted" in config.error
    path.write_text('{"reranker_top_n": 7}')
    assert config.current().reranker_top_n == 7
    assert config.error is None


def test_a_file_that_appears_later_is_read(tmp_path):
    config = LiveConfig(tmp_path / "config.json")
    (tmp_path / "config.json").write_text('{"reranker_top_n": 7}')
    assert config.current().reranker_top_n == 7


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_keeps_the_last_good_settings(config, path, content):
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert config.current().reranker_top_n == 3
    assert "can't be read" in config.error


def test_a_key_that_needs_a_restart_says_so_until_it_is_put_back(config, path, caplog):
    path.write_text('{"server_port": 9000, "reranker_top_n": 7}')
    with caplog.at_level(logging.WARNING):
        assert config.current().reranker_top_n == 7
    assert config.restart_pending == ["server_port"]
    assert "takes effect only after a restart: server_port" in caplog.text
    path.write_text("{}")
    config.current()
    assert config.restart_pending == []


def test_the_warnings_are_those_of_the_file_as_it_is(config, path, caplog):
    assert config.warnings == ()
    path.write_text('{"reranker_topn": 7}')
    config.current()
    (warning,) = config.warnings
    assert "did you mean 'reranker_top_n'" in warning
    assert warning in caplog.text


def test_who_wants_to_know_is_told_of_changed_settings_only(path):
    told = []
    config = LiveConfig(path, on_change=told.append)
    path.write_text('{ "reranker_top_n": 3 }')  # another text, the same settings
    config.current()
    assert told == []
    path.write_text('{"reranker_top_n": 7}')
    config.current()
    assert [settings.reranker_top_n for settings in told] == [7]


@EDITORS
def test_an_edit_is_noticed_while_nobody_calls(followed, path, edit):
    config, changed = followed
    edit(path, {"reranker_top_n": 7})
    assert changed.wait(60)
    assert config.current().reranker_top_n == 7


def test_an_edit_is_noticed_where_no_events_arrive(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    changed = threading.Event()
    path = tmp_path / "later" / "config.json"  # a directory that isn't there can't be watched
    config = LiveConfig(path, on_change=lambda settings: changed.set())
    config.start()
    assert "no file events" in caplog.text
    path.parent.mkdir()
    path.write_text('{"reranker_top_n": 7}')
    assert changed.wait(60)
    config.stop()


def test_following_ends_with_its_threads(path, eventually):
    before = set(threading.enumerate())
    config = LiveConfig(path)
    config.start()
    assert set(threading.enumerate()) > before
    config.stop()
    eventually(lambda: set(threading.enumerate()) <= before)


def test_many_calls_during_an_edit_see_either_the_old_or_the_new(config, path):
    seen = set()
    stop = threading.Event()

    def call():
        while not stop.is_set():
            seen.add(config.current().reranker_top_n)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for number in range(50):
        replace_by_rename(path, {"reranker_top_n": 4 + number % 2})
    stop.set()
    for caller in callers:
        caller.join()
    assert seen <= {3, 4, 5}
    assert config.current().reranker_top_n == 5


class CountingConfig(LiveConfig):
    """Counts who refreshed: the poll, or anybody else."""

    polls = others = 0

    def refresh(self):
        if threading.current_thread().name == "config-poll":
            self.polls += 1
        else:
            self.others += 1
        super().refresh()


def current_after(config, release, pool):
    """What a call gets that has to wait until another thread is released."""
    call = pool.submit(config.current)
    with pytest.raises(TimeoutError):
        call.result(0.2)
    release.set()
    return call.result(60).reranker_top_n


def test_a_call_waits_for_an_edit_that_another_thread_is_reading(path, monkeypatch):
    reading, release = threading.Event(), threading.Event()
    config = LiveConfig(path)

    def slowly(text, name):
        reading.set()
        assert release.wait(60)
        return load(text, name)

    monkeypatch.setattr(live, "load", slowly)
    write_in_place(path, {"reranker_top_n": 7})
    with ThreadPoolExecutor() as pool:
        watcher = pool.submit(config.refresh)
        assert reading.wait(60)
        assert current_after(config, release, pool) == 7
        watcher.result(60)


def test_who_wants_to_know_from_now_on_is_told_of_what_has_changed_before(config, path):
    told = []
    write_in_place(path, {"reranker_top_n": 7})
    config.refresh()
    config.subscribe(lambda settings: told.append(settings.reranker_top_n))
    write_in_place(path, {"reranker_top_n": 17})
    config.refresh()
    assert told == [7, 17]


def test_edits_are_told_in_their_order(path):
    told, telling, release = [], threading.Event(), threading.Event()

    def tell(settings):
        if settings.reranker_top_n == 7:
            telling.set()
            assert release.wait(60)
        told.append(settings.reranker_top_n)

    config = LiveConfig(path, on_change=tell)
    write_in_place(path, {"reranker_top_n": 7})
    with ThreadPoolExecutor() as pool:
        watcher = pool.submit(config.refresh)
        assert telling.wait(60)
        write_in_place(path, {"reranker_top_n": 17})
        assert current_after(config, release, pool) == 17
        watcher.result(60)
    assert told == [7, 17]


def test_reading_the_file_is_no_change_that_makes_it_be_read_again(path, eventually, monkeypatch):
    monkeypatch.setattr(live, "POLL_SECONDS", 0.05)
    config = CountingConfig(path)
    config.start()
    try:
        write_in_place(path, {"reranker_top_n": 4})
        eventually(lambda: config.others > 0)
        seen = config.polls
        eventually(lambda: config.polls >= seen + 2)
        assert config.others < 20
    finally:
        config.stop()
