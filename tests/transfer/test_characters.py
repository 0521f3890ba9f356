"""Character cards become a persona and its facts: from JSON, from pictures, from zips; and lorebooks of several programs."""

import base64
import hashlib
import json
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

from memory_mcp.transfer.card_export import card
from memory_mcp.transfer.formats import Format, characters, lorebooks, picture_text
from memory_mcp.transfer.formats.import_rows import NO_OPTIONS, ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of

ENTRY = {
    "keys": ["塩", "/sal.*/i"],
    "content": "@@depth 4\n{{char}}は塩を食べられない。",
    "extensions": {"x": {"probability": 100}},
    "enabled": True,
    "insertion_order": 1,
    "id": 0,
}
DATA = {
    "name": "ミレイ",
    "description": "{{char}}は灯台守。{{user}}の友人。",
    "personality": "物静か",
    "scenario": "",
    "first_mes": "お帰り、<USER>。",
    "mes_example": "<START>\n{{char}}: はい",
    "system_prompt": "役を演じよ。",
    "post_history_instructions": "短く。",
    "alternate_greetings": ["やあ。", ""],
    "creator_notes": "",
    "creator": "me",
    "tags": ["fantasy"],
    "extensions": {"depth_prompt": {"depth": 4, "prompt": "p"}, "数": 1.50},
    "character_book": {"name": "潮", "scan_depth": 3, "entries": [ENTRY, {**ENTRY, "enabled": False}, {**ENTRY, "content": " "}]},
}
V2 = {"spec": "chara_card_v2", "spec_version": "2.0", "data": DATA, "avatar": "none"}
V3 = {**V2, "spec": "chara_card_v3", "data": {**DATA, "nickname": "ミィ"}}


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


def picture(*texts: bytes) -> bytes:
    head = (1).to_bytes(4) * 2 + b"\x08\0\0\0\0"
    return picture_text.SIGNATURE + chunk(b"IHDR", head) + b"".join(texts) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def web_picture(comment: bytes, order: Literal["little", "big"] = "little", *, encoding: bytes = b"ASCII\0\0\0") -> bytes:
    """A WebP file whose EXIF data has a comment of the user."""

    def tag(number: int, count: int, value: int) -> bytes:
        return number.to_bytes(2, order) + (4).to_bytes(2, order) + count.to_bytes(4, order) + value.to_bytes(4, order)

    begins = 8 + 2 * 18
    directories = b"".join((1).to_bytes(2, order) + each + bytes(4) for each in (tag(0x8769, 1, 26), tag(0x9286, 8 + len(comment), begins)))
    exif = (b"II" if order == "little" else b"MM") + (42).to_bytes(2, order) + (8).to_bytes(4, order) + directories + encoding + comment
    parts = [(b"VP8L", b"\x2f\0\0"), (b"EXIF", exif)]
    body = b"WEBP" + b"".join(kind + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2) for kind, data in parts)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def packed(card: Any, keyword: bytes = b"chara") -> bytes:
    return keyword + b"\0" + base64.b64encode(json.dumps(card).encode())


def international(card: Any, *, is_packed: bool) -> bytes:
    text = base64.b64encode(json.dumps(card).encode())
    return b"chara\0" + bytes([is_packed, 0]) + b"\0\0" + (zlib.compress(text) if is_packed else text)


def read(path: Path, content: Any, me: str | None = None, notes: list[str] | None = None) -> list[ImportItem]:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode())
    assert not isinstance(content, bytes) or not picture_text.is_picture(content) or detect_format(path) is Format.CHARACTER
    return list(characters.read(source_of(path), ReadOptions(me), (notes if notes is not None else []).append))


def refusals(items: list[ImportItem]) -> list[str]:
    return [item.refused for item in items if item.refused]


def context_of(items: list[ImportItem]) -> dict[str, Any]:
    return next(item.row["persona_context"] for item in items if item.row and "persona_context" in item.row)


def facts(items: list[ImportItem]) -> list[dict[str, Any]]:
    return [item.row for item in items if item.row and "content" in item.row]


def test_a_card_says_who_the_persona_is(tmp_path: Path) -> None:
    notes: list[str] = []
    items = read(tmp_path / "a.json", V2, "健太", notes)
    assert context_of(items)["persona_info"] == {
        "name": "ミレイ",
        "description": "ミレイは灯台守。健太の友人。",
        "personality": "物静か",
        "greeting": "お帰り、健太。",
    }
    assert notes == ["a.json is a character card (V2): name, description, personality, greeting; entries of its lorebook: 3"]
    assert Counter(item.left_out for item in items if item.left_out) == {
        "system prompts": 1,
        "instructions after the chat (post_history_instructions)": 1,
        "example dialogues (mes_example)": 1,
        "alternate greetings": 1,
        "disabled entries of a lorebook": 1,
        "entries of a lorebook without text": 1,
    }
    assert "役を演じよ" not in json.dumps([item.row for item in items], ensure_ascii=False)


