"""CSV files, as spreadsheets save them, become rows that an import takes."""

import io
import zipfile
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import openpyxl
import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format, tables
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import source_of

TABLE = '日付,内容,タグ,気温\r\n2025/10/9 7:05,苺を買った。,"買い物、果物",18\r\n,,,\r\n2025年1月2日,初詣に行った。,,\r\n'


def read(path: Path, data: str | bytes, me: str | None = None) -> list[ImportItem]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(tables.read(source_of(path), ReadOptions(me)))


def rows(path: Path, data: str | bytes, me: str | None = None) -> list[dict]:
    return [item.row for item in read(path, data, me) if item.row]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932"])
def test_each_row_of_a_spreadsheet_becomes_a_fact(tmp_path: Path, encoding: str) -> None:
    first, second = rows(tmp_path / "日記.csv", TABLE.encode(encoding), "健太")
    assert first.pop("key") != second.pop("key")
    assert first == {
        "content": "苺を買った。",
        "occurred_at": "2025-10-09T07:05:00",
        "source": "健太",
        "kind": "fact",
        "tags": ["買い物", "果物"],
        "metadata": {"csv": {"気温": "18"}, "origin": {"format": "csv", "row": "日記.csv, row 2"}},
    }
    assert (second["content"], second["occurred_at"]) == ("初詣に行った。", "2025-01-02")


@pytest.mark.parametrize("separator", ["\t", ";", ","])
def test_columns_are_recognized_by_their_names_whatever_separates_them(tmp_path: Path, separator: str) -> None:
    lines = [
        ["Source", "Text", "Importance", "Created_At"],
        ["ニィロウ", "踊り,が好き" if separator != "," else "踊りが好き", "0.8", "2025-10-01"],
    ]
    (row,) = rows(tmp_path / "a.tsv", "\n".join(map(separator.join, lines)))
    assert (row["source"], row["importance"], row["created_at"], row["content"][:2]) == ("ニィロウ", 0.8, "2025-10-01", "踊り")


def test_a_text_of_several_lines_is_one_memory(tmp_path: Path) -> None:
    (row,) = rows(tmp_path / "a.csv", 'content\n"一行目\n二行目"\n')
    assert row["content"] == "一行目\n二行目"


def test_a_row_keeps_its_key_where_others_are_added(tmp_path: Path) -> None:
    (before,) = rows(tmp_path / "a.csv", "id,text\n1,苺\n")
    added, after = rows(tmp_path / "b.csv", "id,text\n1,桃\n2,苺\n")
    assert before["key"] == after["key"] != added["key"]


def test_a_row_is_known_by_the_key_that_it_had_while_its_column_was_not_read(tmp_path: Path) -> None:
    (before,) = rows(tmp_path / "a.csv", "内容,日付\n夜食,2025/10/29\n")
    (row,) = rows(tmp_path / "a.csv", "内容,日付,開始\n夜食,2025/10/29,25:30\n")
    assert (row["former_keys"], row["key"] == before["key"]) == ([before["key"]], False)
    assert "former_keys" not in rows(tmp_path / "a.csv", "内容,日付,時刻\n夜食,2025/10/29,25:30\n")[0]


def test_who_wrote_a_row_may_be_in_a_column_of_several_names_and_a_row_read_before_is_known(tmp_path: Path) -> None:
    (before,) = rows(tmp_path / "a.csv", "message,date\n元気？,2025-10-29\n")
    for name, who in (("Sender", "花子"), ("from", "花子"), ("from", "090-1234-5678"), ("role", "assistant"), ("送信者", "花子")):
        (row,) = rows(tmp_path / "a.csv", f"message,{name},date\n元気？,{who},2025-10-29\n")
        assert (row["source"], row["former_keys"]) == (who, [before["key"]])
    said = rows(tmp_path / "a.csv", "role,content\nuser,はい\nassistant,では\n", "健太")
    assert [row["source"] for row in said] == ["健太", "assistant"]


