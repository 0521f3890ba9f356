"""A server over encrypted data: no file holds a word of a memory, a kill loses nothing, and without the key it does not start."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from crashing import INDEXED, crashing, kill
from processes import command
from soundness import contents
from writers import Caller, settle

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

SECRET = "xylophonic"


@pytest.fixture
def encrypting(tmp_path: Path) -> dict[str, Any]:
    """Settings under which everything is encrypted, and backups are made at once."""
    key = tmp_path / "master.key"
    assert command("key", "new", str(key)).returncode == 0
    return {
        **INDEXED,
        "upkeep": {"idle_seconds": 0},
        "backup": {"enabled": True},
        "encryption": {"enabled": True, "key_file": str(key)},
    }


def holding(directory: Path, word: str) -> list[str]:
    return [str(path) for path, content in contents(directory) if word.encode() in content]


def backed_up(caller: Caller) -> dict[str, Any]:
    """Make a backup, as soon as the server isn't making one by itself."""
    for _ in range(60):
        response = caller._http.post("/api/backups")
        if response.status_code != 503:
            break
        time.sleep(float(response.headers["Retry-After"]))
    return dict(response.raise_for_status().json())


def test_no_file_of_a_server_that_encrypts_holds_a_word_of_a_memory(tmp_path: Path, encrypting: dict[str, Any]) -> None:
    with crashing(tmp_path, encrypting) as server, Caller(server, "nilou") as caller:
        keys = [caller("remember", content=f"{SECRET} {number}", source=SECRET, tags=[SECRET])["key"] for number in range(30)]
        caller("update_context", emotion=SECRET, user_info={"name": SECRET})
        caller("revise", key=keys[0], content=f"{SECRET} again", reason=SECRET)
        caller("forget", keys=[keys[1]], reason=SECRET)
        settle(server)
        made = backed_up(caller)
        assert made["sealed"]
        assert holding(server.data, SECRET) == []  # while it is open
        kill(server)
    assert holding(tmp_path, SECRET) == []  # as a crash leaves it
    with crashing(tmp_path, encrypting) as server, Caller(server, "nilou") as caller:
        settle(server)
        answer = caller("recall", query=f"{SECRET} 7")
        assert (answer["mode"], answer["hits"][0]["content"]) == ("hybrid", f"{SECRET} 7")
        assert caller("get_context")["state"]["emotion"] == SECRET
        assert server.stop() == 0
    assert (tmp_path / "memory" / "nilou" / "vector_store" / "index.faiss").read_bytes().startswith(b"MMSEALED")
    assert holding(tmp_path, SECRET) == []


def test_a_server_makes_a_backup_of_every_persona_by_itself(tmp_path: Path, encrypting: dict[str, Any], eventually: Any) -> None:
    with crashing(tmp_path, encrypting) as server:
        for name in ("nilou", "さくら"):
            with Caller(server, name) as caller:
                caller("remember", content=SECRET)
        eventually(lambda: len(list(server.data.glob(".backups/*/*.tar.zst.sealed"))) == 2)
        with Caller(server, "nilou") as caller:
            chores = caller.get("/ready").json()["chores"]
        assert chores["backup"]["enabled"]


def _contents(data: Path) -> dict[Path, bytes]:
    """What the files hold, but for the index of personas, which notes what it sees."""
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and ".personas" not in path.parts}


@pytest.mark.parametrize("lacking", ["the file", "any key", "the right key"])
def test_without_its_key_the_server_does_not_start_and_says_what_is_missing(
    tmp_path: Path, encrypting: dict[str, Any], lacking: str
) -> None:
    with crashing(tmp_path, encrypting) as server, Caller(server, "nilou") as caller:
        caller("remember", content=SECRET)
    before = _contents(tmp_path / "memory")
    key = tmp_path / "master.key"
    config: dict[str, Any] = {**encrypting}
    if lacking == "the file":
        key.unlink()
    elif lacking == "any key":
        config["encryption"] = {}
    else:
        key.write_text("ab" * 32)
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = ["serve", "--port", "0", "--config", str(tmp_path / "config.json"), "--data", str(tmp_path / "memory")]
    refused = command(*arguments)
    said = refused.stderr
    assert refused.returncode == 1
    assert {"the file": "there is no key file", "any key": "is not there", "the right key": "it requires"}[lacking] in said
    assert _contents(tmp_path / "memory") == before
