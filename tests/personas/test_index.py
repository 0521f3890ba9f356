"""The index of personas: what it lists is what the directories say, however they came to be."""

import json
import os
import shutil
import signal
import sys
from multiprocessing import get_context

import pytest

from memory_mcp.config.master_key import new_key
from memory_mcp.personas import persona_index
from memory_mcp.personas.directories import IDENTITY_NAME
from memory_mcp.personas.lifecycle import erase, rename
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.persona_index import DIRECTORY_NAME, FILE_NAME
from memory_mcp.personas.registry import Personas, names_in
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import encryption

NAMES = ["nilou", "さくら", "ケン"]


@pytest.fixture
def known(personas):
    for name in NAMES:
        with personas.writing(name):
            pass
    return personas


def counted_identities(monkeypatch):
    read = []
    monkeypatch.setattr(
        persona_index, "_name_in", lambda directory, name_in=persona_index._name_in: read.append(directory.name) or name_in(directory)
    )
    return read


def test_a_persona_is_listed_once_it_is_created_renamed_or_erased(known, now):
    assert known.names() == sorted(NAMES)
    rename(known, "ケン", "ゆい", IndexCache(), now)
    assert known.names() == sorted(["nilou", "さくら", "ゆい"])
    erase(known, "さくら", IndexCache(), now)
    assert known.names() == ["nilou", "ゆい"]
    assert known.count() == 2


def test_a_directory_that_comes_or_goes_by_hand_is_noticed(known, data_directory):
    shutil.copytree(data_directory / "nilou", data_directory / "mio")
    (data_directory / "mio" / IDENTITY_NAME).write_text(json.dumps({"name": "mio"}))
    shutil.rmtree(data_directory / directory_name("さくら"))
    assert known.names() == names_in(data_directory) == ["mio", "nilou", "ケン"]


def put_by_another_program(directory, name):
    """What a program makes in the moment in which the directory was changed last."""
    moment = directory.stat().st_mtime_ns
    (directory / name).mkdir()
    (directory / name / IDENTITY_NAME).write_text(json.dumps({"name": name}))
    os.utime(directory, ns=(moment, moment))


def test_a_directory_of_the_moment_in_which_the_others_were_read_is_noticed(known, data_directory, monkeypatch):
    monkeypatch.setattr(persona_index, "STEP_SECONDS", 3_600)
    monkeypatch.setattr(persona_index, "SETTLING_SECONDS", 0)
    monkeypatch.setattr(persona_index, "COMPARISONS_APART", 0)
    known.index.changed()
    assert known.names() == sorted(NAMES)
    put_by_another_program(data_directory, "mio")
    assert "mio" in known.names()
    with known.index.creating("leo"):
        put_by_another_program(data_directory, "ema")
    assert "ema" in known.names()


def test_personas_made_without_a_pause_are_not_compared_with_all_others_each_time(known, monkeypatch):
    monkeypatch.setattr(persona_index, "STEP_SECONDS", 3_600)
    monkeypatch.setattr(persona_index, "SETTLING_SECONDS", 0)
    monkeypatch.setattr(persona_index, "COMPARISONS_APART", 1e9)
    known.index.changed()
    known.names()
    compared = []
    monkeypatch.setattr(persona_index.os, "scandir", lambda path, scandir=os.scandir: compared.append(path) or scandir(path))
    for name in ("mio", "leo", "ema"):
        with known.writing(name):
            pass
        assert name in known.names()
    assert known.directory not in compared


def test_a_persona_that_is_erased_in_the_moment_in_which_another_was_made_is_gone(known, data_directory, now):
    with known.writing("mio"):
        pass
    moment = data_directory.stat().st_mtime_ns
    assert "ケン" in known.names()
    erase(known, "ケン", IndexCache(), now)
    os.utime(data_directory, ns=(moment, moment))
    assert "ケン" not in known.names()


def test_a_directory_that_becomes_a_persona_later_is_noticed(known, data_directory):
    (data_directory / "mio").mkdir()
    assert "mio" not in known.names()
    shutil.copy(data_directory / "nilou" / DATABASE_NAME, data_directory / "mio")
    assert "mio" in known.names()


@pytest.mark.parametrize("damage", [b"", b"no database", None])
def test_an_index_that_is_missing_or_damaged_is_made_again(known, data_directory, damage):
    known.close()
    index = data_directory / DIRECTORY_NAME / FILE_NAME
    index.unlink()
    if damage is not None:
        index.write_bytes(damage)
    again = Personas(data_directory)
    assert again.names() == sorted(NAMES)
    again.close()


def test_an_identity_that_was_changed_while_no_server_ran_is_read_again(known, data_directory):
    known.close()
    (data_directory / "nilou" / IDENTITY_NAME).write_text("{")
    again = Personas(data_directory)
    assert again.names() == ["さくら", "ケン"]
    again.close()


def test_a_start_reads_no_identity_that_is_the_same(known, data_directory, monkeypatch):
    known.names()
    known.close()
    read = counted_identities(monkeypatch)
    again = Personas(data_directory)
    assert again.names() == sorted(NAMES)
    assert read == []
    with again.writing("mio"):
        pass
    assert "mio" in again.names()
    assert read == ["mio"]
    again.close()


def test_a_persona_that_was_encrypted_is_known_as_such_at_the_next_start(known, data_directory):
    master = new_key("the key of this test")
    known.names()
    known.close()
    again = Personas(data_directory, open_limit=0, keys=Keys(master))
    encryption.encrypt(again, ["nilou"], lambda _name, refused: pytest.fail(refused) if refused else None)
    again.close()
    again = Personas(data_directory, keys=Keys(master))
    assert again.index.directories(encrypted=True) == ["nilou"]
    assert again.index.directories(encrypted=False) == sorted(map(directory_name, ("さくら", "ケン")))
    again.close()


def test_of_very_many_the_personas_with_the_nearest_letters_or_sounds_are_offered(known, monkeypatch):
    monkeypatch.setattr(persona_index, "COMPARED", 1)
    assert known.similar_names("サクラ") == ["さくら"]
    assert known.similar_names("nillou") == ["nilou"]


def _create(data_directory, begun):
    personas = Personas(data_directory)
    begun.set()
    for number in range(10_000):
        with personas.writing(f"persona {number}"):
            personas.names(limit=1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_a_server_that_is_killed_while_it_creates_personas_lists_them_all_afterwards(data_directory, seconds):
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_create, args=(data_directory, begun))
    process.start()
    assert begun.wait(60)
    process.join(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    again = Personas(data_directory)
    assert again.names() == names_in(data_directory)
    again.close()