def test_an_entry_of_its_lorebook_is_a_fact_that_its_keys_find(tmp_path: Path) -> None:
    (fact,) = facts(read(tmp_path / "a.json", V2))
    assert (fact["content"], fact["kind"], fact["tags"], fact["source"]) == (
        "ミレイは塩を食べられない。\n\n[[塩]]",
        "fact",
        ["塩", "/sal.*/i"],
        "潮",
    )
    kept = fact["metadata"]["lorebook"]
    assert kept == {"entry": {name: value for name, value in ENTRY.items() if name != "content"}, "decorators": "@@depth 4\n"}


def test_what_has_no_place_here_stays_with_the_persona(tmp_path: Path) -> None:
    kept = context_of(read(tmp_path / "a.json", V2))["character_card"]
    assert kept == {
        "fields": {name: DATA[name] for name in ("creator_notes", "creator", "tags", "extensions")},
        "around": {"avatar": "none"},
        "book": {"name": "潮", "scan_depth": 3},
    }


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (V2, "V2"),
        (V3, "V3"),
        (DATA, "V1"),
        (
            {"char_name": "ミレイ", "char_persona": "灯台守", "world_scenario": "", "char_greeting": "お帰り。", "example_dialogue": ""},
            "V1",
        ),
        (picture(chunk(b"tEXt", packed(V2))), "V2"),
        (picture(chunk(b"tEXt", packed(V2)), chunk(b"tEXt", packed(V3, b"ccv3"))), "V3"),
        (picture(chunk(b"iTXt", international(V2, is_packed=False))), "V2"),
        (picture(chunk(b"iTXt", international(V2, is_packed=True))), "V2"),
        (picture(chunk(b"zTXt", b"chara\0\0" + zlib.compress(packed(V2).split(b"\0", 1)[1]))), "V2"),
        (picture(chunk(b"tEXt", b"chara\0" + json.dumps(V2).encode())), "V2"),
        (picture(chunk(b"tEXt", packed(V2)))[:-20], "V2"),
        (picture(chunk(b"acTL", bytes(8)), chunk(b"tEXt", packed(V2))), "V2"),
        (web_picture(json.dumps(V2).encode()), "V2"),
        (web_picture(json.dumps(V2, ensure_ascii=False).encode(), "big"), "V2"),
        (web_picture(json.dumps(V3, ensure_ascii=False).encode("utf-16-le"), encoding=b"UNICODE\0"), "V3"),
        (web_picture(",".join(map(str, json.dumps(V2, ensure_ascii=False).encode())).encode()), "V2"),
        (web_picture(base64.b64encode(json.dumps(V2).encode())), "V2"),
    ],
)
def test_all_versions_and_containers_are_read(tmp_path: Path, content: Any, version: str) -> None:
    notes: list[str] = []
    items = read(tmp_path / ("a.png" if isinstance(content, bytes) else "a.json"), content, None, notes)
    assert f"({version})" in notes[0]
    assert refusals(items) == []
    assert context_of(items)["persona_info"]["name"] == "ミレイ"


def test_a_card_may_be_in_a_zip_with_its_pictures(tmp_path: Path) -> None:
    for name, picture_before in (("a.charx", b""), ("a.jpeg", b"\xff\xd8\xff\xe0" + b"\0" * 60)):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("card.json", json.dumps(V3))
            archive.writestr("assets/icon/main.png", b"x")
        path.write_bytes(picture_before + path.read_bytes())
        assert detect_format(path) is Format.CHARACTER
        items = list(characters.read(source_of(path), NO_OPTIONS, lambda _: None))
        assert context_of(items)["persona_info"]["nickname"] == "ミィ"
        assert [item.where for item in items if item.left_out == "pictures and files"] == ["assets/icon/main.png"]


def test_a_number_comes_back_as_it_was_written(tmp_path: Path) -> None:
    numbers = '{"a": 1.50, "b": [1E5, -0.0, 1e400], "c": 12345678901234567890123, "d": 0.5, "e": "{\\"memory_mcp_number\\": \\"1.50\\"}"}'
    (tmp_path / "a.json").write_text(json.dumps({**V2, "data": {**DATA, "extensions": "HERE"}}).replace('"HERE"', numbers))
    items = list(characters.read(source_of(tmp_path / "a.json"), NO_OPTIONS, lambda _: None))
    lines = [json.dumps(item.row, ensure_ascii=False, allow_nan=False) for item in items if item.row]
    written = card([*lines[:1], *(line.replace('"content"', '"key": "k", "content"', 1) for line in lines[1:])], "ミレイ").text
    assert re.sub(r"\s", "", numbers) in re.sub(r"\s", "", written)


