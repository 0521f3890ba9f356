"""`memory-mcp key`, `encrypt`, `decrypt`, `rotate-key`: what is said, what is refused, and where keys come from."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from keyrings_in_memory import Drawer

from memory_mcp import cli
from memory_mcp.config.master_key import MasterKey, key_in_file, master_key
from memory_mcp.config.settings import Encryption
from memory_mcp.domain import Remembered
from memory_mcp.errors import ConfigError
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files.encryption_keys import Keys, is_encrypted

Run = Callable[..., tuple[int, str]]

posix_only = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "master.key"


@pytest.fixture
def run(tmp_path: Path, data_directory: Path, key_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command with a config.json that names the key file. Returns its status and everything it says."""
    monkeypatch.delenv("MEMORY_MCP_KEY", raising=False)
    config = tmp_path / "config.json"

    def run(*arguments: str, encryption: object = None) -> tuple[int, str]:
        config.write_text(json.dumps({"encryption": {"key_file": str(key_file)} if encryption is None else encryption}))
        monkeypatch.setenv("MEMORY_MCP_CONFIG", str(config))
        monkeypatch.setenv("MEMORY_MCP_DATA", str(data_directory))
        status = cli.run(arguments)
        told = capsys.readouterr()
        return status, told.out + told.err

    return run


@pytest.fixture
def left(personas: Personas, say: Callable[..., Remembered], data_directory: Path) -> Path:
    """The directory of a persona with a memory, whose server has stopped."""
    say("抹茶が好き")
    personas.close()
    return data_directory / "nilou"


def test_a_new_key_is_written_for_its_owner_alone_and_not_printed(run: Run, key_file: Path) -> None:
    status, said = run("key", "new", str(key_file))
    made = key_in_file(key_file)
    assert (status, made.text in said, made.id in said) == (0, False, True)
    assert os.name == "nt" or key_file.stat().st_mode & 0o777 == 0o600
    assert run("key", "show") == (0, f"{made.id}, from the file {key_file}\n")
    assert run("key", "show", "--secret") == (0, f"{made.text}\n")


def test_a_key_is_never_overwritten(run: Run, key_file: Path) -> None:
    run("key", "new", str(key_file))
    before = key_file.read_text()
    status, said = run("key", "new", str(key_file))
    assert (status, "never overwritten" in said, key_file.read_text()) == (1, True, before)


def test_where_the_key_goes_has_to_be_said(run: Run) -> None:
    assert "Name a file, or use --keyring" in run("key", "new")[1]


@posix_only
def test_a_key_file_that_others_may_read_is_refused(run: Run, key_file: Path) -> None:
    run("key", "new", str(key_file))
    for mode in (0o640, 0o604, 0o666):
        key_file.chmod(mode)
        with pytest.raises(ConfigError, match=f"chmod 600 {key_file}"):
            key_in_file(key_file)


@pytest.mark.parametrize("text", ["", "abc", "0" * 63, "g" * 64, "鍵" * 64])
def test_what_is_no_key_is_refused_without_being_quoted(key_file: Path, text: str) -> None:
    key_file.write_text(text, encoding="utf-8")
    key_file.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        key_in_file(key_file)
    assert not text or text not in str(refused.value)


