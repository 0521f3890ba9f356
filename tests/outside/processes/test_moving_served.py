"""Moving in and out of a real server: everything at once, other programs' exports, a vault, and an import that is killed half way."""

import json
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from figures import Figure
from foreign_stores import FOREIGN, make_foreign
from processes import ROOT, RunningServer, clean_environment, serving

pytestmark = pytest.mark.slow

MANY, THOROUGH_MANY = 800, 10_000
SEED = 20_251_030
# Letters that have gone wrong somewhere before: beyond the first plane, joined, right to left, line ends, marks, half widths.
ODD = [
    "😀👨‍👩‍👧",
    "e\u0301é",
    "שלום",
    "\u2028",
    "\x85",
    "\ufeff",
    "ﾊﾝｶｸ",
    "㍿",
    "\t",
    "\r\n",
    '"\\/',
    "𠮷野家",
    "\x01",
    "---\n",
    "[[x]] #y",
]
HASHING = (
    '{"embeddings_model": "hashing", "embeddings_class": "hashing_embeddings:HashingEmbeddings", "embeddings_arguments": %s, '
    '"embeddings_languages": ["ja", "en"], "reranker_model": null, "retention": {"trash_days": null}, "summaries": {"enabled": false}}'
)


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def eventful_lines(many: int) -> list[dict[str, Any]]:
    """So many memories in every condition: forgotten, replaced, revised, secret, dated with offsets, with everything odd."""
    chance = random.Random(SEED)
    rows: list[dict[str, Any]] = []
    for number in range(many):
        key = f"memory_{number:05d}"
        day = f"2025-{1 + number % 12:02d}-{1 + number % 28:02d}"
        content = f"{number}番目の話{chance.choice(ODD)}京都で湯豆腐を食べた。" + "長い話。" * (
            600 if number % 500 == 0 else chance.randrange(4)
        )
        row: dict[str, Any] = {
            "key": key,
            "content": content,
            "created_at": f"{day}T12:00:00+09:00",
            "updated_at": f"{day}T12:00:01.5-03:30",
        }
        row |= {"source": chance.choice(["旅人", "nilou", "CON"])} if number % 2 else {}
        row |= {"session_id": f"会話/{number // 50}", "kind": "conversation"} if number % 3 else {}
        row |= {"occurred_at": f"{day}T{number % 24:02d}:15:00+05:45"} if number % 4 else {}
        row |= {"tags": ["食べ物", chance.choice(ODD).strip() or "空"], "importance": round(chance.random(), 3)} if number % 5 == 0 else {}
        row |= {"metadata": {"origin": {"x": [None, 1.5, {"深": "い" + chance.choice(ODD)}]}}} if number % 7 == 0 else {}
        row |= {"deleted_at": f"{day}T23:00:00Z"} if number % 11 == 0 else {}
        row |= {"supersedes": f"memory_{number - 13:05d}"} if number % 13 == 0 and number else {}
        row |= {"privacy_level": "secret", "category": "ひみつ"} if number % 17 == 0 else {}
        row |= {"questions": ["何を食べた？"], "state": {"emotion": "嬉" + chance.choice(ODD)}} if number % 19 == 0 else {}
        row |= {"kind": "summary"} if number % 101 == 0 else {}
        row |= {"revision": 3, "usage_count": number, "last_used_at": "2025-10-30T00:00:00+00:00"} if number % 10 == 0 else {}
        rows.append(row)
        for revision in (1, 2) if number % 10 == 0 else ():
            earlier = {"version_of": key, "revision": revision, "content": f"{number}の{revision}回目{chance.choice(ODD)}"}
            rows.append({**earlier, "updated_at": f"{day}T12:00:00Z", "importance": 0.5, "reason": f"直した{chance.choice(ODD)}"})
    rows.append({"persona_context": {"user_info": {"name": "旅人😀"}, "current_emotion": "嬉\u2028", "own": {"a": [1, None]}}})
    return rows


