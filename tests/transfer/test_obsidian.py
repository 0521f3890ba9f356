"""Obsidian vaults become rows that an import takes: anybody's notes with what they say, ours with every field."""

import json
import os
import random
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format, obsidian
from memory_mcp.transfer.formats.obsidian_notes import (
    format_note,
    is_template,
    links_in,
    parse_note,
    tags_in,
    with_short_links,
    without_comments,
)
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.formats.text_files import PIECE_CHARACTERS, paragraphs

CHANGED = datetime(2025, 10, 1, tzinfo=UTC)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (CHANGED.timestamp(), CHANGED.timestamp()))
    return path


class Read:
    """What came of reading a vault."""

    def __init__(self, path: Path) -> None:
        self.reported: list[str] = []
        found = list(obsidian.read(source_of(path), self.reported.append))
        self.left_out = [(one.where, one.left_out) for one in found if one.left_out]
        self.refused = [(one.where, one.refused) for one in found if one.refused]
        self.rows = [one.row for one in found if one.row and "content" in one.row]
        self.lengths = [one.row["pieces"] for one in found if one.row and "pieces_of" in one.row]

    @property
    def contents(self) -> list[str]:
        return [row["content"] for row in self.rows]


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("日付: 2025年11月18日", "2025年11月18日"),
        ("Date: November 18, 2025 → November 20, 2025", "November 18, 2025"),
        ("日付：2025-11-18", "2025-11-18"),
    ],
)
def test_a_page_of_notion_has_its_title_and_its_day(tmp_path: Path, line: str, day: str) -> None:
    note = f"# 釣りの会\n\nStatus: Done\n{line}\n\n本文。\n"
    write(tmp_path / f"釣りの会 {'20240102' * 4}.md", note)
    (row,) = Read(tmp_path).rows
    assert (row["source"], row["occurred_at"]) == ("釣りの会", day)
    assert row["content"].startswith(f"# 釣りの会\nStatus: Done\n{line}")


