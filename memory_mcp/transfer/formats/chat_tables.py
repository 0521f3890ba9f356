"""Reads chats that are saved as tables: of a LINE official account, of Discord by DiscordChatExporter, of Microsoft Copilot."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import discord, line
from memory_mcp.transfer.formats.clock import with_and_without_clock
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, role_of
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.text_files import table_rows
from memory_mcp.transfer.formats.turns import Equals, Turn, media_kind, text_lines, turn_items, zoned
from memory_mcp.transfer.formats.written_times import written_time
from memory_mcp.wording import sentence

Cells = Mapping[str, str]
HEADER_ROWS = 12
# スタンプを送信しました。 · 画像が送信されました。
_SENT = re.compile(r"(\w{2,10}?)[をが]?(?:送信|受信)(?:し|され)ました。?")
# What is put before a text so that no program that opens the table takes it for a formula.
_GUARD = re.compile(r"'(?=[=+\-@\r\n\t])")


@dataclass(frozen=True, slots=True)
class ChatTable:
    """A program's table of a chat: the columns that it has, the one of its times first, and how a row of it is a turn, given what stands above
    the header, or in files `beside` it. `has_ids`: its rows have an id each."""

    columns: tuple[str, ...]
    turn: Callable[[Cells, Cells, ReadOptions, str], Turn]
    beside: Callable[[Source, str], dict[str, str]] = lambda _source, _name: {}
    has_ids: bool = False


def said_at(text: str, options: ReadOptions, zone: str = "") -> str | None:
    """A time of such a table as ISO text; one that can't be read stays as it is, so that it is refused by its row."""
    return zoned(written_time(f"{text.strip()} {zone}".rstrip()) or text.strip() or None, options.zone)


def _line(cells: Cells, above: Cells, options: ReadOptions, name: str) -> Turn:  # noqa: ARG001  it names its account
    content = _GUARD.sub("", cells["内容"], count=1).strip()
    moment = said_at(f"{cells['送信日']} {cells['送信時刻']}", options, above.get("タイムゾーン", "").strip("'"))
    sent = _SENT.fullmatch(content)
    kind = (media_kind(sent[1]) if sent else None) or (None if content.startswith("☎") else line.kind_of(content))
    speaker, account = cells["送信者名"].strip(), above.get("アカウント名", "")
    return Turn(
        speaker,
        "" if kind else content,
        moment,
        " ".join(filter(None, ("LINE", account, (moment or "")[:10]))),
        (account, moment or "", speaker, content),
        role_of(speaker, by_user=True),
        (kind,) if kind else (),
        {"chat": account, "sender": cells["送信者タイプ"]},
    )


def _discord(cells: Cells, above: Cells, options: ReadOptions, name: str) -> Turn:  # noqa: ARG001  it has nothing above its header
    moment, speaker, content = said_at(cells["Date"], options), cells["Author"].strip(), cells["Content"].strip()
    files = [part for part in cells.get("Attachments", "").split(",") if part.strip()]
    notice = "calls" if discord.CALL.fullmatch(content) else "notices" if content in discord.NOTICES else ""
    return Turn(
        speaker,
        "" if notice else content,
        moment,
        f"Discord {name} {(moment or '')[:10]}".strip(),
        (cells["AuthorID"], moment or "", content),
        role_of(speaker, by_user=True),
        (
            *([notice] if notice else []),
            *(media_kind(file.partition("?")[0]) or "files" for file in files),
            *(["reactions"] if cells.get("Reactions", "").strip() else []),
        ),
        {"author_id": cells["AuthorID"]},
    )


def _copilot(cells: Cells, above: Cells, options: ReadOptions, name: str) -> Turn:  # noqa: ARG001  it has nothing above its header
    title = cells.get("Conversation") or cells.get("ChatName") or ""
    content = cells.get("Message") or cells.get("MessageContent") or ""
    author = cells["Author"].strip()
    moment = said_at(cells.get("Time") or cells.get("CreatedAt") or "", options)
    by_user = author.casefold() in ("user", "human", "you")
    speaker = (options.me or "user") if by_user else "Copilot" if author.casefold() in ("ai", "assistant", "bot") else author
    return Turn(
        speaker,
        content,
        moment,
        f"Copilot {title}".strip(),
        (title, moment or "", author, content),
        role_of(options.me, by_user),
        (),
        {"title": title},
    )