def graph_lines() -> list[dict[str, Any]]:
    """What was said of the graph by hand, between memories of `eventful_lines`: 7 lines of types and merges, 300 people, 500 relations."""
    people = [f"人{number:03d}{ODD[number % len(ODD)].strip() or '号'}" for number in range(300)]
    rows: list[dict[str, Any]] = [
        {"entity_type": "Pet", "display_name": "ペット", "color": "#abcdef"},
        {"relation_type": "rivals", "display_name": "ライバル", "directed": False},
    ]
    for number, name in enumerate(people):
        row = {"entity": name, "type": "Pet" if number % 3 else "Person", "made_by": "user", "created_at": "2025-10-01T00:00:00Z"}
        row |= (
            {"aliases": [f"{name}の別名"], "description": f"説明{ODD[number % len(ODD)]}。", "attributes": {"色": [number]}}
            if number % 5
            else {}
        )
        rows.append(row)
    for number in range(500):
        source, target = people[number % 300], people[(number * 7 + 1 + number // 300) % 300]
        types = {"source_type": "Pet" if number % 300 % 3 else "Person", "target_type": "Pet" if people.index(target) % 3 else "Person"}
        if source != target:
            row = {"relation": f"関係{number}" if number % 2 else "rivals", "source": source, "target": target, **types}
            rows.append({**row, "weight": 0.25 + number / 1000, "created_at": "2025-10-02T00:00:00Z", "notes": "なぜ\u2028なら"})
    for number in (0, 30, 60):
        merged = {"merged_entity": people[number + 3], "type": "Person", "into_entity": people[number], "into_type": "Person"}
        rows.append({**merged, "merged_at": "2025-10-03T00:00:00Z"})
    rows.append(
        {"link": "causality", "source": "memory_00001", "target": "memory_00002", "weight": 0.5, "created_at": "2025-10-04T00:00:00Z"}
    )
    rows.append({"merged_memory": "memory_00011", "into_memory": "memory_00012"})
    return rows


@pytest.mark.timeout(600)
def test_hundreds_of_memories_move_with_everything_and_nothing_is_embedded_again(
    tmp_path: Path, figure: Figure, thorough: bool, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    many = THOROUGH_MANY if thorough else MANY
    first_log, second_log = tmp_path / "first.txt", tmp_path / "second.txt"
    trust = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'trust'}"}

    def config(log: Path) -> str:
        return HASHING % json.dumps({"dimension": 64, "progress_file": str(log)})

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    everything = dict.fromkeys(("include_deleted", "include_secret", "include_versions", "include_vectors", "include_context"), "true")
    said = graph_lines()
    body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [*eventful_lines(many), *said]).encode()

    def send(server: RunningServer, lines: bytes) -> dict[str, Any]:
        began = time.perf_counter()
        answer = httpx2.post(f"{server.url}/p/nilou/api/import", content=lines, timeout=300, trust_env=False).json()
        figure("imported per second", round(answer["stored"] / (time.perf_counter() - began)))
        return answer

    def fetch(server: RunningServer) -> bytes:
        return httpx2.get(f"{server.url}/p/nilou/api/export", params=everything, timeout=300, trust_env=False).raise_for_status().content

    def lag(server: RunningServer) -> int:
        ready = httpx2.get(f"{server.url}/ready", timeout=60, trust_env=False).json()
        return ready["index_lag"] if ready["mode"] == "hybrid" else -1

    with serving(tmp_path / "a", config(first_log), environment=trust) as server:
        eventually(lambda: lag(server) == 0)
        counts = send(server, body)
        assert (counts["stored"], counts["versions"], counts["context"], counts["refused"]) == (many, 2 * many // 10, 1, 0)
        assert counts["graph"] == len(said)
        eventually(lambda: lag(server) == 0)
        first = fetch(server)
        assert fetch(server) == first
    assert len(first.splitlines()) == len(body.splitlines())
    assert first.count(b'"vectors"') > many // 2
    with serving(tmp_path / "b", config(second_log), environment=trust) as server:
        eventually(lambda: lag(server) == 0)
        counts = send(server, first)
        assert (counts["stored"], counts["versions"], counts["context"], counts["refused"]) == (many, 2 * many // 10, 1, 0)
        assert counts["graph"] == len(said)
        assert counts["vectors"] == first.count(b'"vectors"')
        eventually(lambda: lag(server) == 0)
        second = fetch(server)
        again = send(server, first)
    assert first.splitlines() == second.splitlines()
    assert (again["stored"], again["already_known"]) == (0, len(body.splitlines()))
    # A memory may come a batch before the one that replaces it, and be embedded in between.
    replaced = {row["supersedes"] for row in map(json.loads, first.splitlines()) if "supersedes" in row}
    embedded = second_log.read_text(encoding="utf-8") if second_log.exists() else ""
    assert {f"memory_{int(number):05d}" for number in re.findall(r"(\d+)番目", embedded)} <= replaced


def test_a_persona_leaves_as_a_vault_and_comes_back_from_it(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp = shared_server.memory_mcp
    rows = [
        {"content": "京都へ行った", "occurred_at": "2025-10-17T09:00:00+09:00", "tags": ["旅"]},
        {"content": "猫を飼っている\u2028二匹", "privacy_level": "secret"},
        {"content": "消えるかも", "session_id": "会話"},
    ]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    ok(memory_mcp("import", str(file), "-p", "nilou"))
    place = tmp_path / "保管庫"
    left = memory_mcp("export", str(place), "--format", "markdown", "-p", "nilou")
    assert ok(left) == ""
    assert "1 secret left out" in left.stderr
    assert not any("猫" in path.read_text(encoding="utf-8") or "猫" in path.name for path in place.rglob("*.md"))
    assert ok(memory_mcp("import", str(place), "-p", "さくら")).endswith("さくら: 2 stored, 0 known already, 0 refused\n")
    assert ok(memory_mcp("import", str(place), "-p", "nilou")).endswith("nilou: 0 stored, 2 known already, 0 refused\n")
    (note,) = place.rglob("*京都へ行った*.md")
    note.write_text(note.read_text(encoding="utf-8").replace("京都へ行った", "京都へ二度行った"), encoding="utf-8")
    assert ok(memory_mcp("import", str(place), "-p", "nilou")).endswith("nilou: 0 stored, 1 known already, 0 refused, 1 revised\n")
    exported = [json.loads(line)["content"] for line in ok(memory_mcp("export", "-p", "nilou")).split("\n")[:-1]]
    assert exported == ["京都へ二度行った", "消えるかも"]
    refused = memory_mcp("export", str(tmp_path), "--format", "markdown", "-p", "dehya")
    assert refused.returncode == 1
    zipped = tmp_path / "v.zip"
    ok(memory_mcp("export", str(zipped), "--format", "markdown", "--include-secret", "-p", "nilou"))
    assert ok(memory_mcp("import", str(zipped), "-p", "dehya")).endswith("dehya: 3 stored, 0 known already, 0 refused\n")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_an_export_over_its_earlier_vault_refreshes_it_in_place_and_loses_no_edit(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp, place = shared_server.memory_mcp, tmp_path / "vault"
    rows = [{"key": key, "content": f"{key}の話", "occurred_at": "2025-10-17"} for key in ("一", "二", "三")]

    def told(*rows: dict[str, Any], persona: str = "gardener") -> None:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        ok(memory_mcp("import", "-", "-p", persona, stdin=lines.encode()))

    def export(persona: str = "gardener") -> Any:
        return memory_mcp("export", str(place), "--format", "markdown", "-p", persona)

    told(*rows[:2])
    ok(export())
    assert ok(export()) == f"{place}: 0 written, 3 unchanged, 0 removed\n"
    (place / "私の.md").write_text("自分のノート", encoding="utf-8")
    (first,) = place.rglob("*一の話*.md")
    moved = place / "人" / "一.md"
    moved.parent.mkdir()
    first.rename(moved)
    told(rows[2])
    assert ok(export()) == f"{place}: 2 written, 2 unchanged, 0 removed\n"  # the new note, and the list of its day
    assert "[[一|一の話]]" in (place / "days" / "2025-10-17.md").read_text(encoding="utf-8")
    assert not list(place.rglob("*一の話*.md"))
    (second,) = place.rglob("*二の話*.md")
    second.write_text(second.read_text(encoding="utf-8").replace("二の話", "二つの話"), encoding="utf-8")
    refused = export()
    assert (refused.returncode, "were edited (1)" in refused.stderr) == (1, True)
    assert "二つの話" in second.read_text(encoding="utf-8")
    told({"content": "別の人の話"}, persona="neighbor")
    assert "may be another persona's" in export("neighbor").stderr
    ok(memory_mcp("import", str(place), "-p", "gardener"))
    ok(export())
    assert "二つの話" in second.read_text(encoding="utf-8")
    assert (place / "私の.md").read_text(encoding="utf-8") == "自分のノート"
    (place / "私の.md").unlink()
    ok(memory_mcp("import", str(place), "-p", "gardener", "--forget-deleted"))
    assert list(place.glob("memories/*/*自分のノート*"))
    ok(export())
    assert not list(place.glob("memories/*/*自分のノート*"))
    assert ok(export()) == f"{place}: 0 written, 4 unchanged, 0 removed\n"


def test_a_database_of_two_users_becomes_two_personas(shared_server: RunningServer, tmp_path: Path) -> None:
    memory_mcp = shared_server.memory_mcp
    path = tmp_path / "long_memory.sqlite"
    make_foreign(path, FOREIGN["long_memory_MCP"])
    done = memory_mcp("import", str(path))
    assert done.returncode == 1
    assert "rows of other tables" in done.stdout
    assert "alice: 3 stored, 0 known already, 0 refused" in done.stdout
    assert "ボブ#work_pack: 1 stored, 0 known already, 2 refused" in done.stdout
    assert "long_memory.sqlite, row 2: It has no text." in done.stdout + done.stderr
    exported = [json.loads(line) for line in ok(memory_mcp("export", "-p", "ボブ#work_pack")).split("\n")[:-1]]
    assert [line["content"] for line in exported if "content" in line] == ["佐藤さんは苺が好き"]


def chatgpt(conversations: int, messages: int) -> list[dict[str, Any]]:
    return [
        {
            "title": f"会話{place}",
            "conversation_id": f"c{place}",
            "current_node": f"m{messages - 1}",
            "mapping": {
                f"m{number}": {
                    "parent": f"m{number - 1}" if number else None,
                    "message": {
                        "id": f"{place}-{number}",
                        "author": {"role": "assistant" if number % 2 else "user"},
                        "create_time": 1_761_000_000 + number,
                        "content": {"content_type": "text", "parts": [f"{place}の{number}、はい"]},
                    },
                }
                for number in range(messages)
            },
        }
        for place in range(conversations)
    ]


def test_a_dry_run_tells_what_the_import_then_does_and_a_second_one_stores_nothing(shared_server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([*chatgpt(3, 4), {"title": "壊れた"}]), encoding="utf-8")
    run = shared_server.memory_mcp
    dry = run("import", str(file), "-p", "talker", "--dry-run", "--me", "旅人")
    assert dry.stdout.endswith("talker: 12 would be stored, 0 known already, 1 would be refused\n")
    assert "conversations.json, conversation 4: " in dry.stderr
    assert dry.returncode == 1
    assert "talker" not in ok(run("personas"))
    assert run("import", str(file), "-p", "talker", "--me", "旅人").stdout.endswith("talker: 12 stored, 0 known already, 1 refused\n")
    assert run("import", str(file), "-p", "talker", "--me", "旅人").stdout.endswith("talker: 0 stored, 12 known already, 1 refused\n")
    hits = json.loads(ok(run("recall", "2の1", "-p", "talker", "--top-k", "12", "--json")))["hits"]
    assert ("ChatGPT", "c2") in [(hit["source"], hit["session_id"]) for hit in hits]


def test_a_note_that_can_not_be_read_is_named_and_the_exit_status_says_so(shared_server: RunningServer, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_bytes(b"\x81\x00\xfd\xfe\xff")
    (vault / "b.md").write_text("良い", encoding="utf-8")
    done = shared_server.memory_mcp("import", str(vault), "-p", "noter")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "noter: 1 stored, 0 known already, 1 refused")
    assert done.stderr.startswith("a.md is not text in UTF-8")


def test_an_edited_note_of_anybody_s_vault_is_stored_once_and_what_it_lost_is_in_the_trash(
    shared_server: RunningServer, tmp_path: Path
) -> None:
    run, vault = shared_server.memory_mcp, tmp_path / "vault"
    vault.mkdir()
    note = vault / "長い.md"
    note.write_text("\n\n".join(f"{number}段落目。" + "あ" * 1_500 for number in range(3)), encoding="utf-8")
    assert ok(run("import", str(vault), "-p", "editor")).endswith("editor: 3 stored, 0 known already, 0 refused\n")
    note.write_text("短くした。", encoding="utf-8")
    told = ok(run("import", str(vault), "-p", "editor"))
    assert told.endswith("editor: 0 stored, 0 known already, 0 refused, 1 revised, 2 moved to the trash\n")
    assert [json.loads(line)["content"] for line in ok(run("export", "-p", "editor")).splitlines()] == ["短くした。"]
    assert ok(run("import", str(vault), "-p", "editor")).endswith("editor: 0 stored, 1 known already, 0 refused\n")


def test_the_database_of_an_older_server_is_read_where_it_lies(shared_server: RunningServer, tmp_path: Path) -> None:
    path = tmp_path / "older" / "nilou.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as older:
        older.execute("CREATE TABLE memories (key TEXT PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT, tags TEXT, mood TEXT)")
        older.execute("INSERT INTO memories VALUES ('memory_20251030120000', '苺が好き', '2025-10-30T12:00:00', NULL, '[\"好み\"]', '嬉')")
        older.execute("INSERT INTO memories VALUES ('k2', '', '2025-10-30T12:00:00', NULL, NULL, NULL)")
    older.close()
    before = path.read_bytes()
    done = shared_server.memory_mcp("import", str(path), "-p", "elder")
    assert done.stdout.endswith("elder: 1 stored, 0 known already, 1 refused\n")
    assert "nilou.sqlite, k2: It has no text." in done.stderr
    (row,) = [json.loads(line) for line in ok(shared_server.memory_mcp("export", "-p", "elder")).splitlines()]
    assert (row["key"], row["created_at"], row["tags"]) == ("memory_20251030120000", "2025-10-30T03:00:00.000000+00:00", ["好み"])
    assert row["metadata"]["legacy"]["mood"] == "嬉"
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["nilou.sqlite"]


def test_an_import_that_is_killed_half_way_is_completed_by_the_next_without_doubles(
    tmp_path: Path, figure: Figure, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(chatgpt(100, 15)), encoding="utf-8")
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server", '{"embeddings_model": null, "reranker_model": null}') as server:

        def stored() -> int:
            return httpx2.get(f"{server.url}/p/n/api/stats", timeout=60, trust_env=False).json()["memories"]

        arguments = [sys.executable, "-m", "memory_mcp", "import", str(file), "-p", "n", "--url", server.url]
        client = subprocess.Popen(arguments, env=clean_environment(), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: stored() > 0 or client.poll() is not None)
        client.kill()
        client.wait()
        figure("stored when an import was killed", stored())
        assert 0 < stored() < 1_500
        done = server.memory_mcp("import", str(file), "-p", "n")
        assert done.returncode == 0, done.stderr
        assert stored() == 1_500
        assert "0 refused" in done.stdout
