"""What somebody does every day at a terminal: remember, look, correct, replace, forget, and bring back, with the commands that are printed."""

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from processes import RunningServer, command

pytestmark = pytest.mark.slow


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def key_of(stored: str) -> str:
    (key,) = re.findall(r" as ([a-z\d]+)", stored)
    return str(key)


def printed(text: str) -> list[list[str]]:
    """The arguments of the commands that a command has printed, as a shell reads them."""
    return [shlex.split(line)[1:] for line in re.findall(r"\bmemory-mcp [^\n]+", text)]


def test_a_memory_is_corrected_forgotten_and_brought_back_with_the_commands_that_are_printed(shared_server: RunningServer) -> None:
    def run(*arguments: str) -> str:
        """With --url, which the printed commands must repeat: the environment says nothing of the server."""
        return ok(command(*arguments, "--url", shared_server.url))

    owner = "it's さくら & co"
    key = key_of(run("remember", "健太は苺が好き", "-p", owner))
    revised = run("revise", key, "健太は桃が好き", "--tag", "好み", "--importance", "0.8", "--reason", "聞き間違い", "-p", owner)
    assert revised.startswith(f"{owner}: {key} is revision 2\n  健太は桃が好き\n")
    (history,) = printed(revised)
    assert "1. " in (told := ok(command(*history)))
    assert "健太は苺が好き" in told
    assert f"{key}: would forget" in run("forget", key, "--dry-run", "-p", owner)
    forgotten = run("forget", key, "-p", owner)
    assert run("recall", "-p", owner) == ""
    (restore,) = printed(forgotten)
    back = ok(command(*restore))
    assert back.startswith(f"{owner}: {key} is back from the trash, revision 2\n  健太は桃が好き\n")
    assert "健太は桃が好き" in run("recall", "-p", owner)


def test_a_merge_is_undone_with_the_command_that_is_printed(shared_server: RunningServer) -> None:
    keys = [key_of(ok(shared_server.memory_mcp("remember", text, "-p", "tidy"))) for text in ("猫を飼っている", "猫を二匹飼っている")]
    merged = ok(shared_server.memory_mcp("organize", "--merge", keys[0], "--into", keys[1], "-p", "tidy"))
    listed = ok(shared_server.memory_mcp("organize", "-p", "tidy"))
    assert printed(merged) == printed(listed)
    (undo,) = printed(merged)
    ok(shared_server.memory_mcp(*undo))
    assert printed(ok(shared_server.memory_mcp("organize", "-p", "tidy"))) == []


def test_a_key_that_is_not_there_is_a_failure(shared_server: RunningServer) -> None:
    ok(shared_server.memory_mcp("remember", "一", "-p", "careful"))
    done = shared_server.memory_mcp("forget", "memory_nowhere", "-p", "careful")
    assert (done.returncode, done.stdout) == (1, "memory_nowhere: not found\n")
    assert "no memory has the key memory_nowhere" in shared_server.memory_mcp("revise", "memory_nowhere", "二", "-p", "careful").stderr
    assert (
        "supersedes names memory_nowhere"
        in shared_server.memory_mcp("remember", "二", "--supersedes", "memory_nowhere", "-p", "careful").stderr
    )


def test_what_has_changed_replaces_the_earlier_memory_and_the_latest_are_listed(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    key = key_of(ok(memory_mcp("remember", "大阪に住んでいる", "-p", "mover")))
    ok(memory_mcp("remember", "神戸に住んでいる", "--supersedes", key, "-p", "mover"))
    ok(memory_mcp("remember", "朝は紅茶", "-p", "mover"))
    for arguments in (["recent"], ["recall"]):
        assert re.findall(r"^\d\. (.+)$", ok(memory_mcp(*arguments, "-p", "mover")), re.MULTILINE) == ["朝は紅茶", "神戸に住んでいる"]
    assert len(json.loads(ok(memory_mcp("recent", "-n", "1", "--json", "-p", "mover")))["hits"]) == 1


def test_the_context_is_what_a_model_is_told(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    ok(memory_mcp("remember", "金曜は鍋", "--source", "健太", "-p", "cook"))
    told = ok(memory_mcp("context", "夕飯", "-p", "cook"))
    assert told.startswith("cook: 1 memory\nlast conversation: ")
    assert re.search(r"^\[\w+\] 健太: 金曜は鍋$", told, re.MULTILINE)
    assert json.loads(ok(memory_mcp("context", "--json", "-p", "cook")))["memories"] == 1
    day = (datetime.now(UTC) + timedelta(days=4)).date().isoformat()
    ok(memory_mcp("remember", f"{day} に健太と釣りに行く", "-p", "cook"))
    assert f" · upcoming on {day} · " in ok(memory_mcp("context", "夕飯", "-p", "cook"))
    assert memory_mcp("context", "-p", "nobody").stderr == "this persona does not exist yet\n"


def test_a_persona_that_is_created_is_said_with_the_one_that_may_be_meant(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    assert "  this persona was created\n" in ok(memory_mcp("remember", "一", "-p", "ひなた"))
    assert "created" not in ok(memory_mcp("remember", "二", "-p", "ひなた"))
    for spelling in ("ヒナタ", "hinata"):
        assert "does not exist yet; did you mean ひなた?" in memory_mcp("recall", "一", "-p", spelling).stderr
    assert "  this persona was created; did you mean ひなた?\n" in ok(memory_mcp("remember", "三", "-p", "hinata"))


def test_the_persona_of_the_environment_is_that_of_all_commands(shared_server: RunningServer) -> None:
    environment = {"MEMORY_MCP_URL": shared_server.url, "MEMORY_MCP_PERSONA": "常の人"}
    assert ok(command("remember", "一", environment=environment)).startswith("常の人: ")
    assert "一" in ok(command("recent", environment=environment))
    assert "persona: 常の人" in ok(command("persona", "stats", environment=environment))
    assert '"X-Persona": "%E5%B8%B8' in ok(command("connect", "--client", "cursor", "--only", "snippet", environment=environment))
    assert "there is no persona '別の人'" in command("persona", "stats", "-p", "別の人", environment=environment).stderr
    assert "no persona is named" in command("connect", "--client", "cursor").stderr
