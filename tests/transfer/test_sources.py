"""The names in a zip, whatever wrote it: in which encoding they are, and what separates folders."""

import zipfile
from pathlib import Path

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of


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
    entries = [Named(name) for name in (b"a\\b.md", b"a/b.md", b"..\\evil.md", b"C:\\evil.md", b"\\\\host\\evil.md", b"a\\.git\\x")]
    source = source_of(zipped(tmp_path / "a.zip", *entries))
    assert source.names() == ["a/b.md"]
    assert source.ignored() == {
        "files of the same name": ["a/b.md"],
        "files outside of the zip": ["../evil.md", "C:/evil.md", "//host/evil.md"],
        "hidden files": ["a/.git/x"],
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
