"""Reads tables, CSV and .xlsx: each row below the header becomes a fact. The columns are recognized by their names; others are kept in the metadata.

The header is the first row that has a column of texts: programs write lines above it. langchain-community's loader writes the names of the columns
into the text.
"""

import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import chain, islice, zip_longest
from typing import Any

from memory_mcp import extras
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import split_labels
from memory_mcp.language.tokens import normalise
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.clock import with_year_first
from memory_mcp.transfer.formats.documents import FORM_EXTRA, damage
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.json_stream import each_file, ends_in
from memory_mcp.transfer.formats.sources import BLOCK_BYTES, Source, check_packed, whole
from memory_mcp.transfer.formats.text_files import decoded, table_rows
from memory_mcp.transfer.formats.written_times import needs_today, written_time
from memory_mcp.wording import sentence

FORM = "csv"
WORKBOOK = ".xlsx"
SUFFIXES = frozenset({".csv", ".tsv", WORKBOOK})
LINES_ABOVE, HEAD_CHARACTERS, VALUES_LOOKED_AT = 20, 10_000, 1_000
COLUMNS = {
    "content": "content text message memory note 内容 本文 記憶 メモ テキスト 文章 メッセージ",
    "occurred_at": "occurred_at date start_date date_sent 日付 日時 年月日 日 出来事の日 開始日 開始日時 開催日 送信日 送信日時",
    "clock": "time start start_time time_sent 時刻 時間 開始 開始時刻 開始時間 送信時刻",
    "created_at": "created_at created created_time timestamp 作成日時 作成日 登録日 記録日 タイムスタンプ",
    "source": "source speaker author sender sender_name from role 話者 発言者 話した人 情報源 送信者名 送信者",
    "session_id": "session_id session conversation セッション 会話",
    "tags": "tags tag タグ",
    "category": "category カテゴリ カテゴリー 分類",
    "importance": "importance 重要度",
}
_TIMES = ("occurred_at", "created_at")
_FIELD_OF = {name: field for field, names in COLUMNS.items() for name in names.split()}
# Once these were further columns. Rows that were imported then are known again by what identified them; those of before the first of them, by what
# the other columns have in common.
_READ_LATER = frozenset("created_time start_date 開始日 開始日時 開催日 start start_time 開始 開始時刻 開始時間".split())
# In a form these are questions like any other.
_READ_LAST = frozenset("date_sent time_sent sender sender_name from role 送信者".split())
_IDENTITY = ("content", "occurred_at", "created_at", "source")
_USERS = frozenset({"user", "human"})
_ROLES = _USERS | frozenset("assistant system ai bot model tool function developer character ユーザー アシスタント システム".split())
# Beside one of these `from` is a beginning or a place; else it is who wrote.
_ENDS = frozenset(
    "to until till through destination arrival end end_date end_time まで 終了 終了日 終了時刻 到着 到着地 行き先 目的地".split()
)
# The first column of the answers of a form, whose others are its questions.
_OF_FORM = frozenset({"Timestamp", "タイムスタンプ"})
# The first column of the entries of a database of Notion: the text of those that have no other.
_TITLES = frozenset("name title 名前 タイトル 題名".split())
_SEPARATOR = re.compile(r"[\r\n]{0,9}sep=(.)\r?\n", re.IGNORECASE)
_MERGED, LONGEST_MERGED = re.compile(rb'<(?:\w{1,9}:)?mergeCell\s[^<>]{0,99}?ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"'), 150
_MOMENT = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[T\s]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?")

_Identity = tuple[str, ...]


class _Shown(str):
    """The value of the cell above, with which a cell is merged."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Merged:
    """The cells of one column that show the value of the first of them; all numbers begin with 1."""

    column: int
    first_row: int
    last_row: int


@dataclass(frozen=True, slots=True)
class _Cells:
    """What a row has: its values by field and the columns that they are in, what its further columns hold, and those without a name, those of the values
    that were always read, and its times as they are understood."""

    values: dict[str, str]
    columns: dict[str, str]
    further: dict[str, str]
    unnamed: dict[str, str]
    formerly: dict[str, str]
    times: dict[str, str]


def read(source: Source, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields the rows of each table of a source, as `read_file` does."""
    yield from each_file(source, lambda name: read_file(source, name, options), ends_in(*SUFFIXES))


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each row of a table. Its text, time and speaker identify it: numbers of rows are the same in many tables.

    Raises:
        NotInstalled: the library that reads .xlsx is not there.
    """
    data = whole(source, name)
    sheets = _workbook(data, name) if ends_in(WORKBOOK)(name) else [(name, _lines(decoded(data, name), name), [])]
    for sheet, rows, merged in sheets:
        try:
            yield from _rows(rows, sheet, options, merged)
        except InvalidInput as error:
            yield ImportItem(sheet, refused=str(error))


def _lines(text: str, name: str) -> Iterator[list[str]]:
    """The rows of a CSV file; Excel's first line sep=; says what separates its columns."""
    named = _SEPARATOR.match(text)
    head = text[:HEAD_CHARACTERS]
    written = io.StringIO(text[named.end() :] if named else text, newline="")
    return table_rows(written, name, named[1] if named else max(",\t;", key=head.count))


