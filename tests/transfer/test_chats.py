"""Exports of ChatGPT, Claude and Slack become rows: who said what, when and in which conversation."""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_mcp.transfer.formats import Format, chatgpt, claude, slack
from memory_mcp.transfer.formats.import_rows import ImportItem
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import Source, source_of

Reader = Callable[[Source, str | None], Iterator[ImportItem]]


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def read(reader: Reader, path: Path, me: str | None = None) -> tuple[list[dict[str, Any]], list[ImportItem]]:
    found = list(reader(source_of(path), me))
    return [one.row for one in found if one.row], [one for one in found if one.refused]


def said(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["source"], row["content"]) for row in rows]


def node(name: str, parent: str | None, role: str, text: Any, at: float | None = 1_761_000_000.5, **further: Any) -> dict[str, Any]:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": at, "content": content, "recipient": "all", **further}
    return {"id": name, "message": message, "parent": parent, "children": []}


def tree(*nodes: dict[str, Any], current: str | None = "last", **further: Any) -> dict[str, Any]:
    root = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {each["id"]: each for each in (root, *nodes)}
    told = {"title": "京都の旅", "create_time": 1_761_000_000.0, "mapping": mapping, "current_node": current, "conversation_id": "conv-1"}
    return {**told, **further}


TRIP = tree(
    node("sys", "root", "system", "", at=None, weight=0.0),
    node("q", "sys", "user", "京都で湯豆腐を食べたい"),
    node("a-old", "q", "assistant", "捨てた答え"),
    node("a", "q", "assistant", "南禅寺の近くがおすすめです。", metadata={"model_slug": "gpt-5"}),
    node("tool", "a", "tool", "検索の結果"),
    node("call", "tool", "assistant", {"content_type": "code", "text": "search()"}, recipient="browser"),
    node("thought", "call", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "考え中"}]}),
    node("photo", "thought", "user", {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "この写真は？", {"content_type": "audio_transcription", "text": "ここはどこ"}]}),
    node("last", "photo", "assistant", "南禅寺です。\ud83d", at=None),
)  # fmt: skip


def test_a_conversation_of_chatgpt_is_what_was_shown_last(tmp_path: Path) -> None:
    rows, refused = read(chatgpt.read, written(tmp_path / "conversations.json", [TRIP]))
    assert said(rows) == [
        ("user", "京都で湯豆腐を食べたい"),
        ("ChatGPT", "南禅寺の近くがおすすめです。"),
        ("user", "この写真は？\n\nここはどこ"),
        ("ChatGPT", "南禅寺です。�"),
    ]
    assert refused == []
    assert {row["session_id"] for row in rows} == {"conv-1"}
    assert {row["kind"] for row in rows} == {"conversation"}
    answer = rows[1]
    assert answer["occurred_at"] == "2025-10-20T22:40:00.500000+00:00"
    assert answer["tags"] == ["chatgpt"]
    about = {"format": "chatgpt", "conversation": "conv-1", "title": "京都の旅", "message": "a", "model": "gpt-5"}
    assert answer["metadata"] == {"origin": about}
    assert "occurred_at" not in rows[3]


def test_the_user_of_a_chat_may_have_a_name(tmp_path: Path) -> None:
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [TRIP]), me="旅人")
    assert rows[0]["source"] == "旅人"


def test_the_keys_of_a_chat_are_the_same_each_time_and_of_each_message_another(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", [TRIP])
    rows, _ = read(chatgpt.read, path)
    again, _ = read(chatgpt.read, path)
    assert [row["key"] for row in rows] == [row["key"] for row in again]
    assert len({row["key"] for row in rows}) == len(rows)


def test_the_older_list_of_messages_is_read_too(tmp_path: Path) -> None:
    older = {
        "id": "conv-0",
        "title": "昔",
        "messages": [{"id": "m", "role": "user", "content": "苺が好き", "create_time": 1_690_000_000}, {"role": "assistant", "content": {"parts": ["よい"]}}],
    }  # fmt: skip
    rows, refused = read(chatgpt.read, written(tmp_path / "conversations.json", [older]))
    assert (said(rows), refused) == ([("user", "苺が好き"), ("ChatGPT", "よい")], [])


@pytest.mark.parametrize("current", [None, "nowhere", 7])
def test_a_tree_that_does_not_say_where_it_stood_is_read_to_its_latest_message(tmp_path: Path, current: Any) -> None:
    conversation = tree(
        node("q", "root", "user", "一", at=1.0), node("b", "q", "assistant", "二", at=3.0), node("a", "q", "assistant", "三", at=2.0)
    )
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [{**conversation, "current_node": current}]))
    assert [row["content"] for row in rows] == ["一", "二"]


