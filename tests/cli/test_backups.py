"""`memory-mcp backup` and `restore`: what they say, what they refuse, beside a server and without one."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory_mcp import cli
from memory_mcp.config.master_key import key_in_file
from memory_mcp.domain import Remembered
from memory_mcp.personas.registry import Personas

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, data_directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command under these settings. Returns its status and everything it says."""
    config = tmp_path / "config.json"
    monkeypatch.setenv("MEMORY_MCP_CONFIG", str(config))
    monkeypatch.setenv("MEMORY_MCP_DATA", str(data_directory))

    def run(*arguments: str, **settings: object) -> tuple[int, str]:
        config.write_text(json.dumps(settings))
        status = cli.run(arguments)
        told = capsys.readouterr()
        return status, told.out + told.err

    return run


@pytest.fixture
def served(personas: Personas, say: Callable[..., Remembered]) -> Personas:
    """A server's registry with one persona that has a memory."""
    say("抹茶が好き")
    return personas


def backup_of(directory: Path) -> Path:
    (found,) = directory.rglob("*.tar.zst*")
    return found


def test_beside_a_server_a_backup_is_made_listed_and_restored_when_it_has_stopped(run: Run, served: Personas, data_directory: Path) -> None:
    status, said = run("backup")
    made = backup_of(data_directory / ".backups" / "nilou")
    assert (status, said.splitlines()[0].startswith("nilou: 1 memory, "), str(made) in said) == (0, True, True)
    assert "the backups are not encrypted" in said
    assert run("backup", "list")[1].endswith(f" KiB  plain  {made}\n")
    assert "another server uses the data directory" in run("restore", str(made), "--replace")[1]
    served.close()
    status, said = run("restore", str(made))
    assert (status, "Say --replace" in said) == (1, True)
    status, said = run("restore", str(made), "--replace")
    assert (status, said.startswith("nilou: as it was 20"), said.endswith("1 memory\n")) == (0, True, True)
    assert run("doctor", "--quiet", embeddings_model=None, reranker_model=None)[0] == 0


def test_a_backup_is_made_where_it_is_said(run: Run, served: Personas, tmp_path: Path, data_directory: Path) -> None:
    assert run("backup", "-p", "nilou", "--to", str(tmp_path / "disk"))[0] == 0
    assert backup_of(tmp_path / "disk").parent.name == "nilou"
    assert not (data_directory / ".backups").exists()
    assert str(tmp_path / "disk") in run("backup", "list", "--to", str(tmp_path / "disk"))[1]
    assert run("backup", "list")[1] == "There are no backups.\n"


def test_a_persona_that_can_t_be_read_does_not_keep_the_others_from_their_backup(run: Run, served: Personas, data_directory: Path) -> None:
    with served.writing("さくら"):
        pass
    served.close()
    (data_directory / "nilou" / "memory.sqlite").write_bytes(b"\x00" * 9000)
    status, said = run("backup")
    assert (status, "nilou: the database of nilou is damaged" in said, "さくら: 0 memories" in said) == (1, True, True)
    next(data_directory.glob("さくら~*/memory.sqlite")).write_bytes(b"\x00" * 9000)
    assert "the database of さくら is damaged" in run("backup")[1]


def test_the_list_has_the_names_of_personas(run: Run, served: Personas) -> None:
    with served.writing("さくら"):
        pass
    run("backup")
    assert sorted(line.split()[0] for line in run("backup", "list")[1].splitlines()) == ["nilou", "さくら"]


def test_who_is_not_there_has_no_backup(run: Run, served: Personas, data_directory: Path) -> None:
    assert "there is no persona 'nobody'" in run("backup", "-p", "nobody")[1]
    assert "does not exist" in run("restore", "nowhere.tar.zst")[1]
    assert "is not a data directory" in run("backup", "--data", str(data_directory / "nowhere"))[1]


def test_on_another_machine_a_sealed_backup_wants_its_key_and_is_encrypted_there_too(
    run: Run, served: Personas, data_directory: Path, tmp_path: Path
) -> None:
    served.close()
    key, encryption = tmp_path / "master.key", {"key_file": str(tmp_path / "master.key")}
    run("key", "new", str(key))
    assert run("encrypt", encryption=encryption)[0] == 0
    assert run("backup", "--to", str(tmp_path / "disk"), encryption=encryption)[0] == 0
    made, there = backup_of(tmp_path / "disk"), str(tmp_path / "another machine")
    assert "encrypted" in run("backup", "list", "--to", str(tmp_path / "disk"))[1]
    status, said = run("restore", str(made), "--data", there)
    assert (status, f"the master key {key_in_file(key).id} is not there" in said) == (1, True)
    assert list(Path(there).glob("*/memory.sqlite")) == []
    status, said = run("restore", str(made), "--data", there, "--key-file", str(key))
    assert (status, "1 memory, encrypted" in said, "Name the key file in encryption.key_file" in said) == (0, True, True)
    status, said = run("doctor", "--data", there, encryption=encryption, embeddings_model=None, reranker_model=None)
    assert (status, "1 of 1 persona(s) are encrypted" in said) == (0, True)


def test_a_backup_from_before_another_key_took_over_is_restored_with_the_one_put_aside(run: Run, served: Personas, tmp_path: Path) -> None:
    served.close()
    key, encryption = tmp_path / "master.key", {"key_file": str(tmp_path / "master.key")}
    run("key", "new", str(key))
    run("backup", "--to", str(tmp_path / "disk"), encryption=encryption)
    assert run("rotate-key", encryption=encryption)[0] == 0
    made = backup_of(tmp_path / "disk")
    assert run("restore", str(made), "--replace", encryption=encryption)[0] == 0


def test_a_key_that_is_told_serves_where_the_configuration_names_one_that_is_not_here(
    run: Run, served: Personas, tmp_path: Path, data_directory: Path
) -> None:
    key = tmp_path / "copied.key"
    assert run("key", "new", str(key))[0] == 0
    served.close()
    assert run("backup", encryption={"key_file": str(key)})[0] == 0
    made, missing = str(backup_of(data_directory)), {"encryption": {"enabled": True, "key_file": str(tmp_path / "not here.key")}}
    assert "there is no key file" in run("restore", made, "--as", "other", **missing)[1]
    status, said = run("restore", made, "--as", "other", "--key-file", str(key), **missing)
    assert (status, "Name the key file in encryption.key_file" in said) == (0, True)


@pytest.mark.feature("cells")
def test_a_cell_is_restored_as_of_a_time_with_a_key_of_the_command_line(
    run: Run, served: Personas, data_directory: Path, tmp_path: Path
) -> None:
    served.close()
    key, there = tmp_path / "master.key", str(tmp_path / "another machine")
    run("key", "new", str(key))
    assert run("encrypt", encryption={"key_file": str(key)})[0] == 0
    assert run("backup", "--to", str(tmp_path / "disk"), encryption={"key_file": str(key)})[0] == 0
    made_at = datetime.strptime(backup_of(tmp_path / "disk").name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    restore = ("cell", "restore", "--data", there, "--backups", str(tmp_path / "disk"))
    status, said = run(*restore)
    assert (status, "Give it with --key-file" in said) == (1, True)
    assert "is not a time before now" in run(*restore, "--at", "2999-01-01")[1]
    status, said = run(*restore, "--at", (made_at - timedelta(seconds=1)).isoformat(), "--key-file", str(key))
    assert (status, "nilou: there is no backup from before" in said) == (1, True)
    status, said = run(*restore, "--at", datetime.now(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None).isoformat(), "--key-file", str(key))
    assert (status, "nilou: backed up 20" in said, "1 personas" in said) == (0, True, True)
