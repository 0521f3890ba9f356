"""What an agent's hooks do with a real server: the context once at the beginning, the transcript at the end, and never a failure."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import RunningServer, command

pytestmark = pytest.mark.slow

Hook = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hook(shared_server: RunningServer, request: pytest.FixtureRequest) -> Hook:
    """Runs the command as an agent does, for a persona of this test."""

    def run(*options: str, persona: str = request.node.name[:60], **event: Any) -> subprocess.CompletedProcess[str]:
        done = shared_server.memory_mcp("hook", "-p", persona, *options, stdin=json.dumps(event).encode())
        assert done.returncode == 0
        return done

    return run


def transcript(tmp_path: Path, *said: str) -> str:
    path = tmp_path / "t.jsonl"
    lines = [{"type": "user", "uuid": str(number), "sessionId": "s", "message": {"content": text}} for number, text in enumerate(said)]
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_a_conversation_begins_with_what_is_remembered_and_ends_in_the_memory(hook: Hook, tmp_path: Path) -> None:
    ended = hook(hook_event_name="SessionEnd", transcript_path=transcript(tmp_path, "健太は苺が好き", "旅行は奈良にした"))
    assert json.loads(ended.stdout) == {}
    assert "2 stored" in ended.stderr
    begun = json.loads(hook(hook_event_name="SessionStart", source="startup").stdout)["hookSpecificOutput"]
    assert begun["hookEventName"] == "SessionStart"
    assert "健太は苺が好き" in begun["additionalContext"]
    assert "苺" not in hook(persona="健太", hook_event_name="SessionStart").stdout


def test_a_transcript_is_imported_as_often_as_it_grows_and_each_turn_once(hook: Hook, tmp_path: Path) -> None:
    for said, stored in (
        (("夕飯はカレー",), "1 stored, 0"),
        (("夕飯はカレー", "おいしかった"), "1 stored, 1"),
        (("夕飯はカレー", "おいしかった"), "0 stored, 2"),
    ):
        done = hook(hook_event_name="PreCompact", transcript_path=transcript(tmp_path, *said))
        assert f"{stored} known already" in done.stderr


def test_a_resumed_conversation_is_told_nothing_twice_and_other_events_do_nothing(hook: Hook) -> None:
    for event in ({"hook_event_name": "SessionStart", "source": "resume"}, {"hook_event_name": "PreToolUse"}, {}):
        assert json.loads(hook(**event).stdout) == {}


def test_the_names_of_vs_code_are_known(hook: Hook) -> None:
    begun = json.loads(hook(hookEventName="SessionStart", source="new").stdout)
    assert begun["hookSpecificOutput"]["additionalContext"].startswith("What you remember:")


def test_what_was_said_stays_out_where_the_user_wants_it(hook: Hook, tmp_path: Path) -> None:
    done = hook("--no-transcripts", hook_event_name="SessionEnd", transcript_path=transcript(tmp_path, "内緒の話"))
    assert "stored" not in done.stderr


def test_the_agent_works_on_whatever_goes_wrong(hook: Hook, shared_server: RunningServer, tmp_path: Path) -> None:
    missing = hook(hook_event_name="SessionEnd", transcript_path=str(tmp_path / "none.jsonl"))
    assert json.loads(missing.stdout) == {}
    for stdin in (b"", b"{", b"\xff", b"[]"):
        done = shared_server.memory_mcp("hook", stdin=stdin)
        assert (done.returncode, json.loads(done.stdout)) == (0, {})
    nobody = command(
        "hook", environment={"MEMORY_MCP_URL": "http://127.0.0.1:9"}, stdin=json.dumps({"hook_event_name": "SessionStart"}).encode()
    )
    assert (nobody.returncode, json.loads(nobody.stdout)) == (0, {})
    assert "no server answers" in nobody.stderr


def test_secrets_in_a_transcript_are_redacted(hook: Hook, tmp_path: Path) -> None:
    secret = "AKIA" + "Q3EGX7ZB2MPLWN5T"
    hook(hook_event_name="Stop", transcript_path=transcript(tmp_path, f"鍵は {secret} です"))
    begun = hook(hook_event_name="SessionStart", source="clear").stdout
    assert secret not in begun
    assert "鍵は" in begun
