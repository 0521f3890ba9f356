"""Makes a set with long memories: consecutive ones are joined, as in a diary, and a question needs a passage of one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.sets import RetrievalSet, Row


def diaries(retrieval_set: RetrievalSet, characters: int) -> RetrievalSet:
    """The same memories and questions, with consecutive memories joined up to `characters`. Each has the key of its first one."""
    joined: dict[str, list[Row]] = {}
    joined_key: dict[tuple[str, str], str] = {}
    for store, rows in retrieval_set.memories.items():
        entries = list(_entries(rows, characters))
        joined[store] = [_entry(entry) for entry in entries]
        joined_key |= {(store, row["key"]): entry[0]["key"] for entry in entries for row in entry}
    questions = [
        replace(
            question,
            relevant=tuple(dict.fromkeys(joined_key[question.store, key] for key in question.relevant)),
            outdated=tuple(dict.fromkeys(joined_key[question.store, key] for key in question.outdated)),
        )
        for question in retrieval_set.questions
    ]
    return RetrievalSet(f"{retrieval_set.name} in diaries", joined, questions)


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
    entry = {"key": rows[0]["key"], "content": "\n".join(row["content"] for row in rows), "occurred_at": rows[0].get("occurred_at")}
    return {name: value for name, value in entry.items() if value}