def test_an_end_without_a_time_is_as_late_as_what_is_before_it(tmp_path: Path) -> None:
    conversation = tree(
        node("q", "root", "user", "一", at=1.0), node("a", "q", "assistant", "捨てた", at=2.0), node("b", "q", "assistant", "二", at=3.0),
        node("end", "b", "user", "三", at=None), current=None,
    )  # fmt: skip
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [conversation]))
    assert [row["content"] for row in rows] == ["一", "二", "三"]


def test_a_tree_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    conversation = tree(node("q", "last", "user", "一"), node("last", "q", "assistant", "二"))
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [conversation]))
    assert [row["content"] for row in rows] == ["一", "二"]


@pytest.mark.parametrize(
    "message", [None, 7, {}, {"author": None, "content": None}, {"author": {"role": "user"}, "content": {"parts": None}}, {"metadata": 1}]
)
def test_an_odd_message_takes_no_other_with_it(tmp_path: Path, message: Any) -> None:
    conversation = tree(
        node("q", "root", "user", "一"), {"id": "odd", "message": message, "parent": "q"}, node("last", "odd", "user", "二")
    )
    rows, refused = read(chatgpt.read, written(tmp_path / "conversations.json", [conversation]))
    assert ([row["content"] for row in rows], refused) == (["一", "二"], [])


def test_a_conversation_that_is_none_is_refused_by_its_number_and_the_rest_is_read(tmp_path: Path) -> None:
    rows, refused = read(chatgpt.read, written(tmp_path / "conversations.json", [7, {"title": "空"}, TRIP]))
    assert len(rows) == 4
    assert [one.where for one in refused] == ["conversations.json, conversation 1", "conversations.json, conversation 2"]


@pytest.mark.parametrize("reader", [chatgpt.read, claude.read])
def test_a_file_that_breaks_off_gives_what_stood_before(tmp_path: Path, reader: Reader) -> None:
    first = TRIP if reader is chatgpt.read else CLAUDE
    path = written(tmp_path / "conversations.json", json.dumps([first, first])[:-40])
    rows, refused = read(reader, path)
    assert rows
    assert len(refused) == 1
    assert "not JSON from entry 2 on" in refused[0].refused


@pytest.mark.parametrize("text", ["", " ", "[", "{", "[1,", "null x", '["\\ud8"]', "[" * 100_000])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    rows, refused = read(chatgpt.read, written(tmp_path / "conversations.json", text))
    assert rows == []
    assert refused


def test_a_long_export_is_read_entry_by_entry(tmp_path: Path) -> None:
    many = [tree(node("last", "root", "user", f"{number}番" + "あ" * 5_000), conversation_id=f"c{number}") for number in range(400)]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(many, ensure_ascii=False, indent=1), encoding="utf-8-sig")
    rows, refused = read(chatgpt.read, path)
    assert [row["session_id"] for row in rows] == [f"c{number}" for number in range(400)]
    assert refused == []


def test_a_message_longer_than_a_memory_becomes_several(tmp_path: Path) -> None:
    text = "長い文。" * 120_000
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [tree(node("last", "root", "user", text))]))
    assert "".join(row["content"] for row in rows) == text
    assert len({row["key"] for row in rows}) == len(rows) == 3
    assert [row["metadata"]["origin"]["piece"] for row in rows] == [0, 1, 2]


