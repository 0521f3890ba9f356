"""Backups: made beside writers, read back before they count, kept for some time, and restored wherever their key is."""

import errno
import io
import itertools
import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
import zstandard

from memory_mcp.config.master_key import MasterKey, new_key
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Conversation, Feedback, Filters, Turn
from memory_mcp.errors import InvalidInput, KeyRefused, Overloaded, StoreDamaged, StoreError, StoreFull
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.personas import lifecycle
from memory_mcp.personas.registry import NO_KEYS, Persona, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import conversations, feedback, tombstones
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.encryption_keys import Keys, is_encrypted
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import index_queue
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import purge, summarization
from memory_mcp.upkeep.backup import Backup, Backups, newest_in_same_directory
from memory_mcp.upkeep.restore import Restored, restore
from memory_mcp.upkeep.summarization import step

UTC_ZONE = ZoneInfo("UTC")
SECRET = "xylophonic"
Contents = list[tuple[str, str]]


@pytest.fixture
def master() -> MasterKey:
    return new_key("a test")


@pytest.fixture(params=[pytest.param("plain", marks=pytest.mark.slow), pytest.param("sealed", marks=pytest.mark.slow), "encrypted"])
def keys(request: pytest.FixtureRequest, master: MasterKey) -> Keys:
    """No key at all; a key for the backups alone; a key for the personas, too. `make check` tries the last one only."""
    return {"plain": NO_KEYS, "sealed": Keys(master), "encrypted": Keys(master, for_new=True)}[request.param]


class House:
    """A data directory with its backups, as a server, or a command, would have it."""

    def __init__(self, directory: Path, keys: Keys) -> None:
        directory.mkdir(exist_ok=True)
        self.keys, self.settings = keys, Settings()
        self.personas = Personas(directory, open_limit=0, keys=keys)
        self.backups = Backups(directory, keys)
        self.directory = directory

    def say(self, content: str, at: datetime, name: str = "nilou") -> str:
        return self.say_all([content], at, name)[0]

    def say_all(self, contents: list[str], at: datetime, name: str = "nilou") -> list[str]:
        """Stores each, with the persona opened once."""
        with self.personas.writing(name) as persona:
            drafts = [draft(content, now=at, zone=UTC_ZONE, session_id="a day") for content in contents]
            return [remember(persona, each, now=at, zone=UTC_ZONE, privacy=Privacy()).key for each in drafts]

    def back_up(self, at: datetime, name: str = "nilou") -> Backup:
        with self.personas.reading(name) as persona:
            return self.backups.make(persona, at, self.settings)[0]

    def step(self, at: datetime, settings: Settings | None = None) -> list[Backup]:
        with self.personas.reading("nilou") as persona:
            assert self.backups.step(persona, at, settings or self.settings) is False
        return self.backups.listed(settings or self.settings, "nilou")

    def restore(self, backup: Path, at: datetime, master: MasterKey | None = None, **how: object) -> Restored:
        known = master or self.keys.master
        return restore(self.personas, backup, lambda wanted: known.secret if known and known.id == wanted else None, at, **how)

    def held(self, name: str = "nilou") -> tuple[Contents, dict[str, object]]:
        with self.personas.reading(name) as persona, persona.database.read() as connection:
            rows = connection.execute("SELECT key, content FROM memories ORDER BY id").fetchall()
            return rows, persona.context.read()


@pytest.fixture
def house(data_directory: Path, keys: Keys) -> Iterator[House]:
    made = House(data_directory, keys)
    yield made
    made.personas.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Callable[[Keys], House]]:
    """Another machine's data directory."""
    made: list[House] = []

    def elsewhere(keys: Keys) -> House:
        made.append(House(tmp_path / f"elsewhere {len(made)}", keys))
        return made[-1]

    yield elsewhere
    for other in made:
        other.personas.close()


@pytest.fixture
def filled(house: House, now: datetime) -> House:
    """Memories, an earlier text, and a context."""
    *_, key = house.say_all([f"{SECRET} 海辺 {number}" for number in range(20)], now)
    with house.personas.writing("nilou") as persona:
        revise(persona, key, Revision(content=f"{SECRET} 山小屋"), now=now, privacy=Privacy())
        persona.context.update({"current_emotion": "glad", "hobby": "お茶"})
    return house


