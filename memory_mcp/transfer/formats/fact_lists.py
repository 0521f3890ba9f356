"""Reads a list of facts, as an assistant tells what it remembers: `[2025-01-03] - …`, bullets, or JSON. Each line is a fact with its day."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.clock import day_of
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, text_in
from memory_mcp.transfer.formats.json_stream import walk
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import text_lines
from memory_mcp.transfer.formats.written_times import written_time

FORM = "facts"
LISTS = ("memories", "facts", "saved_memories", "memory")
_TEXTS, _DAYS = ("content", "memory", "text", "fact", "value"), ("date", "created_at", "updated_at", "timestamp")
_OTHERS = frozenset({"id", "hash", "user_id", "content_hash", "embedding", "role"})  # of programs with a format of their own
_BULLET = re.compile(r"(?:[•・●◦▪]\s{0,3}|(?:[-*+–]|\(?\d{1,4}[.)])\s{1,3})(.*)", re.DOTALL)
_DATED = re.compile(
    r"[\[(（【]\s?(?:(\d{4})[-/.年]\s?(\d{1,2})[-/.月]\s?(\d{1,2})日?(?:[T ][\d:.+Z-]{2,30})?|unknown|no date|date unknown|不明|日付不明|日付なし)\s?[\])）】]"
    r"\s{0,3}[-–—:：.]?\s{0,3}(.*)",
    re.DOTALL | re.IGNORECASE,
)
_DAY_FIRST = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?\s{0,3}[-–—:：]\s{0,3}(.*)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s.*|[^\[\s].{0,60}[:：]|\*\*.{1,60}\*\*[:：]?")
# A line may have several: [2025-01-03] - tea.[2025-01-04] - coffee.
_GLUED = re.compile(r"\[\d{4}-\d{1,2}-\d{1,2}\] ?[-–—:]")
LONGEST_SECTION = 20
_FENCE = re.compile(r"```.{0,20}|[-=*_]{3,80}")


def recognizes(head: Head) -> bool:
    """A text of nothing but such lines, at least two of them or one with a day; or JSON of strings."""
    if head.text:
        lines = [line for line in head.text.lstrip("\ufeff").splitlines() if line.strip()]
        lines = lines[:-1] if len(head.text) > len("".join(lines)) + 60_000 else lines
        kinds = [
            _is_item(line) for line in lines if not (_FENCE.fullmatch(line.strip()) or _HEADING.fullmatch(line) or line.startswith("  "))
        ]
        dated = sum(_DATED.match(line) is not None for line in lines)
        return (
            bool(kinds)
            and all(kinds)
            and (len(kinds) > 1 or dated > 0)
            and (head.suffix == ".txt" or not any(_is_item(line.strip()) for line in lines if line[:1].isspace()))
        )
    if head.suffix != ".json":
        return False
    listed: list[Any] = next((head.fields[name] for name in LISTS if isinstance(head.fields.get(name), list)), [])
    return isinstance(head.first, str) or (bool(listed) and _is_fact(listed[0]))


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each fact."""
    if name.lower().endswith(".json"):
        opened = frozenset(LISTS)
        for number, (path, value) in enumerate(walk(blocks(source, name), name, opened), start=1):
            if path.endswith("[]"):
                yield from _of_json(value, f"{name}, entry {number}", options)
    else:
        yield from _of_text(source, name, options)


def _is_item(line: str) -> bool:
    return (_BULLET.fullmatch(line) or _DATED.fullmatch(line) or _DAY_FIRST.fullmatch(line)) is not None


def _is_fact(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, dict) and not _OTHERS & value.keys() and any(isinstance(value.get(name), str) for name in _TEXTS)
    )


def _of_json(value: Any, where: str, options: ReadOptions) -> Iterator[ImportItem]:
    if not _is_fact(value):
        yield ImportItem(where, refused="It is no text and has none.")
        return
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {"content": value}
    text = next(text_in(fields[name]) for name in _TEXTS if isinstance(fields.get(name), str))
    day = next((found for name in _DAYS if (found := written_time(fields.get(name)))), None)
    further = import_rows.unread(fields, {*_TEXTS, *_DAYS})
    yield from _fact(text, where, options, "", day, further)


def _of_text(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    section, item = "", [""]
    begun = 0
    for number, line in ((number, part) for number, whole in text_lines(source, name) for part in _unglued(whole)):
        if not line.strip() or _FENCE.fullmatch(line.strip()):
            continue
        if _is_item(line) or (not line[:1].isspace() and _HEADING.fullmatch(line)):
            yield from _fact("\n".join(item), f"{name}, line {begun}", options, section)
            item, begun = ([line], number) if _is_item(line) else ([""], number)
            section = section if _is_item(line) else _section(line)
        else:
            item.append(line.strip())
    yield from _fact("\n".join(item), f"{name}, line {begun}", options, section)


def _unglued(line: str) -> list[str]:
    """The facts of a line, of which each but the first begins with its day."""
    starts = [day.start() for day in _GLUED.finditer(line)][1:]
    return [line[start:end] for start, end in zip([0, *starts], [*starts, None], strict=True)]


def _section(heading: str) -> str:
    """The tag that a heading gives. A sentence, such as "Here's what I remember about you:", gives none."""
    name = heading.strip("#* :：")
    return name if heading.startswith(("#", "*")) or len(name) <= LONGEST_SECTION else ""


def _fact(
    text: str, where: str, options: ReadOptions, section: str, day: str | None = None, further: Mapping[str, Any] | None = None
) -> Iterator[ImportItem]:
    if bullet := _BULLET.fullmatch(text.strip()):
        text = bullet[1]
    if dated := _DATED.fullmatch(text) or _DAY_FIRST.fullmatch(text):
        found = day_of(*map(int, dated.groups()[:3])) if dated[1] else None
        day, text = (found.isoformat() if found else day), dated[4]
    yield from import_rows.memory_rows(
        where,
        FORM,
        (text.strip(), day or ""),
        text.strip(),
        source=options.me,
        occurred_at=day,
        kind="fact",
        tags=[section],
        metadata={FORM: dict(further)} if further else None,
        origin={"section": section},
    )
