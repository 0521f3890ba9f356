"""Small files that are either the old one or the new one."""

import shutil
from pathlib import Path

import pytest

from memory_mcp.errors import StoreFull
from memory_mcp.store.files.durable_files import refusal, write_atomically


def test_a_file_is_made_and_replaced(tmp_path):
    path = tmp_path / "persona.json"
    write_atomically(path, "さくら\n")
    assert path.read_text(encoding="utf-8") == "さくら\n"
    write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "new"


def test_nothing_else_is_left_in_the_directory(tmp_path):
    write_atomically(tmp_path / "persona.json", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["persona.json"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "persona.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half of a pair: \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["persona.json"]


def test_a_directory_in_the_way_is_an_error_and_stays(tmp_path):
    (tmp_path / "persona.json").mkdir()
    with pytest.raises(OSError, match=r"persona\.json"):
        write_atomically(tmp_path / "persona.json", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["persona.json"]


def test_a_reader_that_has_the_old_file_open_goes_on_reading_it(tmp_path):
    path = tmp_path / "persona.json"
    write_atomically(path, "old")
    with path.open(encoding="utf-8") as reader:
        write_atomically(path, "new")
        assert reader.read() == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_tree_that_does_not_fit_on_the_disk_is_a_full_disk(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("x")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").symlink_to("/dev/full")
    with pytest.raises(shutil.Error) as caught:
        shutil.copytree(tmp_path / "source", tmp_path / "target", dirs_exist_ok=True)
    assert isinstance(refusal(caught.value, "it can't be copied", ""), StoreFull)
