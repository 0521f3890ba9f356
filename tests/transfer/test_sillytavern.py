"""Chats of SillyTavern become conversation turns: who spoke, when, and what of a message was shown."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memory_mcp.transfer.formats import sillytavern
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.sources import source_of

HEADER = {"user_name": "ユウ", "character_name": "ミレイ", "create_date": "2026-09-01@18h00m00s", "chat_metadata": {}}


def message(text: str, at: Any = "September 1, 2026 6:02pm", name: str = "ミレイ", **further: Any) -> dict[str, Any]:
    return {"name": name, "is_user": name == "ユウ", "is_system": False, "send_date": at, "mes": text, **further}


def read(path: Path, *lines: Any, me: str | None = None) -> list[ImportItem]:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return list(sillytavern.read(source_of(path), ReadOptions(me)))


def rows(items: list[ImportItem]) -> list[dict[str, Any]]:
    return [item.row for item in items if item.row]


def test_a_chat_keeps_who_said_what_and_counts_what_is_left_out(tmp_path: Path) -> None:
    items = read(
        tmp_path / "灯台.jsonl",
        HEADER,
        message("お帰り、{{user}}。", swipes=["やあ。", "お帰り、{{user}}。"], swipe_id=1),
        message("ただいま、{{char}}。", name="ユウ"),
        message("要約しました", is_system=True),
        message("", swipes=["夜だね。", "朝だね。"], swipe_id=1, extra={"reasoning": "考え"}),
        message("<think>\n迷う\n</think>\n\nおやすみ。<think>の話"),
        "{broken",
    )
    stored = rows(items)
    assert [(row["source"], row["content"]) for row in stored] == [
        ("ミレイ", "お帰り、ユウ。"),
        ("ユウ", "ただいま、ミレイ。"),
        ("ミレイ", "朝だね。"),
        ("ミレイ", "おやすみ。<think>の話"),
    ]
    assert {(row["kind"], row["session_id"]) for row in stored} == {("conversation", "灯台")}
    assert Counter(item.left_out for item in items if item.left_out) == {"swipes that were not chosen": 2, "hidden lines": 1, "thoughts": 2}
    assert [(item.where, item.refused) for item in items if item.refused] == [("灯台.jsonl, line 7", "It is no JSON object.")]


def test_a_chat_with_a_byte_that_is_no_character_is_read_and_one_in_another_encoding_is_refused(tmp_path: Path) -> None:
    chat = "\n".join(json.dumps(line, ensure_ascii=False) for line in ({**HEADER, "user_name": "unused"}, message("お帰り、ユウ。")))
    path = tmp_path / "a.jsonl"
    path.write_bytes(chat.encode().replace("帰".encode(), "帰".encode()[:1]))
    (row,) = rows(list(sillytavern.read(source_of(path), ReadOptions(None))))
    assert row["content"] == "お�り、ユウ。"
    path.write_bytes(chat.encode("cp932"))
    (refused,) = sillytavern.read(source_of(path), ReadOptions(None))
    assert refused.refused == "a.jsonl is not UTF-8: its characters are in another encoding. Save it as UTF-8."


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ("2026-09-01T09:05:00.000Z", "2026-09-01T09:05:00+00:00"),
        (1785232801000, "2026-07-28T10:00:01+00:00"),
        ("1785232801000", "2026-07-28T10:00:01+00:00"),
        ("January 3, 2025 4:05pm", "2025-01-03T16:05:00"),
        ("2024-3-1 @12h 33m 20s 123ms", "2024-03-01T12:33:20.123000"),
        ("2026-09-01@18h00m00s", "2026-09-01T18:00:00"),
        ("Tue Oct 29 2024 21:05:33 GMT+0900 (Japan Standard Time)", "2024-10-29T21:05:33+09:00"),
        ("1 мая 2024 г. 21:03", "2024-05-01T21:03:00"),
        ("2024년 5월 1일 오후 9:03", "2024-05-01T21:03:00"),
        ("2024-13-41 @12h 33m 20s 123ms", None),
        ("yesterday", None),
        ("昨日の夜", None),
        ("0", None),
        (None, None),
        ({"a": 1}, None),
        ("9" * 5000, None),
    ],
)
def test_its_times_have_many_forms(tmp_path: Path, written: Any, understood: str | None) -> None:
    items = read(tmp_path / "a.jsonl", HEADER, message("はい", at=written))
    (row,) = rows(items)
    assert row.get("occurred_at") == understood
    is_unread = understood is None and written not in (None, "0")
    assert [item.left_out for item in items if item.left_out] == ["times that can't be read"] * is_unread


def test_in_a_group_everybody_has_a_name(tmp_path: Path) -> None:
    unused = {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"}
    items = read(tmp_path / "g.jsonl", unused, message("行こう"), message("待って", name="サナ"), message("うん", name="ユウ"))
    assert [row["source"] for row in rows(items)] == ["ミレイ", "サナ", "ユウ"]
    asked = read(tmp_path / "g.jsonl", unused, message("{{user}}は？"), message("うん", name="ユウ"))
    assert rows(asked)[0]["content"] == "ユウは？"
    renamed = read(tmp_path / "g.jsonl", unused, message("うん", name="ユウ"), me="悠")
    assert [row["source"] for row in rows(renamed)] == ["悠"]
    assert rows(renamed)[0]["key"] == rows(items)[2]["key"]


def test_the_placeholder_of_a_group_names_all_its_characters(tmp_path: Path) -> None:
    unused = {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"}
    asked = [message("{{char}}と{{group}}{{// 秘密}}"), message("待って", name="サナ"), message("うん", name="ユウ")]
    assert rows(read(tmp_path / "g.jsonl", unused, *asked))[0]["content"] == "ミレイとミレイ, サナ"
    assert rows(read(tmp_path / "a.jsonl", HEADER, message("{{group}}だ")))[0]["content"] == "ミレイだ"


def test_a_branch_and_a_renamed_file_repeat_no_line(tmp_path: Path) -> None:
    chat = [HEADER, message("はい"), message("はい"), message("いいえ", at="September 2, 2026 6:02pm")]
    first = [row["key"] for row in rows(read(tmp_path / "a.jsonl", *chat))]
    branch = [row["key"] for row in rows(read(tmp_path / "Branch #1.jsonl", *chat, message("続き")))]
    assert len(set(first)) == 3
    assert branch[:3] == first


def test_a_chat_is_known_by_its_own_fields(tmp_path: Path) -> None:
    def head(*lines: Any) -> bytes:
        return "\n".join(json.dumps(line) for line in lines).encode()[:4096]

    assert sillytavern.is_chat(head(HEADER))
    assert sillytavern.is_chat(head({"chat_metadata": {"variables": {"a": "b" * 9000}}, "user_name": "unused", "character_name": "unused"}))
    assert sillytavern.is_chat(head(message("はい")))
    assert not sillytavern.is_chat(head({"content": "name mes is_user"}))
    assert not sillytavern.is_chat(head({"name": "a", "content": "b"}))


@pytest.mark.parametrize(
    "first",
    [
        {"create_date": "2026-09-01@18h00m00s", **HEADER},
        {"chat_metadata": {"note": "あ" * 60_000}, **HEADER},
        {"extra": {}, **message("お帰り、{{user}}。")},
        {"note_prompt": "x"},
    ],
)
def test_a_chat_whose_first_line_is_odd_is_known(tmp_path: Path, first: dict[str, Any]) -> None:
    path = tmp_path / "灯台.jsonl"
    late = [message(f"霧の夜 {number}") for number in range(150)]
    items = read(path, first, message("おや、{{user}}。"), *late, message("ただいま。", name="ユウ"))
    assert sillytavern.is_chat(path.read_bytes()[:65_536])
    assert "おや、ユウ。" in [row["content"] for row in rows(items)]
