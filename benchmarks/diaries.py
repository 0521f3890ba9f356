"""A set whose memories are long: what was said in a row is one memory, as in a diary, and a question needs a passage of it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.sets import RetrievalSet, Row


def diaries(told: RetrievalSet, characters: int) -> RetrievalSet:
    """The same memories and questions, as many memories in a row joined as have `characters` together. Each has the key of its first."""
    joined: dict[str, list[Row]] = {}
    place: dict[tuple[str, str], str] = {}
    for store, rows in told.memories.items():
        entries = list(_entries(rows, characters))
        joined[store] = [_entry(entry) for entry in entries]
        place |= {(store, row["key"]): entry[0]["key"] for entry in entries for row in entry}
    questions = [
        replace(
            question,
            relevant=tuple(dict.fromkeys(place[question.store, key] for key in question.relevant)),
            outdated=tuple(dict.fromkeys(place[question.store, key] for key in question.outdated)),
        )
        for question in told.questions
    ]
    return RetrievalSet(f"{told.name} in diaries", joined, questions)


def _entries(rows: Sequence[Row], characters: int) -> Iterator[list[Row]]:
    entry: list[Row] = []
    length = 0
    for row in sorted(rows, key=lambda row: row.get("occurred_at") or ""):
        if entry and length + len(row["content"]) > characters:
            yield entry
            entry, length = [], 0
        entry.append(row)
        length += len(row["content"])
    if entry:
        yield entry


def _entry(rows: Sequence[Row]) -> Row:
    told = {"key": rows[0]["key"], "content": "\n".join(row["content"] for row in rows), "occurred_at": rows[0].get("occurred_at")}
    return {name: value for name, value in told.items() if value}
