"""The command line against a real server over a real socket, as somebody at a terminal uses it."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import networkx
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from oauth_person import Person, PlainClient
from processes import ROOT, RunningServer, clean_environment, command, ok, serving

pytestmark = pytest.mark.slow


def test_what_one_persona_remembers_it_recalls_and_the_other_does_not(running_server: RunningServer) -> None:
    memory_mcp = running_server.memory_mcp
    stored = ok(memory_mcp("remember", "抹茶ラテが好き", "-p", "さくら", "--source", "旅人", "--tag", "好み", "--occurred-at", "昨日"))
    assert re.match(r"さくら: stored as [a-z]{2}\d{3}[a-z]{2}\d{3}\n", stored)
    assert re.search(r"occurred at \d{4}-\d\d-\d\dT00:00:00", stored)
    found = memory_mcp("recall", "抹茶", "-p", "さくら")
    assert "1. 旅人: 抹茶ラテが好き" in ok(found)
    assert "昨日" in found.stdout
    assert "mode keyword" in found.stderr
    assert "mode recent" in memory_mcp("recall", "抹茶", "-p", "さくら", "--mode", "recent").stderr
    assert "in no memory: 喧嘩" in memory_mcp("recall", "抹茶と喧嘩", "-p", "さくら").stderr
    other = memory_mcp("recall", "抹茶", "-p", "さくろ")
    assert ok(other) == ""
    assert "does not exist yet; did you mean さくら?" in other.stderr
    listed = json.loads(ok(memory_mcp("personas", "--json")))
    assert listed["personas"] == [{"name": "さくら", "memories": 1, "superseded": 0, "in_trash": 0}]
    assert "さくら" in ok(memory_mcp("personas"))


def test_a_memory_and_a_whole_conversation_expire(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    assert "  expires at 2" in ok(memory_mcp("remember", "番号は4711", "-p", "host", "--expires", "30d"))
    line = json.dumps({"content": "窓際の席", "session_id": "会議", "source": "健太", "kind": "fact"}).encode()
    ok(memory_mcp("import", "-", "-p", "host", stdin=line))
    assert re.fullmatch(r"host: 1 memory of 会議, expiring at \d{4}.+\n", ok(memory_mcp("expire-session", "会議", "2 weeks", "-p", "host")))
    assert ok(memory_mcp("expire-session", "会議", "never", "-p", "host")) == "host: 1 memory of 会議, never expiring\n"
    for option, value in (("--session", "会議"), ("--source", "健太"), ("--kind", "fact")):
        assert "窓際の席" in ok(memory_mcp("recall", "-p", "host", option, value))
    assert ok(memory_mcp("recall", "-p", "host", "--session", "雑談")) == ""
    expired = json.dumps({"content": "古い話", "expires_at": "2020-01-01"}).encode()
    assert "1 of them expired, for the trash" in ok(memory_mcp("import", "-", "-p", "host", stdin=expired))


def test_an_export_is_an_import(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp = shared_server.memory_mcp
    file = tmp_path / "書き出し.jsonl"
    for text in ("京都へ行った", "猫を飼っている\u2028二匹"):
        ok(memory_mcp("remember", text, "-p", "wanderer"))
    ok(memory_mcp("export", str(file), "-p", "wanderer"))
    assert sys.platform == "win32" or file.stat().st_mode & 0o077 == 0
    assert [json.loads(line)["content"] for line in file.read_bytes().splitlines()] == ["京都へ行った", "猫を飼っている\u2028二匹"]
    assert ok(memory_mcp("import", str(file), "-p", "移った人")) == "移った人: 2 stored, 0 known already, 0 refused\n"
    assert ok(memory_mcp("import", "-", "-p", "移った人", stdin=file.read_bytes())) == "移った人: 0 stored, 2 known already, 0 refused\n"
    assert ok(memory_mcp("export", "-p", "移った人")).encode() == file.read_bytes()
    assert [path.name for path in tmp_path.glob("書*")] == [file.name]


def test_the_graph_is_exported_for_other_programs(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp, file = shared_server.memory_mcp, tmp_path / "graph.graphml"
    line = json.dumps({"content": "顔合わせ", "relations": ["田中 > knows > 鈴木"]}).encode()
    ok(memory_mcp("import", "-", "-p", "weaver", stdin=line))
    ok(memory_mcp("export", str(file), "--format", "graphml", "-p", "weaver"))
    assert {told["name"] for _, told in networkx.read_graphml(file).nodes(data=True)} == {"田中", "鈴木"}
    told = json.loads(ok(memory_mcp("export", "--format", "graph-json", "-p", "weaver")))
    assert [edge["type"] for edge in told["edges"]] == ["knows"]
    assert "a graph has no vectors" in memory_mcp("export", "--format", "graphml", "--include-vectors", "-p", "weaver").stderr


def test_an_export_says_how_many_secret_memories_it_left_out(shared_server: RunningServer) -> None:
    memory_mcp = shared_server.memory_mcp
    ok(memory_mcp("remember", "鍵は植木鉢の下", "-p", "keeper", "--privacy-level", "secret", "--category", "家"))
    done = memory_mcp("export", "-p", "keeper")
    assert (ok(done), done.stderr) == ("", "memory-mcp: 1 secret left out; use --include-secret to include them\n")
    assert json.loads(ok(memory_mcp("export", "-p", "keeper", "--include-secret")))["category"] == "家"


def test_a_bad_line_is_named_and_the_rest_is_stored(shared_server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"content": "一"}\n\n{"contnt": "二"}\nなに\n{"content": "三"}', encoding="utf-8")
    done = shared_server.memory_mcp("import", str(file), "-p", "clerk")
    assert done.returncode == 1
    assert done.stdout == "clerk: 2 stored, 0 known already, 2 refused\n"
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["line 3", "line 4"]


def test_of_many_lines_that_are_refused_for_the_same_reason_one_is_shown(shared_server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        "".join(f'{{"content": "{number}", "name{number}": 1}}\n' for number in range(3_000)) + '{"content": 3}', encoding="utf-8"
    )
    done = shared_server.memory_mcp("import", str(file), "-p", "clerk")
    assert done.stdout == "clerk: 0 stored, 0 known already, 3001 refused\n"
    first, second = done.stderr.splitlines()
    assert first.startswith("line 1: unknown field 'name0'")
    assert first.endswith("(2999 others like it)")
    assert second.startswith("line 3001: content is")


def test_texts_and_vaults_are_imported_once(shared_server: RunningServer, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "料理.md").write_text("---\ntags: [夕飯]\n---\n湯豆腐の作り方\n", encoding="utf-8")
    text = tmp_path / "日記.txt"
    text.write_text("朝は雨。\n\n昼は晴れ。\n", encoding="utf-8")
    for counts in ("{} stored, 0 known already, 0 refused", "0 stored, {} known already, 0 refused"):
        for file, program, count in ((vault, "Obsidian, Markdown notes", 1), (text, "text", 2)):
            first, *_, last = ok(shared_server.memory_mcp("import", str(file), "-p", "reader")).splitlines()
            assert (first, last) == (f"{program}:", f"reader: {counts.format(count)}")
    hits = json.loads(ok(shared_server.memory_mcp("recall", "湯豆腐", "-p", "reader", "--tag", "夕飯", "--json")))["hits"]
    assert [hit["content"] for hit in hits] == ["湯豆腐の作り方"]


def test_an_import_names_what_it_leaves_out_and_offers_to_forget_deleted_notes(shared_server: RunningServer, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "Templates").mkdir(parents=True)
    for name in ("Templates/日.md", "今.md", "昔.md"):
        (vault / name).write_text(f"{name}の話 %%内緒%%", encoding="utf-8")
    memory_mcp = shared_server.memory_mcp
    first = ok(memory_mcp("import", str(vault), "-p", "keeper"))
    assert (
        first
        == """Obsidian, Markdown notes:
       2  stored
       0  known already
       2  left out: comments (今.md; 昔.md)
       1  left out: templates (Templates/日.md)
       0  refused
