"""Files and directories in a data directory that the server's user can't read: named, and everything else is served."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from processes import COMMAND_SECONDS, SPAWNED, clean_environment, serving

from memory_mcp.personas.names import directory_name

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")]

NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'
SAKURA = directory_name("さくら")


@pytest.fixture(scope="module")
def command() -> Sequence[str]:
    """memory-mcp by a user who can't read everything, as in a container: root, too, without that right."""
    if os.geteuid():
        return SPAWNED
    if not shutil.which("setpriv"):
        pytest.skip("root reads everywhere, and there is no setpriv here")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *SPAWNED)


@contextmanager
def closed(*paths: Path) -> Iterator[None]:
    """Paths that nobody may read."""
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def remembered(url: str, persona: str, content: str = "海") -> httpx2.Response:
    return httpx2.post(f"{url}/api/memories", json={"content": content}, headers={"X-Persona": quote(persona)}, trust_env=False)


def test_what_can_not_be_read_is_named_and_everything_else_is_served(tmp_path: Path, command: Sequence[str]) -> None:
    data = tmp_path / "memory"
    with serving(tmp_path, NO_MODELS, command=command) as server:
        for persona in ("nilou", "sakura", "ミナ"):
            assert remembered(server.url, persona).status_code == 200
    (data / "sakura").rename(data / SAKURA)  # a directory with a persona, whichever
    for name in ("lost+found", ".unfinished", f"{SAKURA}/vector_store", "nilou/vector_store"):
        (data / name).mkdir(exist_ok=True)
    mina = data / directory_name("ミナ")
    unreadable = ["lost+found", ".unfinished", "memory_operations.log", SAKURA, f"{mina.name}/memory.sqlite", "nilou/vector_store"]
    with closed(*(data / name for name in unreadable)):
        with serving(tmp_path, NO_MODELS, command=command) as server:
            assert remembered(server.url, "nilou", "山").json()["stored"] is True
            for refused in (
                remembered(server.url, "さくら"),
                httpx2.get(f"{server.url}/api/recall?query=x", headers={"X-Persona": "%E3%81%95%E3%81%8F%E3%82%89"}, trust_env=False),
            ):
                assert refused.status_code == 500
                assert refused.json()["error"].startswith(
                    f"'さくら' can't be opened: the directory {SAKURA} can't be read: Permission denied."
                )
            assert [known["name"] for known in httpx2.get(f"{server.url}/api/personas", trust_env=False).json()["personas"]] == [
                "nilou",
                "ミナ",
            ]
        log = server.log.read_text(encoding="utf-8")
        for name in ("lost+found", SAKURA):
            assert log.count(f"the directory {name} can't be read: Permission denied.") == 1
        assert "Traceback" not in log
        told = doctor(command, tmp_path)
    assert "unexpected" not in told
    assert "note  lost+found: this user can't read it." in told
    for name in unreadable[1:]:
        assert f"wrong  {name}: this user can't read it." in told
    assert sorted(entry.name for entry in data.iterdir() if entry.name.startswith("さくら")) == [SAKURA]


def doctor(command: Sequence[str], directory: Path) -> str:
    arguments = ("doctor", "--data", str(directory / "memory"), "--config", str(directory / "config.json"))
    done = subprocess.run(
        [*command, *arguments],
        env=clean_environment({"MEMORY_MCP_LANGUAGE": "en"}),
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    return done.stdout.decode() + done.stderr.decode()
