"""Chats of Agnai, RisuAI and KoboldAI become conversation turns, and the lorebooks in them facts."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory_mcp.transfer.formats import Format, character_chats, import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of

AGNAI = {
    "name": "Exported",
    "greeting": "お帰り",
    "scenario": "島",
    "sampleChat": "",
    "treeLeafId": "m2",
    "messages": [
        {"_id": "m1", "handle": "ユウ", "userId": "anon", "msg": "鍵は青い壺の中", "parent": ""},
        {"_id": "x", "characterId": "c1", "msg": "捨てた枝", "parent": "m1"},
        {"_id": "m2", "characterId": "c1", "handle": "ミレイ", "msg": "覚えておくね", "parent": "m1", "createdAt": "2026-09-01T09:05:00Z"},
    ],
}
RISU = {
    "type": "risuChat",
    "ver": 1,
    "data": {
        "message": [{"role": "user", "data": "鍵は青い壺の中", "time": 1756700000000}, {"role": "char", "data": "覚えておくね"}],
        "name": "Chat 1",
        "localLore": [{"key": "鍵, 壺", "comment": "鍵", "content": "鍵は双子", "mode": "normal"}],
    },
}
KOBOLD = {
    "gamestarted": True,
    "prompt": "灯台にて",
    "memory": "ミレイは塩を食べられない",
    "actions": ["\n### Instruction:\n鍵は青い壺の中", "\n### Response:\n覚えておくね"],
    "worldinfo": [{"key": "鍵", "keysecondary": "", "content": "鍵は双子"}],
}


def read(path: Path, value: Any, me: str | None = None) -> list[ImportItem]:
    path.write_text(json.dumps(value), encoding="utf-8")
    assert detect_format(path) == Format.CHARACTER_CHAT
    return list(character_chats.read(source_of(path), ReadOptions(me)))


@pytest.mark.parametrize(
    ("value", "turns", "facts"),
    [
        (AGNAI, [("ユウ", "鍵は青い壺の中"), ("ミレイ", "覚えておくね")], []),
        (RISU, [("user", "鍵は青い壺の中"), ("character", "覚えておくね")], ["鍵は双子\n\n[[鍵]] [[壺]]"]),
        (
            KOBOLD,
            [("character", "灯台にて"), ("user", "鍵は青い壺の中"), ("character", "覚えておくね")],
            ["ミレイは塩を食べられない", "鍵は双子\n\n[[鍵]]"],
        ),
    ],
)
def test_a_chat_keeps_who_spoke_as_far_as_its_file_says(tmp_path: Path, value: Any, turns: list[tuple[str, str]], facts: list[str]) -> None:
    rows = [item.row for item in read(tmp_path / "a.json", value) if item.row]
    assert [(row["source"], row["content"]) for row in rows if row["kind"] == "conversation"] == turns
    assert [row["content"] for row in rows if row["kind"] == "fact"] == facts
    assert len({row["key"] for row in rows}) == len(rows)


def test_the_user_may_have_a_name_and_the_keys_stay(tmp_path: Path) -> None:
    first, named = (read(tmp_path / "a.json", RISU, me) for me in (None, "悠"))
    assert named[0].row
    assert first[0].row
    assert (named[0].row["source"], named[0].row["occurred_at"]) == ("悠", "2025-09-01T04:13:20+00:00")
    assert named[0].row["key"] == first[0].row["key"]


def test_a_chat_that_went_on_keeps_its_keys(tmp_path: Path) -> None:
    later = {"_id": "m3", "handle": "ユウ", "userId": "anon", "msg": "ありがとう", "parent": "m2"}
    longer = {**AGNAI, "treeLeafId": "m3", "messages": [*AGNAI["messages"], later]}
    before, after = ([item.row["key"] for item in read(tmp_path / "a.json", chat) if item.row] for chat in (AGNAI, longer))
    assert (after[:2], len(after)) == (before, 3)


@pytest.mark.parametrize("named_by", ["m2", "Exported"])
def test_a_chat_that_its_last_message_or_its_name_named_is_known(tmp_path: Path, named_by: str) -> None:
    later = {"_id": "m3", "handle": "ユウ", "userId": "anon", "msg": "ありがとう", "parent": "m2"}
    longer = {**AGNAI, "treeLeafId": "m3", "messages": [*AGNAI["messages"], later]}
    known = [import_rows.key_of("character-chat", "agnai", named_by, *said) for said in (("m1", "鍵は青い壺の中"), ("m2", "覚えておくね"))]
    former = [item.row["former_keys"] for item in read(tmp_path / "a.json", longer) if item.row]
    assert all(key in keys for key, keys in zip(known, former, strict=False))
    assert not set(known) & set(former[2])


def test_the_latest_branch_is_shown_where_the_last_message_is_not_named_and_others_are_counted(tmp_path: Path) -> None:
    items = read(tmp_path / "a.json", {**AGNAI, "treeLeafId": ""})
    assert [item.row["content"] for item in items if item.row] == ["鍵は青い壺の中", "覚えておくね"]
    assert [item.left_out for item in items if item.left_out] == ["messages of branches that are not shown"]


def test_messages_that_name_each_other_as_the_one_before_end(tmp_path: Path) -> None:
    circle = [{"_id": "a", "msg": "x", "parent": "b"}, {"_id": "b", "msg": "y", "parent": "a"}]
    rows = [item.row for item in read(tmp_path / "a.json", {"messages": circle, "treeLeafId": "a"}) if item.row]
    assert [row["content"] for row in rows] == ["y", "x"]
