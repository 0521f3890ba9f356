"""The transcripts of coding agents: what was said is imported once, under its session, and nothing that a program wrote in between."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import key_of
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.formats.table import ROWS
from memory_mcp.transfer.formats.transcripts import read

AT = "2026-11-20T09:00:00.000Z"


def claude(role: str, content: Any, uuid: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": uuid,
        "sessionId": "s1",
        "timestamp": AT,
        "cwd": "/w",
        "message": {"role": role, "content": content},
        **fields,
    }


def codex(role: str, text: str) -> dict[str, Any]:
    kind = "input_text" if role == "user" else "output_text"
    return {
        "timestamp": AT,
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
    }


CLAUDE = [
    {"type": "summary", "summary": "x", "leafUuid": "u2"},
    claude("user", "<command-name>/clear</command-name>", "u0"),
    claude("user", "苺のケーキの店を探して", "u1"),
    claude(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "「青い鳥」です。"},
            {"type": "tool_use", "id": "t", "name": "Read", "input": {}},
        ],
        "u2",
    ),
    claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": "file"}], "u3"),
    claude("user", "caveat of the program", "u4", isMeta=True),
    claude("assistant", "of another agent", "u5", isSidechain=True),
    claude("user", "That is <b>nice</b>.", "u6"),
]
CODEX = [
    {"timestamp": AT, "type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}},
    codex("developer", "be good"),
    codex("user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
    codex("user", "苺のケーキの店を探して"),
    {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": "苺のケーキの店を探して"}},
    codex("assistant", "「青い鳥」です。"),
    codex("user", "That is <b>nice</b>."),
]
GEMINI = [
    {"sessionId": "s1", "projectHash": "h", "startTime": AT},
    {"id": "u1", "timestamp": AT, "type": "user", "content": [{"text": "苺のケーキの店を探して"}]},
    {"id": "u2", "timestamp": AT, "type": "gemini", "content": ""},
    {"$set": {"summary": "x"}},
    {"id": "u2", "timestamp": AT, "type": "gemini", "content": "「青い鳥」です。", "toolCalls": []},
    {"id": "u3", "timestamp": AT, "type": "info", "content": "compressed"},
    {
        "id": "u6",
        "timestamp": AT,
        "type": "user",
        "content": "<hook_context>What you remember:\n- x</hook_context>\n\nThat is <b>nice</b>.",
    },
]
COPILOT = [
    {"type": "session.start", "id": "e0", "timestamp": AT, "data": {"sessionId": "s1"}},
    {"type": "user.message", "id": "e1", "timestamp": AT, "data": {"content": "苺のケーキの店を探して"}},
    {"type": "tool.execution_start", "id": "e2", "timestamp": AT, "data": {"toolName": "x"}},
    {"type": "assistant.message", "id": "e3", "timestamp": AT, "data": {"content": "「青い鳥」です。"}},
    {"type": "user.message", "id": "e4", "timestamp": AT, "data": {"content": "That is <b>nice</b>."}},
]
KINDS = [("Claude Code", CLAUDE), ("Codex", CODEX), ("Gemini CLI", GEMINI), ("Copilot", COPILOT)]


def written(tmp_path: Path, entries: list[Any]) -> Path:
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries), encoding="utf-8")
    return path


def rows(path: Path, me: str | None = None) -> list[dict[str, Any]]:
    return [item.row for item in read(source_of(path), me) if item.row]


@pytest.mark.parametrize(("client", "entries"), KINDS)
def test_what_the_user_and_the_agent_said_is_imported(client: str, entries: list[Any], tmp_path: Path) -> None:
    path = written(tmp_path, entries)
    assert detect_format(path) is Format.TRANSCRIPT
    told = rows(path)
    assert [(row["source"], row["content"]) for row in told] == [
        ("user", "苺のケーキの店を探して"),
        (client, "「青い鳥」です。"),
        ("user", "That is <b>nice</b>."),
    ]
    assert {row["session_id"] for row in told} == {"s1"}
    assert {row["occurred_at"] for row in told} == {"2026-11-20T09:00:00+00:00"}


@pytest.mark.parametrize(("client", "entries"), KINDS)
def test_a_transcript_that_has_grown_has_the_same_keys_for_what_it_had(client: str, entries: list[Any], tmp_path: Path) -> None:
    first = [row["key"] for row in rows(written(tmp_path, entries[:-1]))]
    assert [row["key"] for row in rows(written(tmp_path, entries))][: len(first)] == first
    assert len(set(first)) == len(first) == 2


def test_what_a_session_copied_of_another_stays_in_that_one(tmp_path: Path) -> None:
    before = rows(written(tmp_path, CLAUDE))
    went_on = claude("user", "ありがとう", "u7", sessionId="s2")
    *after, last = rows(written(tmp_path, [*CLAUDE, went_on]))
    assert [(row["key"], row["session_id"]) for row in after] == [(row["key"], "s1") for row in before]
    assert last["session_id"] == "s2"
    in_the_last = rows(written(tmp_path, [*(entry | {"sessionId": "s2"} for entry in CLAUDE), went_on]))
    assert [row["former_keys"] for row in after] == [[row["key"]] for row in in_the_last[:-1]]


def test_turns_without_ids_are_known_in_the_sessions_that_their_file_named_after_them(tmp_path: Path) -> None:
    sessions = [{"type": "session_meta", "payload": {"id": named}} for named in ("abc", "def")]
    entries = [sessions[0], codex("user", "one"), sessions[1], codex("assistant", "two")]
    first, second = rows(written(tmp_path, entries))
    assert (first["session_id"], second["session_id"]) == ("abc", "def")
    assert (first["former_keys"], second["key"]) == ([key_of("transcript", "def", "1")], key_of("transcript", "def", "2"))


def test_an_older_file_of_gemini_is_one_object(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({"sessionId": "s9", "projectHash": "h", "messages": GEMINI[1:3] + GEMINI[4:]}), encoding="utf-8")
    assert detect_format(path) is Format.TRANSCRIPT
    assert [(row["session_id"], row["source"]) for row in rows(path, "健太")] == [("s9", "健太"), ("s9", "Gemini CLI"), ("s9", "健太")]


def test_a_line_that_was_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, CLAUDE)
    path.write_bytes(path.read_bytes() + b'{"type": "user", "mess')
    assert [item.left_out for item in read(source_of(path), None) if item.row is None] == ["lines that are not JSON"]


def test_the_transcripts_of_a_directory_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    written(tmp_path / "a", CLAUDE)
    written(tmp_path, CODEX)
    assert len(rows(tmp_path)) == 6
    assert ROWS[Format.TRANSCRIPT].clash == "keep"


@pytest.mark.parametrize("line", ['{"content": "x"}', '{"content": "x", "source": "user"}', '{"sessionId": "x"}', '{"type": "user"}', "[]"])
def test_other_lines_are_no_transcript(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"{line}\n")
    assert detect_format(path) is Format.JSON_LINES


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("<a-b>x</a-b>\n" * 20_000 + "hello", "hello"),
        ("<" + "a-" * 100_000, "<" + "a-" * 100_000),
        ("<a" + "-a" * 100_000 + ">", "<a" + "-a" * 100_000 + ">"),
        ("<a-b>" * 40_000, "<a-b>" * 40_000),
        ('<a-b c="1">x</a-b> <c_d>y</c_d>  <b>z</b> ', "<b>z</b>"),
    ],
    ids=["many elements", "a name without end", "an element without end", "beginnings of elements", "two elements"],
)
def test_what_a_client_wrote_is_left_out_however_much_of_it_there_is(tmp_path: Path, written: str, said: str) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(json.dumps(claude("user", written, "u1")), encoding="utf-8")
    contents = [item.row["content"] for item in read(source_of(path), None) if item.row]
    assert "".join(contents).replace(" ", "") == said.replace(" ", "")