@pytest.mark.parametrize(
    ("table", "further"),
    [
        ("message,from,to\n楽しかった,東京,京都\n", {"from": "東京", "to": "京都"}),
        ("from,destination,note\n東京,京都,楽しかった\n", {"from": "東京", "destination": "京都"}),
        ("from,until,note\n2025-01-03,2025-01-05,楽しかった\n", {"from": "2025-01-03", "until": "2025-01-05"}),
        ("from,note\n09:30,楽しかった\n", {"from": "09:30"}),
        ("From,note\n3月5日,楽しかった\n未定,良かった\n", {"From": "3月5日"}),
        ("role,note\n部長,楽しかった\nuser,楽しかった\n", {"role": "部長"}),
    ],
)
def test_a_role_that_is_no_speaker_and_where_something_begins_are_further_columns(
    tmp_path: Path, table: str, further: dict[str, str]
) -> None:
    first, *_ = rows(tmp_path / "a.csv", table)
    assert (first["content"], first.get("source"), first["metadata"]["csv"]) == ("楽しかった", None, further)


def test_a_person_with_the_name_of_a_month_is_a_speaker_among_others(tmp_path: Path) -> None:
    said = rows(tmp_path / "a.csv", "from,text\nMay,はい\nKen,では\nAnn,うん\n")
    assert [row["source"] for row in said] == ["May", "Ken", "Ann"]


@pytest.mark.parametrize("table", ["name,role,about\n花子,部長,茶が好き\n健太,user,苺が好き\n", "title,from,about\n京都,東京,旅\n"])
def test_a_table_of_people_or_places_without_a_column_of_texts_is_refused(tmp_path: Path, table: str) -> None:
    (item,) = read(tmp_path / "a.csv", table)
    assert "no column of texts" in item.refused


def test_each_piece_of_a_long_row_is_known_by_the_key_that_it_had(tmp_path: Path) -> None:
    text = "夜食を食べた。" * 30_000
    before = rows(tmp_path / "a.csv", f"内容,日付\n{text},2025/10/29\n")
    after = rows(tmp_path / "a.csv", f"内容,日付,開始\n{text},2025/10/29,25:30\n")
    assert [row["former_keys"] for row in after] == [[row["key"]] for row in before]
    assert len({row["key"] for row in [*before, *after]}) == 4


@pytest.mark.parametrize(
    "table",
    [
        "日付,内容,金額\n2025/11/18,昼食,500\n2025/11/18,昼食,800\n",
        "Timestamp,Your name,message,Tags\n11/18/2025 21:05:33,Ken,Thanks,a\n11/18/2025 21:05:33,Ken,Thanks,b\n",
        "date,content\n,休み\n,休み\n",
        "日付,内容,時間\n2025/11/18,走った,30分\n2025/11/18,走った,40分\n",
    ],
)
def test_rows_of_the_same_text_and_time_are_two_and_the_first_is_known_by_the_key_of_both(tmp_path: Path, table: str) -> None:
    (alone,) = rows(tmp_path / "a.csv", table[: table.rindex("\n", 0, -1) + 1])
    first, second = rows(tmp_path / "a.csv", table)
    assert alone["key"] in {first["key"], *first.get("former_keys", [])}
    assert alone["key"] not in {second["key"], *second.get("former_keys", [])}
    head, one, other = table.splitlines()
    assert {row["key"] for row in rows(tmp_path / "a.csv", f"{head}\n{other}\n{one}\n")} == {first["key"], second["key"]}


def test_the_key_of_a_row_without_equals_does_not_depend_on_its_further_columns(tmp_path: Path) -> None:
    (before,) = rows(tmp_path / "a.csv", "日付,内容,状態\n2025/11/18,柿,未\n")
    (after,) = rows(tmp_path / "a.csv", "日付,内容,状態,値段\n2025/11/18,柿,済,300\n")
    assert before["key"] == after["key"]


@pytest.mark.parametrize("day", ["昨日", "11月23日"])
def test_a_day_without_a_year_is_kept_as_it_is_written(tmp_path: Path, day: str) -> None:
    (row,) = rows(tmp_path / "a.csv", f"日付,時刻,内容\n{day},9:00,柿\n")
    assert row["metadata"]["csv"] == {"日付": day, "time": "9:00"}
    assert "occurred_at" not in row
    (before,) = rows(tmp_path / "b.csv", f"Date,Content,Created\n2025-11-23,柿,{day}\n")
    assert (before["metadata"]["csv"], before["occurred_at"]) == ({"Created": day}, "2025-11-23")


