"""Reads tables, CSV and .xlsx: each row below the header becomes a fact. The columns are recognized by their names; others are kept in the metadata.

The header is the first row that has a column of texts: programs write lines above it. langchain-community's loader writes the names of the columns
into the text.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from memory_mcp import extras
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import split_labels
from memory_mcp.language.tokens import normalise
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.clock import with_year_first
from memory_mcp.transfer.formats.documents import FORM_EXTRA, damage
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.json_stream import OTHER_FILES
from memory_mcp.transfer.formats.sources import Source, check_packed, whole
from memory_mcp.transfer.formats.text_files import decoded, table_rows
from memory_mcp.transfer.formats.written_times import written_time
from memory_mcp.wording import sentence

FORM = "csv"
WORKBOOK = ".xlsx"
SUFFIXES = frozenset({".csv", ".tsv", WORKBOOK})
LINES_ABOVE, HEAD_CHARACTERS = 20, 10_000
COLUMNS = {
    "content": "content text message memory note 内容 本文 記憶 メモ テキスト 文章 メッセージ",
    "occurred_at": "occurred_at date 日付 日時 年月日 日 出来事の日 送信日 送信日時",
    "clock": "time 時刻 時間 送信時刻",
    "created_at": "created_at created timestamp 作成日時 作成日 登録日 記録日 タイムスタンプ",
    "source": "source speaker author 話者 発言者 話した人 情報源 送信者名",
    "session_id": "session_id session conversation セッション 会話",
    "tags": "tags tag タグ",
    "category": "category カテゴリ カテゴリー 分類",
    "importance": "importance 重要度",
}
_TIMES = ("occurred_at", "created_at")
_FIELD_OF = {name: field for field, names in COLUMNS.items() for name in names.split()}
_SEPARATOR = re.compile(r"[\r\n]{0,9}sep=(.)\r?\n", re.IGNORECASE)
_MOMENT = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[T\s]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?")


def read(source: Source, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each row of a table. Its text, time and speaker identify it: numbers of rows are the same in many tables.

    Raises:
        NotInstalled: the library that reads .xlsx is not there.
    """
    names = source.names()
    for name in names:
        suffix = PurePosixPath(name).suffix.lower()
        if len(names) > 1 and suffix not in SUFFIXES:
            yield ImportItem(name, left_out=OTHER_FILES)
            continue
        try:
            data = whole(source, name)
            sheets = _workbook(data, name) if suffix == WORKBOOK else [(name, _lines(decoded(data, name), name))]
            for sheet, rows in sheets:
                yield from _rows(rows, sheet, options)
        except (InvalidInput, OSError) as error:
            yield ImportItem(name, refused=str(error))


def _lines(text: str, name: str) -> Iterator[list[str]]:
    """The rows of a CSV file; Excel's first line sep=; says what separates its columns."""
    named = _SEPARATOR.match(text)
    head = text[:HEAD_CHARACTERS]
    written = io.StringIO(text[named.end() :] if named else text, newline="")
    return table_rows(written, name, named[1] if named else max(",\t;", key=head.count))


def _workbook(data: bytes, name: str) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """The names and the rows of the sheets of an .xlsx file, as a person reads their cells: a number in the format of a date is one."""
    extras.require(FORM_EXTRA, f"{name} can't be read")
    import openpyxl  # noqa: PLC0415  only such files need it

    check_packed(data, name)
    try:
        with closing(openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)) as book:
            for sheet in book.worksheets:
                yield (
                    f"{name}, {sheet.title}" if len(book.worksheets) > 1 else name,
                    (list(map(_cell, row)) for row in sheet.iter_rows(values_only=True)),
                )
    except damage() as error:
        raise InvalidInput(
            "{} can't be read", "{}", "Open it, and save it again", name, str(error)[:200] or type(error).__name__
        ) from error


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(timespec="seconds")
        case date() | time():
            return value.isoformat()
        case timedelta():  # 25:30, which a workbook keeps as so many hours
            minutes, seconds = divmod(int(value.total_seconds()), 60)
            return f"{minutes // 60:02}:{minutes % 60:02}" + f":{seconds:02}" * bool(seconds)
        case float() if value.is_integer():
            return str(int(value))
    return str(value)


