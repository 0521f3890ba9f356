"""Text files become rows that an import takes."""

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.transfer.formats import Format, text_files
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.formats.table import ROWS
from memory_mcp.transfer.formats.text_files import PIECE_CHARACTERS

CHANGED = datetime(2025, 10, 1, tzinfo=UTC)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (CHANGED.timestamp(), CHANGED.timestamp()))
    return path


def rows(path: Path) -> list[dict]:
    return [one.row for one in text_files.read(source_of(path), None) if one.row]


def refusals(path: Path) -> list[ImportItem]:
    return [one for one in text_files.read(source_of(path), None) if one.refused]


def contents(path: Path) -> list[str]:
    return [row["content"] for row in rows(path)]


def test_a_text_becomes_one_row_for_each_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path / "日記.txt", "猫の名前はミケ。\nよく寝る。\n\n \n犬はいない。\n")
    common = {"source": "日記", "session_id": "日記.txt", "kind": "fact", "created_at": "2025-10-01T00:00:00+00:00"}
    origin = {"metadata": {"origin": {"format": "text", "file": "日記.txt"}}}
    assert rows(path) == [{"content": "猫の名前はミケ。\nよく寝る。", **common, **origin}, {"content": "犬はいない。", **common, **origin}]


def test_a_paragraph_that_is_said_again_is_a_memory_of_its_own_and_a_line_of_stars_none(tmp_path: Path) -> None:
    path = write(tmp_path / "日報.txt", "四月\n\n特になし。\n\n＊\n\n五月\n\n特になし。\n\n＊\n\n六月\n\n特になし。\n")
    read = rows(path)
    keys = [row.get("key") for row in read if row["content"] == "特になし。"]
    assert (keys[0], len(set(keys))) == (None, 3)
    assert {row.get("key") for row in read if row["content"] != "特になし。"} == {None}


def test_code_between_fences_is_one_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "手順：\n```sh\ncd a\n\nmake\n```\n\n次\n\n~~~\n```\n\nx\n~~~\n\n```\n開いたまま\n\n終わり\n")
    assert contents(path) == ["手順：\n```sh\ncd a\n\nmake\n```", "次", "~~~\n```\n\nx\n~~~", "```\n開いたまま", "終わり"]


def test_a_heading_stays_with_what_follows_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "# 買い物\n\n## 今日\n\n牛乳\n\n卵\n\n# 終わり\n")
    assert contents(path) == ["# 買い物\n## 今日\n牛乳", "卵", "# 終わり"]


def test_a_day_in_the_name_says_when_it_happened(tmp_path: Path) -> None:
    days = {"2025-10-17": "2025-10-17", "日記20251017": "2025-10-17", "2025年10月17日": "2025-10-17", "20259999": None, "12345678901": None}
    for name, day in days.items():
        (row,) = rows(write(tmp_path / f"{name}.txt", "晴れ"))
        assert row.get("occurred_at") == day


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932", "euc_jp", "iso2022_jp"])
def test_a_text_is_read_in_the_encodings_that_japanese_files_have(tmp_path: Path, encoding: str) -> None:
    assert contents(write(tmp_path / "a.txt", "抹茶が好き。".encode(encoding))) == ["抹茶が好き。"]
    assert contents(write(tmp_path / "b.txt", "カタカナ".encode(encoding))) == ["カタカナ"]


def test_a_text_is_read_as_it_begins_however_it_goes_on(tmp_path: Path) -> None:
    kana, kanji = "ひらがなの文です。" * 1200, "会議資料議事録" * 8000
    read = "".join(contents(write(tmp_path / "a.txt", f"{kana}\n\n{kanji}".encode("euc_jp"))))
    assert read == kana + kanji


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("ﾔﾏﾀﾞ･ﾀﾛｳ", "cp932", ["ﾔﾏﾀﾞ･ﾀﾛｳ"]),  # valid EUC-JP, too
        ("中文文本，今天天气很好。", "gbk", []),
        ("ESC $B は \x1b$B です。", "utf-8", ["ESC $B は \x1b$B です。"]),
    ],
)
def test_a_text_is_not_read_in_an_encoding_that_it_only_seems_to_have(
    tmp_path: Path, text: str, encoding: str, expected: list[str]
) -> None:
    assert contents(write(tmp_path / "a.txt", text.encode(encoding))) == expected


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (refused,) = refusals(write(tmp_path / "a.txt", b"\x81\x00\xfd\xfe\xff"))
    assert "not text in UTF-8" in refused.refused


