"""Exports of other memory servers become facts and relations: mem0, OpenMemory, the reference server's memory.json, mcp-memory-service."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format, knowledge_graph, lessons, mem0, memory_service
from memory_mcp.transfer.formats.import_rows import NO_OPTIONS, ImportItem, LeftOut, moment
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.formats.table import ROWS

MEMORY = {
    "id": "a1",
    "memory": "健太は苺が好き",
    "user_id": "kenta",
    "agent_id": "nilou",
    "run_id": "r1",
    "metadata": {"place": "京都"},
    "categories": ["食べ物"],
    "created_at": "2025-10-17T09:00:00-07:00",
    "updated_at": "2025-10-18T09:00:00-07:00",
}


def read(reader: Any, path: Path, me: str | None = None) -> tuple[list[dict[str, Any]], list[ImportItem]]:
    found = list(reader(source_of(path), me))
    return [one.row for one in found if one.row], [one for one in found if one.refused]


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.mark.parametrize("wrap", [lambda row: {"results": [row], "relations": []}, lambda row: [row], lambda row: {"memories": [row]}])
def test_what_mem0_answers_is_read_as_facts(tmp_path: Path, wrap: Any) -> None:
    rows, refused = read(mem0.read, write(tmp_path / "mem0.json", wrap(MEMORY)))
    key = rows[0].pop("key")
    assert key.startswith("mem0_")
    assert rows == [
        {
            "content": "健太は苺が好き",
            "source": "kenta",
            "session_id": "r1",
            "created_at": "2025-10-17T09:00:00-07:00",
            "updated_at": "2025-10-18T09:00:00-07:00",
            "kind": "fact",
            "tags": ["食べ物"],
            "metadata": {"mem0": {"place": "京都"}, "origin": {"format": "mem0", "id": "a1", "agent": "nilou"}},
        }
    ]
    assert refused == []


def test_memories_of_several_forms_in_one_list_are_all_read(tmp_path: Path) -> None:
    mixed = [{"memory": "苺", "id": "1"}, {"text": "猫", "date": "2025/01/04"}, "犬", {"content": ""}, {"fact": "本", "tags": ["x"]}, 5]
    found = list(mem0.read(source_of(write(tmp_path / "a.json", {"memories": mixed, "total": 6})), None))
    rows = [one.row for one in found if one.row]
    assert [(row["content"], row.get("occurred_at")) for row in rows] == [("苺", None), ("猫", "2025/01/04"), ("犬", None), ("本", None)]
    assert ["mem0" in row["metadata"] for row in rows] == [False, False, False, True]
    assert [one.left_out for one in found if one.left_out] == ["memories without a text"]
    assert [one.where for one in found if one.refused] == ["a.json, memory 6"]


@pytest.mark.parametrize(
    "beginning",
    [
        '{"memories": ["苺が好き", "左利き"',
        '{"total": 2, "results": [{"id": "1", "memory": "苺が好き"}, {"id": "2", "memory": "左利き"}',
        '{"export_metadata": {}, "memories": [{"content": "苺が好き", "content_hash": "1"}, {"content": "左利き", "content_hash": "2"}',
    ],
)
def test_the_entries_of_a_list_in_an_object_are_read_one_by_one_up_to_what_is_no_json(tmp_path: Path, beginning: str) -> None:
    kind = detect_format(write(tmp_path / "whole.json", f"{beginning}]}}"))
    found = list(ROWS[kind].read(write(tmp_path / "a.json", f"{beginning}, x]}}"), NO_OPTIONS, print))
    assert [one.row["content"] for one in found if one.row] == ["苺が好き", "左利き"]
    assert len([one for one in found if one.refused]) == 1


def test_facts_without_ids_are_known_by_the_keys_that_they_had_as_memories_of_mem0(tmp_path: Path) -> None:
    listed = [{"memory": "苺が好き", "date": day} for day in ("2025-01-03", "2025-01-04")] + [
        {"memory": "左利き"},
        {"memory": "猫", "id": "1"},
    ]
    path = write(tmp_path / "a.json", {"results": listed})
    berries, _, left_handed, cat = (row["key"] for row in read(mem0.read, path)[0])
    assert detect_format(path) is Format.FACTS
    found = [one.row for one in ROWS[Format.FACTS].read(path, NO_OPTIONS, print) if one.row]
    assert [row.get("former_keys") for row in found] == [[berries], None, [left_handed], [cat]]


def test_relations_of_mem0_are_lines_of_the_graph_and_what_has_no_field_is_kept(tmp_path: Path) -> None:
    memory = {**MEMORY, "expiration_date": "2026-01-01", "immutable": True, "embedding": [0.1], "score": None}
    told = [
        {"source": "kenta", "relationship": "likes", "target": "苺", "user_id": "kenta"},
        {"source": "苺", "relationship": "grows_in", "destination": "栃木"},
        {"source": "x"},
    ]
    found = list(mem0.read(source_of(write(tmp_path / "mem0.json", {"results": [memory], "relations": told})), "健太"))
    (fact, *relations) = [one.row for one in found if one.row]
    assert fact["metadata"]["mem0"] == {"immutable": True, "place": "京都"}
    assert fact["expires_at"] == "2026-01-02T00:00:00+00:00"
    assert relations == [
        {"relation": "likes", "source": "健太", "target": "苺"},
        {"relation": "grows_in", "source": "苺", "target": "栃木"},
    ]
    assert [one.left_out for one in found if one.left_out] == ["vectors"]
    assert [one.where for one in found if one.refused] == ["mem0.json, relation 4"]


def test_the_list_of_openmemory_has_its_times_in_seconds(tmp_path: Path) -> None:
    listed = {
        "items": [
            {"id": "b", "content": "桃が好き", "created_at": 1_760_660_000, "state": "active", "app_name": "cursor", "categories": []}
        ],
        "total": 1,
    }
    rows, _ = read(mem0.read, write(tmp_path / "list.json", listed), me="健太")
    assert rows[0]["created_at"] == "2025-10-17T00:13:20+00:00"
    assert (rows[0]["tags"], rows[0]["source"]) == (["cursor"], "健太")


BACKUP = {
    "user": {"user_id": "kenta"},
    "apps": [{"id": "app", "name": "cursor"}],
    "categories": [{"id": "cat", "name": "食べ物"}],
    "memories": [
        {"id": "1", "user_id": "x-y", "content": "苺が好き", "state": "active", "app_id": "app", "created_at": "2025-10-17T00:00:00+00:00"},
        {"id": "2", "user_id": "x-y", "content": "消した", "state": "deleted", "deleted_at": "2025-10-18T00:00:00+00:00"},
        {"id": "3", "content": "いつか消した", "state": "deleted"},
        {"id": "4"},
        7,
    ],
    "memory_categories": [{"memory_id": "1", "category_id": "cat"}],
}
PACKED = [
    {
        "id": "1",
        "content": "苺が好き",
        "state": "active",
        "app": "cursor",
        "categories": ["食べ物"],
        "created_at": "2025-10-17T00:00:00+00:00",
    },
    {"id": "2", "content": "消した", "state": "deleted", "updated_at": "2025-10-18T00:00:00+00:00", "categories": []},
]


def test_a_backup_of_openmemory_is_read_with_the_names_of_its_categories(tmp_path: Path) -> None:
    rows, refused = read(mem0.read, write(tmp_path / "memories.json", BACKUP))
    assert [(row["content"], row.get("tags"), row.get("deleted_at")) for row in rows] == [
        ("苺が好き", ["食べ物", "cursor"], None),
        ("消した", [], "2025-10-18T00:00:00+00:00"),
    ]
    assert {row["source"] for row in rows} == {"kenta"}
    assert [one.where for one in refused] == [f"memories.json, memory {number}" for number in (3, 4, 5)]


def test_of_a_zip_of_openmemory_the_packed_lines_are_read_and_mean_the_same_memories(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "backup.zip", "w") as backup:
        backup.writestr("memories.json", json.dumps(BACKUP))
        backup.writestr("memories.jsonl.gz", gzip.compress("".join(json.dumps(row) + "\n" for row in PACKED).encode()))
    rows, refused = read(mem0.read, tmp_path / "backup.zip")
    assert [row["content"] for row in rows] == ["苺が好き", "消した"]
    assert refused == []
    plain, _ = read(mem0.read, write(tmp_path / "memories.json", BACKUP))
    assert [row["key"] for row in rows] == [row["key"] for row in plain]


def test_packed_lines_that_are_damaged_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in PACKED * 500).encode())
    (tmp_path / "memories.jsonl.gz").write_bytes(whole[:-20])
    _, refused = read(mem0.read, tmp_path / "memories.jsonl.gz")
    assert len(refused) == 1


def test_packed_lines_that_unfold_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mem0, "DECOMPRESSED_LIMIT_BYTES", 2 * 1024 * 1024)
    (tmp_path / "memories.jsonl.gz").write_bytes(gzip.compress(b" " * (64 * 1024 * 1024)))
    _, refused = read(mem0.read, tmp_path / "memories.jsonl.gz")
    assert "too long" in refused[0].refused


GRAPH = [
    {"type": "entity", "name": "健太", "entityType": "人", "observations": ["苺が好き", {"content": "京都に住む", "at": 1}, "", 7]},
    {"type": "entity", "name": "南禅寺", "entityType": "寺", "observations": []},
    {"type": "relation", "from": "健太", "to": "南禅寺", "relationType": "訪れた"},
]


def lines(*told: Any) -> str:
    return "".join((each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)) + "\n" for each in told)


def test_the_graph_of_the_reference_server_becomes_facts(tmp_path: Path) -> None:
    rows, refused = read(knowledge_graph.read, write(tmp_path / "memory.json", lines(*GRAPH)))
    entities, rows = [row for row in rows if "entity" in row], [row for row in rows if "content" in row]
    assert entities == [{"entity": "健太", "type": "Person"}, {"entity": "南禅寺"}]
    assert [(row["content"], row.get("tags")) for row in rows] == [
        ("健太: 苺が好き", ["人"]),
        ("健太: 京都に住む", ["人"]),
        ("南禅寺 (寺)", ["寺"]),
        ("健太 訪れた 南禅寺", None),
    ]
    assert rows[3]["relations"] == ["健太 > 訪れた > 南禅寺"]
    assert rows[1]["metadata"]["mcp-memory"] == {"at": 1}
    assert rows[3]["metadata"] == {"origin": {"format": "mcp-memory", "relation": {"from": "健太", "type": "訪れた", "to": "南禅寺"}}}
    assert refused == []


def test_what_read_graph_answers_is_the_same(tmp_path: Path) -> None:
    answer = {"entities": GRAPH[:2], "relations": GRAPH[2:]}
    first, _ = read(knowledge_graph.read, write(tmp_path / "memory.json", lines(*GRAPH)))
    second, _ = read(knowledge_graph.read, write(tmp_path / "graph.json", answer))
    assert first == second
    fenced = f"ツールの結果：\n\n```json\n{json.dumps(answer, ensure_ascii=False, indent=1)}\n```\n以上です。\n"
    path = write(tmp_path / "graph.md", fenced)
    items = list(knowledge_graph.read(source_of(path), None))
    assert [item.row for item in items if item.row] == first
    kept = [("graph.md, line 1", "sentences around a list of facts"), ("graph.md, line 37", "sentences around a list of facts")]
    assert [(item.where, item.left_out) for item in items if item.left_out.startswith("sentences")] == kept


@pytest.mark.parametrize(
    ("behind", "format_"),
    [
        ("", Format.MCP_MEMORY),
        ('\n```json\n{"entities": [{"name": "健太"}]}\n```\n', Format.MCP_MEMORY),
        ("以上です。\n", Format.TEXT),
        ("# 日記\n\n" + "苺を買った。\n\n" * 20_000, Format.TEXT),
        ("```\nlet a = 1\n```\n散歩した。", Format.TEXT),
    ],
)
@pytest.mark.parametrize("observations", [1, 10_000])
def test_a_text_with_a_graph_in_a_fence_is_one_where_words_stand_behind_it(
    tmp_path: Path, behind: str, format_: Format, observations: int
) -> None:
    graph = json.dumps({"entities": [{"name": "A", "entityType": "人", "observations": ["苺が好き"] * observations}], "relations": []})
    path = write(tmp_path / "graph.md", f"ツールの結果：\n\n```json\n{graph}\n```\n{behind}")
    assert detect_format(path) is format_


@pytest.mark.parametrize("behind", ['{"memories": ["大工"]}', '\n["大工"]', "\n```\nAnything else?", "}", "\n" * 300_000 + "x"])
@pytest.mark.parametrize("first", ['{"memories": ["苺が好き", "左利き"]}', '["苺が好き", "左利き"]'])
def test_what_stands_behind_the_json_of_a_file_is_refused_and_what_is_before_is_read(tmp_path: Path, first: str, behind: str) -> None:
    path = write(tmp_path / "a.json", first + behind)
    items = list(ROWS[Format.FACTS].read(path, NO_OPTIONS, print))
    assert [item.row["content"] for item in items if item.row] == ["苺が好き", "左利き"]
    assert [item.where for item in items if "has more than one JSON value: behind the first stands" in item.refused] == ["a.json"]


def test_a_second_export_behind_the_first_is_refused(tmp_path: Path) -> None:
    for read_format, value in (
        (mem0.read, {"memories": [{"id": "1", "memory": "苺が好き", "user_id": "k"}]}),
        (memory_service.read, {"export_metadata": {}, "memories": [{"content": "苺が好き", "content_hash": "a"}]}),
    ):
        found, refused = read(read_format, write(tmp_path / "a.json", json.dumps(value) + "\n" + json.dumps(value)))
        assert [row["content"] for row in found] == ["苺が好き"]
        assert ["more than one JSON value" in one.refused for one in refused] == [True]


def test_json_with_its_code_fence_is_read(tmp_path: Path) -> None:
    for text in ('```json\n["苺が好き", "左利き"]\n```\n', '```\n{"memories": ["苺が好き", "左利き"]}\n```'):
        (tmp_path / "a.json").write_text(text)
        kind = detect_format(tmp_path / "a.json")
        assert [item.row["content"] for item in ROWS[kind].read(tmp_path / "a.json", NO_OPTIONS, print) if item.row] == [
            "苺が好き",
            "左利き",
        ]


def test_lines_that_are_neither_entity_nor_relation_are_refused_by_number(tmp_path: Path) -> None:
    odd = ["{oops", {"type": "entity", "observations": ["x"]}, {"type": "relation", "from": "a"}, [1], {"type": "other"}, GRAPH[1]]
    rows, refused = read(knowledge_graph.read, write(tmp_path / "memory.json", lines(*odd)))
    assert [one.where for one in refused] == [f"memory.json, line {number}" for number in (1, 2, 3, 4, 5)]
    assert [row.get("content") for row in rows] == [None, "南禅寺 (寺)"]


def test_what_the_graph_can_not_hold_stays_a_fact_and_is_named(tmp_path: Path) -> None:
    odd = {"type": "relation", "from": "A > B", "to": "C", "relationType": "知る", "since": 2020}
    found = list(knowledge_graph.read(source_of(write(tmp_path / "memory.json", lines(GRAPH[0], odd))), None))
    (fact,) = [one.row for one in found if one.row and "relation" in one.row.get("metadata", {}).get("origin", {})]
    assert ("relations" in fact, fact["metadata"]["mcp-memory"]) == (False, {"since": 2020})
    told = LeftOut()
    for one in found:
        if one.left_out:
            told.add(one)
    assert told.sentence() == (
        "left out: observations without a text: 2 (memory.json, line 1; …), "
        "relations that the graph can't hold and a fact tells: 1 (memory.json, line 2)"
    )


SERVICE = {
    "export_metadata": {"source_machine": "書斎", "total_memories": 2, "exporter_version": "6.2.4"},
    "memories": [
        {
            "content": "宿は金閣寺の近く",
            "content_hash": "abc",
            "tags": ["旅", "宿"],
            "created_at": 1_760_660_000.0,
            "updated_at": 1_760_660_100.5,
            "memory_type": "decision",
            "metadata": {"project": "京都", "quality": {"score": 0.9}},
            "embedding": [0.1, 0.2],
            "superseded_by": "def",
        },
        {"content_hash": "none"},
    ],
}


def test_memories_of_mcp_memory_service_keep_their_tags_type_time_and_metadata(tmp_path: Path) -> None:
    path = write(tmp_path / "export.json", SERVICE)
    assert detect_format(path) is Format.MEMORY_SERVICE
    found = list(memory_service.read(source_of(path), None))
    (row,) = [one.row for one in found if one.row]
    assert row.pop("key").startswith("mcp-memory-service_")
    assert row == {
        "content": "宿は金閣寺の近く",
        "created_at": "2025-10-17T00:13:20+00:00",
        "updated_at": "2025-10-17T00:15:00.500000+00:00",
        "kind": "fact",
        "category": "decision",
        "tags": ["旅", "宿"],
        "metadata": {
            "mcp-memory-service": {"superseded_by": "def", "project": "京都", "quality": {"score": 0.9}},
            "origin": {"format": "mcp-memory-service", "hash": "abc", "machine": "書斎"},
        },
    }
    assert [(one.where, one.left_out) for one in found if one.left_out] == [("export.json, memory 1", "vectors")]
    assert [one.where for one in found if one.refused] == ["export.json, memory 2"]


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"memories": rows, "total": 1}])
def test_what_the_api_of_mcp_memory_service_lists_is_the_same(tmp_path: Path, wrap: Any) -> None:
    listed = {**SERVICE["memories"][0], "created_at": None, "created_at_iso": "2025-10-17T00:13:20Z", "tags": "旅,宿"}
    path = write(tmp_path / "listed.json", wrap([listed]))
    assert detect_format(path) is Format.MEMORY_SERVICE
    (row,), _ = read(memory_service.read, path)
    assert (row["tags"], row["created_at"]) == (["旅", "宿"], "2025-10-17T00:13:20+00:00")


def make(place: Path, files: dict[str, Any]) -> Path:
    for name, value in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode())
    return place if len(files) > 1 or "/" in next(iter(files)) else place / next(iter(files))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.jsonl": {"content": "x"}}, Format.JSON_LINES),
        ({"a.ndjson": ""}, Format.JSON_LINES),
        ({"memory.jsonl": GRAPH[0]}, Format.MCP_MEMORY),
        ({"memory.json": lines(*GRAPH)}, Format.MCP_MEMORY),
        ({"graph.json": {"entities": [], "relations": []}}, Format.MCP_MEMORY),
        ({"a.txt": "文"}, Format.TEXT),
        ({"a.md": "文"}, Format.TEXT),
        ({"d/a.txt": "文"}, Format.TEXT),
        ({"d/a.md": "文", "b.txt": "文"}, Format.OBSIDIAN),
        ({"conversations.json": [{"mapping": {}, "title": ""}]}, Format.CHATGPT),
        ({"chats.json": [{"messages": [], "title": ""}]}, Format.CHATGPT),
        ({"conversations-000.json": [{"mapping": {}}], "chat.html": ""}, Format.CHATGPT),
        ({"conversations.json": [{"chat_messages": []}], "users.json": []}, Format.CLAUDE),
        ({"users.json": [], "channels.json": [], "general/2025-10-17.json": []}, Format.SLACK),
        ({"mem0.json": {"results": []}}, Format.MEM0),
        ({"mem0.json": [{"id": "1", "memory": "x"}]}, Format.MEM0),
        ({"memories.json": BACKUP, "memories.jsonl.gz": b""}, Format.MEM0),
        ({"memories.jsonl.gz": b""}, Format.MEM0),
        ({"memory.sqlite": b"SQLite format 3\x00"}, Format.DATABASE),
    ],
)
def test_a_format_is_told_by_what_is_there(tmp_path: Path, files: dict[str, Any], expected: Format) -> None:
    assert detect_format(make(tmp_path / "there", files)) is expected


def test_a_zip_is_told_like_its_directory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("export/conversations.json", json.dumps([{"chat_messages": []}]))
    assert detect_format(tmp_path / "a.zip") is Format.CLAUDE


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ('[{"mapping": {"a": {"id"', "is not JSON.*Fetch the export again")])
def test_a_json_file_that_is_empty_or_was_cut_off_says_so(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "会話.json").write_text(text)
    with pytest.raises(InvalidInput, match=f"会話.json {words}"):
        detect_format(tmp_path / "会話.json")


@pytest.mark.parametrize("files", [{"a.bin": b"\x00"}, {"a.json": {"x": 1}}, {"a.json": "oops"}, {"d/a.png": b""}, {"a.zip": b"no zip"}])
def test_what_nothing_tells_is_refused_with_what_to_do(tmp_path: Path, files: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        detect_format(make(tmp_path / "there", files))


def test_the_rest_of_a_graph_that_is_no_longer_looked_at_is_told(tmp_path: Path) -> None:
    unreadable = ["{"] * (knowledge_graph.UNREADABLE_PLACES + 5)
    _, refused = read(knowledge_graph.read, write(tmp_path / "memory.json", "\n".join([*unreadable, json.dumps(GRAPH[0])])))
    assert len(refused) == knowledge_graph.UNREADABLE_PLACES + 1
    assert "the rest is not looked at" in refused[-1].refused


@pytest.mark.parametrize("odd", [{"type": "personal_chat", "id": 1, "messages": 5}, [{"title": "a", "time": "b", "products": 5}]])
def test_odd_values_where_a_program_has_lists_are_of_no_program(tmp_path: Path, odd: object) -> None:
    (tmp_path / "a.json").write_text(json.dumps(odd))
    with pytest.raises(InvalidInput):
        detect_format(tmp_path / "a.json")


def test_a_time_of_more_figures_than_there_are_times_is_none() -> None:
    assert [moment(value) for value in (10**400, float("inf"), -1)] == [None] * 3


@pytest.mark.parametrize("reader", [knowledge_graph.read, lessons.read, memory_service.read])
def test_pictures_beside_what_other_programs_remember_are_other_files(tmp_path: Path, reader: Any) -> None:
    files = {"a.json": {"entities": [], "memories": [], "skills": {}}, "b.png": b"\x89PNG\r\n\x1a\n{\n\xff\n"}
    items = reader(source_of(make(tmp_path / "there", files)), None)
    assert [(item.where, item.left_out, item.refused) for item in items] == [("b.png", "other files", "")]
