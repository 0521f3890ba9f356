"""Reads the entries of a JSON file one at a time: an export of years of conversations need not fit into memory."""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from memory_mcp.errors import InvalidInput, NotInstalled
from memory_mcp.transfer.formats.import_rows import ImportItem
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.wording import sentence

CONVERSATIONS = re.compile(r"\A(?:.*/)?+conversations(?:[-_]\d+)?\.json")

OTHER_FILES = "other files"

ITEM_LIMIT_CHARACTERS = 128 * 1024 * 1024
# Of a longer file no more is read to recognize it.
OUTLINE_CHARACTERS = 4 * 1024 * 1024
OUTLINED_LEVELS = 5
_BETWEEN = " \t\r\n,"

_DECODER = json.JSONDecoder()
# JSON that was copied with the code fence around it begins with this line.
_FENCE = re.compile(r"\A\s{0,20}```\w{0,9}[ \t]*(?=\r?\n)")


def items(blocks: Iterable[bytes], name: str, lists: Set[str] = frozenset(), beside: dict[str, Any] | None = None) -> Iterator[Any]:
    """Yields the entries of a top-level list, or of the fields of a top-level object that are in `lists` and are lists, one at a time; else the single
    top-level value. The other fields of such an object are put into `beside`.

    Raises:
        InvalidInput: the JSON is malformed; the entries before the error were yielded.
    """
    window = _Window(blocks, name)
    first = window.peek()
    if first == "[":
        yield from (entry for _, entry in window.values("", frozenset()))
        window.end()
    elif first != "{" or not lists:
        yield window.rest()
    else:
        others, has_list = {} if beside is None else beside, False
        for field in window.fields():
            if window.peek() == "[" and field in lists:
                has_list = True
                yield from (entry for _, entry in window.values(field, frozenset()))
            else:
                others[field] = window.decoded()
        window.end()
        yield from [] if has_list else [others]