keeper: 2 stored, 0 known already, 0 refused
"""
    )
    (vault / "昔.md").unlink()
    again = ok(memory_mcp("import", str(vault), "-p", "keeper")).splitlines()
    assert re.fullmatch(r"昔\.md is no longer in the vault: obsidian_[0-9a-f]{24}_0", again[0])
    assert "--forget-deleted" in again[1]
    done = ok(memory_mcp("import", str(vault), "-p", "keeper", "--forget-deleted")).splitlines()
    assert done[-1] == "keeper: 0 stored, 1 known already, 0 refused, 1 moved to the trash"


def test_a_large_import_that_is_refused_at_once_says_why(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    file.write_text(f'{{"content": "{"a" * 1_000}"}}\n' * 20_000)
    with serving(tmp_path, config='{"on_missing_persona": "error"}') as server:
        done = server.memory_mcp("import", str(file))
    assert done.returncode == 1
    assert done.stderr.startswith("memory-mcp: no persona is named")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_bridge_is_the_server_for_a_host_that_speaks_stdio(shared_server: RunningServer, mode: str) -> None:
    bridge = StdioTransport(
        sys.executable,
        ["-m", "memory_mcp", "stdio", "--persona", f"踊り手-{mode}", "--url", shared_server.url],
        env=clean_environment(),
        cwd=str(ROOT),
    )

    async def talk() -> tuple[set[str], dict[str, Any], Any]:
        async with Client(bridge, mode=mode) as client:
            tools = {tool.name for tool in await client.list_tools()}
            await client.call_tool("remember", {"content": "舞台で踊った"})
            recalled = await client.call_tool("recall", {"query": "舞台"})
            refused = await client.call_tool("recall", {"query": ""}, raise_on_error=False)
            return tools, recalled.structured_content or {}, refused

    tools, recalled, refused = asyncio.run(talk())
    assert {"get_context", "remember", "recall", "revise", "forget", "update_context"} <= tools
    assert (recalled["persona"], [hit["content"] for hit in recalled["hits"]]) == (f"踊り手-{mode}", ["舞台で踊った"])
    assert refused.is_error
    assert "query is empty" in refused.content[0].text


def test_a_proxy_for_the_world_outside_is_not_asked_for_a_server_on_this_machine(shared_server: RunningServer) -> None:
    nobody = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), "http://127.0.0.1:9") | dict.fromkeys(
        ("NO_PROXY", "no_proxy"), ""
    )
    environment = {"MEMORY_MCP_URL": shared_server.url, **nobody}
    ok(command("remember", "抹茶", "-p", "indoors", environment=environment))
    assert "抹茶" in ok(command("recall", "抹茶", "-p", "indoors", environment=environment))

    async def bridged() -> Any:
        bridge = StdioTransport(
            sys.executable, ["-m", "memory_mcp", "stdio", "-p", "indoors"], env=clean_environment(environment), cwd=str(ROOT)
        )
        async with Client(bridge) as client:
            return (await client.call_tool("recall", {"query": "抹茶"})).structured_content

    assert [hit["content"] for hit in asyncio.run(bridged())["hits"]] == ["抹茶"]


def test_refusals_arrive_in_the_words_of_the_server(shared_server: RunningServer) -> None:
    for arguments, reason in (
        (["remember", " ", "-p", "refused"], "content is empty"),
        (["remember", "x", "-p", "refused", "--occurred-at", "いつか"], "is no date"),
        (["recall", "x", "-p", "refused", "--mode", "fuzzy"], "it is one of auto, keyword"),
        (["recall", "x", "-p", "refused", "--when", "2025-10-02..2025-10-01"], "ends before it begins"),
        (["export", "-p", "nobody"], "there is no persona 'nobody'"),
    ):
        done = shared_server.memory_mcp(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("memory-mcp: ")
        assert reason in line


def test_doctor_works_beside_the_server(shared_server: RunningServer) -> None:
    ok(shared_server.memory_mcp("remember", "x", "-p", "patient"))
    ok(shared_server.memory_mcp("recall", "x"))
    told = ok(command("doctor", "--config", str(shared_server.config), "--data", str(shared_server.data)))
    assert f"process {shared_server.process.pid} is serving this data" in told
    assert "patient: 1 memory" in told
    assert re.search(r"calls since the start without X-Persona, answered as default although there are other personas: .*http \d", told)
    ok(shared_server.memory_mcp("remember", "y", "-p", "patient"))


def test_a_second_server_is_refused_in_one_line(shared_server: RunningServer, tmp_path: Path) -> None:
    port = shared_server.url.rpartition(":")[2]
    for arguments, reason in (
        (["--port", "0", "--data", str(shared_server.data)], "another server uses the data directory"),
        (["--port", port, "--data", str(tmp_path / "other")], "Address already in use"),
    ):
        done = command("serve", "--config", str(shared_server.config), *arguments)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("memory-mcp: ")
        assert reason in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_leaves_everything_in_order(running_server: RunningServer, number: int) -> None:
    ok(running_server.memory_mcp("remember", "抹茶", "-p", "nilou"))
    assert running_server.stop(number) == 0
    assert "Traceback" not in running_server.log.read_text(encoding="utf-8")
    told = ok(command("doctor", "--config", str(running_server.config), "--data", str(running_server.data)))
    assert "none is serving this data" in told
    with serving(running_server.data.parent) as again:
        assert "抹茶" in ok(again.memory_mcp("recall", "抹茶", "-p", "nilou"))


def test_a_reader_that_has_enough_of_an_export_is_no_error(shared_server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"content": f"{number} " + "a" * 1_000}) + "\n" for number in range(1_000)))
    ok(shared_server.memory_mcp("import", str(file), "-p", "hasty"))
    line = f"{sys.executable} -m memory_mcp export -p hasty --url {shared_server.url} | head -n 1"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_a_token_is_made_used_listed_and_revoked_while_the_server_runs(running_server: RunningServer) -> None:
    memory_mcp = running_server.memory_mcp
    made = memory_mcp("token", "create", "-p", "さくら", "--scopes", "read,write", "--expires", "90d", "--name", "VS Code")
    token = ok(made).strip()
    assert made.stdout == f"{token}\n"
    assert "from now on the server refuses every call without a token" in made.stderr
    assert token not in made.stderr
    assert memory_mcp("remember", "x").stderr.startswith("memory-mcp: this server requires a token: MEMORY_MCP_TOKEN is not set.")
    ok(memory_mcp("remember", "桜餅", token=token))
    assert "桜餅" in ok(memory_mcp("recall", "桜餅", token=token))
    refused = memory_mcp("export", token=token)
    assert refused.stderr.startswith("memory-mcp: GET /api/export needs a token with the scope export")
    assert "this token may not write as 'nilou'" in memory_mcp("remember", "x", "-p", "nilou", token=token).stderr
    (listed,) = json.loads(ok(memory_mcp("token", "list", "--json")))["tokens"]
    assert (listed["name"], listed["personas"], listed["scopes"], listed["state"]) == ("VS Code", ["さくら"], ["read", "write"], "in force")
    assert f"{listed['id']}  in force" in ok(memory_mcp("token", "list"))
    exporter = ok(memory_mcp("token", "create", "--all-personas", "--scopes", "export")).strip()
    assert "桜餅" in ok(memory_mcp("export", "-p", "さくら", token=exporter))
    ok(memory_mcp("token", "revoke", listed["id"]))
    assert "it is revoked" in memory_mcp("recall", "桜餅", token=token).stderr
    assert f"{listed['id']}  revoked" in ok(memory_mcp("token", "list"))


def test_tokens_are_made_before_there_is_a_server_or_a_directory(tmp_path: Path) -> None:
    made = command("token", "create", "--all-personas", "--expires", "2099-12-31", "--data", str(tmp_path / "memory"))
    token = ok(made).strip()
    assert "did not exist: it was created" in made.stderr
    with serving(tmp_path) as server:
        assert server.memory_mcp("personas").returncode == 1
        assert "no personas yet" in ok(server.memory_mcp("personas", token=token))


def test_a_grant_of_oauth_is_listed_and_revoked_while_the_server_runs(running_server: RunningServer) -> None:
    memory_mcp = running_server.memory_mcp
    assert ok(memory_mcp("oauth", "list")) == "Nothing is granted.\n"
    running_server.config.write_text(json.dumps({"oauth": {"authorization_server": "built_in", "public_url": running_server.url}}))
    person = Person(ok(memory_mcp("token", "create", "-p", "さくら")).strip())
    client = PlainClient(running_server.url)
    with closing(person), closing(client):
        given = client.exchanged(person.granted(client.address(), "さくら")["code"]).json()
        (listed,) = json.loads(ok(memory_mcp("oauth", "list", "--json")))["grants"]
        assert (listed["client_name"], listed["personas"], listed["state"]) == ("Test client", ["さくら"], "in force")
        assert f"{listed['id']}  in force" in ok(memory_mcp("oauth", "list"))
        ok(memory_mcp("recall", "桜餅", token=given["access_token"]))
        ok(memory_mcp("oauth", "revoke", listed["id"]))
        assert memory_mcp("recall", "桜餅", token=given["access_token"]).returncode == 1
        assert client.refreshed(given["refresh_token"]).json()["error"] == "invalid_grant"
        assert f"{listed['id']}  revoked" in ok(memory_mcp("oauth", "list"))
    assert memory_mcp("oauth", "revoke", "0123456789").stderr.startswith("memory-mcp: no grant has the id '0123456789'")


def test_with_oauth_a_server_without_a_token_lets_nobody_in_and_answers_to_its_public_name(tmp_path: Path) -> None:
    settings = {"oauth": {"authorization_server": "built_in", "public_url": "https://memory.example.org"}}
    with serving(tmp_path, json.dumps(settings)) as server:
        named = {"Host": "memory.example.org"}
        assert httpx2.get(f"{server.url}/api/stats", headers=named).status_code == 401
        described = httpx2.get(f"{server.url}/.well-known/oauth-protected-resource", headers=named)
        assert described.json()["resource"] == "https://memory.example.org/mcp"
        assert httpx2.get(f"{server.url}/health", headers={"Host": "other.example.org"}).status_code == 421
        assert "OAuth: the authorization server is built in" in server.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_bridge_sends_the_token_and_does_not_start_without_one(running_server: RunningServer, mode: str) -> None:
    token = ok(running_server.memory_mcp("token", "create", "-p", "さくら")).strip()
    assert running_server.memory_mcp("stdio").stderr.startswith("memory-mcp: this server requires a token")
    bridge = StdioTransport(
        sys.executable,
        ["-m", "memory_mcp", "stdio", "--url", running_server.url],
        env=clean_environment({"MEMORY_MCP_TOKEN": token}),
        cwd=str(ROOT),
    )

    async def talk() -> dict[str, Any]:
        async with Client(bridge, mode=mode) as client:
            return (await client.call_tool("remember", {"content": "舞台で踊った"})).structured_content or {}

    assert asyncio.run(talk())["persona"] == "さくら"


def test_a_character_card_makes_a_persona_and_comes_back_as_a_card(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp, file = shared_server.memory_mcp, tmp_path / "card.json"
    entry = {
        "keys": ["塩"],
        "content": "@@depth 4\n{{char}}は塩を食べられない。",
        "extensions": {"x": 1.5},
        "enabled": True,
        "insertion_order": 7,
    }
    data = {
        "name": "ミレイ",
        "description": "{{char}}は{{user}}の友人。",
        "personality": "物静か",
        "scenario": "灯台",
        "first_mes": "お帰り、{{user}}。",
        "system_prompt": "役を演じよ。",
        "extensions": {"depth_prompt": {"depth": 4}},
        "character_book": {
            "name": "潮",
            "scan_depth": 3,
            "extensions": {},
            "entries": [entry, {**entry, "keys": ["砂"], "enabled": False}],
        },
        "unknown": [1, {"二": None}],
    }
    file.write_text(json.dumps({"spec": "chara_card_v2", "spec_version": "2.0", "data": data, "avatar": "none"}), encoding="utf-8")
    would = ok(memory_mcp("import", str(file), "-p", "mirei", "--user", "ユウ", "--dry-run"))
    assert would.endswith("mirei: 1 would be stored, 0 known already, 0 would be refused, 1 context\n")
    assert "does not exist yet" in memory_mcp("context", "-p", "mirei").stderr
    done = memory_mcp("import", str(file), "-p", "mirei", "--user", "ユウ")
    assert "is a character card (V2): name, description, personality, scenario, greeting; entries of its lorebook: 2" in done.stderr
    assert [line.split(None, 1) for line in ok(done).splitlines()[1:-1]] == [
        ["1", "stored"],
        ["0", "known already"],
        ["1", "left out: disabled entries of a lorebook (card.json, character_book, entry 2)"],
        ["1", "left out: system prompts (card.json, system_prompt)"],
        ["0", "refused"],
    ]
    info = json.loads(ok(memory_mcp("context", "-p", "mirei", "--json")))["persona_info"]
    assert info == {
        "name": "ミレイ",
        "description": "ミレイはユウの友人。",
        "personality": "物静か",
        "scenario": "灯台",
        "greeting": "お帰り、ユウ。",
    }
    again = ok(memory_mcp("import", str(file), "-p", "mirei", "--user", "ユウ"))
    assert again.endswith("mirei: 0 stored, 2 known already, 0 refused\n")

    ok(memory_mcp("remember", "[[小樽]]へ行った", "-p", "mirei"))
    ok(memory_mcp("remember", "雨だ", "-p", "mirei"))
    exported = tmp_path / "out.json"
    assert memory_mcp("export", str(exported), "--format", "card", "-p", "mirei").stderr.splitlines() == [
        "memory-mcp: 2 entries in the lorebook of the card",
        "memory-mcp: 1 facts left out, which have neither tags nor [[names]] that call them",
    ]
    card = json.loads(exported.read_text(encoding="utf-8"))
    assert (card["spec"], card["avatar"], card["data"]["extensions"], card["data"]["unknown"]) == (
        "chara_card_v3",
        "none",
        data["extensions"],
        data["unknown"],
    )
    assert (card["data"]["name"], card["data"]["first_mes"], card["data"]["system_prompt"]) == ("ミレイ", "お帰り、ユウ。", "")
    book = card["data"]["character_book"]
    first, second = book.pop("entries")
    assert book == {"name": "潮", "scan_depth": 3, "extensions": {}}
    assert {name: first[name] for name in entry} == {**entry, "content": "@@depth 4\nミレイは塩を食べられない。"}
    assert (second["keys"], second["content"]) == (["小樽"], "[[小樽]]へ行った")
    assert ok(memory_mcp("import", str(exported), "-p", "mirei")).endswith("mirei: 0 stored, 3 known already, 0 refused\n")
    file.write_text(json.dumps({"entries": [{"keys": ["鐘"], "content": "{{char}}は鐘を鳴らす。"}]}), encoding="utf-8")
    ok(memory_mcp("import", str(file), "-p", "mirei"))
    assert "ミレイは鐘を鳴らす。" in ok(memory_mcp("export", "-p", "mirei"))


def test_a_card_of_somebody_else_replaces_the_persona_only_if_asked(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp, file = shared_server.memory_mcp, tmp_path / "card.json"
    for name, option, told in (
        ("サナ", [], "1 context"),
        ("ルカ", [], "1 character left out, as the persona is another one already; --replace takes it"),
        ("ルカ", ["--replace"], "1 context"),
        ("ルカ", ["--replace"], "1 known already, 0 refused"),
    ):
        card = {"spec": "chara_card_v3", "data": {"name": name, "first_mes": "やあ。", **({"scenario": "海"} if name == "サナ" else {})}}
        file.write_text(json.dumps(card), encoding="utf-8")
        assert told in ok(memory_mcp("import", str(file), "-p", "somebody", *option))
    assert json.loads(ok(memory_mcp("context", "-p", "somebody", "--json")))["persona_info"] == {"name": "ルカ", "greeting": "やあ。"}
    assert "csv has no character" in memory_mcp("import", str(file), "--format", "csv", "--replace", "-p", "somebody").stderr