def test_a_zip_of_chatgpt_is_read_through_all_its_parts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as export:
        for name in ("conversations-000.json", "conversations-001.json"):
            export.writestr(name, json.dumps([{**TRIP, "conversation_id": name}]))
        export.writestr("user.json", "{}")
        export.writestr("message_feedback.json", "[]")
    rows, refused = read(chatgpt.read, tmp_path / "export.zip")
    assert (len(rows), refused) == (8, [])


CLAUDE = {
    "uuid": "c-1",
    "name": "夕飯の相談",
    "created_at": "2025-10-17T09:00:00.000000Z",
    "account": {"uuid": "me"},
    "chat_messages": [
        {
            "uuid": "m-1",
            "text": "苺で何を作れる？",
            "content": [{"type": "text", "text": "苺で何を作れる？"}],
            "sender": "human",
            "created_at": "2025-10-17T09:00:01.500000Z",
            "attachments": [{"file_name": "献立.txt", "extracted_content": "長い文書"}],
            "files": [{"file_name": "苺.jpg"}],
        },
        {
            "uuid": "m-2",
            "text": "",
            "content": [
                {"type": "thinking", "thinking": "考え中"},
                {"type": "text", "text": "タルトはいかが。"},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "tool_result", "content": [{"type": "text", "text": "結果"}]},
                {"type": "text", "text": "作り方です。"},
            ],
            "sender": "assistant",
            "created_at": "2025-10-17T09:00:05Z",
        },
        {"uuid": "m-3", "text": "ありがとう", "sender": "human", "created_at": "きのう"},
        {"uuid": "m-4", "text": "", "content": [], "sender": "assistant"},
        "何か",
    ],
}


def test_a_conversation_of_claude_is_its_text_without_thoughts_and_tools(tmp_path: Path) -> None:
    rows, refused = read(claude.read, written(tmp_path / "conversations.json", [CLAUDE]), me="健太")
    assert said(rows) == [("健太", "苺で何を作れる？"), ("Claude", "タルトはいかが。\n\n作り方です。"), ("健太", "ありがとう")]
    assert refused == []
    assert rows[0]["occurred_at"] == "2025-10-17T09:00:01.500000+00:00"
    assert rows[0]["session_id"] == "c-1"
    assert rows[0]["metadata"]["origin"] == {
        "format": "claude",
        "conversation": "c-1",
        "title": "夕飯の相談",
        "message": "m-1",
        "files": ["献立.txt", "苺.jpg"],
    }
    assert "occurred_at" not in rows[2]


def test_a_conversation_of_claude_without_messages_is_refused(tmp_path: Path) -> None:
    rows, refused = read(claude.read, written(tmp_path / "conversations.json", [{"uuid": "x"}, CLAUDE]))
    assert len(rows) == 3
    assert [one.where for one in refused] == ["conversations.json, entry 1"]


PROJECT = {
    "uuid": "p-1",
    "name": "旅の計画",
    "description": "京都へ行く",
    "prompt_template": "いつも日本語で答える。\n\n費用も書く。",
    "docs": [
        {"uuid": "d-1", "filename": "宿.md", "content": "宿は金閣寺の近く。", "created_at": "2025-10-02T00:00:00Z"},
        {"filename": "図.pdf"},
    ],
    "created_at": "2025-10-01T00:00:00Z",
}
KEPT_IN_MIND = {
    "conversations_memory": "**仕事**\n\n健太は図書館で働く。\n\n**好み**\n\n苺が好き。",
    "project_memories": {"p-1": "春に行く予定。", "p-2": "別の話。", "p-3": None},
    "account_uuid": "me",
}


