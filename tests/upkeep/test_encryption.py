"""Encryption at rest: nothing readable on the disk, nothing opened without the key, and back again."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from memory_mcp.config.master_key import MasterKey, new_key
from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import KeyRefused, StartupError, StoreDamaged
from memory_mcp.personas import lifecycle
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import NO_KEYS, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import conversations, memories
from memory_mcp.store.files.encryption_keys import KEY_NAME, Keys, destroy, is_encrypted, masters_of
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.vectors import index_files
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import encryption

pytestmark = pytest.mark.slow

SECRET = "xylophonic"
VECTOR = np.array([[0.5, -0.5, 0.5, -0.5]], np.float32)  # of length 1: stored as it is
NAMES = ("nilou", "さくら")


@pytest.fixture
def master() -> MasterKey:
    return new_key("a test")


Opened = Callable[..., Personas]


@pytest.fixture
def opened(data_directory: Path) -> Callable[..., Personas]:
    """The personas of the data directory with these keys; whoever opened them before is closed."""
    latest: list[Personas] = []

    def opened(keys: Keys = NO_KEYS, open_limit: int = 0) -> Personas:
        for earlier in latest:
            earlier.close()
        latest[:] = [Personas(data_directory, open_limit=open_limit, keys=keys)]
        return latest[0]

    yield opened
    for last in latest:
        last.close()


def fill(personas: Personas, name: str, now: datetime) -> None:
    """Memories, one of them in the trash, a context, and a saved index, all about a word that nothing else holds."""
    zone = ZoneInfo("UTC")
    with personas.writing(name) as persona:
        key = ""
        for number in range(30):
            key = remember(
                persona, draft(f"{SECRET} 海辺 {number}", now=now, zone=zone, source=SECRET), now=now, zone=zone, privacy=Privacy()
            ).key
        forget(persona, [key], now=now, reason=None, dry_run=False, privacy=Privacy())
        persona.context.update({"current_emotion": SECRET})
        turn = Turn(1, now, "openai:x", ({"role": "user", "text": SECRET},), (key,))
        persona.database.write(lambda connection: conversations.add_turn(connection, Conversation("c-1", SECRET, now, now), turn))
        index = VectorIndex("a model")
        index.add([1], VECTOR)
        index_files.save(index, persona.database)


def all_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def told(personas: Personas, name: str) -> tuple[dict[str, int], str, list[str]]:
    """What a persona holds: counts, its context, its contents."""
    with personas.reading(name) as persona, persona.database.read() as connection:
        contents = [row[0] for row in connection.execute("SELECT content FROM memories ORDER BY id")]
        return memories.counts(connection), persona.context.read()["current_emotion"], contents


def change(verb: Callable[..., None], personas: Personas, *names: str) -> dict[str, str]:
    said: dict[str, str] = {}
    verb(personas, names, said.__setitem__)
    return said


def test_a_new_persona_is_encrypted_from_its_first_byte_on_where_that_is_wanted(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    personas = opened(Keys(master, for_new=True), open_limit=128)
    fill(personas, "nilou", now)
    assert (data_directory / "nilou" / "memory.sqlite-wal").exists()
    assert SECRET.encode() not in all_bytes(data_directory)  # in use, the write-ahead log included
    personas = opened(Keys(master))
    assert SECRET.encode() not in all_bytes(data_directory)  # and afterwards
    counts, emotion, contents = told(personas, "nilou")
    assert (counts["memories"], emotion, contents[0]) == (29, SECRET, f"{SECRET} 海辺 0")


def test_the_word_would_be_found_where_nothing_is_encrypted(opened: Opened, data_directory: Path, now: datetime) -> None:
    fill(opened(), "nilou", now)
    for name, held in (
        ("memory.sqlite", SECRET.encode()),
        ("persona_context.json", SECRET.encode()),
        ("vector_store/index.faiss", VECTOR.tobytes()),
    ):
        assert held in (data_directory / "nilou" / name).read_bytes(), name
    with closing(sqlite3.connect(data_directory / "nilou" / "memory.sqlite")) as plain:
        assert plain.execute("SELECT count(*) FROM memories").fetchone() == (30,)


def test_an_encrypted_index_is_loaded_and_one_that_was_changed_is_made_anew(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    stored = (data_directory / "nilou" / "vector_store" / "index.faiss").read_bytes()
    assert VECTOR.tobytes() not in stored
    with opened(Keys(master)).reading("nilou") as persona:
        assert index_files.set_aside_unusable(persona.database, "a model") == ""
        path = data_directory / "nilou" / "vector_store" / "index.faiss"
        path.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
        assert "changed or cut off" in index_files.set_aside_unusable(persona.database, "a model")


def test_another_implementation_of_the_format_opens_the_database(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    opened(Keys(master))
    key = Keys(master).of(data_directory / "nilou")
    assert key
    sqlcipher3 = pytest.importorskip("sqlcipher3")  # where there is a wheel of it
    with closing(sqlcipher3.connect(str(data_directory / "nilou" / "memory.sqlite"))) as other:
        other.execute(f"PRAGMA key=\"x'{key.database.hex()}'\"")
        assert other.execute("SELECT count(*) FROM memories WHERE content LIKE ?", (f"{SECRET}%",)).fetchone() == (30,)
        assert other.execute("PRAGMA cipher_integrity_check").fetchall() == []
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("name", NAMES)
def test_a_persona_is_encrypted_and_decrypted_with_all_that_it_holds(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime, name: str
) -> None:
    directory = data_directory / directory_name(name)
    fill(opened(), name, now)
    (directory / "notes.txt").write_text("of its owner")
    personas = opened(Keys(master))
    before = told(personas, name)
    assert change(encryption.encrypt, personas, name) == {name: ""}
    assert SECRET.encode() not in all_bytes(data_directory)
    assert not (directory / "vector_store").exists()
    assert told(personas, name) == before
    assert change(encryption.encrypt, personas, name) == {name: ""}  # as after a crash
    with pytest.raises(KeyRefused, match="is encrypted"), opened().reading(name):
        pass
    personas = opened(Keys(master))
    assert change(encryption.decrypt, personas, name) == {name: ""}
    assert told(opened(), name) == before
    assert (directory / "notes.txt").read_text() == "of its owner"
    assert not is_encrypted(directory)
    with closing(sqlite3.connect(directory / "memory.sqlite")) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list((data_directory / ".staging").iterdir())


def test_encrypting_without_a_master_key_is_refused_and_changes_nothing(opened: Opened, data_directory: Path, now: datetime) -> None:
    fill(opened(), "nilou", now)
    personas = opened()
    with pytest.raises(KeyRefused, match="there is no master key"):
        change(encryption.encrypt, personas, "nilou")
    assert told(personas, "nilou")[0]["memories"] == 29
    assert not (data_directory / KEY_NAME).exists()


def test_one_persona_that_is_encrypted_does_not_keep_a_plain_one_from_being_served(
    opened: Opened, master: MasterKey, now: datetime
) -> None:
    for name in NAMES:
        fill(opened(), name, now)
    personas = opened(Keys(master))
    assert change(encryption.encrypt, personas, "nilou") == {"nilou": ""}
    assert [told(personas, name)[0]["memories"] for name in NAMES] == [29, 29]
    assert encryption.state(personas.directory) == encryption.State(("nilou",), (directory_name("さくら"),))


def refuse_without_key(directory: Path, keys: Keys) -> None:
    encryption.refuse_without_key(directory, keys, encryption.state(directory).encrypted)


def test_a_server_does_not_start_without_the_key_or_with_another(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    refuse_without_key(data_directory, Keys(master))
    with pytest.raises(StartupError, match=f"nilou.*the master key {master.id} is not there"):
        refuse_without_key(data_directory, Keys())
    other = new_key("another test")
    with pytest.raises(StartupError, match=f"it requires {master.id}; another test is {other.id}"):
        refuse_without_key(data_directory, Keys(other))
    with pytest.raises(StartupError, match="no master key"):
        refuse_without_key(data_directory / "elsewhere", Keys(for_new=True))


def test_a_key_file_that_is_damaged_concerns_its_persona_alone(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    for name in NAMES:
        fill(opened(Keys(master, for_new=True)), name, now)
    path = data_directory / "nilou" / KEY_NAME
    wraps = json.loads(path.read_text())["wrapped_by"]
    for broken in (
        "{",
        "[]",
        "[" * 100_000,
        '{"format": 1, "wrapped_by": 5}',
        json.dumps({"format": 1, "wrapped_by": {master.id: "00" * 40}}),
    ):
        path.write_text(broken)
        personas = opened(Keys(master))
        refuse_without_key(data_directory, personas.keys)
        with pytest.raises(StoreDamaged), personas.reading("nilou"):
            pass
        assert told(personas, "さくら")[0]["memories"] == 29
    path.write_text(json.dumps({"format": 1, "wrapped_by": wraps}))
    assert told(opened(Keys(master)), "nilou")[0]["memories"] == 29


def test_another_master_key_opens_everything_and_the_earlier_one_nothing(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    for name in NAMES:
        fill(opened(Keys(master, for_new=True)), name, now)
    opened(Keys(master)).close()
    fresh, between = new_key("a new one"), []
    directories = [data_directory / directory_name(name) for name in NAMES]

    def put_in_force() -> None:
        between.extend([Keys(key).of(directory) for key in (master, fresh) for directory in directories])

    assert encryption.rotate(data_directory, master, fresh, put_in_force, lambda _: None) == 2
    assert between[:2] == between[2:]  # half way both open the same
    assert [masters_of(directory) for directory in directories] == [[fresh.id]] * 2
    assert told(opened(Keys(fresh)), "nilou")[0]["memories"] == 29
    with pytest.raises(KeyRefused):
        Keys(master).of(directories[0])


def test_a_rotation_with_a_key_that_does_not_open_everything_changes_nothing(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    for name in NAMES:
        fill(opened(Keys(master, for_new=True)), name, now)
    opened(Keys(master)).close()
    before = all_bytes(data_directory)
    with pytest.raises(KeyRefused):
        encryption.rotate(data_directory, new_key("wrong"), new_key("new"), lambda: None, lambda _: None)
    assert all_bytes(data_directory) == before


def test_a_persona_whose_key_is_destroyed_is_lost_whoever_has_the_master_key(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    opened(Keys(master)).close()
    destroy(data_directory / "nilou")
    assert not (data_directory / "nilou" / KEY_NAME).exists()
    with pytest.raises(StoreDamaged), opened(Keys(master)).reading("nilou"):
        pass


def test_a_context_that_its_owner_writes_by_hand_is_read_and_sealed_by_the_next_change(
    opened: Opened, master: MasterKey, data_directory: Path, now: datetime
) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    path = data_directory / "nilou" / "persona_context.json"
    path.write_text('{"current_emotion": "glad", "hobby": "tea"}', encoding="utf-8")
    personas = opened(Keys(master))
    assert told(personas, "nilou")[1] == "glad"
    with personas.writing("nilou") as persona:
        persona.context.update({"environment": "a garden"})
        assert persona.context.read()["hobby"] == "tea"
    assert b"tea" not in path.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_the_files_of_a_key_are_for_their_owner_alone(opened: Opened, master: MasterKey, data_directory: Path, now: datetime) -> None:
    fill(opened(Keys(master, for_new=True)), "nilou", now)
    assert (data_directory / "nilou" / KEY_NAME).stat().st_mode & 0o077 == 0


def test_a_persona_that_lies_elsewhere_by_a_link_is_not_changed(
    opened: Opened, master: MasterKey, data_directory: Path, tmp_path: Path, now: datetime
) -> None:
    fill(opened(), "nilou", now)
    opened().close()
    (data_directory / "nilou").rename(tmp_path / "another disk")
    (data_directory / "nilou").symlink_to(tmp_path / "another disk")
    assert "is a symbolic link" in change(encryption.encrypt, opened(Keys(master)), "nilou")["nilou"]
    assert told(opened(), "nilou")[0]["memories"] == 29


def test_a_copy_has_a_key_of_its_own_and_outlives_the_first(
    opened: Opened, master: MasterKey, data_directory: Path, tmp_path: Path, now: datetime
) -> None:
    personas = opened(Keys(master, for_new=True))
    fill(personas, "nilou", now)
    expected = told(personas, "nilou")
    lifecycle.copy(personas, "nilou", "さくら", now)
    copied = data_directory / directory_name("さくら")
    assert told(personas, "さくら") == expected
    assert SECRET.encode() not in all_bytes(data_directory)
    assert personas.keys.of(copied) != personas.keys.of(data_directory / "nilou")
    stolen = shutil.copytree(data_directory / "nilou", tmp_path / "stolen")
    lifecycle.erase(personas, "nilou", IndexCache(), now)
    assert told(personas, "さくら") == expected
    shutil.copy2(copied / KEY_NAME, stolen / KEY_NAME)  # what is left opens nothing of what was erased
    key = personas.keys.of(stolen)
    assert key
    with pytest.raises(StoreDamaged):
        snapshots.contents_of(stolen / "memory.sqlite", key.database)
    lifecycle.rename(personas, "さくら", "collei", IndexCache(), now)
    assert told(personas, "collei") == expected