TABLES: Mapping[str, tuple[ChatTable, ...]] = {
    line.FORM: (ChatTable(("送信日", "送信者タイプ", "送信者名", "送信時刻", "内容"), _line),),
    discord.FORM: (
        ChatTable(("Date", "AuthorID", "Author", "Content"), _discord),
        ChatTable(
            discord.PACKAGE_FIELDS,
            lambda cells, above, options, _name: discord.package_turn(cells, above, options),
            discord.beside,
            has_ids=True,
        ),
    ),
    "copilot": (
        ChatTable(("Time", "Conversation", "Author", "Message"), _copilot),
        ChatTable(("CreatedAt", "MessageContent", "Author", "ChatName"), _copilot),
    ),
}


def is_table(form: str, head: Head) -> bool:
    """Whether a file is a table of a chat of this program."""
    return _table(head.rows, TABLES.get(form, ())) is not None


def _table(rows: Sequence[Sequence[str]], tables: Iterable[ChatTable]) -> tuple[int, ChatTable] | None:
    """The number of the header's row and the table whose columns it names."""
    headers = [(number, {cell.strip().lstrip("\ufeff") for cell in row}) for number, row in enumerate(rows[:HEADER_ROWS])]
    return next(((number, table) for table in tables for number, header in headers if header.issuperset(table.columns)), None)


def read_file(form: str, source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message of one program's table. A day of a chat is a session, or a conversation with an assistant."""
    above: dict[str, str] = {}
    equals = Equals()
    # Rows may be stored under a day that the clock didn't tell.
    orders = with_and_without_clock(cells.get(table.columns[0], "") for _, table, cells in _rows(source, name, {}))
    for number, table, cells in _rows(source, name, above):
        date = {table.columns[0]: cells[table.columns[0]].strip()} if table.columns[0] in cells else {}
        dated, formerly = (cells | {column: order(text) for column, text in date.items()} for order in orders)
        yield from _row(table, dated, formerly, above, options, (form, name, number), equals)


def _rows(source: Source, name: str, above: dict[str, str]) -> Iterator[tuple[int, ChatTable, dict[str, str]]]:
    """The number and the cells of each row below the header. What stands above it is put into `above`."""
    header: Sequence[str] = ()
    table: ChatTable | None = None
    for number, row in enumerate(table_rows((f"{text}\n" for _, text in text_lines(source, name)), name), start=1):
        if table is None:
            found = _table([row], chain(*TABLES.values()))
            table, header = (found[1], [cell.strip().lstrip("\ufeff") for cell in row]) if found else (None, ())
            above.update(table.beside(source, name) if table else {})
            above.update([(row[0].strip().lstrip("\ufeff"), row[1].strip())] if len(row) > 1 else [])
            if number > HEADER_ROWS:
                raise InvalidInput("{} has no chat", "its first rows name no columns of one", "Choose its format", name)
        elif any(row):
            yield number, table, dict(zip(header, row, strict=False))


def _row(
    table: ChatTable, cells: Cells, formerly: Cells, above: Cells, options: ReadOptions, place: tuple[str, str, int], equals: Equals
) -> Iterator[ImportItem]:
    form, name, number = place
    where = sentence("{}, row {}", name, number)
    if any(column not in cells for column in table.columns):
        yield ImportItem(where, refused="It has fewer cells than its table has columns.")
        return
    stem = name.rpartition("/")[2].rpartition(".")[0]
    turn = table.turn(cells, above, options, stem)
    repeated = () if table.has_ids else (equals.number((turn.said_at or "")[:10], *turn.identity),)
    former = () if formerly == cells or table.has_ids else ((*table.turn(formerly, above, options, stem).identity, *repeated),)
    yield from turn_items(form, where, replace(turn, identity=(*turn.identity, *repeated), former=(*turn.former, *former)))