def _workbook(data: bytes, name: str) -> Iterator[tuple[str, Iterator[list[str]], list[_Merged]]]:
    """The names, the rows and the merged cells of the sheets of an .xlsx file, as a person reads them: a number in the format of a date is one."""
    extras.require(FORM_EXTRA, f"{name} can't be read")
    import openpyxl  # noqa: PLC0415  only such files need it

    check_packed(data, name)
    try:
        with closing(openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)) as book:
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # else each row is as long as the longest, the missing ones too
                yield (
                    f"{name}, {sheet.title}" if len(book.worksheets) > 1 else name,
                    (list(map(_cell, row)) for row in sheet.iter_rows(values_only=True)),
                    list(_merged(sheet)),
                )
    except damage() as error:
        raise InvalidInput(
            "{} can't be read", "{}", "Open it, and save it again", name, str(error)[:200] or type(error).__name__
        ) from error


def _merged(sheet: Any) -> Iterator[_Merged]:
    from openpyxl.utils import range_boundaries  # noqa: PLC0415  only such files need it

    before = b""
    with sheet._get_source() as file:  # noqa: SLF001  a sheet that is read row by row has no other word of its merged cells
        while block := file.read(BLOCK_BYTES):
            for cells in _MERGED.finditer(before + block):
                column, first_row, _, last_row = range_boundaries(cells[1].decode())
                yield _Merged(column, first_row, last_row)
            before = block[-LONGEST_MERGED:]


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


def _rows(rows: Iterable[list[str]], name: str, options: ReadOptions, merged: Sequence[_Merged]) -> Iterator[ImportItem]:
    table = enumerate(rows, start=1)
    head = [row for _, row in islice(table, LINES_ABOVE)]
    at = header_at(head)
    if at is None:
        if not any(any(row) for row in chain(head, (row for _, row in table))):
            yield ImportItem(name, left_out="empty tables")
            return
        columns = ", ".join(next(filter(any, head), []))[:200]
        raise InvalidInput("{} has no column of texts", "its first row is: {}", "Name that column content, text or 内容", name, columns)
    yield from [ImportItem(sentence("{}, above its header", name), left_out="lines above the header of a table")] * sum(map(any, head[:at]))
    header = head[at]
    below = list(
        _with_shown(chain(enumerate(head[at + 1 :], start=at + 2), table), [cells for cells in merged if cells.first_row > at + 1])
    )
    numbers, cells_below = [number for number, _ in below], [row for _, row in below]
    fields = _with_speakers(_fields(header), header, cells_below)
    read_rows = _read_rows(header, fields, cells_below)
    without_shown = [["" if isinstance(cell, _Shown) else cell for cell in row] for row in cells_below] if merged else cells_below
    otherwise = [
        read_rows if other == fields and not merged else _read_rows(header, other, without_shown)
        for other in _fields_otherwise(header, fields)
    ]
    for number, cells, identity, former in zip(numbers, read_rows, *_identities(read_rows, otherwise), strict=True):
        yield from _memory(cells, identity, former, sentence("{}, row {}", name, number), options)


def _read_rows(header: list[str], fields: list[str], rows: list[list[str]]) -> list[_Cells]:
    year_first = {field: with_year_first(_column(rows, fields.index(field))) for field in _TIMES if field in fields}
    return [_cells(header, fields, row, year_first) for row in rows]


def _with_shown(rows: Iterable[tuple[int, list[str]]], merged: Iterable[_Merged]) -> Iterator[tuple[int, list[str]]]:
    """The rows that have something of their own, with what merged cells show in them."""
    beginning, shown = defaultdict[int, list[_Merged]](list), dict[_Merged, str]()
    for cells in merged:
        beginning[cells.first_row].append(cells)
    for number, row in rows:
        shown = {cells: value for cells, value in shown.items() if cells.last_row >= number} if shown else shown
        if any(row):
            row.extend([""] * (max((cells.column for cells in shown), default=0) - len(row)))
            for cells, value in shown.items():
                row[cells.column - 1] = row[cells.column - 1] or _Shown(value)
            shown |= {cells: row[cells.column - 1] for cells in beginning.get(number, ()) if cells.column <= len(row)}
            yield number, row