def test_the_text_of_a_row_without_one_is_its_title_or_the_answers_of_a_form(tmp_path: Path) -> None:
    entries = 'Name,Created time,Tags,Date\n釣り日記,"November 18, 2025 9:05 PM","fish, river","November 18, 2025"\n買い物,,,\n'
    first, second = rows(tmp_path / "a.csv", entries)
    assert (first["content"], first["created_at"], first["tags"]) == ("釣り日記", "2025-11-18T21:05:00", ["fish", "river"])
    assert second["content"] == "買い物"
    noted, titled = rows(tmp_path / "b.csv", "Name,Status,メモ\n釣り,済,鮎\n無題,未,\n")
    assert (noted["content"], noted["metadata"]["csv"]) == ("鮎", {"Name": "釣り", "Status": "済"})
    assert (titled["content"], titled["metadata"]["csv"]) == ("無題", {"Status": "未"})
    form = "タイムスタンプ,お名前,内容,評価\n2025/11/18 9:05:33,健太,良い,5\n2025/11/18 9:06:33,花子,,3\n"
    assert [row["content"] for row in rows(tmp_path / "c.csv", form)] == ["良い", "お名前: 花子\n評価: 3"]


def test_lines_of_a_cell_end_as_those_of_any_other_text(tmp_path: Path) -> None:
    (row,) = rows(tmp_path / "a.csv", b'sep=;\r\ncontent;note\r\n"a\r\nb";"c\r\nd"\r\n')
    assert (row["content"], row["metadata"]["csv"]) == ("a\nb", {"note": "c\nd"})


def test_a_row_without_text_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    refused, read_after = read(tmp_path / "a.csv", "内容,日付\n,2025-10-01\n苺,2025-10-01\n")
    assert (refused.where, refused.refused) == ("a.csv, row 2", "It has no text (content).")
    assert read_after.row


@pytest.mark.parametrize("data", ["苺が好き\n桃も好き\n", "名前,年齢\n健太,20\n", 'content\n"' + "x" * 1_100_000 + '"\n'])
def test_a_table_that_can_not_be_read_is_refused(tmp_path: Path, data: str) -> None:
    (refused,) = read(tmp_path / "a.csv", data)
    assert refused.refused


def test_a_cell_may_be_as_long_as_a_memory_and_an_open_quotation_mark_is_named_with_its_line(tmp_path: Path) -> None:
    whole, _ = read(tmp_path / "a.csv", "content\n" + "長" * 180_000 + "\n短い\n")
    assert len((whole.row or {})["content"]) == 180_000
    (refused,) = read(tmp_path / "b.csv", 'content\n一\n"二\n' + "三\n" * 600_000)
    assert "its line 3 is no row of a table" in refused.refused


def test_csv_is_detected_and_text_is_not_taken_for_it(tmp_path: Path) -> None:
    for name, expected in {"a.csv": Format.CSV, "b.TSV": Format.CSV, "c.txt": Format.TEXT}.items():
        (tmp_path / name).write_text("content\n苺\n")
        assert detect_format(tmp_path / name) is expected
    (tmp_path / "d.bin").write_text("x")
    with pytest.raises(InvalidInput, match="not recognized"):
        detect_format(tmp_path / "d.bin")