def leftovers(house: House) -> list[str]:
    """What an operation has left that ended."""
    scraps = [*house.directory.rglob("*.part"), *house.directory.glob(".staging/*"), *house.directory.rglob("*-copy.sqlite*")]
    return [path.name for path in scraps]


def test_a_backup_is_restored_to_what_it_was(filled: House, now: datetime) -> None:
    before, made = filled.held(), filled.back_up(now)
    filled.say("later", now)
    with filled.personas.writing("nilou") as persona:
        persona.context.update({"current_emotion": "sad"})
    restored = filled.restore(made.path, now, instead=True)
    assert filled.held() == before
    assert (restored.persona, restored.contents.memories, restored.contents.versions) == ("nilou", 20, 1)
    assert (restored.erased_again, restored.unknown_erased, restored.encrypted) == (0, False, filled.keys.for_new)
    assert is_encrypted(filled.directory / "nilou") == filled.keys.for_new
    assert leftovers(filled) == []
    with filled.personas.reading("nilou") as persona, persona.database.read() as connection:
        assert connection.execute("SELECT operation FROM operations ORDER BY id DESC LIMIT 1").get == "restore_backup"


def test_a_backup_says_nothing_to_whoever_has_no_key(filled: House, now: datetime) -> None:
    made = filled.back_up(now)
    content = made.path.read_bytes()
    assert made.sealed == (filled.keys.master is not None)
    assert made.path.name == f"20251030T030000Z.tar.zst{'.sealed' if made.sealed else ''}"
    assert content.startswith(b"MMSEALED" if made.sealed else b"\x28\xb5\x2f\xfd")
    assert SECRET.encode() not in content
    assert os.name == "nt" or made.path.stat().st_mode & 0o077 == 0
    assert made.size_bytes == len(content)


@pytest.mark.parametrize("keys", [NO_KEYS], indirect=False)
def test_a_backup_without_a_key_is_opened_by_other_programs(filled: House, now: datetime, tmp_path: Path) -> None:
    made = filled.back_up(now)
    with made.path.open("rb") as file:
        unpacked = zstandard.ZstdDecompressor().stream_reader(file).read()
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        assert archive.getnames() == ["manifest.json", "persona.json", "persona_context.json", "memory.sqlite"]
        told = json.loads(archive.extractfile("manifest.json").read())
        assert json.loads(archive.extractfile("persona_context.json").read())["hobby"] == "お茶"
    assert (told["persona"], told["contents"]["memories"], told["encrypted"]) == ("nilou", 20, False)


def test_a_backup_moves_to_another_machine_with_its_key(filled: House, elsewhere: Callable[[Keys], House], now: datetime) -> None:
    made = filled.back_up(now)
    other = elsewhere(Keys(filled.keys.master))
    other.restore(made.path, now)
    assert other.held() == filled.held()


def test_without_its_key_or_with_another_a_sealed_backup_is_refused(
    filled: House, elsewhere: Callable[[Keys], House], master: MasterKey, now: datetime
) -> None:
    made = filled.back_up(now)
    if not made.sealed:
        pytest.skip("nothing is sealed here")
    for known in (NO_KEYS, Keys(new_key("another"))):
        other = elsewhere(known)
        with pytest.raises(KeyRefused, match=f"the master key {master.id} is not there"):
            other.restore(made.path, now)
        assert other.personas.names() == []


def test_a_plain_backup_becomes_an_encrypted_persona_where_new_ones_are(
    elsewhere: Callable[[Keys], House], master: MasterKey, now: datetime
) -> None:
    plain, encrypting = elsewhere(NO_KEYS), elsewhere(Keys(master, for_new=True))
    plain.say(SECRET, now)
    assert encrypting.restore(plain.back_up(now).path, now).encrypted
    assert encrypting.held() == plain.held()
    assert not any(SECRET.encode() in path.read_bytes() for path in encrypting.directory.rglob("*") if path.is_file())


def test_a_persona_that_is_there_gives_way_only_when_that_is_said(filled: House, now: datetime) -> None:
    made = filled.back_up(now)
    filled.say("later", now)
    before = filled.held()
    with pytest.raises(InvalidInput, match="--replace"):
        filled.restore(made.path, now)
    assert filled.held() == before


def test_a_backup_is_restored_under_another_name_beside_the_first(filled: House, now: datetime) -> None:
    made = filled.back_up(now)
    assert filled.restore(made.path, now, to="さくら").persona == "さくら"
    assert filled.held("さくら") == filled.held()
    assert filled.personas.names() == ["nilou", "さくら"]


