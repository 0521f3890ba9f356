"""Experiences as one Markdown file, to read and edit by hand, also in Obsidian; and back.

Each is a section: its task as the heading, a comment with its key and its numbers, and its text. A section without a comment is a new experience, and
so is the second one with the same comment: a copy that somebody made to write another one.
"""

import json
import re
from collections.abc import Iterable, Iterator

from memory_mcp.store.feedback import OUTCOMES
from memory_mcp.text.experience_text import Experience, read
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, Row, storable
from memory_mcp.transfer.formats.obsidian_notes import MARK
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.formats.text_files import decoded

FORM = "playbook"
HEADING = f"---\n{MARK}: {FORM}\n---\n"
_SECTION = re.compile(r"^##(?!#)", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- *key: *([^\s,>]+)[^\n]*\n?", re.MULTILINE)
_FRONT = re.compile(rf"\A---\n(?:(?!---\n).*\n)*?{MARK}: *{FORM} *\n")


def write(lines: Iterable[bytes | str], persona: str) -> Iterator[str]:
    """The playbook of an export's JSON lines."""
    yield f"{HEADING}\n# {persona}\n"
    for row in map(json.loads, lines):
        if row.get("kind") != "experience" or "content" not in row:
            continue
        verdicts = [entry["verdict"] for entry in row.get("feedback", ())]
        tried, worked = sum(verdict in OUTCOMES for verdict in verdicts), verdicts.count("worked")
        task, _, rest = read(row["content"]).text().partition("\n")
        yield "\n" + "\n".join(filter(None, [f"## {task}", f"<!-- key: {row['key']}, tried {tried}, worked {worked} -->", rest])) + "\n"


def is_playbook(head: bytes) -> bool:
    """Whether a file begins as a playbook does."""
    return _FRONT.match(head.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")) is not None


def read_file(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  a playbook has no authors
    """Yields a row for each section."""
    for name in source.names():
        yield from sections(decoded(whole(source, name), name), name)


def sections(text: str, where: str) -> Iterator[ImportItem]:
    """Yields a row for each section of a playbook's text."""
    seen: set[str] = set()
    for number, section in enumerate(_SECTION.split(text.replace("\r\n", "\n"))[1:], start=1):
        task, _, rest = section.partition("\n")
        comment = _COMMENT.search(rest)
        said = read(storable(f"{task.strip()}\n{_COMMENT.sub('', rest)}").rstrip())
        if not task.strip() or not said.task:
            yield ImportItem(f"{where}, section {number}", refused="It has no task.")
            continue
        is_known = comment is not None and comment[1] not in seen
        key = comment[1] if comment and is_known else import_rows.key_of(FORM, repr(said.identity))
        seen.add(key)
        yield ImportItem(f"{where}, section {number}", {"key": key, **experience_fields(said)})


def experience_fields(said: Experience) -> Row:
    """The fields of the memory of an experience."""
    return {"content": said.text(), "kind": "experience", "questions": list(said.matched_by)}
