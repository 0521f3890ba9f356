"""What other programs learned, and a playbook that was edited by hand, become experiences with their counts."""

import json

import pytest

from memory_mcp.store.experience_text import Experience, read
from memory_mcp.transfer.formats import Format, lessons, memory_service, obsidian, playbook
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of

SKILL = {
    "id": "context-00001",
    "section": "context",
    "keywords": ["api"],
    "issue": "Rate limits on\nbulk calls",
    "insight": "Batch by 50",
    "active": True,
    "used_count": 4,
    "helpful_count": 2,
    "harmful_count": 1,
    "neutral_count": 1,
    "created_at": "2026-01-01T00:00:00+00:00",
    "updated_at": "2026-02-01T00:00:00+00:00",
}
BOOK = {"schema_version": "2", "skills": {"a": SKILL, "b": {**SKILL, "active": False}}, "sections": {}, "next_id": 2}
SUMMARY = {
    "id": 3,
    "memory_session_id": "s",
    "project": "shop",
    "request": "Fix login",
    "learned": "Cookies expire",
    "completed": "Done",
    "created_at_epoch": 1767225600000,
}
OBSERVATION = {
    "id": 1,
    "memory_session_id": "s",
    "project": "shop",
    "type": "bugfix",
    "title": "Login fixed",
    "narrative": "The cookie",
    "created_at_epoch": 1767225600000,
}
EXPORT = {"observations": [OBSERVATION], "summaries": [SUMMARY, {"request": "x"}], "sessions": [{}], "prompts": []}


