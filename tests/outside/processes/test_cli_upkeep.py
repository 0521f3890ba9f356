"""History, erasing and whole personas from the command line, against a real server."""

import json
import subprocess

import pytest
from processes import RunningServer, command, ok

pytestmark = pytest.mark.slow


def stored(server: RunningServer, text: str, persona: str = "nilou") -> str:
    return json.loads(ok(server.memory_mcp("remember", text, "-p", persona, "--json")))["key"]


def test_a_memory_s_history_is_shown_and_an_earlier_version_comes_back(shared_server: RunningServer) -> None:
    key = stored(shared_server, "苺が好き", "historian")
    shown = ok(shared_server.memory_mcp("history", key, "-p", "historian"))
    assert "苺が好き" in shown
    assert "create" in shown
    wrong = shared_server.memory_mcp("history", key, "-p", "historian", "--restore", "7")
    assert (wrong.returncode, "no earlier revision 7" in wrong.stderr) == (1, True)
    told = json.loads(ok(shared_server.memory_mcp("history", key, "-p", "historian", "--json")))
    assert (told["memory"]["content"], told["versions"]) == ("苺が好き", [])


def test_erasing_lists_first_asks_and_erases(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    key, gone = stored(shared_server, "残る話"), "memory_gone"
    row = {"content": "zqxunique な話", "key": gone, "deleted_at": "2999-01-01T00:00:00+09:00"}
    ok(memory_mcp("import", "-", "-p", "nilou", stdin=json.dumps(row).encode()))
    tried = memory_mcp("purge", key, gone, "-p", "nilou", "--dry-run")
    assert tried.returncode == 1  # one of the two is not in the trash
    listed = tried.stdout
    assert f"{key}: not_in_trash" in listed
    assert f"{gone}: would_erase zqxunique な話" in listed
    for answer, why in ((b"n\n", "it was not confirmed"), (b"", "there was no answer")):
        refused = memory_mcp("purge", gone, "-p", "nilou", stdin=answer)
        assert refused.returncode == 1
        assert f"nothing is erased: {why}. Answer y, or use --yes." in refused.stderr
    refused = memory_mcp("persona", "erase", "nilou", stdin=b"")
    assert (refused.returncode, "nothing is erased: there was no answer" in refused.stderr) == (1, True)
    done = memory_mcp("purge", gone, "-p", "nilou", "--yes")
    assert "nilou: 1 erased" in ok(done)
    assert f"{gone}: erase zqxunique な話" in done.stdout
    assert "would" not in done.stdout
    assert "backup" in done.stderr
    assert b"zqxuniqu" not in b"".join(file.read_bytes() for file in (shared_server.data / "nilou").rglob("*") if file.is_file())
    assert "nilou: 0 to move to the trash, 0 to erase" in ok(memory_mcp("purge", "-p", "nilou"))


def test_a_persona_is_listed_copied_renamed_merged_and_erased(running_server: RunningServer) -> None:
    memory_mcp = running_server.memory_mcp
    stored(running_server, "苺が好き")
    assert "collei is a copy of nilou" in ok(memory_mcp("persona", "copy", "nilou", "collei"))
    assert "collei is renamed to さくら" in ok(memory_mcp("persona", "rename", "collei", "さくら"))
    stored(running_server, "桃が好き", "さくら")
    assert "nilou: 1 copied, 1 known already" in ok(memory_mcp("persona", "merge", "さくら", "nilou"))
    assert "memories: 2" in ok(memory_mcp("persona", "stats", "nilou"))
    wrong = memory_mcp("persona", "erase", "さくら", stdin="さくろ\n".encode())
    assert (wrong.returncode, "does not fit" in wrong.stderr) == (1, True)
    assert "さくら is erased" in ok(memory_mcp("persona", "erase", "さくら", stdin="さくら\n".encode()))
    listed = json.loads(ok(memory_mcp("persona", "list", "--json")))
    assert [found["name"] for found in listed["personas"]] == ["nilou"]


def test_what_the_server_refuses_and_says_is_japanese_on_a_japanese_machine(shared_server: RunningServer) -> None:
    key = stored(shared_server, "言葉の話", "words")

    def in_japanese(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        return command(
            *arguments, "-p", "words", environment={"MEMORY_MCP_URL": shared_server.url, "MEMORY_MCP_LANGUAGE": "ja"}, stdin=stdin
        )

    unknown = in_japanese("expire-session", "nowhere", "30d")
    assert unknown.stderr == "memory-mcp: 'nowhere' という会話の記憶はありません。session_id は検索結果で確認してください。\n"
    assert f"{key}: ごみ箱にありません 消去できるのはごみ箱の記憶だけです" in in_japanese("purge", key).stdout
    refused = in_japanese("import", "-", stdin=json.dumps({"content": "良い", "importance": "高"}).encode())
    assert refused.stderr == "1行目: importance が文字列になっています。0 から 1 の数にするか、この項目を省いてください。\n"
    assert refused.stdout == "words: 新規 0件、既存 0件、拒否 1件\n"
    ok(in_japanese("forget", key))
    assert "自分で作ったコピー" in in_japanese("purge", key, "--yes").stderr
    assert "sentences" not in ok(in_japanese("recall", "言葉", "--json"))