def walk(blocks: Iterable[bytes], name: str, opened: Set[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yields the values of a top-level object or list with their paths, one at a time; those at a path in `opened` value by value, too.

    An entry of `{"chats": [{"id": 1}]}` has the path `chats[]` with `chats` opened, and its id `chats[].id` if `chats[]` is opened, too.

    Raises:
        InvalidInput: the JSON is malformed; the values before the error were yielded.
    """
    window = _Window(blocks, name)
    window.peek()
    yield from window.values("", opened)
    window.end()


def outline(blocks: Iterable[bytes], name: str) -> Any:
    """What a JSON file is recognized by: the first entry of a list, or an object; lists in it have their first entry alone.

    Raises:
        InvalidInput: the JSON is malformed, or there is none.
    """
    window = _Window(blocks, name)
    outlined = window.outlined(OUTLINED_LEVELS)
    return next(iter(outlined), None) if isinstance(outlined, list) else outlined


def lines(blocks: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yields (number, line) for each line of UTF-8 text that is not blank. Splits at line feeds only. What is no character is �.

    Raises:
        InvalidInput: a line is too long.
    """
    rest, number = "", 0
    for text in _texts(blocks, name, errors="replace"):
        *complete, rest = (rest + text).split("\n")
        for line in complete:
            number += 1
            if line.strip():
                yield number, line
        if len(rest) > ITEM_LIMIT_CHARACTERS:
            raise _too_long(name, number + 1)
    if rest.strip():
        yield number + 1, rest


def json_object(line: str | bytes) -> dict[str, Any] | None:
    """The object on a line, if it is one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def position_of(error: ValueError | RecursionError) -> str:
    """Where JSON can't be read, as far as it is known."""
    return sentence("at line {}, character {}", error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else str(error)


def each_file(source: Source, read: Callable[[str], Iterator[ImportItem]], wants: Callable[[str], object] = bool) -> Iterator[ImportItem]:
    """What `read` yields for each file that it `wants`, and a single file always; the others are left out. One that can't be read is refused by its name."""
    names = source.names()
    for name in names:
        try:
            if len(names) == 1 or wants(name):
                yield from read(name)
            else:
                yield ImportItem(name, left_out=OTHER_FILES)
        except (InvalidInput, NotInstalled, OSError) as error:
            yield ImportItem(name, refused=str(error))


def ends_in(*suffixes: str) -> Callable[[str], bool]:
    """Whether a name ends in one of these."""
    return lambda name: name.lower().endswith(suffixes)


def read_entries(
    source: Source, read: Callable[[Any, str], Iterator[ImportItem]], files: re.Pattern[str], noun: str = "conversation"
) -> Iterator[ImportItem]:
    """What `read` yields for each entry of the matching files, given the entry and a label for messages."""

    def entries(name: str) -> Iterator[ImportItem]:
        for number, entry in enumerate(items(blocks(source, name), name), start=1):
            yield from read(entry, f"{name}, {noun} {number}")

    yield from each_file(source, entries, files.fullmatch)


class _Window:
    """The decoded part of a file around the current read offset."""

    def __init__(self, blocks: Iterable[bytes], name: str) -> None:
        self._texts = _texts(blocks, name)
        self._name, self._text, self._offset, self._count = name, "", 0, 0
        self.read_characters = 0

    def peek(self) -> str:
        """The character that the next value begins with."""
        while not self._seek():
            if not self._more():
                raise self._broken("it ends too early") if self.read_characters else self._empty()
        return self._text[self._offset]

    def end(self) -> None:
        """Raises InvalidInput if more than the end of a code fence stands behind the value that was read."""
        while self._more(ITEM_LIMIT_CHARACTERS):
            pass
        if behind := self._text.strip(_BETWEEN).removeprefix("```"):
            raise InvalidInput(
                "{} has more than one JSON value",
                "behind the first stands {}",
                "Save the rest in a file of its own",
                self._name,
                behind[:20],
            )

    def values(self, path: str, opened: Set[str]) -> Iterator[tuple[str, Any]]:
        """As `walk`, for the value that comes next."""
        if self.peek() == "[":
            self._offset += 1
            count = 0
            while not self.ends_list():
                self._count = count = count + 1
                yield from self._value(f"{path}[]", opened)
            self._offset += 1
        else:
            for key in self.fields():
                yield from self._value(f"{path}.{key}" if path else key, opened)

    def fields(self) -> Iterator[str]:
        """The keys of the object that comes next. The value of each is to be read before the next."""
        self._expect("{")
        while self.peek() != "}":
            key = self.decoded()
            if not isinstance(key, str):
                raise self._broken("a key is no string")
            self._expect(":")
            yield key
        self._offset += 1

    def outlined(self, levels: int) -> Any:
        """The value that comes next, without the further entries of its lists, down to so many levels."""
        first = self.peek()
        if first == "[" and levels:
            return self._first_entry(levels)
        if first != "{" or not levels:
            return self.decoded()
        fields: dict[str, Any] = {}
        for key in self.fields():
            fields[key] = self.outlined(levels - 1)
            if self.read_characters > OUTLINE_CHARACTERS:
                break
        return fields

    def _first_entry(self, levels: int) -> list[Any]:
        self._offset += 1
        entries: list[Any] = []
        while not self.ends_list():
            entry = self.outlined(levels - 1) if not entries else self.decoded()
            entries.extend([] if entries else [entry])
            if self.read_characters > OUTLINE_CHARACTERS:
                return entries
        self._offset += 1
        return entries

    def _value(self, path: str, opened: Set[str]) -> Iterator[tuple[str, Any]]:
        if path in opened and self.peek() in "[{":
            yield from self.values(path, opened)
        else:
            self.peek()
            yield path, self.decoded()

    def _expect(self, character: str) -> None:
        if self.peek() != character:
            raise self._broken(f"{character} is missing")
        self._offset += 1

    def ends_list(self) -> bool:
        """Whether the list ends here."""
        while not self._seek():
            if not self._more():
                raise self._broken("the file ends within the list")
        return self._text[self._offset] == "]"

    def decoded(self) -> Any:
        while True:
            try:
                value, self._offset = _DECODER.raw_decode(self._text, self._offset)
            except (ValueError, RecursionError) as error:
                # A truncated value and a malformed one raise the same error: double the window until the file ends.
                if isinstance(error, RecursionError):
                    raise InvalidInput("{} is not read", "it is nested too deeply", "Fetch the export again", self._name) from error
                if not self._more(len(self._text) - self._offset):
                    raise self._broken(position_of(error)) from error
            else:
                return value

    def rest(self) -> Any:
        """The whole file as one value."""
        while self._more(ITEM_LIMIT_CHARACTERS):
            pass
        try:
            return json.loads(self._text.rstrip().removesuffix("```"))
        except (ValueError, RecursionError) as error:
            raise self._broken(position_of(error)) from error

    def _seek(self) -> bool:
        """Skips what is between values; False at the end of the window."""
        while self._offset < len(self._text) and self._text[self._offset] in _BETWEEN:
            self._offset += 1
        return self._offset < len(self._text)

    def _more(self, least: int = 1) -> bool:
        """Reads at least `least` further characters, unless the file ends before."""
        parts = [self._text[self._offset :]]
        read = 0
        for text in self._texts:
            parts.append(text)
            read += len(text)
            if read >= least:
                break
        self._text, self._offset = "".join(parts), 0
        self.read_characters += read
        if len(self._text) > ITEM_LIMIT_CHARACTERS:
            raise _too_long(self._name, self._count)
        return read > 0

    def _empty(self) -> InvalidInput:
        return InvalidInput("{} is empty", "", "Fetch the export again", self._name)

    def _broken(self, why: str) -> InvalidInput:
        where = f" from entry {self._count} on" if self._count else ""
        return InvalidInput("{} is not JSON{}", "{}", "Fetch the export again", self._name, where, why)


def _texts(blocks: Iterable[bytes], name: str, errors: str = "strict") -> Iterator[str]:
    decoder, is_first = codecs.getincrementaldecoder("utf-8-sig")(errors), True
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield _FENCE.sub("", text, count=1) if is_first else text
                is_first = False
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InvalidInput("{} is not UTF-8", "{}", "Save it as UTF-8", name, error.reason) from error


def _too_long(name: str, number: int) -> InvalidInput:
    return InvalidInput(
        "entry {} of {} is too long", "{} characters are the limit", "Take it out", number, name, f"{ITEM_LIMIT_CHARACTERS:,}"
    )
