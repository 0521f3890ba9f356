"""Reads CSV: each row below the header becomes a fact. The columns are recognized by their names; others are kept in the metadata.

langchain-community's loader writes the names of the columns into the text.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import split_labels
from memory_mcp.language.tokens import normalise
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem
from memory_mcp.transfer.formats.json_stream import OTHER_FILES
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.formats.text_files import decoded

FORM = "csv"
SUFFIXES = frozenset({".csv", ".tsv"})
COLUMNS = {
    "content": "content text memory note 内容 本文 記憶 メモ テキスト 文章",
    "occurred_at": "occurred_at date 日付 日時 年月日 日 出来事の日",
    "created_at": "created_at created timestamp 作成日時 作成日 登録日 記録日 タイムスタンプ",
    "source": "source speaker author 話者 発言者 話した人 情報源",
    "session_id": "session_id session セッション 会話",
    "tags": "tags tag タグ",
    "category": "category カテゴリ カテゴリー 分類",
    "importance": "importance 重要度",
}
_FIELD_OF = {name: field for field, names in COLUMNS.items() for name in names.split()}
_MOMENT = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[T\s]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?")


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each row of a table. Its text, time and speaker identify it: numbers of rows are the same in many tables."""
    names = source.names()
    for name in names:
        if len(names) > 1 and PurePosixPath(name).suffix.lower() not in SUFFIXES:
            yield ImportItem(name, left_out=OTHER_FILES)
            continue
        try:
            yield from _rows(decoded(whole(source, name), name), name, me)
        except (InvalidInput, csv.Error, OSError) as error:
            yield ImportItem(name, refused=str(error))


def _rows(text: str, name: str, me: str | None) -> Iterator[ImportItem]:
    first = text.lstrip("\r\n").partition("\n")[0]
    table = enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=max(",\t;", key=first.count)), start=1)
    header = next((row for _, row in table if any(row)), [])
    fields = [_FIELD_OF.get(normalise(column).strip(), "") for column in header]
    if "content" not in fields:
        columns = ", ".join(header)[:200]
        raise InvalidInput(f"{name} has no column of texts", f"its first row is: {columns}", "Name that column content, text or 内容")
    for number, row in table:
        values = {field: cell.strip() for field, cell in reversed([*zip(fields, row, strict=False)]) if field and cell.strip()}
        further = {column: cell for column, field, cell in zip(header, fields, row, strict=False) if column and not field and cell.strip()}
        if values or further:
            yield from _memory(values, further, f"{name}, row {number}", me)


def _memory(values: Mapping[str, str], further: Mapping[str, str], where: str, me: str | None) -> Iterator[ImportItem]:
    if "content" not in values:
        yield ImportItem(where, refused="It has no text (content).")
        return
    fields: dict[str, Any] = {"source": me, "kind": "fact", **values}
    with suppress(ValueError):  # what is no number is refused by its name when it is stored
        fields |= {"importance": float(values["importance"])} if "importance" in values else {}
    fields |= {name: _iso(values[name]) for name in ("occurred_at", "created_at") if name in values}
    fields |= {"tags": split_labels(values.get("tags", "")), "metadata": {FORM: dict(further)} if further else None}
    identity = tuple(values.get(name, "") for name in ("content", "occurred_at", "created_at", "source"))
    yield from import_rows.memory_rows(where, FORM, identity, fields.pop("content"), origin={"row": where}, **fields)


def _iso(text: str) -> str:
    """The date and time of a spreadsheet as ISO text, anything else unchanged."""
    written = _MOMENT.fullmatch(text)
    if not written:
        return text
    year, month, day, hour, minute, second = (part and part.zfill(2) for part in written.groups())
    return f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second or '00'}" if hour else "")