def test_tags_are_those_of_the_front_matter_or_of_the_lines_below_the_title(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\nタグ: 家族、旅\n---\n京都")
    write(tmp_path / "b.md", "# 会議\n日付: 2025-03-04\nタグ: 仕事, 会議\n\n決めた")
    assert [row["tags"] for row in Read(tmp_path).rows] == [["家族", "旅"], ["仕事", "会議"]]


def test_a_day_of_an_era_is_read_wherever_it_stands_in_a_title(tmp_path: Path) -> None:
    write(tmp_path / "令和6年5月1日のメモ.md", "晴れ")
    assert [row["occurred_at"] for row in Read(tmp_path).rows] == ["2024-05-01"]


def test_a_day_further_below_is_not_that_of_the_note(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# 釣りの会\n\n本文。\n\n日付: 2025年11月18日\n")
    assert "occurred_at" not in Read(tmp_path).rows[0]


def test_a_note_is_one_memory_with_its_tags_its_date_and_its_links(tmp_path: Path) -> None:
    note = (
        "---\ntags: [料理, work, 2024]\ndate: 2025-10-17\nmood: 良い\n---\n湯豆腐を作った #京都/夜 と #100 と [[豆腐|とうふ]]\n\n二段落目\n"
    )
    write(tmp_path / "食" / "夕飯.md", note)
    found = Read(tmp_path)
    (row,) = found.rows
    key = row.pop("key")
    assert key.startswith("obsidian_")
    assert key.endswith("_0")
    assert row == {
        "content": "湯豆腐を作った #京都/夜 と #100 と [[豆腐|とうふ]]\n\n二段落目\n\nmood: 良い",
        "source": "夕飯",
        "session_id": "食/夕飯.md",
        "kind": "fact",
        "created_at": "2025-10-01T00:00:00+00:00",
        "tags": ["2024", "work", "京都/夜", "料理"],
        "occurred_at": "2025-10-17",
        "metadata": {
            "front_matter": {"mood": "良い"},
            "origin": {"format": "obsidian", "vault": tmp_path.name, "note": "食/夕飯.md", "links": ["豆腐"]},
        },
    }
    assert (found.lengths, found.reported, found.refused) == ([1], [], [])


def test_what_looks_like_a_tag_or_a_link_in_code_is_none(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "#本物\n```sh\n#偽物 [[偽]]\n```\n~~~\n#偽物2\n~~~\n`#偽物3` と ``#偽物 `4` `` と [[本]]\n")
    (row,) = Read(tmp_path).rows
    assert row["tags"] == ["本物"]
    assert row["metadata"]["origin"]["links"] == ["本"]


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert tags_in("#前\n```\n#中\n") == ["前"]
    assert links_in("[[前]]\n````\n```\n[[中]]\n````\n[[後]]") == ["前", "後"]


def test_a_front_matter_may_say_no_more_than_when_a_note_was_made(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\ncreated: 2025-10-17T08:00:00\n---\n本文\n")
    (row,) = Read(tmp_path).rows
    assert (row["content"], row["occurred_at"]) == ("本文", "2025-10-17T08:00:00")


def test_a_long_note_is_cut_at_paragraph_ends_and_says_into_how_many_pieces(tmp_path: Path) -> None:
    paragraphs = [f"{number}段落目。" + "あ" * 700 for number in range(7)]
    write(tmp_path / "長い.md", "\n\n".join(paragraphs))
    found = Read(tmp_path)
    assert found.contents == ["\n\n".join(paragraphs[start : start + 2]) for start in range(0, 7, 2)]
    assert all(len(content) <= PIECE_CHARACTERS for content in found.contents)
    assert len({row["key"].rpartition("_")[0] for row in found.rows}) == 1
    assert found.lengths == [4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\r\ntags: [旅行]\r\n---\r\n清水寺に行った。", Format.OBSIDIAN),
        ("---\n朝は雨\n---\n昼は晴れ", Format.TEXT),
        ("清水寺に行った。", Format.TEXT),
    ],
)
def test_a_single_note_is_known_by_its_front_matter(tmp_path: Path, text: str, expected: Format) -> None:
    assert detect_format(write(tmp_path / "a.md", text)) is expected


@pytest.mark.parametrize("front", ["title: a: b", "- only\n- a list", "tags: {a", "a: &x [1]\nb: *x", "a: !!python/object:os.system x"])
def test_a_front_matter_that_can_not_be_read_stays_in_the_text_and_is_reported(tmp_path: Path, front: str) -> None:
    write(tmp_path / "a.md", f"---\n{front}\n---\n本文\n")
    write(tmp_path / "b.md", "---\nkind: fine\n---\n別のノート\n")
    found = Read(tmp_path)
    assert found.contents[0].startswith("---")
    assert found.contents[0].endswith("本文")
    assert found.contents[1] == "別のノート\n\nkind: fine"
    assert found.reported == ["a.md: its front matter can't be read and stays in the text"]


@pytest.mark.parametrize("front", ["", "tags: [2024, x]", "# only a comment", "tags: 料理, 夕飯"])
def test_an_odd_front_matter_that_can_be_read_is_no_part_of_the_text(tmp_path: Path, front: str) -> None:
    write(tmp_path / "a.md", f"---\n{front}\n---\n本文\n")
    found = Read(tmp_path)
    assert (found.contents, found.reported) == (["本文"], [])


def test_a_note_in_shift_jis_is_read_and_one_that_is_no_text_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "抹茶".encode("cp932"))
    write(tmp_path / "b.md", b"\x81\x00\xfd\xfe\xff")
    write(tmp_path / "c.md", "\ufeff良い")
    found = Read(tmp_path)
    assert found.contents == ["抹茶", "良い"]
    assert [where for where, _ in found.refused] == ["b.md"]


def test_what_obsidian_keeps_for_itself_is_left_out_and_an_empty_note_has_no_pieces(tmp_path: Path) -> None:
    write(tmp_path / ".obsidian" / "plugin.md", "設定")
    write(tmp_path / ".trash" / "old.md", "捨てた")
    write(tmp_path / "empty.md", "\n")
    found = Read(tmp_path)
    assert (found.rows, found.lengths, found.refused) == ([], [0], [])
    assert found.left_out == [("empty.md", "notes without text")]


def test_a_link_out_of_the_vault_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "外のひみつ")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "link.md").symlink_to(tmp_path / "secret.md")
    found = Read(tmp_path / "vault")
    assert found.rows == []
    assert "a link out of the directory" in found.refused[0][1]


def test_a_zip_is_read_like_a_directory_and_names_that_lead_elsewhere_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as vault_zip:
        for name in ("a.md", "../b.md", "/c.md", "d/../../e.md", ".obsidian/f.md", "__MACOSX/g.md"):
            vault_zip.writestr(name, f"ノート{name}")
    found = Read(tmp_path / "v.zip")
    assert found.contents == ["ノートa.md"]


def test_a_zip_entry_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as vault_zip:
        vault_zip.writestr("bomb.md", b"a" * (32 * 1024 * 1024))
        vault_zip.writestr("good.md", "良い")
        vault_zip.writestr("noise.bin", random.Random(0).randbytes(256 * 1024))
    found = Read(tmp_path / "v.zip")
    assert found.contents == ["良い"]
    assert "expands to 33,554,432 bytes" in found.refused[0][1]


