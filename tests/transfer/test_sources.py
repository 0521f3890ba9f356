"""The names in a zip, whatever wrote it: in which encoding they are, and what separates folders."""

import io
import zipfile
from pathlib import Path

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.import_rows import NO_OPTIONS
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import SMALL_BYTES, source_of
from memory_mcp.transfer.formats.table import ROWS


class Named(zipfile.ZipInfo):
    """An entry whose name is written as these bytes, with or without the mark of UTF-8."""

    def __init__(self, name: bytes, flag: int = 0) -> None:
        super().__init__(name.decode("utf-8" if flag else "cp437"))
        self.encoded = name, flag

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802  zipfile calls it
        return self.encoded[0], self.encoded[1] | (self.flag_bits & ~0x800)


def zipped(path: Path, *entries: Named) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for entry in entries:
            archive.writestr(entry, entry.encoded[0])
    return path


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["保管庫\\旅\\小樽.md".encode()], ["保管庫/旅/小樽.md"]),  # as of the Mac's own program, without the mark
        (["表.md".encode("cp932"), "保管庫/ソース.md".encode("cp932")], ["保管庫/ソース.md", "表.md"]),
        (["ﾊﾟｿｺﾝ.md".encode("cp932")], ["ﾊﾟｿｺﾝ.md"]),
        (["A表示\\母.md".encode("cp932")], ["A表示/母.md"]),
        (["Köln.md".encode("cp437"), "Château\\été.md".encode("cp437")], ["Château/été.md", "Köln.md"]),
        ([b"folder\\a.md", b"folder\\"], ["folder/a.md"]),
    ],
)
def test_names_are_read_as_they_were_meant(tmp_path: Path, names: list[bytes], expected: list[str]) -> None:
    source = source_of(zipped(tmp_path / "a.zip", *map(Named, names)))
    assert source.names() == expected
    assert not source.ignored()
    with source.open(expected[0]) as file:
        assert file.read() in names


def test_marked_names_are_utf_8_beside_unmarked_ones(tmp_path: Path) -> None:
    source = source_of(zipped(tmp_path / "a.zip", Named("小樽\\母.md".encode(), 0x800), Named("表.md".encode("cp932"))))
    assert source.names() == ["小樽/母.md", "表.md"]


def test_names_that_lead_out_are_counted_and_so_are_those_of_another_file(tmp_path: Path) -> None:
    entries = [
        Named(name) for name in (b"a\\b.md", b"a/b.md", b"..\\evil.md", b"C:\\evil.md", b"\\\\host\\evil.md", b"a\\.git\\x", b"a\\~$b.docx")
    ]
    source = source_of(zipped(tmp_path / "a.zip", *entries))
    assert source.names() == ["a/b.md"]
    assert source.ignored() == {
        "files of the same name": ["a/b.md"],
        "files outside of the zip": ["../evil.md", "C:/evil.md", "//host/evil.md"],
        "hidden files": ["a/.git/x", "a/~$b.docx"],
    }


