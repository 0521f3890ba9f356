"""SIGKILL inside backup, restore, encrypting, decrypting and the change of the master key: each has happened, or it has not."""

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from processes import command

from memory_mcp.config.master_key import MasterKey, key_in_file
from memory_mcp.config.settings import Privacy
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.files.encryption_keys import Keys, is_encrypted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

NOW = datetime(2025, 10, 30, 3, tzinfo=UTC)
NAMES = ("nilou", "さくら")
KILLED = -9

Held = dict[str, tuple[list[str], str]]


class Place:
    """A data directory, its configuration with a master key, and commands that may kill themselves."""

    def __init__(self, directory: Path, like: "Place | None" = None) -> None:
        """`like`: one whose personas and key it begins with."""
        self.data, self.key_file, self.config = directory / "memory", directory / "master.key", directory / "config.json"
        self.config.write_text(json.dumps({"encryption": {"key_file": str(self.key_file)}}))
        if like:
            shutil.copytree(like.data, self.data)
            shutil.copy2(like.key_file, self.key_file)
        else:
            self.data.mkdir()
            assert self.run("key", "new", str(self.key_file)) == 0

    def run(self, *arguments: str, moment: str | None = None, ordinal: int = 1) -> int:
        """A command's status."""
        told = {"MEMORY_MCP_CONFIG": str(self.config), "MEMORY_MCP_DATA": str(self.data)}
        done = command(*arguments, environment=told, moment=moment, ordinal=ordinal)
        assert done.returncode in (0, KILLED), done.stderr
        return done.returncode

    def opened(self, master: MasterKey | None = None) -> Personas:
        return Personas(self.data, keys=Keys(master or key_in_file(self.key_file)))

    def fill(self, marker: str) -> None:
        personas = self.opened()
        for name in NAMES:
            with personas.writing(name) as persona:
                for number in range(50):
                    content = f"{marker} {number}"
                    remember(persona, draft(content, now=NOW, zone=ZoneInfo("UTC")), now=NOW, zone=ZoneInfo("UTC"), privacy=Privacy())
                persona.context.update({"current_emotion": marker})
        personas.close()

    def held(self) -> Held:
        """Everything of every persona, after a start has ended what was interrupted."""
        personas, found = self.opened(), {}
        for name in personas.names():
            with personas.reading(name) as persona, persona.database.read() as connection:
                assert connection.execute("PRAGMA integrity_check").get == "ok"
                contents = [row[0] for row in connection.execute("SELECT content FROM memories ORDER BY id")]
                found[name] = contents, persona.context.read()["current_emotion"]
        personas.close()
        return found

    def backups(self) -> list[Path]:
        return sorted(self.data.glob(".backups/*/*.tar.zst.sealed"))

    def scraps(self) -> list[str]:
        return [path.name for path in [*self.data.glob(".staging/*"), *self.data.glob("*/*-copy.sqlite*"), *self.data.rglob("*.part")]]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two personas as they are before anything is encrypted. Nobody changes it."""
    made = Place(tmp_path_factory.mktemp("plain"))
    made.fill("抹茶")
    return made


@pytest.fixture(scope="module")
def sealed(plain: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same, encrypted."""
    made = Place(tmp_path_factory.mktemp("sealed"), like=plain)
    assert made.run("encrypt") == 0
    return made


@pytest.fixture
def place(plain: Place, tmp_path: Path) -> Place:
    return Place(tmp_path, like=plain)


@pytest.mark.parametrize(
    "moment", ["inside the copy of a backup", "a backup written, not read back", "a backup read back, without its name"]
)
def test_a_backup_that_was_killed_is_not_there_and_the_next_one_is(place: Place, moment: str) -> None:
    before = place.held()
    assert place.run("backup", moment=moment) == KILLED
    assert place.backups() == []
    assert place.held() == before
    assert place.run("backup") == 0
    assert len(place.backups()) == len(NAMES)
    assert place.scraps() == []


RESTORING = [
    ("a backup taken apart", False),
    ("inside the change of a database's key", False),
    ("a persona made anew, not in its place", False),
    ("a persona aside, the other not in its place", True),
    ("another in a persona's place, the first still aside", True),
]


@pytest.mark.parametrize(("moment", "happened"), RESTORING)
def test_a_restore_that_was_killed_has_happened_or_has_not(place: Place, moment: str, happened: bool) -> None:
    saved = place.held()
    assert place.run("backup", "-p", "nilou") == 0
    place.fill("そのあと")
    later = place.held()
    assert later != saved
    (backup,) = place.backups()
    assert place.run("restore", str(backup), "--replace", moment=moment) == KILLED
    assert place.held() == ({**later, "nilou": saved["nilou"]} if happened else later)
    assert place.scraps() == []
    assert place.run("restore", str(backup), "--replace") == 0
    assert place.held() == {**later, "nilou": saved["nilou"]}


def test_a_restore_of_a_persona_that_is_not_there_leaves_nothing_of_it_when_it_is_killed(place: Place) -> None:
    assert place.run("backup", "-p", "nilou") == 0
    (backup,) = place.backups()
    before = place.held()
    assert place.run("restore", str(backup), "--as", "new", moment="a persona made anew, not in its place") == KILLED
    assert place.held() == before
    assert not (place.data / "new").exists()
    assert place.run("restore", str(backup), "--as", "new") == 0
    assert place.held() == {**before, "new": before["nilou"]}


@pytest.mark.parametrize("command", ["encrypt", "decrypt"])
@pytest.mark.parametrize("moment", [moment for moment, _ in RESTORING[1:]])
@pytest.mark.parametrize("ordinal", [1, 2])
def test_personas_are_readable_whenever_encrypting_or_decrypting_them_is_killed(
    plain: Place, sealed: Place, tmp_path: Path, command: str, moment: str, ordinal: int
) -> None:
    place = Place(tmp_path, like=sealed if command == "decrypt" else plain)
    before = place.held()
    assert place.run(command, moment=moment, ordinal=ordinal) == KILLED
    assert place.held() == before
    assert place.scraps() == []
    for name in NAMES:
        personas = place.opened()
        folder = personas.path_of(name).parent
        personas.close()
        if is_encrypted(folder) != (command == "encrypt"):
            assert place.run(command, "-p", name) == 0
    assert place.held() == before
    words = b"".join(path.read_bytes() for path in place.data.rglob("*") if path.is_file())
    assert ("抹茶".encode() in words) == (command == "decrypt")


@pytest.mark.parametrize(
    ("moment", "ordinal"),
    [
        *(("before a persona's key is wrapped", ordinal) for ordinal in (1, 2, 3, 4)),
        ("before another master key is in force", 1),
        ("after another master key is in force", 1),
    ],
)
def test_the_key_in_force_opens_everything_whenever_its_change_is_killed(sealed: Place, tmp_path: Path, moment: str, ordinal: int) -> None:
    place = Place(tmp_path, like=sealed)
    before, old = place.held(), key_in_file(place.key_file)
    assert place.run("rotate-key", moment=moment, ordinal=ordinal) == KILLED
    assert place.held() == before
    assert place.run("rotate-key") == 0
    assert place.held() == before
    assert key_in_file(place.key_file).id != old.id
    assert key_in_file(place.key_file.with_name(f"master.key.{old.id}")).secret == old.secret
    assert not place.key_file.with_name("master.key.new").exists()
