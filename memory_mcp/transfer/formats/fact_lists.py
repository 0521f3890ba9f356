"""Reads a list of facts, as an assistant tells what it remembers: `[2025-01-03] - …`, bullets, or JSON, also in a tool's answer. Each line is a fact with
its day. The sentences around the list are none."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from memory_mcp.transfer.formats import import_rows, mem0
from memory_mcp.transfer.formats.clock import day_of
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, text_in
from memory_mcp.transfer.formats.json_stream import items
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import text_lines
from memory_mcp.transfer.formats.written_times import written_time
from memory_mcp.transfer.line_fields import is_too_deep
from memory_mcp.wording import sentence

FORM = "facts"
SENTENCES = "sentences around a list of facts"
LISTS = ("memories", "facts", "saved_memories", "memory", "results")
_TEXTS, _DAYS = ("content", "memory", "text", "fact", "value"), ("date", "created_at", "updated_at", "timestamp")
_OTHERS = frozenset({"id", "hash", "user_id", "content_hash", "embedding", "role"})  # of programs with a format of their own
_BULLET = re.compile(r"(?:[•・●◦▪①-⑳]\s{0,3}|(?:[-*+–]|[(（]?\d{1,4}[.)])\s{1,3}|[(（]?\d{1,4}[．）]\s{0,3})(.*)", re.DOTALL)
# [2025-01-03] - tea, （令和5年6月）tea, [last year] - tea; a link is none.
_BRACKETED = re.compile(
    r"[\[(（【［]\s?(?P<time>[^\[\]()（）【】［］\n]{1,40}?)\s?[\])）】］](?P<link>(?=\())?\s{0,3}(?P<sign>[-–—:：.])?\s{0,3}(?P<said>.*)",
    re.DOTALL,
)
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)|\d年|元年")
_NO_TIME = re.compile(r"unknown|no date|date unknown|不明|日付不明|日付なし", re.IGNORECASE)
_FIGURES = re.compile(r"(\d{4})[-/.年]\s?(\d{1,2})(?:[-/.月]\s?(\d{1,2})日?(?:[T ][\d:.+Z-]{2,30})?|月?)")
_DAY_FIRST = re.compile(r"(?P<time>\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?)(?:\s{0,3}(?P<sign>[-–—:：])\s{0,3}|\s)(?P<said>.*)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s.*|[^\[\s].{0,60}[:：]|\*\*.{1,60}\*\*[:：]?|\*[^*\s][^*]{0,60}\*|【[^【】]{1,60}】")
# The headings of what Claude remembers, above paragraphs.
_OF_CLAUDE = re.compile(
    r"^\*\*(?:Work context|Personal context|Top of mind|Brief history|Other instructions)\*\*[ \t]*$", re.MULTILINE | re.IGNORECASE
)
# A line may have several: [2025-01-03] - tea.[2025-01-04] - coffee. 2025-01-05: milk.
_GLUED = re.compile(r"\[([^\[\]\n]{0,20}\d{4}[^\[\]\n]{0,20})\] ?[-–—:]")
_NEXT_DAY = re.compile(r"(?<=[^\d\s][。．.!?！？])\s{0,3}(?=\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?\s{0,3}[:：])")
LONGEST_SECTION = 20
_DECODER = json.JSONDecoder()
_FENCE = re.compile(r"```.{0,20}|[-=*_]{3,80}")
_JSON = re.compile(r"^\s{0,20}(?=\{|\[\s{0,20}[\[{\"])", re.MULTILINE)
_BEGINNINGS, _SENTENCES = 5, 3
# What an assistant says before what it remembers. A person's own notes have "I remember" and 覚えている, too.
_I_KNOW = r"\bI(?:'ve| have)? (?:still |also |currently )?(?:remember|know|saved|stored|learned|noted)\b"
_I_KNOW_JA = r"(?:覚えて|記憶して|保存(?:し|され)て|存じて|知って|把握して)"
_ABOUT = re.compile(
    rf"\b(?:what|everything)(?: that)? {_I_KNOW}(?: so far)?[ .:：*]{{0,9}}$"
    rf"|{_I_KNOW}(?: so far)?[ *]{{0,9}}[:：]|{_I_KNOW} (?:the following|these)\b"
    rf"|(?:{_I_KNOW}|\bI have|\bmemor(?:y|ies)|\bfacts|\binformation|\bdetails)\b[^.:,]{{0,40}} about you\b(?! (?:and|or)\b)"
    rf"|^\W{{0,9}}about you\W{{0,9}}$"
    r"|memories I have|(?:here|these) are (?:the |all |my |your )?(?:memories|facts)|saved memor|model set context"
    rf"|{_I_KNOW_JA}いる(?:こと|内容|情報|事実|もの|の|メモリ|記憶)(?:です|は|を|の)?、?"
    r"(?:以下|次|下記|こちら|まとめ|一覧|お伝え|お話し|ご紹介|[。：:\s*#]{0,9}$)"
    rf"|{_I_KNOW_JA}(?:い|おり)ます[：:]"
    rf"|(?:以下|次|下記|これら)[のをがは][^。]{{0,15}}{_I_KNOW_JA}(?:い|おり)"
    r"|(?:あなた|ユーザー)に(?:ついて|関して|関する)[^。]{0,20}(?:覚え|記憶|保存|存じ|知って|把握|メモリ|情報|事実)"
    r"|保存された?(?:メモリ|記憶)"
    r"|关于你|關於你|记住了|記住了|기억하고",
    re.IGNORECASE,
)
# The fields of a tool's answer.
_ANSWER = frozenset({"jsonrpc", "id", "result", "content", "structuredContent", "isError", "_meta"})


def recognizes(head: Head) -> bool:
    """A text of such lines, at least two of them or one with a day, with few sentences around them, or of paragraphs under Claude's headings; or JSON of
    strings, alone, in a tool's answer, or with few sentences around it."""
    if head.text:
        text = head.text.lstrip("\ufeff")
        return _facts_within(text) is not None or _is_list(text, is_note=head.suffix != ".txt") or len(_OF_CLAUDE.findall(text)) > 1
    return head.suffix == ".json" and (isinstance(head.first, str) or (not is_too_deep(head.first) and _has_facts(head.first)))


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each fact."""
    is_json = name.lower().endswith(".json")
    within = None if is_json else _facts_within(Head(source, name).text.lstrip("\ufeff"))
    if not (is_json or within):
        yield from _of_lines(text_lines(source, name), name, options)
        return
    value, sentences = within or (None, [])
    yield from (ImportItem(name, left_out=SENTENCES) for _ in sentences)
    values = items(blocks(source, name), name, frozenset(LISTS)) if is_json else [value]
    entries = (entry for value in values for entry in ([value] if _is_fact(value) else _listed(value)))
    former = set[int]()
    for number, entry in enumerate(entries, start=1):
        for item in _of_json(entry, sentence("{}, entry {}", name, number), options):
            # Equal texts of several days were one memory: it is the first.
            keys = {hash(key) for key in (item.row or {}).get("former_keys", ())}
            if item.row and keys and keys <= former:
                del item.row["former_keys"]
            former |= keys
            yield item


def _facts_within(text: str, *, in_answer: bool = False) -> tuple[Any, list[str]] | None:
    """The JSON in a text that is a list of facts, and the sentences around it; None if there is none, or the text says other things."""
    for beginning in islice(_JSON.finditer(text), _BEGINNINGS):
        with suppress(ValueError, RecursionError):
            value, end = _DECODER.raw_decode(text, beginning.end())
            around = f"{text[: beginning.start()]}\n{text[end:]}".splitlines()
            sentences = [line for line in around if line.strip() and not _FENCE.fullmatch(line.strip())]
            is_about = not sentences or (len(sentences) <= _SENTENCES and any(map(_ABOUT.search, sentences)))
            return (
                (value, sentences)
                if is_about and not is_too_deep(value) and _has_facts(value, in_answer=in_answer or isinstance(value, list))
                else None
            )
    return None


def _has_facts(value: Any, *, in_answer: bool = False) -> bool:
    """Whether this is a list of facts, an object with one, or a tool's answer with either. Beside an id a text is a fact only in an answer: elsewhere it is
    of a program with a format of its own."""
    if isinstance(value, list):
        return bool(value) and (isinstance(value[0], str) or _has_facts(value[0], in_answer=in_answer))
    if not isinstance(value, dict):
        return False
    if value.get("type") == "text":
        text = text_in(value.get("text"))
        return _facts_within(text, in_answer=True) is not None or _is_list(text)
    listed: list[Any] = next((value[name] for name in LISTS if isinstance(value.get(name), list)), [])
    if listed:
        return _is_fact(listed[0]) and (in_answer or isinstance(listed[0], str) or not _OTHERS & listed[0].keys())
    return (in_answer and _is_fact(value)) or (
        value.keys() <= _ANSWER and any(_has_facts(inner, in_answer=True) for inner in value.values())
    )


def _is_list(text: str, *, is_note: bool = False) -> bool:
    lines = text.splitlines()
    lines = lines[:-1] if len(text) > 60_000 else lines
    found = [(kind, line) for kind, _, line in _classified(enumerate(lines))]
    kinds = [("sentence" if kind == "heading" and not _section(line) else kind, line) for kind, line in found]
    if any(_ABOUT.search(line) for kind, line in kinds if kind in ("sentence", "heading")):
        least_dated = 0.0
    elif is_note and any(line[:1].isspace() and _is_item(line.strip()) for line in lines):
        return False
    else:
        least_dated = 0.5
    count = Counter(kind for kind, line in kinds if not line[:1].isspace())
    dated = sum(map(_is_dated, lines))
    if not (count["sentence"] or count["further"]):
        return count["item"] > 1 or dated > 0
    return count["item"] >= max(2, count["sentence"], count["further"]) and dated >= least_dated * count["item"]


def _classified(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    """The lines that are not blank, each as an item, a further line of one, a heading or a sentence, and its number."""
    is_in_item, is_after_blank = False, True
    for number, line in ((number, part) for number, whole_line in lines for part in _unglued(whole_line)):
        if not line.strip() or _FENCE.fullmatch(line.strip()):
            is_after_blank = True
            continue
        is_indented, is_heading = line[:1].isspace(), _HEADING.fullmatch(line) is not None
        if _is_item(line) or (is_in_item and (bracketed := _BRACKETED.fullmatch(line)) and bracketed["sign"]):
            kind = "item"
        elif is_in_item and (is_indented or not (is_after_blank or is_heading)):
            kind = "further"
        else:
            kind = "heading" if is_heading and not is_indented else "sentence"
        is_in_item, is_after_blank = kind in ("item", "further"), False
        yield kind, number, line


def _is_item(line: str) -> bool:
    return _BULLET.fullmatch(line) is not None or _is_dated(line) or ((day := _DAY_FIRST.fullmatch(line)) is not None and bool(day["sign"]))


def _is_dated(line: str) -> bool:
    """Whether a line begins with a time in brackets, or with the words that there is none."""
    bracketed = _BRACKETED.fullmatch(line)
    if not bracketed or bracketed["link"] is not None:
        return False
    time = bracketed["time"]
    if (figures := _FIGURES.fullmatch(time)) and figures[3]:
        return True
    return bool(_NO_TIME.fullmatch(time) or (_time(time) and bracketed["said"]))


def _is_fact(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and any(isinstance(value.get(name), str) for name in _TEXTS))


def _listed(value: Any) -> list[Any]:
    """The entries of a list, of an object with one, or of a tool's answer."""
    if isinstance(value, dict):
        inner = next(
            (value[name] for name in (*LISTS, "structuredContent", "result", "content") if isinstance(value.get(name), dict | list)), None
        )
        return [value] if inner is None else _listed(inner)
    return value if isinstance(value, list) else [value]