@pytest.mark.parametrize("name", ["conversations.json", "card.png", "chat.txt", "sessions.jsonl"])
def test_a_damaged_zip_is_refused_wherever_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b'{"title": "spring"}')
    path.write_bytes(path.read_bytes().replace(b"spring", b"winter"))
    with pytest.raises(InvalidInput, match="can't be read"), source_of(path).open(name) as file:
        file.read()
    with pytest.raises(InvalidInput):
        detect_format(path)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("card.webp", "Save the card as PNG or JSON"),
        ("card.JPG", "Save the card as PNG or JSON"),
        ("book.xls", r"Save what is in it as \.xlsx or \.csv"),
        ("letter.odt", r"Save what is in it as \.docx or \.pdf"),
        ("all.7z", r"Save what is in it as \.zip"),
    ],
)
def test_a_file_of_a_kind_that_is_not_read_says_as_what_it_would_be(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(InvalidInput, match=advice):
        detect_format(tmp_path / name)


def test_zips_in_a_zip_of_nothing_else_are_one(tmp_path: Path) -> None:
    for number, name in enumerate(("a/日記.md", "a/絵.png"), start=1):
        with zipfile.ZipFile(tmp_path / f"Part-{number}.zip", "w") as part:
            part.writestr(name, name)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as outer:
        for number in (1, 2):
            outer.write(tmp_path / f"Part-{number}.zip", f"ExportBlock-Part-{number}.zip")
    source = source_of(tmp_path / "a.zip")
    assert (source.label, source.names()) == ("a", ["a/日記.md", "a/絵.png"])
    with source.open("a/日記.md") as file:
        assert file.read().decode() == "a/日記.md"
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as outer:
        outer.writestr("b.md", "b")
    assert source_of(tmp_path / "a.zip").names() == ["ExportBlock-Part-1.zip", "ExportBlock-Part-2.zip", "b.md"]


def zip_of(**files: str | bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def test_chats_of_the_same_name_in_the_zips_of_a_zip_have_the_titles_of_their_zips(tmp_path: Path) -> None:
    chat = "[05.02.24, 21:00:00] Ann: hi\n"
    inner = {f"WhatsApp Chat - {name}.zip": zip_of(**{"_chat.txt": chat, f"{name}.jpg": ""}) for name in ("Ann", "Bo")}
    path = tmp_path / "all.zip"
    path.write_bytes(zip_of(**inner))
    assert source_of(path).names() == ["Ann.jpg", "Bo.jpg", "WhatsApp Chat - Ann/_chat.txt", "WhatsApp Chat - Bo/_chat.txt"]
    rows = [item.row for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]
    assert [row["session_id"] for row in rows] == ["WhatsApp Ann 2024-02-05", "WhatsApp Bo 2024-02-05"]


def test_a_zip_in_a_zip_that_cannot_be_read_is_refused_by_its_name_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(zip_of(**{"a.zip": zip_of(**{"a.md": "鍵は壺の中"}), "b.zip": "cut off", "c.zip": zip_of(**{"c.md": "雨"})}))
    items = list(ROWS[detect_format(path)].read(path, NO_OPTIONS, print))
    assert [item.where for item in items if item.row and "content" in item.row] == ["a.md", "c.md"]
    assert not any(item.row and "notes_of" in item.row for item in items)  # what b.zip has is not taken for deleted
    assert [item.where for item in items if "can't be read as a zip" in item.refused] == ["b.zip"]
    path.write_bytes(zip_of(**{"b.zip": "cut off"}))
    with pytest.raises(InvalidInput, match=r"b\.zip can't be read as a zip"):
        source_of(path)


def test_a_zip_in_a_zip_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "inner.zip", "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("a.md", b"0" * (SMALL_BYTES + 1))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as outer:
        outer.write(tmp_path / "inner.zip", "inner.zip")
    with pytest.raises(InvalidInput, match="expands to"):
        source_of(tmp_path / "a.zip")


OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.docx", b"%PDF-1.7", "of another kind"),
        ("a.pdf", b"text", "of another kind"),
        ("a.csv", b"PK\x03\x04", "of another kind"),
        ("a.txt", b"%PDF-1.7", "of another kind"),
        ("a.xlsx", OLD_OFFICE, "a password, or is of an old program"),
        ("a.xlsx", b"PK\x03\x04", "damaged or cut off"),
    ],
)
def test_a_file_that_is_not_what_it_is_called_says_so(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    (item,) = ROWS[detect_format(tmp_path / name)].read(tmp_path / name, NO_OPTIONS, print)
    assert why in item.refused


def test_a_zip_with_a_password_says_so(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("a.md")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "a")
        entry.flag_bits |= 1
    with pytest.raises(InvalidInput, match=r"a\.md can't be read: it has a password"), source_of(tmp_path / "a.zip").open("a.md"):
        pass
