"""A folder or a zip holds files of any formats: each is read by its own, and the answer says which."""

import json
import zipfile
from pathlib import Path

import pytest

from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ReadOptions
from memory_mcp.transfer.formats.readers import by_persona, parts_of
from memory_mcp.transfer.formats.worker import Asked, Counted, Part, Recognized, answers

LINE_CHAT = "[LINE] 花子とのトーク履歴\n保存日時：2025/01/06 10:00\n\n2025/01/05(日)\n10:00\t花子\t凧を揚げた\n"
CHATGPT = [
    {
        "title": "茶",
        "id": "c1",
        "current_node": "m",
        "mapping": {"m": {"id": "m", "message": {"id": "m", "author": {"role": "user"}, "content": {"parts": ["抹茶が好き"]}}}},
    }
]
TELEGRAM = {
    "name": "花子",
    "type": "personal_chat",
    "id": 1,
    "messages": [{"id": 1, "type": "message", "date": "2025-01-05T10:00:00", "from": "花子", "from_id": "user1", "text": "凧"}],
}
WHATSAPP = "[2025/01/05, 10:00:00] 花子: 凧を揚げた\n[2025/01/05, 10:01:00] 太郎: いいね\n"


@pytest.fixture(params=["folder", "zip"])
def put(request: pytest.FixtureRequest, tmp_path: Path):
    def make(files: dict[str, object]) -> Path:
        texts = {name: text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for name, text in files.items()}
        if request.param == "zip":
            with zipfile.ZipFile(tmp_path / "もの.zip", "w") as packed:
                for name, text in texts.items():
                    packed.writestr(name, text)
            return tmp_path / "もの.zip"
        for name, text in texts.items():
            (tmp_path / "もの" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "もの" / name).write_text(text)
        return tmp_path / "もの"

    return make


def read(path: Path) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """What is stored by format, and what is left out or refused."""
    stored: dict[str, list[str]] = {}
    others: list[tuple[str, str]] = []
    for part in parts_of(path):
        ((_, items),) = by_persona(part, ReadOptions(), print, None)
        for item in items:
            if item.row is None:
                others.append((item.where, item.left_out or item.refused))
            elif "content" in item.row:
                stored.setdefault(part.format.value, []).append(item.row["content"])
    return stored, others


def test_each_file_is_read_by_its_own_format(put) -> None:
    path = put(
        {
            "日記.md": "晴れ",
            "買い物/表.csv": "内容\n柿\n",
            "記事.html": "<h1>歴史</h1>百年前",
            "メモ.txt": "雑記",
            "トーク.txt": LINE_CHAT,
            "絵.png": "",
            "数.csv": "a,b\n1,2\n",
        }
    )
    stored, others = read(path)
    text = "text" if path.is_dir() else "document"
    expected = {"obsidian": ["晴れ"], "csv": ["柿"], "document": ["歴史\n\n百年前"], "line": ["凧を揚げた"]}
    expected[text] = [*expected.get(text, []), "雑記"]
    assert {kind: sorted(texts) for kind, texts in stored.items()} == {kind: sorted(texts) for kind, texts in expected.items()}
    assert sorted(others) == [("数.csv", "attachments"), ("絵.png", "attachments")]


def test_the_tables_of_notion_are_read_beside_its_pages(put) -> None:
    stored, others = read(
        put({"本 0123456789abcdef0123456789abcdef.md": "# 本\n\n読んだ", "本/表.csv": "Name,Tags\n柿の木,木\n", "本/a.png": ""})
    )
    assert stored == {"obsidian": ["# 本\n読んだ"], "csv": ["柿の木"]}
    assert others == [("本/a.png", "attachments")]


def test_notes_are_read_beside_the_export_of_a_program(put) -> None:
    path = put({"conversations.json": CHATGPT, "chat.html": "<title>ChatGPT Data Export</title>", "file-Ab12.pdf": "", "日記.md": "晴れ"})
    stored, others = read(path)
    assert stored == {"chatgpt": ["抹茶が好き"], "obsidian": ["晴れ"]}
    assert sorted(others) == [("chat.html", "other files"), ("file-Ab12.pdf", "other files")]


@pytest.mark.parametrize(
    ("kind", "files", "text"),
    [
        ("telegram", {"result.json": TELEGRAM, "files/表.csv": "内容\n柿\n", "files/a.html": "<p>桃"}, "凧"),
        ("whatsapp", {"_chat.txt": WHATSAPP, "00000003-表.csv": "内容\n柿\n", "話.txt": "桃"}, "凧を揚げた"),
    ],
)
def test_what_was_sent_in_a_chat_is_no_document_of_its_own(put, kind: str, files: dict[str, object], text: str) -> None:
    stored, others = read(put(files))
    assert [*stored] == [kind]
    assert text in stored[kind]
    assert len(others) == len(files) - 1


def test_what_is_in_another_folder_than_the_chat_was_not_sent_in_it(tmp_path: Path) -> None:
    for name, text in {"話/_chat.txt": WHATSAPP, "表/a.csv": "内容\n柿\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    stored, _ = read(tmp_path)
    assert stored == {"csv": ["柿"], "whatsapp": ["凧を揚げた", "いいね"]}


def test_a_folder_of_one_format_keeps_the_keys_of_its_memories(put) -> None:
    """A part of a folder names its files and itself as the whole folder does."""
    files = {"a/日記.md": "晴れ", "表.csv": "内容\n柿\n"}
    path = put(files)
    keys = [
        item.row["key"]
        for part in parts_of(path)
        for _, items in by_persona(part, ReadOptions(), print, None)
        for item in items
        if "key" in (item.row or {})
    ]
    whole = [
        item.row["key"]
        for kind in (Format.OBSIDIAN, Format.CSV)
        for item in by_persona(type(parts_of(path)[0])(kind, path), ReadOptions(), print, None)[0][1]
        if "key" in (item.row or {})
    ]
    assert sorted(keys) == sorted(whole)


def test_what_a_process_reads_of_a_folder_says_the_format_before_the_lines_of_it(put) -> None:
    path = put({"日記.md": "晴れ", "表.csv": "内容\n柿\n"})
    told = [answer for answer in answers(Asked(path, Format.AUTO, "nilou")) if not isinstance(answer, Part) or answer.lines]
    shape = [
        answer.format if isinstance(answer, Recognized) else len(answer.lines) for answer in told if isinstance(answer, Recognized | Part)
    ]
    # A note has two lines, and so has its vault: its text, how many pieces it has, and the name of the vault.
    assert shape == [Format.OBSIDIAN, Format.OBSIDIAN, 3, Format.CSV, 1]
    assert Counted(4) in told
