"""A cell is split in two, and killed at every step of it: afterwards each persona is whole, in one place, and there by its name."""

import hashlib
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Remembered
from memory_mcp.errors import InvalidInput, StartupError
from memory_mcp.features.cells.split import split
from memory_mcp.personas import cells
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.files.signing_keys import own_key
from memory_mcp.upkeep.backup import Backups

pytestmark = pytest.mark.slow

NAMES = ["nilou", "dehya", "さくら", "a/b", "..", "con", "100%", "ＡＢＣ", "が", "名前 と 空白"]
BEFORE = Cell(1, 3)
MINE = [name for name in (f"{stem}{number}" for number in range(3) for stem in NAMES) if BEFORE.owns(name)][:8]
AFTER = (Cell(1, 6), Cell(4, 6))


@pytest.fixture(scope="module")
def one_cell(tmp_path_factory):
    """A cell with eight personas, one of them with a backup, and the SHA-256 of each one's database."""
    directory, now = tmp_path_factory.mktemp("cells") / "memory", datetime(2026, 11, 23, tzinfo=UTC)
    personas = Personas(directory, cell=BEFORE)
    for name in MINE:
        with personas.writing(name) as persona:
            written = remember(
                persona, draft(f"{name} は踊る", now=now, zone=ZoneInfo("UTC")), now=now, zone=ZoneInfo("UTC"), privacy=Privacy()
            )
            assert isinstance(written, Remembered)
            Backups(directory, personas.keys).make(persona, now, Settings())
    personas.close()
    (directory / "tokens.json").write_text('{"version": 1, "tokens": []}', encoding="utf-8")
    own_key(directory)
    return directory


def contents(directory, name):
    """The digest of each file of a persona and of its backups."""
    personas = Personas(directory)
    folder = personas.path_of(name).parent
    personas.close()
    files = [path for place in (folder, directory / ".backups" / folder.name) for path in sorted(place.rglob("*")) if path.is_file()]
    return {path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def listed(directory):
    personas = Personas(directory)
    try:
        return personas.names()
    finally:
        personas.close()


def check_split(before, source, target):
    """0 lost, 0 doubled, each on its owner, with the same bytes, and both directories are cells that open."""
    for directory, cell in zip((source, target), AFTER, strict=True):
        assert cells.read(directory)["of"] == cell.of
        assert cells.read(directory)["index"] == cell.index
        assert listed(directory) == sorted(filter(cell.owns, MINE))
        for name in listed(directory):
            assert contents(directory, name) == contents(before, name)
    assert sorted(listed(source) + listed(target)) == sorted(MINE)
    assert not list((source / ".unfinished").glob("*"))


def test_each_persona_is_in_the_half_that_owns_it(one_cell, tmp_path):
    source, target = shutil.copytree(one_cell, tmp_path / "a"), tmp_path / "b"
    done = split(source, target)
    assert (done.kept, done.new) == AFTER
    assert done.kept_personas + done.moved_personas == len(MINE)
    assert 0 < done.moved_personas < len(MINE)
    check_split(one_cell, source, target)
    for file in ("tokens.json", ".packs/signing.key"):
        assert (source / file).read_bytes() == (target / file).read_bytes()


def test_a_directory_with_something_else_is_no_target(one_cell, tmp_path):
    source, target = shutil.copytree(one_cell, tmp_path / "a"), tmp_path / "b"
    other = Personas(target)
    with other.writing("nilou"):
        pass
    other.close()
    for directory in (target, source):
        with pytest.raises(InvalidInput):
            split(source, directory)
    assert listed(source) == sorted(MINE)
    assert cells.read(source) == {"index": 1, "of": 3}


def killed_at(step, source, target, counted=None):
    """Split in a process that kills itself before the step-th thing it does to a file. Returns whether it came to its end instead, after
    the number of things was written to `counted`."""
    process = os.fork()
    if not process:
        left = [step]

        def hook(event, _arguments):
            if event == "open" or event.startswith(("os.", "shutil.")):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(hook)
            split(source, target)
            if counted:
                counted.write_text(str(step - left[0]), encoding="utf-8")
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status == 0


def steps_of_a_split(one_cell, tmp_path):
    """How many things a split does to files."""
    source, target = shutil.copytree(one_cell, tmp_path / "count"), tmp_path / "count-to"
    counted = tmp_path / "steps"
    assert killed_at(100_000, source, target, counted)
    return int(counted.read_text(encoding="utf-8"))


def kill_and_finish(one_cell, tmp_path, steps):
    for number, step in enumerate(steps):
        source, target = shutil.copytree(one_cell, tmp_path / f"a{number}"), tmp_path / f"b{number}"
        killed_at(step, source, target)
        stored = cells.read(source)
        if "split" in stored:
            with pytest.raises(StartupError, match="is being split"):
                Personas(source, cell=BEFORE)
        killed_at(step // 2 + 1, source, target)
        while not killed_at(100_000, source, target):
            pass
        check_split(one_cell, source, target)
        shutil.rmtree(source)
        shutil.rmtree(target)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_a_split_that_is_killed_goes_on(one_cell, tmp_path):
    last = steps_of_a_split(one_cell, tmp_path)
    assert last > 200
    kill_and_finish(one_cell, tmp_path, range(5, last, last // 7))


@pytest.mark.trust
@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
@pytest.mark.timeout(1_800)
def test_a_split_that_is_killed_at_every_step_loses_and_doubles_nothing(one_cell, tmp_path):
    last = steps_of_a_split(one_cell, tmp_path)
    rounds = range(1, last, max(1, last // 300))
    assert len(rounds) >= 200
    kill_and_finish(one_cell, tmp_path, rounds)