def test_what_claude_keeps_in_mind_and_its_projects_are_facts_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    written(tmp_path / "conversations.json", [CLAUDE])
    written(tmp_path / "memories.json", [KEPT_IN_MIND])
    written(tmp_path / "projects.json", [PROJECT, {**PROJECT, "uuid": "p-0", "is_starter_project": True}])
    written(tmp_path / "users.json", [{"uuid": "me", "full_name": "健太"}])
    assert detect_format(tmp_path) is Format.CLAUDE
    found = list(claude.read(source_of(tmp_path), "健太"))
    facts = [one.row for one in found if one.row and one.row["kind"] == "fact"]
    assert [(row["content"], row["tags"], row.get("session_id")) for row in facts] == [
        ("**仕事**\n健太は図書館で働く。", ["claude"], None),
        ("**好み**\n苺が好き。", ["claude"], None),
        ("春に行く予定。", ["claude", "旅の計画"], None),
        ("別の話。", ["claude", "p-2"], None),
        ("京都へ行く", ["claude", "旅の計画"], "p-1"),
        ("いつも日本語で答える。", ["claude", "旅の計画"], "p-1"),
        ("費用も書く。", ["claude", "旅の計画"], "p-1"),
        ("宿は金閣寺の近く。", ["claude", "旅の計画"], "p-1"),
    ]
    assert facts[-1]["metadata"]["origin"] == {"format": "claude", "project": "旅の計画", "file": "宿.md"}
    assert sorted(one.left_out for one in found if one.left_out) == [
        "contents of attachments",
        "contents of attachments",
        "memories without a text",
        "messages without a text",
        "other files",
        "project files without a text",
        "projects that every account has",
        "results of tools",
        "thoughts",
        "uses of tools",
    ]
    assert [one for one in found if one.refused] == []


def test_an_export_of_claude_without_conversations_is_known_by_its_memories(tmp_path: Path) -> None:
    written(tmp_path / "conversations.json", [])
    written(tmp_path / "memories" / "me.json", {**KEPT_IN_MIND, "memory_files": [{"path": "旅.md", "content": "長い旅。"}]})
    written(tmp_path / "projects" / "p-1.json", PROJECT)
    assert detect_format(tmp_path) is Format.CLAUDE
    rows, refused = read(claude.read, tmp_path)
    assert {row["content"] for row in rows} >= {"春に行く予定。", "長い旅。", "京都へ行く"}
    assert refused == []


def test_a_later_memory_of_claude_adds_what_changed_and_knows_the_rest(tmp_path: Path) -> None:
    first, _ = read(claude.read, written(tmp_path / "memories.json", [KEPT_IN_MIND]))
    changed = {**KEPT_IN_MIND, "conversations_memory": "**仕事**\n\n健太は書店で働く。\n\n**好み**\n\n苺が好き。"}
    second, _ = read(claude.read, written(tmp_path / "memories.json", [changed]))
    known = {row["key"] for row in first}
    assert [row["content"] for row in second if row["key"] not in known] == ["**仕事**\n健太は書店で働く。"]


def test_what_is_left_out_of_chatgpt_and_slack_is_named(tmp_path: Path) -> None:
    picture = node("a", "root", "user", "")
    picture["message"]["content"] = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "見て"]}
    branches = {"a": picture, "b": node("b", "a", "assistant", "はい"), "c": node("c", "a", "assistant", "別の答え")}
    chats = {"title": "", "id": "c", "mapping": branches, "current_node": "b"}
    found = list(chatgpt.read(source_of(written(tmp_path / "conversations.json", [chats])), None))
    assert [one.left_out for one in found if one.left_out] == ["messages of branches that are not shown", "pictures and files"]
    found = list(slack.read(source_of(workspace(tmp_path / "slack")), None))
    assert [one.left_out for one in found if one.left_out] == ["notices", "contents of files"]


def test_an_empty_answer_of_chatgpt_is_counted_and_the_empty_beginning_by_the_system_is_not(tmp_path: Path) -> None:
    chat = tree(node("sys", "root", "system", ""), node("q", "sys", "user", "やあ"), node("last", "q", "assistant", ""))
    found = list(chatgpt.read(source_of(written(tmp_path / "conversations.json", [chat])), None))
    assert [(one.where, one.left_out) for one in found if one.left_out] == [
        ("conversations.json, conversation 1, message 2", "messages without a text")
    ]


