"""The beginning of a file, in the forms that formats are recognized by: bytes, text, rows of a table, JSON."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.json_stream import outline
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.text_files import TEXT_SUFFIXES, decoded_head, table_rows

HEAD_BYTES = 64 * 1024
HEAD_ROWS = 12
JSON_LINES_SUFFIXES = frozenset({".jsonl", ".ndjson"})
JSON_SUFFIXES = frozenset({".json", *JSON_LINES_SUFFIXES})
TABLE_SUFFIXES = frozenset({".csv", ".tsv"})


class Head:
    """A file by its name and its first bytes. What is not of the kind that is asked for is empty."""

    def __init__(self, source: Source, name: str) -> None:
        """Raises InvalidInput if the file can't be read."""
        self._source, self.name = source, name
        self.suffix = PurePosixPath(name).suffix.lower()
        with self.opened() as file:
            self.data = file.read(HEAD_BYTES)

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """The file, for what is recognized further on in it."""
        return self._source.open(self.name)

    @cached_property
    def text(self) -> str:
        """The text of a text file."""
        return decoded_head(self.data) if self.suffix in TEXT_SUFFIXES else ""

    @cached_property
    def rows(self) -> list[list[str]]:
        """The first rows of a table."""
        lines = (
            decoded_head(self.data).splitlines()[: -1 if len(self.data) == HEAD_BYTES else None] if self.suffix in TABLE_SUFFIXES else []
        )
        separator = max(",\t;", key="\n".join(lines[:HEAD_ROWS]).count)
        rows: list[list[str]] = []
        with suppress(InvalidInput):
            rows.extend(islice(table_rows(lines, self.name, separator), HEAD_ROWS))
        return rows

    @cached_property
    def first(self) -> Any:
        """The first entry of a JSON file (of an object, its fields with the first entry of each list), or of a file of JSON lines.

        Raises:
            InvalidInput: a file that is called .json is none.
        """
        if self.suffix == ".json":
            return outline(blocks(self._source, self.name), self.name)
        if self.suffix not in JSON_LINES_SUFFIXES and self.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
            with suppress(InvalidInput):
                return outline(blocks(self._source, self.name), self.name)
        if self.suffix in JSON_LINES_SUFFIXES:
            with suppress(ValueError, RecursionError):
                return json.loads(next(iter(decoded_head(self.data).lstrip().splitlines()), ""))
        return None

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The same, if it is an object."""
        return self.first if isinstance(self.first, dict) else {}

    def has(self, *names: str) -> bool:
        """Whether the first entry has all of these fields."""
        return all(name in self.fields for name in names)