def test_a_backup_that_was_changed_anywhere_is_refused_and_nothing_is_touched(filled: House, now: datetime) -> None:
    made, before = filled.back_up(now), filled.held()
    content = made.path.read_bytes()
    places = [*range(0, 60, 7), *range(60, len(content), max(1, len(content) // 40)), len(content) - 1]
    damaged = [content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :] for place in places]
    damaged += [content[:place] for place in (0, 10, 40, len(content) // 2, len(content) - 1)]
    unnoticed = 0
    for broken in damaged:
        made.path.write_bytes(broken)
        try:
            filled.restore(made.path, now, instead=True)
        except StoreError:
            continue
        unnoticed += 1
        assert filled.held() == before  # in a tar that is not sealed there are bytes that mean nothing
    assert unnoticed <= (0 if made.sealed else 2)
    assert filled.held() == before
    assert leftovers(filled) == []


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\x00" + bytes(5000)])
def test_what_is_no_backup_is_said_to_be_none(filled: House, tmp_path: Path, now: datetime, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(StoreDamaged, match="isn't a backup"):
        filled.restore(tmp_path / "file", now, instead=True)
    with pytest.raises(StoreError, match="can't be restored"):
        filled.restore(tmp_path / "nowhere", now)


def test_an_archive_that_wants_to_write_elsewhere_is_refused(filled: House, tmp_path: Path, now: datetime) -> None:
    hostile = tmp_path / "hostile.tar.zst"
    buffer = io.BytesIO()
    made = filled.back_up(now)
    with backup_archive.opened(made.path, lambda _: filled.keys.master and filled.keys.master.secret) as (manifest, _):
        told = manifest.to_json()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in (("manifest.json", told), ("../../escaped", b"x")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    hostile.write_bytes(zstandard.compress(buffer.getvalue()))
    with pytest.raises(StoreDamaged, match="escaped"):
        filled.restore(hostile, now, instead=True)
    assert not list(tmp_path.rglob("escaped"))


def test_a_backup_beside_eight_writers_is_of_one_moment(
    house: House, elsewhere: Callable[[Keys], House], now: datetime, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """Each write is a memory and a row of its own table of operations; a copy must have both or neither, and be sound."""
    numbers, stop, made = itertools.count(), threading.Event(), []
    with house.personas.writing("nilou") as persona:

        def write() -> None:
            while not stop.is_set():
                content = f"海辺の散歩 {next(numbers)}"
                remember(persona, draft(content, now=now, zone=UTC_ZONE), now=now, zone=UTC_ZONE, privacy=Privacy())

        def stored() -> int:
            with persona.database.read() as connection:
                return connection.execute("SELECT count(*) FROM memories").get

        with ThreadPoolExecutor(8) as threads:
            writers = [threads.submit(write) for _ in range(8)]
            try:
                for number in range(3):
                    made.append(house.backups.make(persona, now + timedelta(seconds=number), house.settings))
                    eventually(lambda: stored() > made[-1][1].contents.memories)
            finally:
                stop.set()
            for writer in writers:
                writer.result()
    for backup, manifest in made:
        other = elsewhere(Keys(house.keys.master))
        other.restore(backup.path, now)
        with other.personas.reading("nilou") as persona, persona.database.read() as connection:
            stored = {row[0] for row in connection.execute("SELECT key FROM memories")}
            noted = {row[0] for row in connection.execute("SELECT key FROM operations WHERE operation = 'create'")}
            indexed = connection.execute("SELECT count(*) FROM lexical").get
            waiting = index_queue.length(connection)
        assert stored == noted
        assert len(stored) == manifest.contents.memories == indexed == waiting
    assert made[0][1].contents.memories < made[2][1].contents.memories


def test_a_backup_that_finds_no_room_takes_none(filled: House, now: datetime) -> None:
    def no_room(done: int, whole: int) -> None:
        if done == whole:
            raise OSError(errno.ENOSPC, "No space left on device")

    with filled.personas.reading("nilou") as persona, pytest.raises(StoreFull, match="the disk is full"):
        filled.backups.make(persona, now, filled.settings, no_room)
    assert leftovers(filled) == []
    assert filled.backups.listed(filled.settings) == []


@pytest.mark.parametrize("why", ["read-only", "full"])
def test_a_data_disk_that_takes_no_copy_is_backed_up_to_another(
    filled: House, now: datetime, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "full":
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=0))
    else:
        shutil.rmtree(filled.directory / ".staging", ignore_errors=True)
        (filled.directory / ".staging").touch()  # no directory can be made there, even by root
    settings = filled.settings.model_copy(update={"backup": filled.settings.backup.model_copy(update={"directory": str(tmp_path / "usb")})})
    expected = filled.held()
    with filled.personas.reading("nilou") as persona:
        made, manifest = filled.backups.make(persona, now, settings)
    assert (manifest.contents.memories, made.path.parent) == (20, tmp_path / "usb" / "nilou")
    assert sorted(path.name for path in made.path.parent.iterdir() if path.name != ".lock") == [made.path.name]
    monkeypatch.undo()
    (filled.directory / ".staging").unlink() if why == "read-only" else None
    filled.restore(made.path, now, instead=True)
    assert filled.held() == expected


def test_a_first_backup_that_fails_leaves_nothing_at_its_target(filled: House, now: datetime, tmp_path: Path) -> None:
    settings = filled.settings.model_copy(update={"backup": filled.settings.backup.model_copy(update={"directory": str(tmp_path)})})

    def broken(_done: int, _all: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with filled.personas.reading("nilou") as persona, pytest.raises(StoreError):
        filled.backups.make(persona, now, settings, broken)
    assert not (tmp_path / "nilou").exists()


def test_two_backups_of_one_persona_are_not_made_at_once(filled: House, now: datetime) -> None:
    with filled.personas.reading("nilou") as persona:
        refused = []

        def during(done: int, _all: int) -> None:
            if not refused:
                with pytest.raises(Overloaded) as told:
                    filled.backups.make(persona, now, filled.settings)
                refused.append(str(told.value))

        filled.backups.make(persona, now, filled.settings, during)
    assert refused == ["a backup of nilou is being made already. Try again when it is done."]


def test_two_backups_of_the_same_second_are_two(filled: House, now: datetime) -> None:
    assert filled.back_up(now).path != filled.back_up(now).path
    assert len(filled.backups.listed(filled.settings)) == 2


# The daily step. `now` is noon in Tokyo; backups are due at four.


def tokyo(day: int, hour: int) -> datetime:
    return datetime(2025, 10, day, hour, tzinfo=ZoneInfo("Asia/Tokyo")).astimezone(UTC)


def test_the_first_backup_is_made_at_once_and_then_one_a_day_if_something_was_written(filled: House) -> None:
    assert len(filled.step(tokyo(10, 12))) == 1
    assert len(filled.step(tokyo(10, 23))) == 1
    filled.say("そのあと", tokyo(10, 13))
    assert len(filled.step(tokyo(11, 3))) == 1
    assert len(filled.step(tokyo(11, 4))) == 2
    assert len(filled.step(tokyo(12, 4))) == 2  # nothing was written
    with filled.personas.writing("nilou") as persona:
        persona.context.update({"current_emotion": "calm"})
    assert len(filled.step(tokyo(12, 5))) == 3


@pytest.mark.parametrize("change", ["conversation", "judgement"])
def test_what_no_operation_records_is_a_change_too(filled: House, change: str) -> None:
    assert len(filled.step(tokyo(10, 12))) == 1
    with filled.personas.writing("nilou") as persona:
        if change == "conversation":
            talk(persona, "きょうはよく歩いた", tokyo(10, 13), "")
        else:
            persona.database.write(lambda connection: feedback.add(connection, 1, [Feedback("helped", tokyo(10, 13))]))
    assert len(filled.step(tokyo(11, 4))) == 2
    assert len(filled.step(tokyo(12, 4))) == 2


def test_the_hour_and_the_place_are_as_configured(filled: House, tmp_path: Path) -> None:
    settings = Settings.model_validate({"timezone": "UTC", "backup": {"hour": 9, "directory": str(tmp_path / "disk" / "backups")}})
    (made,) = filled.step(tokyo(10, 12), settings)
    assert made.path.is_relative_to(tmp_path / "disk" / "backups" / "nilou")
    filled.say("そのあと", tokyo(10, 13))
    assert len(filled.step(datetime(2025, 10, 10, 8, 59, tzinfo=UTC), settings)) == 1
    assert len(filled.step(datetime(2025, 10, 10, 9, 0, tzinfo=UTC), settings)) == 2


def test_backups_go_after_thirty_days_but_never_the_newest(filled: House) -> None:
    first = filled.step(tokyo(1, 5))[0]
    filled.say("そのあと", tokyo(2, 5))
    second = filled.step(tokyo(2, 5))[0]
    assert [made.path for made in filled.step(tokyo(30, 5))] == [second.path, first.path]
    assert [made.path for made in filled.step(tokyo(31, 5) + timedelta(days=1))] == [second.path]
    assert [made.path for made in filled.step(tokyo(31, 5) + timedelta(days=400))] == [second.path]


def test_a_clock_that_was_wrong_for_days_takes_no_backup_and_its_own_are_not_the_newest(filled: House) -> None:
    real = []
    for day in range(1, 6):
        filled.say(f"{day}日の話", tokyo(day, 3))
        real = filled.step(tokyo(day, 5))
    assert len(real) == 5
    for day in range(3):
        leap = datetime(2099, 1, 1 + day, tzinfo=UTC)
        filled.say(f"未来の話{day}", leap)
        filled.step(leap + timedelta(hours=20))
    kept = {backup.path for backup in filled.backups.listed(filled.settings)}
    assert {backup.path for backup in real} <= kept
    first, *_, last = filled.step(tokyo(20, 5))
    assert (first.made_at, last.made_at.year) == (tokyo(20, 5), 2099)
    # Long after, nothing was written: the last real one stays.
    assert first in filled.step(tokyo(20, 5) + timedelta(days=200))
    assert newest_in_same_directory(first.path) == first


def test_a_clock_that_was_set_back_takes_no_backup(filled: House) -> None:
    frequent = filled.settings.model_copy(update={"backup": filled.settings.backup.model_copy(update={"interval_minutes": 60})})
    for hour in (5, 7, 9):
        filled.say(f"{hour}時の話", tokyo(10, hour - 1))
        filled.step(tokyo(10, hour), frequent)
    filled.say("昔の話", tokyo(10, 9))
    assert len(filled.step(datetime(1970, 1, 1, 12, tzinfo=UTC), frequent)) == 4


def test_erasing_a_persona_can_take_its_backups_along(filled: House, now: datetime) -> None:
    filled.say("another", now, "さくら")
    filled.back_up(now)
    filled.back_up(now, "さくら")
    mine = filled.directory / ".backups" / "nilou" / "mine.txt"
    mine.write_text("somebody put it there")
    assert filled.backups.remove_all("nilou", filled.settings) == 1
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]
    assert [made.folder != "nilou" for made in filled.backups.listed(filled.settings)] == [True]


def test_backups_follow_a_persona_to_its_new_name_and_stand_beside_what_is_there(filled: House, now: datetime) -> None:
    filled.back_up(now)
    filled.say("another", now, "さくら")
    other = filled.back_up(now, "さくら")
    filled.backups.follow_rename("nilou", other.folder, filled.settings)
    assert [made.folder for made in filled.backups.listed(filled.settings)] == [other.folder] * 2
    assert not (filled.directory / ".backups" / "nilou").exists()


# What was erased for good after the backup.

TOMBSTONES = "CREATE TABLE IF NOT EXISTS tombstones (key_digest TEXT PRIMARY KEY, purged_at TEXT NOT NULL) WITHOUT ROWID"


def erase(persona: Persona, key: str) -> None:
    """As a purge does it."""

    def work(connection: object) -> None:
        connection.execute(TOMBSTONES)
        connection.execute("DELETE FROM lexical WHERE rowid = (SELECT id FROM memories WHERE key = ?)", (key,))
        connection.execute("DELETE FROM memories WHERE key = ?", (key,))
        connection.execute("INSERT INTO tombstones VALUES (?, '2025-10-30T03:00:00+00:00')", (tombstones.digest(key),))

    persona.database.write(work)


def test_what_was_erased_after_the_backup_does_not_come_back(house: House, now: datetime) -> None:
    with house.personas.writing("nilou") as persona:
        persona.database.write(lambda connection: connection.execute(TOMBSTONES))
    keys = [house.say(f"会話 {number} {'unforgettable' if number == 5 else ''}", now + timedelta(seconds=number)) for number in range(10)]
    made = house.back_up(now)
    with house.personas.writing("nilou") as persona:
        erase(persona, keys[5])
    restored = house.restore(made.path, now, instead=True)
    assert (restored.erased_again, restored.contents.memories) == (1, 9)
    assert [key for key, _ in house.held()[0]] == [*keys[:5], *keys[6:]]
    word = b"unforgettable"
    files = [path for path in (house.directory / "nilou").rglob("*") if path.is_file()]
    assert not any(word in path.read_bytes() for path in files)
    with house.personas.reading("nilou") as persona, persona.database.read() as connection:
        assert bm25_index.search(connection, bm25_index.Terms(["unforgettable"]), Filters(), 5) == []
        assert "unforgettable" not in str(connection.execute("SELECT before, after FROM operations").fetchall())
        assert tombstones.read_all(connection) == {tombstones.digest(keys[5]): "2025-10-30T03:00:00+00:00"}
    assert house.restore(made.path, now, to="さくら").erased_again == 1  # under another name it does not come back either


@pytest.mark.parametrize("beside", ["a later backup", "nothing", "a later backup that is damaged"])
def test_on_another_machine_a_later_backup_tells_what_was_erased_and_without_one_it_is_said(
    house: House, now: datetime, elsewhere: Callable[[Keys], House], tmp_path: Path, beside: str
) -> None:
    keys = [house.say(f"会話 {word}", now) for word in ("海辺", "unforgettable", "山小屋")]
    first = house.back_up(now)
    with house.personas.writing("nilou") as persona:
        forget(persona, [keys[1]], reason=None, dry_run=False, now=now, privacy=Privacy())
        purge.erase(persona, [keys[1]], rule="asked for", now=now)
    later = house.back_up(now + timedelta(hours=1))
    place = tmp_path / "usb"
    place.mkdir()
    for made in [first, later] if beside != "nothing" else [first]:
        (place / made.path.name).write_bytes(made.path.read_bytes())
    if beside.endswith("damaged"):
        (place / later.path.name).write_bytes(later.path.read_bytes()[:-200])
    other = elsewhere(house.keys)
    restored = other.restore(place / first.path.name, now)
    back = beside != "a later backup"
    assert (restored.erased_again, restored.unknown_erased) == (0 if back else 1, back)
    assert [key for key, _ in other.held()[0]] == (keys if back else [keys[0], keys[2]])
    assert list((other.directory / ".staging").iterdir()) == []
    again = other.restore(later.path, now, instead=True)  # it knows itself what had been erased when it was made
    assert again.erased_again == 0
    assert [key for key, _ in other.held()[0]] == [keys[0], keys[2]]


def test_a_persona_that_was_renamed_since_tells_what_was_erased_and_so_do_its_backups(
    house: House, now: datetime, elsewhere: Callable[[Keys], House]
) -> None:
    keys = [house.say(f"会話 {word}", now) for word in ("海辺", "unforgettable")]
    first = house.back_up(now)
    with house.personas.writing("nilou") as persona:
        forget(persona, [keys[1]], reason=None, dry_run=False, now=now, privacy=Privacy())
        purge.erase(persona, [keys[1]], rule="asked for", now=now)
    lifecycle.rename(house.personas, "nilou", "さくら", IndexCache(), now)
    folder = house.personas.path_of("さくら").parent.name
    house.backups.follow_rename("nilou", folder, house.settings)
    moved = first.path.parent.parent / folder / first.path.name
    restored = house.restore(moved, now, to="nilou-before")
    assert (restored.erased_again, restored.unknown_erased) == (1, False)
    house.back_up(now + timedelta(hours=1), "さくら")
    restored = elsewhere(house.keys).restore(moved, now)
    assert (restored.persona, restored.erased_again, restored.unknown_erased) == ("nilou", 1, False)


def test_a_damaged_persona_is_restored_and_it_is_said_that_more_may_have_been_erased(filled: House, now: datetime) -> None:
    made, before = filled.back_up(now), filled.held()
    (filled.directory / "nilou" / "memory.sqlite").write_bytes(b"\x00" * 9000)
    restored = filled.restore(made.path, now, instead=True)
    assert restored.unknown_erased
    assert filled.held() == before


def test_a_summary_or_a_name_in_the_backup_does_not_tell_of_what_was_erased_after_it(house: House, now: datetime) -> None:
    few = Settings(embeddings_model=None, reranker_model=None, summaries={"min_memories": 2})
    word = "鯰田"
    keys = [house.say(f"来週の旅行の宿を{word if number == 1 else '田中'}さんが{number}番に予約した。", now) for number in range(4)]
    with house.personas.writing("nilou") as persona:
        while update_graph(persona, now) or step(persona, now + timedelta(days=2), few):
            pass
        assert list(row_texts(persona, word))
    made = house.back_up(now)
    with house.personas.writing("nilou") as persona:
        forget(persona, [keys[1]], reason=None, dry_run=False, now=now, privacy=Privacy())
        while step(persona, now + timedelta(days=3), few):
            pass  # the summary is made anew, of what is left
        purge.erase(persona, [keys[1]], rule="asked for", now=now)
    assert house.restore(made.path, now, instead=True).erased_again == 1
    with house.personas.writing("nilou") as persona:
        assert list(row_texts(persona, word)) == []


def row_texts(persona: Persona, word: str) -> Iterator[str]:
    """Every row of any table of ours that says the word."""
    with persona.database.read() as connection:
        for table in ("memories", "memory_versions", "entities", "entity_aliases", "operations", "conversations", "conversation_turns"):
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            yield from (f"{table}: {row}" for row in rows if word in str(row))


def tables(house: House, name: str = "nilou") -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table but those of the lexical index, which has ways of its own to store the same."""
    with house.personas.reading(name) as persona, persona.database.read() as connection:
        named = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'lexical_*' AND name NOT GLOB 'sqlite_*'"
            )
        ]
        return {table: connection.execute(f'SELECT * FROM "{table}"').fetchall() for table in named}


def talk(persona: Persona, text: str, now: datetime, key: str) -> None:
    """A conversation in which a memory was recalled."""
    turn = Turn(1, now, "openai:x", ({"role": "user", "text": text},), (key,))
    new = Conversation("c-1", text, now, now)
    persona.database.write(lambda connection: conversations.add_turn(connection, new, turn))


def with_everything(house: House, now: datetime) -> list[str]:
    """A persona with earlier states, relations, a merge and summaries, ten memories of one evening."""
    keys = [
        house.say(f"{number}番目の話、田中さんと {'unforgettable' if number == 5 else ''}", now + timedelta(seconds=number))
        for number in range(10)
    ]
    with house.personas.writing("nilou") as persona:
        revise(persona, keys[0], Revision(content="はじめの話", reason="直した", privacy_level="secret"), now=now, privacy=Privacy())
        relate(persona, [parse_relation("田中 > likes > 苺", ()), parse_relation("田中 > hates > 桃", ())], now=now, privacy=Privacy())
        unrelate(persona, parse_relation("田中 > hates > 桃", ()), reason="まちがい", now=now, privacy=Privacy())
        merge(persona, [keys[1]], keys[2], reason=None, now=now, privacy=Privacy())
        talk(persona, "5番目の話、田中さんと unforgettable", now, keys[5])
        while update_graph(persona, now) or summarization.step(persona, now + timedelta(days=2), house.settings):
            pass
    return keys


def test_a_restored_persona_has_every_row_of_every_table(house: House, now: datetime) -> None:
    with_everything(house, now)
    before = tables(house)
    made = {
        "relations",
        "relation_evidence",
        "merges",
        "summaries",
        "memory_sources",
        "memory_versions",
        "entity_mentions",
        "conversations",
        "conversation_turns",
    }
    assert [table for table in sorted(made) if not before[table]] == []
    house.restore(house.back_up(now).path, now, instead=True)
    after = tables(house)
    assert after["operations"].pop()[3] == "restore_backup"
    assert after == before


def test_what_was_erased_after_the_backup_is_not_told_by_its_summaries_either(house: House, now: datetime) -> None:
    keys = with_everything(house, now)
    made = house.back_up(now)
    with house.personas.writing("nilou") as persona:
        erase(persona, keys[5])
    house.restore(made.path, now, instead=True)
    restored = tables(house)
    assert "unforgettable" not in str(restored)
    assert restored["memory_sources"] == []
    assert len(restored["summaries_due"]) == 2
    assert not any(b"unforgettable" in path.read_bytes() for path in (house.directory / "nilou").rglob("*") if path.is_file())


def test_a_backup_of_a_day_to_come_keeps_nobody_from_the_next_ones(filled: House, now: datetime) -> None:
    filled.back_up(datetime(2099, 1, 1, tzinfo=UTC))
    assert len(filled.step(tokyo(10, 12))) == 2
    assert len(filled.step(tokyo(10, 13))) == 2