def test_a_key_is_taken_from_the_file_before_the_environment_before_the_keyring(
    key_file: Path, drawer: Drawer, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    assert master_key(Encryption()) is None
    with pytest.raises(ConfigError, match="the keyring has no master key"):
        master_key(Encryption(keyring=True))
    assert run("key", "new", "--keyring")[0] == 0
    assert "already" in run("key", "new", "--keyring")[1]
    run("key", "new", str(key_file))

    def source(**said: object) -> str:
        found = master_key(Encryption.model_validate(said))
        assert found
        return found.source

    assert source(keyring=True) == "the keyring"
    monkeypatch.setenv("MEMORY_MCP_KEY", "ab" * 32)
    assert source(keyring=True) == "the environment variable MEMORY_MCP_KEY"
    assert source(keyring=True, key_file=str(key_file)) == f"the file {key_file}"


def test_a_key_does_not_show_in_what_is_printed_of_it() -> None:
    master = MasterKey(b"k" * 32, "a test")
    assert "kkk" not in repr(master)
    assert master.text not in repr(master)
    assert repr(Keys(master)).count(master.id) == 1


def test_personas_are_encrypted_and_decrypted_by_command(run: Run, key_file: Path, left: Path) -> None:
    run("key", "new", str(key_file))
    assert run("encrypt") == (0, "nilou: encrypted\n")
    assert is_encrypted(left)
    assert run("encrypt", "-p", "nilou") == (0, "nilou: encrypted\n")  # again, as after a crash
    assert run("doctor", "--quiet")[0] == 0
    assert run("decrypt") == (0, "nilou: decrypted\n")
    assert not is_encrypted(left)
    status, said = run("encrypt", "-p", "nobody")
    assert (status, "there is no persona 'nobody'" in said) == (1, True)


def test_backups_from_before_the_encryption_are_counted_until_they_are_removed(run: Run, key_file: Path, left: Path) -> None:
    run("backup", encryption={})
    (plain,) = left.parent.rglob("*.tar.zst")
    run("key", "new", str(key_file))
    assert "backup(s) of encrypted" not in run("doctor")[1]
    status, said = run("encrypt")
    assert (status, f"1 backup(s) of encrypted personas are not encrypted, such as {plain}" in said) == (0, True)
    assert "backups: 1 backup(s) of encrypted" in run("doctor")[1]
    run("backup")
    plain.unlink()
    assert run("encrypt") == (0, "nilou: encrypted\n")
    assert "backup(s) of encrypted" not in run("doctor")[1]


def test_without_a_key_nothing_is_encrypted_and_the_command_says_how_to_make_one(run: Run, left: Path) -> None:
    status, said = run("encrypt", encryption={})
    assert (status, "memory-mcp key new FILE" in said, is_encrypted(left)) == (1, True, False)


def test_while_a_server_has_the_data_nothing_is_changed(run: Run, key_file: Path, left: Path, data_directory: Path) -> None:
    run("key", "new", str(key_file))
    server = Personas(data_directory)
    for command in ("encrypt", "decrypt", "rotate-key"):
        status, said = run(command)
        assert (status, "another server uses the data directory" in said) == (1, True), command
    server.close()
    assert not is_encrypted(left)


def test_doctor_says_which_key_is_missing_and_what_is_not_encrypted(run: Run, key_file: Path, left: Path, data_directory: Path) -> None:
    run("key", "new", str(key_file))
    run("encrypt")
    made = key_in_file(key_file)
    status, said = run("doctor", "--quiet", encryption={})
    assert (status, f"the master key {made.id} is not there" in said) == (1, True)
    other = Personas(data_directory, keys=Keys(made))
    with other.writing("さくら"):
        pass
    other.close()
    assert "1 of 2 persona(s) are encrypted" in run("doctor")[1]


def test_another_key_takes_the_place_of_the_one_in_the_key_file_which_is_put_aside(run: Run, key_file: Path, left: Path) -> None:
    run("key", "new", str(key_file))
    run("encrypt")
    old = key_in_file(key_file)
    status, said = run("rotate-key")
    new = key_in_file(key_file)
    assert (status, new.id in said, old.id in said, new.id != old.id) == (0, True, True, True)
    assert key_in_file(key_file.with_name(f"master.key.{old.id}")).secret == old.secret
    assert Keys(new).of(left)
    assert not key_file.with_name("master.key.new").exists()


def test_a_key_from_the_environment_gives_way_to_one_in_a_file(
    run: Run, key_file: Path, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MCP_KEY", "ab" * 32)
    assert run("encrypt", encryption={})[0] == 0
    assert "name it with --new-key-file" in run("rotate-key", encryption={})[1]
    run("key", "new", str(key_file))
    status, said = run("rotate-key", "--new-key-file", str(key_file), encryption={})
    assert (status, "Set MEMORY_MCP_KEY to the key in" in said) == (0, True)
    assert Keys(key_in_file(key_file)).of(left)


def test_a_key_in_the_keyring_is_exchanged_there(run: Run, key_file: Path, left: Path, drawer: Drawer) -> None:
    run("key", "new", "--keyring")
    assert run("encrypt", encryption={"keyring": True})[0] == 0
    run("key", "new", str(key_file))
    assert run("rotate-key", "--new-key-file", str(key_file), encryption={"keyring": True})[0] == 0
    found = master_key(Encryption(keyring=True))
    assert found == MasterKey(key_in_file(key_file).secret, "the keyring")
    assert Keys(found).of(left)