def _of_json(value: Any, where: str, options: ReadOptions) -> Iterator[ImportItem]:
    if isinstance(value, dict) and value.get("type") == "text":
        text = text_in(value.get("text"))
        if (within := _facts_within(text, in_answer=True)) is not None:
            for entry in _listed(within[0]):
                yield from _of_json(entry, where, options)
        elif _is_list(text):
            yield from _of_lines(enumerate(text.split("\n"), start=1), where, options)
        else:
            yield ImportItem(where, left_out=SENTENCES)
        return
    if not _is_fact(value):
        yield ImportItem(where, refused="It is no text and has none.")
        return
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {"content": value}
    text = next(text_in(fields[name]) for name in _TEXTS if isinstance(fields.get(name), str))
    if not text.strip():
        yield ImportItem(where, left_out=import_rows.WITHOUT_TEXT)
    day = next((found for name in _DAYS if (found := written_time(fields.get(name)))), None)
    further = import_rows.unread(fields, {*_TEXTS, *_DAYS})
    yield from _fact(text, where, options, "", day, further, [(mem0.FORM, *mem0.identity(fields))])


def _of_lines(lines: Iterable[tuple[int, str]], where: str, options: ReadOptions) -> Iterator[ImportItem]:
    section, item, begun, is_below_heading = "", list[str](), 0, False
    untagged: list[ImportItem] = []  # the last heading, while it is the tag of nothing
    for kind, number, line in _classified(lines):
        # A paragraph below a heading is what the heading is about.
        is_below_heading = kind == "heading" or (is_below_heading and kind == "sentence")
        is_item = kind == "item" or (is_below_heading and section and kind == "sentence" and not _ABOUT.search(line))
        if kind == "further":
            item.append(line.strip())
            continue
        yield from _fact("\n".join(item), sentence("{}, line {}", where, begun), options, section)
        item, begun = ([line], number) if is_item else ([], number)
        around = ImportItem(sentence("{}, line {}", where, number), left_out=SENTENCES)
        if kind == "heading":
            yield from untagged
            section, untagged = _section(line), [around]
        elif not is_item:
            yield around
        elif section:
            untagged = []
    yield from _fact("\n".join(item), sentence("{}, line {}", where, begun), options, section)
    yield from untagged