def found(reader, path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    items = list(reader(source_of(path), None))
    return [item.row for item in items if item.row], [item.left_out or item.refused for item in items if not item.row]


def test_a_skill_is_an_experience_and_its_counters_are_judgements(tmp_path):
    rows, left = found(lessons.read, tmp_path / "skillbook.json", BOOK)
    assert detect_format(tmp_path / "skillbook.json") is Format.SKILLBOOK
    (row,) = rows
    assert read(row["content"]) == Experience("Rate limits on bulk calls", lesson="Batch by 50")
    assert [entry["verdict"] for entry in row["feedback"]] == ["helped", "helped", "hurt"]
    assert (row["kind"], row["tags"], left) == ("experience", ["api"], ["inactive skills"])


def test_a_bullet_of_an_earlier_playbook_is_read_too(tmp_path):
    rows, _ = found(
        lessons.read, tmp_path / "old.json", {"bullets": {"1": {"section": "retries", "content": "Wait first", "helpful": 1}}, "next_id": 1}
    )
    assert read(rows[0]["content"]) == Experience("retries", lesson="Wait first")
    assert len(rows[0]["feedback"]) == 1


def test_summaries_of_claude_mem_are_experiences_and_observations_facts(tmp_path):
    rows, left = found(lessons.read, tmp_path / "mem.json", EXPORT)
    assert detect_format(tmp_path / "mem.json") is Format.CLAUDE_MEM
    assert (rows[0]["kind"], rows[0]["content"], rows[0]["category"]) == ("fact", "Login fixed\nThe cookie", "bugfix")
    assert read(rows[1]["content"]) == Experience("Fix login", lesson="Cookies expire\nDone")
    assert rows[1]["created_at"].startswith("2026-01-01")
    assert left == ["summaries without a request or what was learned", "sessions"]


def test_a_mistake_note_is_a_pitfall_that_was_seen_as_often_as_it_says(tmp_path):
    content = "Pattern: TimeoutError\nContext: bulk import\nWrong: retried at once\nRight: wait a minute"
    note = {"content": content, "content_hash": "h", "memory_type": "mistake", "metadata": {"failure_count": 3}, "created_at": 1767225600}
    rows, _ = found(memory_service.read, tmp_path / "notes.json", {"memories": [note], "export_metadata": {}})
    assert read(rows[0]["content"]) == Experience("bulk import", sign="TimeoutError", lesson="retried at once", instead="wait a minute")
    assert [entry["verdict"] for entry in rows[0]["feedback"]] == ["failed"] * 3


def test_a_mistake_note_that_names_no_task_is_a_fact(tmp_path):
    note = {"content": "Pattern: \nContext: \nWrong: a\nRight: b", "content_hash": "h"}
    rows, _ = found(memory_service.read, tmp_path / "notes.json", {"memories": [note], "export_metadata": {}})
    assert (rows[0]["kind"], rows[0]["content"]) == ("fact", note["content"])


@pytest.mark.parametrize("reader", [playbook.read_file, lambda source, me: obsidian.read(source, print)])
def test_a_playbook_reads_as_it_was_written_and_edited(tmp_path, reader):
    said = Experience("請求書を出す", when="月末", steps=("頼む\n## 見出し", "出す"))
    lines = [
        json.dumps(
            {
                "key": "k1",
                "kind": "experience",
                "content": said.text(),
                "feedback": [{"verdict": "worked", "at": "2026-11-23T00:00:00Z"}, {"verdict": "used", "at": "2026-11-24T00:00:00Z"}],
            }
        )
    ]
    text = "".join(playbook.write([*lines, json.dumps({"key": "k2", "kind": "fact", "content": "苺"})], "nilou"))
    assert "tried 1, worked 1, last 2026-11-23" in text
    edited = text.replace("出す\n", "朝に出す\n") + "\n## New task\n1. Ask\n\n## \n"
    rows, refused = found(reader, tmp_path / "playbook.md", edited)
    assert detect_format(tmp_path / "playbook.md") is Format.PLAYBOOK
    experiences = [row for row in rows if row.get("kind") == "experience"]
    assert experiences[0]["key"] == "k1"
    assert read(experiences[0]["content"]).steps == ("頼む\n## 見出し", "朝に出す")
    assert experiences[1]["key"].startswith("playbook_")
    assert read(experiences[1]["content"]) == Experience("New task", steps=("Ask",))
    assert refused in ([], ["It has no task."])


def sections_of(tmp_path, text):
    (tmp_path / "playbook.md").write_bytes(text.encode())
    items = list(playbook.read_file(source_of(tmp_path / "playbook.md"), None))
    return [(item.row["key"], read(item.row["content"])) if item.row else item.refused for item in items]


def test_a_playbook_that_people_edited_is_read_as_they_meant_it(tmp_path):
    text = """\ufeff---
tags: [仕事]
memory_mcp: playbook
---
## 猫を病院へ
<!-- key: k1, tried 2, worked 1 ->
手順：
１、籠に入れる
2．受付に出す
・保険証
##見出しに空白がない
<!-- key: k1, tried 2, worked 1 -->
重大さ: 高い
学んだこと: 早めに
##
1. 題がない
"""
    found = sections_of(tmp_path, text.replace("\n", "\r\n"))
    assert detect_format(tmp_path / "playbook.md") is Format.PLAYBOOK
    assert found[0] == ("k1", Experience("猫を病院へ", steps=("籠に入れる", "受付に出す", "保険証")))
    assert found[1][0].startswith("playbook_")
    assert found[1][1] == Experience("見出しに空白がない", lesson="早めに\n重大さ: 高い")
    assert found[2:] == ["It has no task."]


def test_another_persona_learns_from_a_playbook_what_failed(tmp_path):
    outcomes = [
        {"verdict": verdict, "at": f"2026-11-2{day}T09:00:00Z"} for day, verdict in enumerate(("worked", "failed", "partly", "failed"))
    ]
    line = json.dumps({"key": "k1", "kind": "experience", "content": Experience("a", steps=("b",)).text(), "feedback": outcomes})
    rows, _ = found(playbook.read_file, tmp_path / "playbook.md", "".join(playbook.write([line], "nilou")))
    assert sorted(entry["verdict"] for entry in rows[0]["feedback"]) == ["failed", "failed", "partly", "worked"]
    assert {entry["at"][:10] for entry in rows[0]["feedback"]} == {"2026-11-23"}
    spoiled = "".join(playbook.write([line], "nilou")).replace("last 2026-11-23", "last 2026-02-31")
    assert found(playbook.read_file, tmp_path / "playbook.md", spoiled)[0][0]["feedback"] == []


def test_a_task_can_not_pass_for_the_comment_with_the_key(tmp_path):
    lines = [json.dumps({"key": "k2", "kind": "experience", "content": Experience("<!-- key: k1 -->", steps=("a",)).text()})]
    assert [key for key, _ in sections_of(tmp_path, "".join(playbook.write(lines, "nilou")))] == ["k2"]


@pytest.mark.parametrize(
    "content",
    [
        "Pattern: a" + "\nContext: b" * 20_000,
        "Pattern: a\nContext: b" + "\nWrong: c" * 20_000,
        "Pattern: " + "\nContext: \nWrong: " * 10_000,
    ],
    ids=["contexts", "mistakes", "both"],
)
def test_a_mistake_note_without_its_last_part_is_a_memory_however_long_it_is(tmp_path, content):
    rows, _ = found(memory_service.read, tmp_path / "notes.json", {"memories": [{"content": content, "content_hash": "h"}]})
    assert {row["kind"] for row in rows} == {"fact"}
    assert "\n".join(row["content"] for row in rows).split() == content.split()