def _rows(rows: Iterable[list[str]], name: str, options: ReadOptions) -> Iterator[ImportItem]:
    table = enumerate(rows, start=1)
    above, header, fields = list[list[str]](), list[str](), list[str]()
    for _, row in islice(table, LINES_ABOVE):
        found = [_FIELD_OF.get(normalise(column).strip(), "") for column in row]
        if "content" in found:
            header, fields = row, found
            break
        above += [row] if any(row) else []
    if not header:
        columns = ", ".join(above[0] if above else [])[:200]
        raise InvalidInput("{} has no column of texts", "its first row is: {}", "Name that column content, text or 内容", name, columns)
    if above:
        yield from [ImportItem(f"{name}, above its header", left_out="lines above the header of a table")] * len(above)
    below = [(number, row) for number, row in table if any(row)]
    year_first = {field: with_year_first(_column(below, fields, field)) for field in _TIMES}
    for number, row in below:
        values = {field: cell.strip() for field, cell in reversed([*zip(fields, row, strict=False)]) if field and cell.strip()}
        further = {column: cell for column, field, cell in zip(header, fields, row, strict=False) if column and not field and cell.strip()}
        if values or further:
            times = {field: year_first[field](values[field]) for field in _TIMES if field in values}
            yield from _memory(values, times, further, sentence("{}, row {}", name, number), options)


def _column(rows: Iterable[tuple[int, list[str]]], fields: list[str], field: str) -> Iterator[str]:
    at = fields.index(field) if field in fields else -1
    return (row[at].strip() for _, row in rows if 0 <= at < len(row))


def _memory(
    values: Mapping[str, str], times: Mapping[str, str], further: Mapping[str, str], where: str, options: ReadOptions
) -> Iterator[ImportItem]:
    """The row of a memory. It is identified by its `values` as they are written; `times` have their years first."""
    if "content" not in values:
        yield ImportItem(where, refused="It has no text (content).")
        return
    fields: dict[str, Any] = {"source": options.me, "kind": "fact", **values, **times}
    with suppress(ValueError):  # what is no number is refused by its name when it is stored
        fields |= {"importance": float(values["importance"])} if "importance" in values else {}
    clock, beside = fields.pop("clock", ""), dict(further)
    if written_time(
        _iso(whole_time := f"{times.get('occurred_at', '')} {clock}".strip())
    ):  # a time of day, or a whole time where no column has a date
        fields |= {"occurred_at": whole_time} if clock else {}
    elif clock:  # such as how long it took
        clock, beside = "", {**further, "time": clock}
    # A time that can't be read is refused by its name when it is stored.
    fields |= {name: _time(fields[name], options) for name in _TIMES if name in fields}
    fields |= {"tags": split_labels(values.get("tags", "")), "metadata": {FORM: beside} if beside else None}
    identity = tuple(values.get(name, "") for name in ("content", "occurred_at", "created_at", "source"))
    identity += (clock,) if clock else ()
    yield from import_rows.memory_rows(where, FORM, identity, fields.pop("content"), origin={"row": where}, **fields)


def _time(text: str, options: ReadOptions) -> str:
    """The date and time of a spreadsheet as ISO text, or the words for one as they are."""
    return written_time(_iso(text), options.zone) or text


def _iso(text: str) -> str:
    written = _MOMENT.fullmatch(text)
    if not written or int(written[4] or 0) >= 24:  # 25:30 is of the next day
        return text
    year, month, day, hour, minute, second = (part and part.zfill(2) for part in written.groups())
    return f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second or '00'}" if hour else "")