def test_a_paragraph_too_long_for_one_memory_is_cut_at_sentence_ends(tmp_path: Path) -> None:
    text = "これは長い段落の一文です。" * 1_000
    found = contents(write(tmp_path / "a.txt", text))
    assert "".join(found) == text
    assert all(len(piece) <= PIECE_CHARACTERS and piece.endswith("。") for piece in found)


def test_a_directory_of_texts_goes_on_after_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"\x81\x00\xfd\xfe\xff")
    write(tmp_path / "下" / "b.txt", "良い")
    write(tmp_path / ".git" / "c.txt", "隠れ")
    write(tmp_path / "d.png", "絵")
    assert [(row["content"], row["session_id"]) for row in rows(tmp_path)] == [("良い", "下/b.txt")]
    assert [one.where for one in refusals(tmp_path)] == ["a.txt"]


def test_a_link_out_of_the_directory_is_refused_and_the_rest_is_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "秘密.txt", "読まれてはならない。")
    inside = write(tmp_path / "texts" / "a.txt", "読まれる。")
    (inside.parent / "link.txt").symlink_to(outside)
    (inside.parent / "directory").symlink_to(outside.parent, target_is_directory=True)
    (inside.parent / "same.txt").symlink_to(inside)
    assert contents(inside.parent) == ["読まれる。", "読まれる。"]
    assert "link.txt" in {one.where for one in refusals(inside.parent)}


def test_a_zip_of_texts_is_read_as_its_directory_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "日記.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("2025/昨日.txt", (2025, 10, 1, 0, 0, 0)), "晴れ")
    write(tmp_path / "2025" / "昨日.txt", "晴れ")
    assert rows(tmp_path / "日記.zip") == rows(tmp_path)
    with pytest.raises(InvalidInput, match="is not recognized"):
        detect_format(tmp_path / "日記.zip")
    assert detect_format(tmp_path / "日記.zip", Format.TEXT) == Format.TEXT


def test_a_private_key_is_one_piece_that_the_server_sees_whole(tmp_path: Path) -> None:
    body = "\n".join(["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI"] * 50)
    key = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{body}\n-----END RSA PRIVATE KEY-----"
    found = contents(write(tmp_path / "a.txt", f"前の段落。\n\nサーバーの鍵:\n{key}\n\n後の段落。"))
    assert found == ["前の段落。", "サーバーの鍵:", key, "後の段落。"]
    assert all("MIIE" not in Redaction(Privacy()).text(content) for content in found)


def test_what_a_zip_hides_and_what_leads_out_of_it_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        for name in ("a.md", "../../evil.md", "/etc/evil.md", ".obsidian/app.json", "__MACOSX/._a.md"):
            archive.writestr(name, "text")
    for kind in (Format.OBSIDIAN, Format.TEXT):
        found = list(ROWS[kind].read(tmp_path / "notes.zip", ReadOptions(), lambda *_: None))
        assert [(one.left_out, one.where) for one in found if one.left_out] == [
            ("files outside of the zip", "../../evil.md"),
            ("files outside of the zip", "/etc/evil.md"),
            ("hidden files", ".obsidian/app.json"),
            ("hidden files", "__MACOSX/._a.md"),
        ]


def test_lines_of_headings_alone_are_read_once_and_stay_with_the_block_after_them(tmp_path):
    # Whoever tries to cut a line at each sign is not done with forty of them in a lifetime.
    assert contents(write(tmp_path / "a.txt", "# " * 40 + "\nx")) == ["# " * 40 + "\nx"]
    assert contents(write(tmp_path / "b.txt", "# A\n## B\n\n### C\n\ntext")) == ["# A\n## B\n### C\ntext"]
    long = "# " * 50_000
    assert "".join(contents(write(tmp_path / "c.txt", f"{long}\n\nx"))).replace(" ", "").replace("\n", "") == f"{'#' * 50_000}x"


def test_json_is_no_text(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", '{"entries": {"0": {"content": "灯台"}}}')
    (item,) = text_files.read(source_of(tmp_path / "a.txt"), None)
    assert item.refused.startswith("It is JSON")
    assert contents(write(tmp_path / "b.txt", "[1] 灯台へ行った。")) == ["[1] 灯台へ行った。"]