def test_cards_of_other_programs_name_their_fields_otherwise(tmp_path: Path) -> None:
    agnai = {
        "kind": "character",
        "name": "ミレイ",
        "persona": {"attributes": {"job": ["灯台守"], "text": ["物静か"]}},
        "greeting": "やあ",
        "scenario": "島",
    }
    expected = {"name": "ミレイ", "description": "job: 灯台守\n物静か", "greeting": "やあ", "scenario": "島"}
    for card_of, info in (
        (agnai, expected),
        ({"name": "ミレイ", "greeting": "やあ", "context": "灯台守"}, {"name": "ミレイ", "description": "灯台守", "greeting": "やあ"}),
    ):
        path = tmp_path / "a.json"
        assert context_of(read(path, card_of))["persona_info"] == info
        assert detect_format(path) is Format.CHARACTER


def test_the_name_of_a_lorebook_alone_is_nobodys(tmp_path: Path) -> None:
    (fact,) = facts(read(tmp_path / "world.json", {"entries": {"0": {"key": ["塩"], "content": "{{char}} eats no salt."}}}))
    assert fact["content"].startswith("the character eats no salt.")
    named = characters.read(source_of(tmp_path / "world.json"), ReadOptions(character="ミレイ"), print)
    assert facts(list(named))[0]["content"].startswith("ミレイ eats no salt.")


def test_a_book_beside_a_card_speaks_of_its_character_and_has_the_name_of_its_own_file(tmp_path: Path) -> None:
    book = {"entries": [{"keys": ["塩"], "content": "{{char}}は塩を食べない。"}]}
    for name, content in (("a.json", book), ("b.png", picture(chunk(b"tEXt", packed({**V2, "data": {**DATA, "character_book": {}}}))))):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with zipfile.ZipFile(tmp_path / "cards.zip", "w") as packed_files:
        for name in ("a.json", "b.png"):
            packed_files.write(tmp_path / name, name)
    (fact,) = facts(list(characters.read(source_of(tmp_path / "cards.zip"), NO_OPTIONS, print)))
    assert (fact["content"], fact["source"]) == ("ミレイは塩を食べない。\n\n[[塩]]", "a")
    assert fact["former_keys"] == ["lorebook_" + hashlib.sha256("cards\x1f\x1f塩".encode()).hexdigest()[:24]]
    (alone,) = facts(list(characters.read(source_of(tmp_path / "a.json"), NO_OPTIONS, print)))
    assert (alone["key"], "former_keys" in alone) == (fact["key"], False)


@pytest.mark.parametrize(
    "book",
    [
        {
            "entries": {"0": {"uid": 0, "key": ["灯台"], "comment": "灯台", "content": "灯台は沈んだ島に立つ。", "disable": False}},
            "name": "潮の国",
        },
        {
            "spec": "lorebook_v3",
            "data": {"name": "潮の国", "entries": [{"keys": ["灯台"], "content": "灯台は沈んだ島に立つ。", "enabled": True}]},
        },
        {
            "lorebookVersion": 5,
            "name": "潮の国",
            "entries": [{"keys": ["灯台"], "text": "灯台は沈んだ島に立つ。", "displayName": "灯台", "enabled": True}],
        },
        {
            "kind": "memory",
            "name": "潮の国",
            "entries": [{"name": "灯台", "entry": "灯台は沈んだ島に立つ。", "keywords": ["灯台"], "enabled": True}],
        },
        {"type": "risu", "ver": 1, "name": "潮の国", "data": [{"key": "灯台", "comment": "灯台", "content": "灯台は沈んだ島に立つ。"}]},
    ],
)
def test_a_lorebook_of_any_program_becomes_facts(tmp_path: Path, book: dict[str, Any]) -> None:
    assert lorebooks.is_lorebook(book)
    assert not characters.is_card(book)
    (fact,) = facts(read(tmp_path / "world.json", book))
    assert (fact["content"], fact["tags"], fact["source"]) == ("灯台は沈んだ島に立つ。\n\n[[灯台]]", ["灯台"], "潮の国")


def test_a_placeholder_that_shows_nothing_is_no_part_of_a_text(tmp_path: Path) -> None:
    said = ["{{// {{user}} は秘密}}塩{{setvar::a::b}}。\n\n{{trim}}\n砂糖{{noop}}", "{{// nothing}}", "{{random::a::b}}{{newline}}"]
    items = read(tmp_path / "a.json", {"entries": [{"keys": [str(number)], "content": text} for number, text in enumerate(said)]})
    assert [row["content"] for row in facts(items)] == ["塩。砂糖\n\n[[0]]", "{{random::a::b}}{{newline}}\n\n[[2]]"]
    assert [item.left_out for item in items if item.left_out] == ["entries of a lorebook without text"]


