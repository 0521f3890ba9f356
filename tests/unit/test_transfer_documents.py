"""Text files and Obsidian vaults become rows that an import takes."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.documents import PIECE_CHARACTERS, Row, rows_of_text, rows_of_texts, rows_of_vault

CHANGED = datetime(2025, 10, 1, tzinfo=UTC)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (CHANGED.timestamp(), CHANGED.timestamp()))
    return path


def vault(directory: Path) -> tuple[list[Row], list[str]]:
    reported: list[str] = []
    return list(rows_of_vault(directory, reported.append)), reported


def contents(rows: list[Row]) -> list[str]:
    return [row["content"] for row in rows]


def test_a_text_becomes_one_row_for_each_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path / "日記.txt", "猫の名前はミケ。\nよく寝る。\n\n \n犬はいない。\n")
    common = {"source": "日記", "session_id": "日記.txt", "kind": "fact", "created_at": "2025-10-01T00:00:00+00:00"}
    assert list(rows_of_text(path)) == [{"content": "猫の名前はミケ。\nよく寝る。", **common}, {"content": "犬はいない。", **common}]


def test_a_heading_stays_with_what_follows_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "# 買い物\n\n## 今日\n\n牛乳\n\n卵\n\n# 終わり\n")
    assert contents(list(rows_of_text(path))) == ["# 買い物\n## 今日\n牛乳", "卵", "# 終わり"]


def test_a_day_in_the_name_says_when_it_happened(tmp_path: Path) -> None:
    days = {"2025-10-17": "2025-10-17", "日記20251017": "2025-10-17", "2025年10月17日": "2025-10-17", "20259999": None, "12345678901": None}
    for name, day in days.items():
        (row,) = rows_of_text(write(tmp_path / f"{name}.txt", "晴れ"))
        assert row.get("occurred_at") == day


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932"])
def test_a_text_is_read_in_the_encodings_that_japanese_files_have(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.txt", "抹茶が好き。".encode(encoding))
    assert contents(list(rows_of_text(path))) == ["抹茶が好き。"]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not text in UTF-8"):
        list(rows_of_text(write(tmp_path / "a.txt", b"\x81\x00\xfd\xfe\xff")))


def test_a_paragraph_too_long_for_one_memory_is_cut_at_sentence_ends(tmp_path: Path) -> None:
    text = "これは長い段落の一文です。" * 1_000
    found = contents(list(rows_of_text(write(tmp_path / "a.txt", text))))
    assert "".join(found) == text
    assert all(len(piece) <= PIECE_CHARACTERS and piece.endswith("。") for piece in found)


def test_a_directory_of_texts_goes_on_after_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"\x81\x00\xfd\xfe\xff")
    write(tmp_path / "下" / "b.txt", "良い")
    write(tmp_path / ".git" / "c.txt", "隠れ")
    write(tmp_path / "d.png", "絵")
    reported: list[str] = []
    rows = list(rows_of_texts(tmp_path, reported.append))
    assert [(row["content"], row["session_id"]) for row in rows] == [("良い", "下/b.txt")]
    assert len(reported) == 1
    assert "a.txt" in reported[0]


def test_a_note_is_one_memory_with_its_tags_and_date(tmp_path: Path) -> None:
    note = "---\ntags: [料理, work]\ndate: 2025-10-17\n---\n湯豆腐を作った #京都/夜 と #100 と #2025年\n\n二段落目\n"
    write(tmp_path / "食" / "夕飯.md", note)
    rows, reported = vault(tmp_path)
    assert rows == [
        {
            "content": "湯豆腐を作った #京都/夜 と #100 と #2025年\n\n二段落目",
            "source": "夕飯",
            "session_id": "食/夕飯.md",
            "kind": "fact",
            "created_at": "2025-10-01T00:00:00+00:00",
            "tags": ["2025年", "work", "京都/夜", "料理"],
            "occurred_at": "2025-10-17",
        }
    ]
    assert reported == []


def test_a_front_matter_may_say_no_more_than_when_a_note_was_made(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\ncreated: 2025-10-17T08:00:00\n---\n本文\n")
    ((row,), reported) = vault(tmp_path)
    assert (row["content"], row["occurred_at"], reported) == ("本文", "2025-10-17 08:00:00", [])


def test_a_long_note_is_cut_at_paragraph_ends(tmp_path: Path) -> None:
    paragraphs = [f"{number}段落目。" + "あ" * 700 for number in range(7)]
    write(tmp_path / "長い.md", "\n\n".join(paragraphs))
    rows, _ = vault(tmp_path)
    assert contents(rows) == ["\n\n".join(paragraphs[start : start + 2]) for start in range(0, 7, 2)]


@pytest.mark.parametrize("front", ["title: a: b", "- only\n- a list", "tags: [2024, x]", "", "tags: {a"])
def test_a_front_matter_that_can_not_be_parsed_loses_no_note(tmp_path: Path, front: str) -> None:
    write(tmp_path / "a.md", f"---\n{front}\n---\n本文\n")
    write(tmp_path / "b.md", "---\nkind: fine\n---\n別のノート\n")
    rows, reported = vault(tmp_path)
    assert rows[0]["content"].endswith("本文")
    assert rows[1]["content"] == "別のノート"
    assert len(reported) == 1
    assert "a.md: its front matter can't be read" in reported[0]


def test_a_note_that_is_not_utf8_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "抹茶".encode("cp932"))
    write(tmp_path / "b.md", "良い")
    rows, reported = vault(tmp_path)
    assert contents(rows) == ["良い"]
    assert len(reported) == 1
    assert "a.md can't be read" in reported[0]


def test_what_obsidian_keeps_for_itself_and_empty_notes_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / ".obsidian" / "plugin.md", "設定")
    write(tmp_path / ".trash" / "old.md", "捨てた")
    write(tmp_path / "empty.md", "\n")
    assert vault(tmp_path) == ([], [])
