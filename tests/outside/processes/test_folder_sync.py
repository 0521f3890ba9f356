"""One persona on several machines by a shared folder: nothing is lost, nothing comes back, and what was changed on both is shown."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from processes import RunningServer, serving

pytestmark = pytest.mark.slow

WHO = {"X-Persona": "sakura"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    with serving(tmp_path_factory.mktemp("desk")) as desk, serving(tmp_path_factory.mktemp("laptop")) as laptop:
        yield [desk, laptop]


class Machine:
    """A server as one persona, and the name of its file."""

    def __init__(self, server: RunningServer, name: str, persona: str, folder: Path) -> None:
        self._server, self._name, self._persona, self._folder = server, name, persona, folder

    def sync(self, *options: str) -> str:
        done = self._server.memory_mcp("sync", str(self._folder), "-p", self._persona, "--machine", self._name, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"X-Persona": self._persona, "Accept": "application/json, text/event-stream"}
        result = httpx2.post(f"{self._server.url}/mcp", json=body, headers=headers, trust_env=False).json()["result"]
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def remember(self, content: str, **further: Any) -> str:
        return str(self.call("remember", content=content, **further)["key"])

    def texts(self) -> list[str]:
        answer = httpx2.get(f"{self._server.url}/api/memories", headers={"X-Persona": self._persona}, trust_env=False).json()
        return sorted(memory["content"] for memory in answer["memories"])


@pytest.fixture
def desk(servers: list[RunningServer], request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(servers[0], "desk", request.node.name[:50], tmp_path / "shared")


@pytest.fixture
def laptop(servers: list[RunningServer], request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(servers[1], "laptop", request.node.name[:50], tmp_path / "shared")


def exchanged(*machines: Machine) -> str:
    """Every machine, until all have seen all."""
    return "".join(machine.sync() for _ in range(2) for machine in machines)


def test_what_each_machine_learned_is_on_both_and_again_changes_nothing(desk: Machine, laptop: Machine) -> None:
    desk.remember("健太は苺が好き", tags=["好み"])
    laptop.remember("旅行は奈良にした", occurred_at="2026-11-01")
    exchanged(desk, laptop)
    assert desk.texts() == laptop.texts() == ["健太は苺が好き", "旅行は奈良にした"]
    assert "laptop: 0 new, 0 changed, 0 forgotten, 0 changed on both" in desk.sync()
    assert "desk: 0 new, 0 changed, 0 forgotten, 0 changed on both" in laptop.sync()


def test_a_correction_and_a_replacement_reach_the_other_machine(desk: Machine, laptop: Machine) -> None:
    key, old = desk.remember("会議は3時"), desk.remember("健太は大阪に住んでいる")
    exchanged(desk, laptop)
    laptop.call("revise", key=key, content="会議は4時")
    laptop.remember("健太は京都に住んでいる", supersedes=old)
    exchanged(desk, laptop)
    assert desk.texts() == laptop.texts()
    assert "会議は4時" in desk.texts()
    assert "健太は京都に住んでいる" in desk.texts()
    assert "会議は3時" not in desk.texts()


def test_what_was_changed_on_both_is_said_the_later_is_shown_and_the_other_kept(desk: Machine, laptop: Machine) -> None:
    key = desk.remember("会議は3時")
    exchanged(desk, laptop)
    desk.call("revise", key=key, content="会議は4時")
    laptop.call("revise", key=key, content="会議は5時")
    said = exchanged(desk, laptop)
    assert "1 changed on both" in said
    assert "「会議は5時」, not 「会議は4時」" in said
    assert desk.texts() == laptop.texts() == ["会議は5時"]
    assert "changed on both" not in exchanged(desk, laptop).replace("0 changed on both", "")


def test_what_one_machine_forgot_is_forgotten_on_the_other_unless_it_was_changed_since(desk: Machine, laptop: Machine) -> None:
    gone, kept = desk.remember("傘を借りた"), desk.remember("鍵は棚の上")
    exchanged(desk, laptop)
    desk.call("forget", keys=[gone, kept])
    laptop.call("revise", key=kept, content="鍵は机の上")
    exchanged(desk, laptop)
    assert laptop.texts() == ["鍵は机の上"]
    exchanged(desk, laptop)
    assert "傘を借りた" not in desk.texts() + laptop.texts()


def test_an_empty_machine_takes_everything_and_deletes_nothing(desk: Machine, laptop: Machine) -> None:
    desk.remember("健太は苺が好き")
    laptop.sync()
    desk.sync()
    assert desk.texts() == ["健太は苺が好き"]
    laptop.sync()
    assert laptop.texts() == ["健太は苺が好き"]


def test_secret_memories_stay_and_a_rehearsal_changes_nothing(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    desk.remember("内緒の番号は4711", privacy_level="secret")
    desk.remember("健太は苺が好き")
    assert "would be shared" in desk.sync("--dry-run")
    assert not (tmp_path / "shared").exists()
    desk.sync()
    (written,) = (tmp_path / "shared").rglob("*.jsonl")
    assert "4711" not in written.read_text(encoding="utf-8")
    assert written.stat().st_mode & 0o077 == 0
    assert "desk: 1 new" in laptop.sync("--dry-run")
    assert laptop.texts() == []


def test_a_file_that_is_half_copied_loses_nothing(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    desk.remember("健太は苺が好き")
    desk.remember("旅行は奈良にした")
    desk.sync()
    (written,) = (tmp_path / "shared").rglob("desk.jsonl")
    whole = written.read_bytes()
    written.write_bytes(whole[:-20])
    assert "can't be read; is it still being copied?" in laptop.sync()
    assert len(laptop.texts()) == 1
    written.write_bytes(whole)
    laptop.sync()
    assert len(laptop.texts()) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_what_is_no_file_in_the_folder_is_left_alone(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    desk.remember("健太は苺が好き")
    desk.sync()
    (written,) = (tmp_path / "shared").rglob("desk.jsonl")
    os.mkfifo(written.with_name("pipe.jsonl"))
    written.with_name("directory.jsonl").mkdir()
    written.with_name("deep.jsonl").write_text("[" * 200_000)
    laptop.sync()
    assert laptop.texts() == ["健太は苺が好き"]


def test_a_memory_that_was_erased_for_good_does_not_come_back(
    desk: Machine, laptop: Machine, servers: list[RunningServer], request: pytest.FixtureRequest
) -> None:
    key = desk.remember("傘を借りた")
    exchanged(desk, laptop)
    laptop.call("forget", keys=[key])
    who = {"X-Persona": request.node.name[:50]}
    asked = httpx2.post(f"{servers[1].url}/api/purge", json={"keys": [key]}, headers=who, trust_env=False).json()
    httpx2.post(
        f"{servers[1].url}/api/purge", json={"keys": [key], "confirm": asked["confirm"]}, headers=who, trust_env=False
    ).raise_for_status()
    assert "was erased for good" in laptop.sync()
    assert laptop.texts() == []
