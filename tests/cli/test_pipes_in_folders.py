"""Folders with what is no file in them, such as a pipe, which would be waited for: only files are read and replaced."""

import os
from pathlib import Path

import pytest

from memory_mcp.cli.vault_refresh import _write
from memory_mcp.errors import InvalidInput
from memory_mcp.store.files.durable_files import open_private
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.table import ROWS

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")


@pytest.fixture
def folder(tmp_path):
    """A folder with a note, and with pipes and a directory of such names."""
    for name in ("pipe.md", "2025-01-01.json", "conversations.json"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "directory.md").mkdir()
    (tmp_path / "note.md").write_text("苺が好き。", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("kind", [Format.AUTO, Format.TEXT, Format.OBSIDIAN])
def test_the_files_of_a_folder_are_read_and_nothing_else(folder, kind):
    items = ROWS[detect_format(folder, kind)].read(folder, ReadOptions(), lambda _: None)
    assert {item.where for item in items if item.row and "content" in item.row} == {"note.md"}


@pytest.mark.parametrize("kind", list(Format))
def test_a_pipe_that_is_named_is_refused(folder, kind):
    with pytest.raises(InvalidInput, match="is no file: an import reads it twice"):
        detect_format(folder / "pipe.md", kind)


@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize("name", ["pipe.md", "directory.md"])
def test_an_export_writes_over_files_alone(folder, name, is_ours):
    with pytest.raises(InvalidInput, match="is no exported note"):
        _write(folder, name, b"", is_ours=is_ours)
    assert not (folder / name).is_file()


def test_a_pipe_where_a_file_is_to_be_written_is_not_waited_for(folder: Path):
    with pytest.raises(OSError, match="No such device or address"), open(folder / "pipe.md", "wb", opener=open_private):
        pass