def _unglued(line: str) -> list[str]:
    """The facts of a line, of which each but the first begins with its day."""
    days = [day.start() for day in _GLUED.finditer(line) if _FIGURES.fullmatch(day[1]) or _time(day[1])]
    starts = sorted([*days[1:], *(end.end() for end in _NEXT_DAY.finditer(line))])
    return [line[start:end] for start, end in zip([0, *starts], [*starts, None], strict=True)]


def _section(heading: str) -> str:
    """The tag that a heading gives. A sentence, such as "Here's what I remember about you:", gives none."""
    name = heading.strip("#* :：【】")
    return name if heading.startswith(("#", "*", "【")) or (len(name) <= LONGEST_SECTION and not _ABOUT.search(name)) else ""


def _fact(
    text: str,
    where: str,
    options: ReadOptions,
    section: str,
    day: str | None = None,
    further: Mapping[str, Any] | None = None,
    former: Iterable[tuple[str, ...]] = (),
) -> Iterator[ImportItem]:
    bullet = _BULLET.fullmatch(text.strip())
    told = _told((bullet[1] if bullet else text).strip())
    formerly = [] if told.formerly is None else [(FORM, told.formerly, told.formerly_at or day or "")]
    day = told.time or day
    yield from import_rows.memory_rows(
        where,
        FORM,
        (told.content, day or ""),
        told.content,
        source=options.me,
        occurred_at=day,
        kind="fact",
        tags=[section],
        metadata={FORM: dict(further)} if further else None,
        origin={"section": section},
        former=[*formerly, *former],  # a list without ids was read as one of mem0's
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What a fact says, the time that it begins with, and the text and the time that were its own while such a time was read otherwise."""

    content: str
    time: str = ""
    formerly: str | None = None
    formerly_at: str = ""


def _told(text: str) -> _Told:
    """A time that can't be read stays in the text; so does one that no sign separates from the rest."""
    begun = _BRACKETED.fullmatch(text) or _DAY_FIRST.fullmatch(text)
    if not begun:
        return _Told(text)
    words, said = begun["time"], begun["said"].strip()
    is_apart = bool(begun["sign"]) or begun.re is _BRACKETED
    if is_apart and _NO_TIME.fullmatch(words):
        return _Told(said)
    time = _time(words)
    was_read = is_apart and _FIGURES.fullmatch(words) is not None
    if begun.groupdict().get("link") is not None:
        return _Told(text, "", said, time) if was_read else _Told(text)
    content, formerly = said if is_apart and time else text, said if was_read else text
    return _Told(content, time, None if (was_read and time) or (formerly, "") == (content, time) else formerly)


def _time(words: str) -> str:
    """A day or a month in figures as ISO text, another time with its year as it is written; empty if there is none."""
    if figures := _FIGURES.fullmatch(words):
        found = day_of(*(int(part or 1) for part in figures.groups()))
        return found.isoformat()[: None if figures[3] else len("2025-01")] if found else ""
    return (written_time(words) or written_time("".join(words.split())) or "") if _YEAR.search(words) else ""