def workspace(place: Path) -> Path:
    users = [
        {"id": "U1", "name": "kenta", "real_name": "山田健太", "profile": {"display_name": "健太"}},
        {"id": "U2", "name": "nilou", "profile": {"real_name": "ニィロウ", "display_name": ""}},
    ]
    day = [
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> has joined the channel", "ts": "1760660000.000100"},
        {"type": "message", "user": "U1", "text": "<@U2> 明日 <#C9|料理> で &lt;苺&gt; &amp; 桃 <https://example.com/a|店> <!here>", "ts": "1760660001.000200"},
        {"type": "message", "user": "U2", "text": "行く！", "ts": "1760660002.000300", "thread_ts": "1760660001.000200", "edited": {"ts": "1760660009.000000"}},
        {"type": "message", "subtype": "bot_message", "username": "天気", "bot_id": "B1", "text": "雨", "ts": "1760660003.000400"},
        {"type": "message", "user": "U7", "user_profile": {"display_name": "外の人"}, "text": "どうも", "ts": "1760660004.000500"},
        {"type": "message", "user": "U1", "text": "", "ts": "1760660005.000600", "files": [{"name": "写真.jpg"}]},
        {"type": "message", "user": "U1", "text": "時なし"},
        "何か",
    ]  # fmt: skip
    written(place / "users.json", users)
    written(place / "channels.json", [{"id": "C1", "name": "雑談"}])
    written(place / "dms.json", [{"id": "D1", "members": ["U1", "U2"]}])
    written(place / "雑談" / "2025-10-17.json", day)
    written(place / "D1" / "2025-10-18.json", [{"type": "message", "user": "U2", "text": "ひみつ", "ts": "1760746400.000100"}])
    written(place / "雑談" / "2025-10-18.json", "[{oops")
    return place


def test_a_slack_export_is_read_with_the_names_that_people_have(tmp_path: Path) -> None:
    rows, refused = read(slack.read, workspace(tmp_path))
    assert said(rows) == [
        ("ニィロウ", "ひみつ"),
        ("健太", "@ニィロウ 明日 #料理 で <苺> & 桃 店 (https://example.com/a) @here"),
        ("ニィロウ", "行く！"),
        ("天気", "雨"),
        ("外の人", "どうも"),
    ]
    assert [row["session_id"] for row in rows[:3]] == ["slack #ニィロウ, 健太", "slack #雑談", "slack #雑談 1760660001.000200"]
    assert rows[1]["occurred_at"] == "2025-10-17T00:13:21.000200+00:00"
    assert rows[1]["tags"] == ["slack", "雑談"]
    assert rows[1]["metadata"]["origin"]["channel"] == "雑談"
    assert [row["metadata"]["origin"].get("edited_at") for row in rows[1:3]] == [None, "2025-10-17T00:13:29+00:00"]
    assert [one.where for one in refused] == ["雑談/2025-10-17.json, message 7", "雑談/2025-10-17.json, message 8", "雑談/2025-10-18.json"]


def test_a_zip_of_slack_is_read_like_its_directory(tmp_path: Path) -> None:
    place = workspace(tmp_path / "export")
    with zipfile.ZipFile(tmp_path / "slack.zip", "w") as packed:
        for path in sorted(place.rglob("*.json")):
            packed.write(path, path.relative_to(place).as_posix())
    assert read(slack.read, tmp_path / "slack.zip") == read(slack.read, place)


def test_a_slack_export_without_its_lists_is_read_with_numbers(tmp_path: Path) -> None:
    written(tmp_path / "users.json", "{oops")
    written(tmp_path / "general" / "2025-10-17.json", [{"type": "message", "user": "U1", "text": "やあ <@U2>", "ts": "1760660000.1"}])
    rows, refused = read(slack.read, tmp_path)
    assert (said(rows), refused) == ([("U1", "やあ @U2")], [])


def roles(rows) -> list[str | None]:
    return [row.get("role") for row in rows]


def test_each_line_has_the_role_of_its_speaker_where_the_name_alone_would_mislead(tmp_path: Path) -> None:
    file = written(tmp_path / "conversations.json", [TRIP])
    assert roles(read(chatgpt.read, file)[0]) == [None, "assistant", None, "assistant"]
    assert roles(read(chatgpt.read, file, me="Claude")[0]) == ["user", "assistant", "user", "assistant"]
    rows, _ = read(slack.read, workspace(tmp_path / "slack"))
    assert {row["source"]: row.get("role") for row in rows} == {"ニィロウ": None, "健太": None, "天気": "assistant", "外の人": None}