def test_a_zip_of_small_entries_that_unfold_without_end_is_refused_as_a_whole(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as vault_zip:
        for number in range(5):
            vault_zip.writestr(f"{number}.md", b"a " * (2 * 1024 * 1024))
    with pytest.raises(InvalidInput, match="expands to 20,971,520 bytes"):
        source_of(tmp_path / "v.zip")


def test_code_between_backticks_ends_with_its_paragraph() -> None:
    assert links_in("a ` [[一]]\n\n[[二]] ` b") == ["一", "二"]
    assert links_in("a ` [[一]]\n[[二]] ` b [[三]]") == ["三"]


@pytest.mark.parametrize(
    "text",
    [
        "`",
        "".join("`" * number + " " for number in range(1, 1_500)),
        "".join("a" + "`" * number for number in range(1_500, 0, -1)),
        "<%",
        "%%",
        "[[a",
        "# h\n\n",
        "```\n````\n",
    ],
)
@pytest.mark.slow
def test_a_text_made_to_be_read_for_ever_is_read_to_its_end(text: str) -> None:
    hostile = (text * (1_100_000 // len(text) + 1))[:1_100_000]
    note = f"{hostile}\n\n"
    for read in (links_in, tags_in, without_comments, with_short_links, lambda body: is_template("a.md", body)):
        read(note)
    assert len("\n".join(paragraphs(note)).split()) == len(note.split())


def test_a_note_of_ours_has_every_field_again_and_what_is_for_readers_is_left_out(tmp_path: Path) -> None:
    row = {"key": "memory_1", "tags": ["好み", "2025"], "importance": 0.9, "state": {"emotion": "嬉"}, "metadata": {"x": [1, None]}}
    text = format_note({"memory_mcp": "memory", "date": CHANGED.date(), **row, "links": ["[[days/2025-10-01]]"]}, "\n本文 #語\n\n")
    write(tmp_path / "moved" / "renamed.md", text)
    write(tmp_path / "days" / "2025-10-01.md", "---\nmemory_mcp: index\n---\n- [[renamed]]\n")
    found = Read(tmp_path)
    assert found.rows == [{**row, "content": "\n本文 #語\n\n"}]


def test_a_note_of_ours_that_an_editor_wrote_again_is_the_same_row(tmp_path: Path) -> None:
    text = "---\nkey: memory_1\nmemory_mcp: memory\ntags:\n  - 好み\n  - 2025\ncreated_at: 2025-10-30T03:00:00+00:00\n---\n本文\n二行目\n"
    write(tmp_path / "a.md", text)
    write(tmp_path / "b.md", text.replace("\n", "\r\n"))
    row = {"key": "memory_1", "tags": ["好み", "2025"], "created_at": "2025-10-30T03:00:00+00:00", "content": "本文\n二行目"}
    assert Read(tmp_path).rows == [row, row]


def test_a_note_that_claims_to_be_ours_without_a_key_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\nmemory_mcp: memory\n---\n本文\n")
    found = Read(tmp_path)
    assert found.rows == []
    assert "but no key" in found.refused[0][1]


@given(content=WORDS, value=st.recursive(WORDS | st.integers(-(2**31), 2**31) | st.booleans(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_a_note_of_ours_says_is_read_as_it_was_written(content: str, value: object) -> None:
    note = parse_note(format_note({"memory_mcp": "memory", "key": "k", "field": value}, content))
    assert note.fields == {"memory_mcp": "memory", "key": "k", "field": value}
    assert note.body == f"{content}\n"


@pytest.mark.parametrize("number", ["1" * 20_000, "0x" + "f" * 20_000, ":".join(["1"] * 3_000)])
def test_a_front_matter_with_a_number_of_thousands_of_digits_costs_no_other_note(tmp_path: Path, number: str) -> None:
    write(tmp_path / "a.md", f"---\nlap: {number}\n---\n速い。\n")
    write(tmp_path / "b.md", "---\nlap: 12\n---\n遅い。\n")
    rows = [one.row for one in obsidian.read(source_of(tmp_path), lambda _: None) if one.row]
    json.dumps(rows)  # as the client sends them
    contents = [row["content"] for row in rows if "content" in row]
    assert any("速い。" in content for content in contents)
    assert "遅い。\n\nlap: 12" in contents


def test_what_the_front_matter_says_is_text_and_what_it_notes_of_the_file_is_not(tmp_path: Path) -> None:
    front = "aliases: [とうふ, 豆腐]\nrating: 5\nplace: '[[店/南禅寺|寺]]'\ndone: true\nnested: {a: 1}\nupdated: 2025-10-01\ncssclasses: [wide]\n"
    write(tmp_path / "a.md", f"---\n{front}long: {'あ' * 600}\n---\n本文\n")
    write(tmp_path / "b.md", "---\nbirthday: 2000-01-02\n---\n")
    (row, other) = Read(tmp_path).rows
    assert row["content"] == "本文\n\naliases: とうふ, 豆腐\nrating: 5\nplace: [[南禅寺|寺]]"
    assert set(row["metadata"]["front_matter"]) >= {"aliases", "nested", "long"}
    assert other["content"] == "birthday: 2000-01-02"


def test_templates_are_left_out_and_named_and_a_note_about_them_is_not(tmp_path: Path) -> None:
    for folder in ("Templates", "99_templates", "その他/テンプレート"):
        write(tmp_path / folder / "日記.md", "今日の予定")
    write(tmp_path / "day.md", "---\ndate: {{date:YYYY-MM-DD}}\n---\n今日は")
    write(tmp_path / "templater.md", '<%* await tp.file.move("x") -%>\n# <% tp.file.title %>')
    write(tmp_path / "使い方.md", "`{{date}}` は日付になる。\n```\n<% tp.date.now() %>\n```\nTemplates の話")
    write(tmp_path / "ours.md", format_note({"memory_mcp": "memory", "key": "k"}, "{{date}} の話"))
    found = Read(tmp_path)
    assert [row["content"] for row in found.rows] == [
        "{{date}} の話",
        "`{{date}}` は日付になる。\n```\n<% tp.date.now() %>\n```\nTemplates の話",
    ]
    assert sorted(found.left_out) == [
        (name, "templates")
        for name in sorted(["99_templates/日記.md", "Templates/日記.md", "day.md", "templater.md", "その他/テンプレート/日記.md"])
    ]


def test_comments_and_attachments_are_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "前 %%見えない%% 後\n\n%%\n二行の\n`code` のある\n%%\n`%%コード%%` と 100%%\n")
    write(tmp_path / "写真" / "a.png", b"\x89PNG")
    found = Read(tmp_path)
    assert found.contents == ["前  後\n\n`%%コード%%` と 100%%"]
    assert found.left_out == [("a.md", "comments"), ("a.md", "comments"), ("写真/a.png", "attachments")]


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[[人/母|母]]", "[[母]]"),
        ("[[人/母]]", "[[母]]"),
        ("[[人/家族/田中太郎|田中さん]]", "[[田中太郎|田中さん]]"),
        ("[[豆腐|とうふ]]", "[[豆腐|とうふ]]"),
        ("[[人/母.md#誕生日|母の日]]", "[[母#誕生日|母の日]]"),
        ("![[写真/a.png|300]]", "a.png"),
        ("![[人/母]]", "![[母]]"),
        ("`[[人/母|母]]`", "`[[人/母|母]]`"),
        ("[[#見出し]]", "[[#見出し]]"),
    ],
)
def test_a_link_names_the_note_without_its_folders(tmp_path: Path, link: str, shown: str) -> None:
    write(tmp_path / "a.md", f"今日は{link}の話。")
    assert Read(tmp_path).contents == [f"今日は{shown}の話。"]


@pytest.mark.parametrize(
    "front",
    [
        "date: 2019/10/17",
        "date: 2019年10月17日",
        'date: "[[2019-10-17]]"',
        "date: [[2019-10-17]]",
        "Date: 2019-10-17",
        "日付: 2019-10-17",
        "date: 20191017",
        "date: いつか\ncreated: 2019年10月17日",
    ],
)
def test_a_front_matter_says_the_day_as_people_write_it(tmp_path: Path, front: str) -> None:
    write(tmp_path / "a.md", f"---\n{front}\n---\n明日は歯医者。\n")
    (row,) = Read(tmp_path).rows
    assert row["occurred_at"].replace("/", "-").replace("年", "-").replace("月", "-").rstrip("日") == "2019-10-17"
    assert row["content"] == "明日は歯医者。" + ("\n\ndate: いつか" if "いつか" in front else "")


def test_a_front_matter_may_be_toml(tmp_path: Path) -> None:
    write(tmp_path / "a.md", '+++\ntitle = "宿"\ndate = 2019-10-17\ntags = ["旅"]\n+++\n明日は歯医者。\n')
    write(tmp_path / "b.md", "+++\nno toml\n+++\n本文\n")
    found = Read(tmp_path)
    row, other = found.rows
    assert (row["occurred_at"], row["tags"], row["content"]) == ("2019-10-17", ["旅"], "明日は歯医者。\n\ntitle: 宿")
    assert (other["content"], found.reported) == ("+++\nno toml\n+++\n本文", ["b.md: its front matter can't be read and stays in the text"])


@pytest.mark.parametrize("name", ["日記/2019/10/07.md", "日記/2019年/10月/7日.md", "2019/2019-10/07.md"])
def test_folders_and_a_title_say_the_day_together(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "花見")
    (row,) = Read(tmp_path).rows
    assert row["occurred_at"] == "2019-10-07"


def test_a_title_says_the_day_without_leading_zeros(tmp_path: Path) -> None:
    write(tmp_path / "2019年1月5日.md", "明日は歯医者。\n")
    (row,) = Read(tmp_path).rows
    assert row["occurred_at"] == "2019-01-05"