@pytest.mark.parametrize(
    ("table", "times"),
    [
        (
            "アカウント名,さくら堂\nダウンロード日時,2026/09/15 14:34\n送信者名,送信日,送信時刻,内容\n健太,2025/09/18,14:24:55,予約\n",
            ("2025-09-18T14:24:55", None),
        ),
        ("Timestamp,Your name,Text\n10/29/2025 21:05:33,Kenta,柿\n", (None, "2025-10-29T21:05:33")),
        ('Name,Created,Text\n日記,"October 29, 2025 9:05 PM",柿\n', (None, "2025-10-29T21:05:00")),
        ("タイムスタンプ,メモ\n2025/10/29 午後 9:05:33,柿\n", (None, "2025-10-29T21:05:33")),
        ("タイムスタンプ,メモ\n2025/10/29 9:05:33 午後 GMT+9,柿\n", (None, "2025-10-29T21:05:33+09:00")),
        ("sep=;\n内容;日付\n柿, 梨;2025/10/29\n", ("2025-10-29", None)),
        ("内容,日時\n夜食,2025/10/29 25:30\n", ("2025/10/29 25:30", None)),
        ("Date,Content\n05-Jan-24 10:20 AM,鍋\n", ("2024-01-05T10:20:00", None)),
        ("Conversation,Time,Author,Message\n旅行,2026-05-01T10:00:00,Human,尾道\n", ("2026-05-01T10:00:00", None)),
        ("内容,日付,時間\nカレー,2025/10/29,30分\n", ("2025-10-29", None)),
        ("内容,日付\n法事,45000\n", ("45000", None)),
        ("日付,開始,終了,内容\n2025/10/29,25:30,26:00,夜食\n", ("2025/10/29 25:30", None)),
        ("Start Date,Start Time,Text\n2025/10/29,21:05,柿\n", ("2025-10-29T21:05:00", None)),
        ("開始,内容\n2025/10/29 25:30,夜食\n", ("2025/10/29 25:30", None)),
        ("日付,開始,内容\n2025/10/29,2025/10/29 21:05,柿\n", ("2025-10-29T21:05:00", None)),
        ("タイムスタンプ,ご意見\n2025/10/29 午後 9:05:33,柿がよい\n", (None, "2025-10-29T21:05:33")),
    ],
)
def test_times_are_understood_as_programs_write_them(tmp_path: Path, table: str, times: tuple[str | None, str | None]) -> None:
    (row,) = rows(tmp_path / "a.csv", table)
    occurred_at, created_at = times
    assert (row.get("occurred_at", "").lstrip("0"), row.get("created_at")) == ((occurred_at or "").lstrip("0"), created_at)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (["05/01/2024", "13/01/2024"], ["2024-01-05", "2024-01-13"]),
        (["01/05/2024", "01/13/2024"], ["2024-01-05", "2024-01-13"]),
        (["05.01.2024", "06.01.2024"], ["2024-01-05", "2024-01-06"]),
        (["January 5, 2024 → January 6, 2024", "2024/01/05 21:05 (GMT+9)"], ["January 5, 2024", "2024-01-05T21:05:00+09:00"]),
    ],
)
def test_which_number_is_the_day_is_decided_from_the_whole_column(tmp_path: Path, days: list[str], expected: list[str]) -> None:
    table = "date,content\n" + "".join(f'"{day}",柿{number}\n' for number, day in enumerate(days))
    assert [row["occurred_at"] for row in rows(tmp_path / "a.csv", table)] == expected


def test_the_answers_of_a_form_are_its_text_and_a_second_column_of_texts_is_kept(tmp_path: Path) -> None:
    form = "Timestamp,お名前,ご意見\n10/29/2025 21:05:33,健太,よい\n10/29/2025 21:06:33,,また行く\n10/29/2025 21:07:33,,\n"
    first, second, refused = read(tmp_path / "a.csv", form)
    assert [(item.row or {})["content"] for item in (first, second)] == ["お名前: 健太\nご意見: よい", "ご意見: また行く"]
    assert refused.refused == "It has no text (content)."
    (only,) = rows(tmp_path / "b.csv", "タイムスタンプ,ご意見\n2025/10/29 21:05,よい\n")
    assert only["content"] == "よい"
    questions = "Timestamp,Sender,From,Role,Amount\n2025-01-03 10:00,Ann,Kyoto,user,5000\n"
    (answers,) = rows(tmp_path / "e.csv", questions)
    assert answers["content"] == "Sender: Ann\nFrom: Kyoto\nRole: user\nAmount: 5000"
    (said,) = rows(tmp_path / "f.csv", "Timestamp,Sender,Message\n2025-01-03 10:00,Ann,hello\n")
    assert (said["content"], said["source"]) == ("hello", "Ann")
    other_texts = rows(tmp_path / "d.csv", "内容,メモ\n,熟れた\n")
    assert [row["content"] for row in other_texts] == ["熟れた"]
    (both,) = rows(tmp_path / "c.csv", "内容,メモ\n柿,熟れた\n")
    assert (both["content"], both["metadata"]["csv"]) == ("柿", {"メモ": "熟れた"})


def workbook(
    *lines: list[object],
    further: str = "",
    rows: Iterable[list[object]] = (),
    place: int | None = None,
    merged: tuple[str, ...] = (),
    **cells: str,
) -> bytes:
    data, book = io.BytesIO(), openpyxl.Workbook()
    for line in lines:
        book.active.append(line)
    for name, value in cells.items():
        book.active[name] = value
    for cells_of_one in merged:
        book.active.merge_cells(cells_of_one)
    if further:
        sheet = book.create_sheet(further, place)
        for row in rows:
            sheet.append(row)
    book.save(data)
    return data.getvalue()