@pytest.mark.parametrize(("is_pattern", "names"), [(True, "[[ship]] [[Dr. A]]"), (False, "[[light.*house]] [[ship]] [[Dr. A]]")])
def test_a_key_that_is_a_pattern_names_nothing(tmp_path: Path, is_pattern: bool, names: str) -> None:
    entry = {"keys": ["light.*house", "ship", "Dr. A"], "content": "高い", "use_regex": is_pattern}
    (fact,) = facts(read(tmp_path / "a.json", {"entries": [entry]}))
    assert (fact["content"], fact["tags"]) == (f"高い\n\n{names}", entry["keys"])


def test_an_edited_entry_keeps_its_key_wherever_it_stands(tmp_path: Path) -> None:
    salt, light = ({"keys": [key], "content": text, "enabled": True} for key, text in (("塩", "塩は毒。"), ("灯台", "高い。")))
    first = facts(read(tmp_path / "a.json", {"entries": [salt, light, light]}))
    again = facts(read(tmp_path / "a.json", {"entries": [{**light, "content": "とても高い。"}, salt]}))
    assert [row["key"] for row in again] == [first[1]["key"], first[0]["key"]]
    assert len({row["key"] for row in first}) == 3


def test_an_entry_keeps_its_key_when_the_character_gets_a_nickname(tmp_path: Path) -> None:
    (first,) = facts(read(tmp_path / "a.json", V2, "健太"))
    (again,) = facts(read(tmp_path / "a.json", {**V2, "data": {**DATA, "nickname": "ミィ"}}, "Ken"))
    assert again["key"] == first["key"]
    assert again["content"].startswith("ミィは塩")
    # The key that an entry had while it was known by the nickname.
    assert again["former_keys"] == ["lorebook_" + hashlib.sha256("ミィ\x1f\x1f塩\x1f/sal.*/i".encode()).hexdigest()[:24]]


def test_the_lorebooks_of_two_characters_are_two(tmp_path: Path) -> None:
    (first,) = facts(read(tmp_path / "a.json", V2, "健太"))
    (other,) = facts(read(tmp_path / "b.json", {**V2, "data": {**DATA, "name": "アヤ"}}, "健太"))
    assert first["key"] not in (other["key"], *other.get("former_keys", ()))


@pytest.mark.parametrize(
    "value", [{"entries": {}}, {"entries": [{"a": 1}]}, {"entries": "x"}, {"name": "a", "first_mes": "b"}, {"spec": "chara_card_v2"}, {}]
)
def test_other_objects_are_no_cards_and_no_lorebooks(value: dict[str, Any]) -> None:
    assert not characters.is_card(value)
    assert not lorebooks.is_lorebook(value)


def deep(levels: int) -> bytes:
    return b'{"spec":"chara_card_v2","data":' + b'{"extensions":' * levels + b"1" + b"}" * (levels + 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (picture(), "is a picture without a character card"),
        (picture(chunk(b"tEXt", b"chara\0%%%")), "has no card that can be read"),
        (picture(chunk(b"zTXt", b"chara\0\0" + zlib.compress(b"0" * (picture_text.TEXT_LIMIT_BYTES + 1)))), "expands to more than"),
        (picture(chunk(b"zTXt", b"chara\0\0no zlib")), "can't be read"),
        (picture(chunk(b"tEXt", b"a\0b") * (picture_text.CHUNKS_LIMIT + 1)), "larger than a picture with a card"),
        (picture_text.SIGNATURE + b"\xff\xff\xff\xfftEXtchara\0", "larger than a picture with a card"),
        (web_picture(b""), "is a picture without a character card"),
        (web_picture(b"")[:40], "is a picture without a character card"),
        (web_picture(b"%%%"), "has no card that can be read"),
        (b"RIFF\0\0\0\0WEBP" + b"ALPH\0\0\0\0" * (picture_text.CHUNKS_LIMIT + 1), "larger than a picture with a card"),
        (deep(200), "nested too deeply"),
        (b'{"spec":' + b"[" * 100_000, "has no card that can be read"),
        (b"[1]", "it is no JSON object"),
        (b'{"a": "\xff"}', "has no card that can be read"),
    ],
)
def test_a_hostile_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    items = read(tmp_path / "a.png", content)
    (refused,) = refusals(items)
    assert reason in refused
    assert not any(item.row for item in items)


def test_what_is_too_long_is_refused_by_its_field_and_the_rest_is_read(tmp_path: Path) -> None:
    items = read(tmp_path / "a.json", {**V2, "data": {**DATA, "description": "あ" * 20_001, "extensions": {"a": "あ" * 40_000}}})
    assert refusals(items) == [
        "Its description has 20,001 characters; 20,000 are the limit.",
        "Its further fields have more than 100,000 bytes and are not kept.",
    ]
    assert set(context_of(items)) == {"persona_info"}
    assert len(facts(items)) == 1
