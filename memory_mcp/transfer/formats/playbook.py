"""Experiences as one Markdown file, to read and edit by hand, also in Obsidian; and back.

Each is a section: its task as the heading, a comment with its key and its numbers, and its text. A section without a comment is a new experience, and
so is the second one with the same comment: a copy that was made to write another one.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_mcp.domain import OUTCOMES
from memory_mcp.store.experience_text import Experience, read
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, Row, storable
from memory_mcp.transfer.formats.obsidian_notes import MARK
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.formats.text_files import decoded
from memory_mcp.wording import sentence

FORM = "playbook"
HEADING = f"---\n{MARK}: {FORM}\n---\n"
_SECTION = re.compile(r"^##(?!#)", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- *key: *([^\s,>]++)[^\n]*+\n?", re.MULTILINE)
_NUMBER = re.compile(r"(tried|worked|partly) (\d{1,9})", re.ASCII)
_LAST = re.compile(r"last (\d{4}-\d\d-\d\d)", re.ASCII)
# More of one verdict say nothing more.
COUNTED_LIMIT = 200
_FRONT = re.compile(rf"\A---\n(?:(?!---\n).*\n)*?{MARK}: *{FORM} *\n")


def write(lines: Iterable[bytes | str], persona: str) -> Iterator[str]:
    """The playbook of an export's JSON lines."""
    yield f"{HEADING}\n# {persona}\n"
    for row in map(json.loads, lines):
        if row.get("kind") != "experience" or "content" not in row:
            continue
        outcomes = [entry for entry in row.get("feedback", ()) if entry["verdict"] in OUTCOMES]
        times = Counter(entry["verdict"] for entry in outcomes)
        numbers = [f"key: {row['key']}", f"tried {len(outcomes)}", f"worked {times['worked']}"]
        numbers += [f"partly {times['partly']}"] if times["partly"] else []
        numbers += [f"last {max(entry['at'] for entry in outcomes)[:10]}"] if outcomes else []
        task, _, rest = read(row["content"]).text().partition("\n")
        yield "\n" + "\n".join(filter(None, [f"## {task}", f"<!-- {', '.join(numbers)} -->", rest])) + "\n"


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
        experience = read(storable(f"{task.strip()}\n{_COMMENT.sub('', rest)}").rstrip())
        if not task.strip() or not experience.task:
            yield ImportItem(sentence("{}, section {}", where, number), refused="It has no task.")
            continue
        is_known = comment is not None and comment[1] not in seen
        key = comment[1] if comment and is_known else import_rows.key_of(FORM, repr(experience.identity))
        seen.add(key)
        counted = {"feedback": _outcomes(comment[0])} if comment and is_known else {}
        yield ImportItem(sentence("{}, section {}", where, number), {"key": key, **experience_fields(experience), **counted})


def _outcomes(comment: str) -> list[Row]:
    """The verdicts on an experience, by the numbers in its comment. They count where the memory is not known yet, such as for another persona."""
    numbers = {name: min(int(number), COUNTED_LIMIT) for name, number in _NUMBER.findall(comment)}
    last = _LAST.search(comment)
    at = import_rows.moment(last[1]) if last else None
    if at is None:
        return []
    worked, partly = numbers.get("worked", 0), numbers.get("partly", 0)
    times: dict[str, int] = {"worked": worked, "partly": partly, "failed": max(numbers.get("tried", 0) - worked - partly, 0)}
    return verdicts(times, at, FORM)


def verdicts(counts: Mapping[str, Any], at: str, form: str) -> list[Row]:
    """As many verdicts as another program, or a file, has counted."""
    return [
        {"verdict": verdict, "at": at, "run": f"{form} {number}"}
        for verdict, count in counts.items()
        if isinstance(count, int)
        for number in range(min(count, COUNTED_LIMIT))
    ]


def experience_fields(experience: Experience) -> Row:
    """The fields of the memory of an experience."""
    return {"content": experience.text(), "kind": "experience", "questions": list(experience.matched_by)}