def test_a_workbook_is_read_by_the_types_of_its_cells(tmp_path: Path) -> None:
    table = [["家計簿"], ["内容", "日付", "数"], ["柿を買った", datetime(2025, 10, 29, 21, 5), 3], ["法事", 45000, 1.5]]  # noqa: DTZ001
    first, second = rows(tmp_path / "a.xlsx", workbook(*table))
    assert (first["occurred_at"], first["metadata"]["csv"]) == ("2025-10-29T21:05:00", {"数": "3"})
    assert (second["occurred_at"], second["metadata"]["csv"]) == ("45000", {"数": "1.5"})
    assert detect_format(tmp_path / "a.xlsx") is Format.CSV


def test_a_cell_of_so_many_hours_is_read_as_it_is_written(tmp_path: Path) -> None:
    table = [
        ["日付", "時刻", "内容"],
        ["2025-10-29", timedelta(hours=25, minutes=30), "夜更かし"],
        ["2025-10-29", timedelta(hours=7), "朝"],
    ]
    assert [row["occurred_at"] for row in rows(tmp_path / "a.xlsx", workbook(*table))] == ["2025-10-29 25:30", "2025-10-29T07:00:00"]


def test_a_sheet_without_a_column_of_texts_is_refused_by_its_name(tmp_path: Path) -> None:
    for place in (None, 0):
        items = read(tmp_path / "a.xlsx", workbook(["内容"], ["柿"], further="数", rows=[["品", "値"], ["柿", 100]], place=place))
        assert [item.row["content"] for item in items if item.row] == ["柿"]
        assert [item.refused.partition(" has")[0] for item in items if item.refused] == ["a.xlsx, 数"]


def test_an_empty_sheet_is_left_out(tmp_path: Path) -> None:
    items = read(tmp_path / "a.xlsx", workbook(["内容"], ["柿"], further="Sheet2"))
    assert [(item.where, item.left_out) for item in items if not item.row] == [("a.xlsx, Sheet2", "empty tables")]
    assert [item.left_out for item in read(tmp_path / "a.csv", "")] == ["empty tables"]


def test_cells_beside_a_table_are_counted(tmp_path: Path) -> None:
    items = read(tmp_path / "a.xlsx", workbook(["内容"], ["柿"], C3="合計"))
    assert [(item.where, item.left_out) for item in items if item.left_out] == [("a.xlsx, row 3", "cells beside a table")]


def test_a_cell_beyond_the_header_is_kept_and_does_not_identify_its_row(tmp_path: Path) -> None:
    (row,) = rows(tmp_path / "a.csv", "content,tags\n柿,果物,秋,熟れた\n")
    assert row["metadata"]["csv"] == {"column 3": "秋", "column 4": "熟れた"}
    (without,) = rows(tmp_path / "a.csv", "content,tags\n柿,果物\n")
    assert row["key"] == without["key"]


def test_a_cell_far_away_is_read(tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a.xlsx", workbook(["内容"], ["近い"], A1048576="遠い", XFD1048576="端"))
    assert (first["content"], second["content"], second["metadata"]["csv"]) == ("近い", "遠い", {"column 16384": "端"})


def test_merged_cells_below_the_header_say_the_same_in_each_row_and_a_row_read_before_is_known(tmp_path: Path) -> None:
    table: list[list[object]] = [
        ["日付", "内容", "金額"],
        [None, None, "税込"],
        ["2025-06-10", "昼", 1],
        [None, "夜", 2],
        [None, None, None],
        ["2025-06-12", "朝", 3],
    ]
    alone = {row["content"]: row["key"] for row in rows(tmp_path / "a.xlsx", workbook(*table))}
    found = rows(tmp_path / "a.xlsx", workbook(*table, merged=("A1:A2", "B1:B2", "A3:A5")))
    assert [(row["occurred_at"], row["content"]) for row in found] == [("2025-06-10", "昼"), ("2025-06-10", "夜"), ("2025-06-12", "朝")]
    assert [alone[row["content"]] in (row["key"], *row.get("former_keys", ())) for row in found] == [True, True, True]


@pytest.mark.parametrize("bomb", [True, False])
def test_a_hostile_workbook_is_refused(tmp_path: Path, bomb: bool) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"0" * 17_000_000 if bomb else b"<a/>")
    (item,) = read(tmp_path / "a.xlsx", data.getvalue())
    assert ("expands to" if bomb else "can't be read") in item.refused