def header_at(rows: list[list[str]]) -> int | None:
    """The index of the header among the first rows of a table; None if none has a column of texts."""
    kinds = (_has_texts, _is_of_form, _has_titles)
    return next((number for is_header in kinds for number, row in enumerate(rows) if is_header(row)), None)


def _fields(header: list[str]) -> list[str]:
    """The field of each column, empty for a further one, and for those whose values tell what they are."""
    names = [*map(_normal, header)]
    fields = [_FIELD_OF.get(name, "") if name not in ("role", "from") else "" for name in names]
    if _is_of_form(header):
        return [field if name not in _READ_LAST else "" for name, field in zip(names, fields, strict=True)]
    return fields


def _with_speakers(fields: list[str], header: list[str], rows: list[list[str]]) -> list[str]:
    """The fields, with `role` and `from` as those of who spoke where their values are."""
    if _is_of_form(header):
        return fields
    names = [*map(_normal, header)]
    values = [set(filter(None, islice(_column(rows, at), VALUES_LOOKED_AT))) if not field else set() for at, field in enumerate(fields)]
    return ["source" if _is_who(name, found, names) else field for name, found, field in zip(names, values, fields, strict=True)]


def _is_who(name: str, values: set[str], names: list[str]) -> bool:
    """Whether a column of a name and of values tells who spoke, beside the others of these names."""
    if name == "role":
        return all(value.casefold() in _ROLES for value in values)
    return name == "from" and _ENDS.isdisjoint(names) and 2 * sum(map(_is_time, values)) < len(values)


def _is_time(text: str) -> bool:
    return needs_today(text) or written_time(_iso(text)) is not None


def _fields_otherwise(header: list[str], fields: list[str]) -> Iterator[list[str]]:
    """The fields of each column before the last of them were read, and with those whose values told something else before rows were added."""
    names = [*map(_normal, header)]
    yield [_FIELD_OF.get(name, "") if name not in _READ_LAST else "" for name in names]
    for column in ("role", "from"):
        if column in names:
            yield ["source" if name == column else field for name, field in zip(names, fields, strict=True)]
            yield ["" if name == column else field for name, field in zip(names, fields, strict=True)]


def _has_texts(row: list[str]) -> bool:
    return "content" in _fields(row)


def _is_of_form(row: list[str]) -> bool:
    has_texts = any(_FIELD_OF.get(name) == "content" for name in map(_normal, row))
    return len(row) > 1 and row[0].strip() in _OF_FORM and not has_texts


def _has_titles(row: list[str]) -> bool:
    return bool(row) and _normal(row[0]) in _TITLES and any(_fields(row))


def _cells(header: list[str], fields: list[str], row: list[str], year_first: Mapping[str, Callable[[str], str]]) -> _Cells:
    """Of several columns for one field the first that says something has it. A row without a text has that of its title, or of all answers to a form: a
    single one without its question."""
    cells = _Cells({}, {}, {}, {}, {}, {})
    for number, (column, field, cell) in enumerate(zip_longest(header, fields, row, fillvalue=""), start=1):
        text = cell.strip()
        if not text:
            continue
        if field and (name := normalise(column).strip()) in _FIELD_OF and name not in _READ_LATER:
            cells.formerly[field] = text  # the last of several counted
        if field and field not in cells.values:
            cells.values[field], cells.columns[field] = text, column
        elif column:
            cells.further[column] = cell
        else:
            cells.unnamed[f"column {number}"] = cell
    first = _normal(header[0])
    if "content" not in cells.values and first in _TITLES and header[0] in cells.further:
        cells.values["content"] = cells.further.pop(header[0])
    elif "content" not in cells.values and header[0].strip() in _OF_FORM:
        is_only = fields.count("") == 1
        cells.values["content"] = "\n".join(cell if is_only else f"{question}: {cell}" for question, cell in cells.further.items())
        cells.further.clear()
    _tell_times(cells, year_first)
    return cells


def _tell_times(cells: _Cells, year_first: Mapping[str, Callable[[str], str]]) -> None:
    """Times with their years first, and that of day beside its day. What names no day by itself, and what is no time of day, is a further column."""
    values, times = cells.values, cells.times
    times.update({field: year_first[field](values[field]) for field in _TIMES if field in values})
    for field in [field for field, text in times.items() if needs_today(text)]:
        del times[field]
        cells.further[cells.columns[field]] = values.pop(field)
    if not (clock := values.get("clock")):
        return
    # A whole time, or a time of day; else something such as how long it took.
    whole_times = (text for text in (clock, f"{times.get('occurred_at', '')} {clock}".strip()) if written_time(_iso(text)))
    if whole_time := next(whole_times, ""):
        times["occurred_at"] = whole_time
    else:
        cells.formerly.pop("clock", "")
        cells.further["time"] = values.pop("clock")


