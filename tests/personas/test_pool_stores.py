"""The store of a pool is kept as a persona's is: found, checked, backed up, restored, encrypted, and done chores for; and no persona's name is its."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp import cli
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.errors import InvalidPersonaName
from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.jobs.chore_worker import Chore, ChoreWorker
from memory_mcp.personas.names import canonical_name, directory_name, pool_of, pool_store, store_name
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft

POOLS = ("team", "京都案内", "con", "a/b", "..")


@pytest.fixture
def filled(data_directory, now, zone):
    """A data directory with a persona and pools, closed."""
    personas = Personas(data_directory)
    for store in ("team", *map(pool_store, POOLS)):
        with personas.writing(store) as persona:
            remember(persona, draft(f"{store.strip()}の話", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    assert personas.names() == ["team"]
    assert set(personas.stores()) == {"team", *map(pool_store, POOLS)}
    personas.close()
    return data_directory


@pytest.fixture
def run(filled, tmp_path, capsys):
    def run(*words, **settings):
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"embeddings_model": None, "reranker_model": None, **settings}))
        status = cli.run([*words, "--config", str(config), "--data", str(filled)])
        told = capsys.readouterr()
        assert status == 0, told.err
        return told.out

    return run


@given(st.text(max_size=30))
def test_no_name_of_a_persona_is_that_of_a_pools_store(text):
    try:
        name = canonical_name(text)
    except InvalidPersonaName:
        return
    assert pool_of(name) == ""
    assert store_name(name) == name
    assert not directory_name(name).startswith("@")
    assert directory_name(pool_store(name)) != directory_name(name)
    with pytest.raises(InvalidPersonaName):
        canonical_name(pool_store(name))


def test_the_next_start_takes_no_pool_for_the_store_of_an_older_server(filled):
    assert legacy_items(filled) == []
    for entry in filled.glob("@*"):
        (entry / "persona.json").unlink()  # as a crash right after its creation leaves it
    assert legacy_items(filled) == []


def test_doctor_checks_every_pool(run):
    told = run("doctor")
    assert "Nothing is wrong." in told
    for pool in POOLS:
        assert f" @{pool}: 1 memory" in told


def test_a_pool_is_backed_up_and_restored(run, filled, now):
    told = run("backup")
    made = {line.split(": ")[0]: line.rsplit(": ", 1)[1] for line in told.splitlines() if ".tar.zst" in line}
    assert set(made) == {"team", *map(pool_store, POOLS)}
    assert len(set(made.values())) == len(made)
    assert run("restore", made[" @team"], "--replace").startswith(" @team: as it was")
    personas = Personas(filled)
    with personas.reading(pool_store("team")) as pool, pool.database.read() as connection:
        assert connection.execute("SELECT content FROM memories").get == "@teamの話"
    personas.close()


def test_pools_are_encrypted_with_the_personas(run, filled, tmp_path, capsys):
    key = tmp_path / "master.key"
    assert cli.run(["key", "new", str(key)]) == 0
    encryption = {"encryption": {"enabled": True, "key_file": str(key)}}
    run("encrypt", **encryption)
    assert all((entry / "key.json").exists() for entry in filled.iterdir() if (entry / "persona.json").exists())
    assert f"{1 + len(POOLS)} of {1 + len(POOLS)} persona(s) are encrypted" in run("doctor", **encryption)


def test_chores_are_done_for_pools(filled, now):
    personas, seen = Personas(filled), set()

    def step(persona, _now, _settings):
        seen.add(persona.name)
        return False

    chore = Chore("look", step, lambda _: True, lambda _: timedelta(hours=1))
    moments = iter(range(10**6))
    settings = Settings(upkeep={"idle_seconds": 0})
    worker = ChoreWorker(personas, [chore], lambda: settings, lambda: now + timedelta(minutes=next(moments)))
    worker.start()
    worker.stop()
    for _ in range(20):
        worker.step(now + timedelta(minutes=next(moments)))
    assert seen == {"team", *map(pool_store, POOLS)}
    personas.close()