def test_a_bot_of_slack_is_known_by_its_entry_among_the_users(tmp_path: Path) -> None:
    written(
        tmp_path / "users.json", [{"id": "U3", "name": "deploy", "is_bot": True}, {"id": "U4", "name": "claude", "real_name": "Claude"}]
    )
    said_by = [("U3", {"bot_id": "B3"}), ("U4", {"bot_id": "B9"}), ("USLACKBOT", {})]
    day = [{"user": user, "text": "配信した", "ts": f"176066000{number}.000100", **more} for number, (user, more) in enumerate(said_by)]
    written(tmp_path / "雑談" / "2025-10-17.json", day)
    assert roles(read(slack.read, tmp_path)[0]) == ["assistant", "user", "assistant"]


def test_marks_of_sources_are_no_part_of_a_text_and_what_a_mark_shows_is(tmp_path: Path) -> None:
    text = '硝子工房 \ue200cite\ue202turn0search1\ue202turn0search2\ue201と\ue200entity\ue202["place","運河","小樽"]\ue201。【12†source】[1]:contentReference[oaicite:0]{index=0}'
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [tree(node("last", "root", "assistant", text))]))
    assert said(rows) == [("ChatGPT", "硝子工房と運河。[1]")]


@pytest.mark.parametrize(
    "marks", ["(【12:0†a.pdf】)", " (【1†a】, 【2†b】)", "（\ue200cite\ue202turn0search1\ue201、\ue200cite\ue202turn1\ue201）"]
)
def test_brackets_around_nothing_but_marks_go_with_them(tmp_path: Path, marks: str) -> None:
    text = f"店{marks}は()木曜(休み【1†a】)"
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [tree(node("last", "root", "assistant", text))]))
    assert said(rows) == [("ChatGPT", "店は()木曜(休み)")]


def test_the_marks_of_a_frame_are_no_part_of_the_text_in_it(tmp_path: Path) -> None:
    text = '下書きです。\n:::writing{variant="email" id="1"}\nDear A\n\n::: b\n:::\nどうぞ。'
    rows, _ = read(chatgpt.read, written(tmp_path / "conversations.json", [tree(node("last", "root", "assistant", text))]))
    assert said(rows) == [("ChatGPT", "下書きです。\nDear A\n\n::: b\nどうぞ。")]


def test_what_claude_could_not_show_and_its_old_tags_are_no_part_of_what_it_said(tmp_path: Path) -> None:
    said = [
        {"type": "text", "text": '<antThinking>?</antThinking>前<antArtifact identifier="x">本文</antArtifact>'},
        {"type": "voice_note", "text": "声"},
    ]
    shown = {"uuid": "m", "sender": "assistant", "text": "x", "content": said}
    tool = {
        "uuid": "n",
        "sender": "assistant",
        "text": "This block is not supported on your current device yet.",
        "content": [{"type": "tool_use"}],
    }
    empty = {"uuid": "o", "sender": "human", "text": "", "content": []}
    path = written(tmp_path / "conversations.json", [{"uuid": "c", "name": "", "chat_messages": [shown, tool, empty]}])
    found = list(claude.read(source_of(path), None))
    assert [one.row["content"] for one in found if one.row] == ["前本文\n\n声"]
    assert [one.left_out for one in found if one.left_out] == ["uses of tools", "messages without a text"]


def test_a_text_that_was_pasted_into_a_message_of_claude_belongs_to_it(tmp_path: Path) -> None:
    attached = [{"file_name": "", "extracted_content": "議事録：明日は休み"}, {"file_name": "a.pdf", "extracted_content": "本文"}]
    message = {
        "uuid": "m",
        "sender": "human",
        "text": "要約して",
        "content": [{"type": "text", "text": "要約して"}],
        "attachments": attached,
    }
    path = written(tmp_path / "conversations.json", [{"uuid": "c", "name": "", "chat_messages": [message]}])
    found = list(claude.read(source_of(path), None))
    assert [one.row["content"] for one in found if one.row] == ["要約して\n\n議事録：明日は休み"]
    assert [one.left_out for one in found if one.left_out] == ["contents of attachments"]