def _identities(rows: list[_Cells], otherwise: list[list[_Cells]]) -> tuple[list[_Identity], list[list[_Identity]]]:
    """What identifies each row, and under what else it may be stored, given what its cells were read as otherwise.

    What several rows have in common, the first of them is known by, unless another row is stored under it.
    """
    identities, stored = _identified(rows), [*map(_identified, otherwise)]
    reserved, claimed, former = {*identities, *stored[0]}, set(chain(identities, *stored)), list[list[_Identity]]()
    for number, (cells, identity) in enumerate(zip(rows, identities, strict=True)):
        with_text = [
            (read[number], keys[number]) for read, keys in zip(otherwise, stored, strict=True) if read[number].values.get("content")
        ]
        shared = {_identity(values) for values in (cells.values, *chain(*((read.values, read.formerly) for read, _ in with_text)))}
        # What the columns were first is a fact; what else they may have been is no reason to take a row for another one.
        first, further = (key for _, key in with_text[:1]), (key for _, key in with_text[1:] if key not in reserved)
        former.append([*(key for key in dict.fromkeys(chain(first, further)) if key != identity), *sorted(shared - claimed)])
        claimed |= shared
    return identities, former


def _identified(rows: list[_Cells]) -> list[_Identity]:
    """Text, times and speaker of each row; of rows that have the same of these all that they have, and their number among equals."""
    same, numbers = Counter(_identity(cells.values) for cells in rows), Counter[_Identity]()
    identities = list[_Identity]()
    for cells in rows:
        whole = _identity(cells.values)
        if same[whole] > 1:
            further = {name: text for name, text in cells.values.items() if name not in _IDENTITY} | cells.further
            whole += tuple(chain.from_iterable(further.items()))
            numbers[whole] += 1
            whole += (str(numbers[whole]),) if numbers[whole] > 1 else ()
        identities.append(whole)
    return identities


def _identity(values: Mapping[str, str]) -> tuple[str, ...]:
    return (*(values.get(name, "") for name in _IDENTITY), *([values["clock"]] if "clock" in values else []))


def _normal(column: str) -> str:
    return normalise(column).strip().replace(" ", "_")


def _column(rows: Iterable[list[str]], at: int) -> Iterator[str]:
    return (row[at].strip() for row in rows if at < len(row))


def _memory(cells: _Cells, identity: _Identity, former: list[_Identity], where: str, options: ReadOptions) -> Iterator[ImportItem]:
    """The row of a memory. It is identified by its values as they are written."""
    values = {name: _lines_of(text) for name, text in cells.values.items() if name not in (*_TIMES, "clock")}
    if not values.get("content"):
        is_beside = not (cells.values or cells.further)
        yield ImportItem(where, left_out="cells beside a table") if is_beside else ImportItem(where, refused="It has no text (content).")
        return
    fields: dict[str, Any] = {"source": options.me, "kind": "fact", **values}
    fields["source"] = options.me if options.me and fields["source"].casefold() in _USERS else fields["source"]
    with suppress(ValueError):  # what is no number is refused by its name when it is stored
        fields |= {"importance": float(values["importance"])} if "importance" in values else {}
    # A time that can't be read is refused by its name when it is stored.
    fields |= {name: _time(text, options) for name, text in cells.times.items()}
    beside = {column: _lines_of(cell) for column, cell in (cells.further | cells.unnamed).items()}
    fields |= {"tags": split_labels(values.get("tags", "")), "metadata": {FORM: beside} if beside else None}
    yield from import_rows.memory_rows(
        where, FORM, identity, fields.pop("content"), origin={"row": where}, former=[(FORM, *known_as) for known_as in former], **fields
    )


def _lines_of(cell: str) -> str:
    return cell.replace("\r\n", "\n").replace("\r", "\n")


def _time(text: str, options: ReadOptions) -> str:
    """The date and time of a spreadsheet as ISO text, or the words for one as they are."""
    return written_time(_iso(text), options.zone) or text


def _iso(text: str) -> str:
    written = _MOMENT.fullmatch(text)
    if not written or int(written[4] or 0) >= 24:  # 25:30 is of the next day
        return text
    year, month, day, hour, minute, second = (part and part.zfill(2) for part in written.groups())
    return f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second or '00'}" if hour else "")
