"""Sets of memories and questions: the repository's own, and any directory with a corpus.jsonl and a queries.jsonl."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS, EVERYDAY = (Path(__file__).parent / name for name in ("corpus", "everyday"))
OWN = {directory.name: directory for directory in (CORPUS, EVERYDAY)}
QUESTION_FILES = ("questions.jsonl", "multi_hop.jsonl")
# Guessed answers, written without knowing the right ones; and which questions are answered by the memories.
GUESSES_FILE, ANSWERED_FILE = "guesses.jsonl", "answered.jsonl"
# A field of memories that few clients fill in; figures that depend on it say so.
QUESTIONS = frozenset({"questions"})
NONE, MULTI_HOP, CHANGE = "none", "multi-hop", "change"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `relevant` holds the ids of the memories that answer it together, the answer itself last if they form a chain.

    `outdated` holds memories that were true once. `now` is when it is asked (ISO with an offset); None: any time. `half` is
    `development` or `held-out`. `guess` is a guessed answer; empty: none. `answer` is
    the right one; empty: unknown.
    """

    id: str
    store: str
    query: str
    relevant: tuple[str, ...]
    category: str
    now: str | None = None
    outdated: tuple[str, ...] = ()
    half: str = ""
    guess: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """`memories` are rows for /api/import, by store; each has a `key`, its id. A store is a persona of its own."""

    name: str
    memories: Mapping[str, Sequence[Row]]
    questions: Sequence[Asked]

    def same_text(self, store: str) -> dict[str, frozenset[str]]:
        """For each id the ids of the memories of the same text: which one of them a search finds is no matter of quality."""
        by_text = defaultdict(set)
        for row in self.memories[store]:
            by_text[re.sub(r"\s+", " ", row["content"]).strip()].add(row["key"])
        return {key: frozenset(keys) for keys in by_text.values() for key in keys}


def loaded(name: str) -> RetrievalSet:
    """The own set of that name, or the one in a directory.

    Raises:
        SystemExit: there is no such set.
    """
    if name in OWN:
        return own_set(OWN[name])
    directory = Path(name)
    if not (directory / "queries.jsonl").exists():
        raise SystemExit(f"{name} is no set: it has no queries.jsonl")
    return foreign_set(directory)


def own_set(directory: Path) -> RetrievalSet:
    """One of the repository's own sets. An even number in a question's id makes it one of the development half."""
    now = json.loads((directory / "set.json").read_text(encoding="utf-8"))["now"]
    guesses = {row["id"]: row["guess"] for row in _lines_if_any(directory / GUESSES_FILE)}
    answered = {row["key"]: {"questions": row["questions"]} for row in _lines_if_any(directory / ANSWERED_FILE)}
    memories: dict[str, list[Row]] = {}
    questions: list[Asked] = []
    for character in sorted(path for path in directory.iterdir() if path.is_dir()):
        rows = [row for file in sorted(character.glob("*.jsonl")) if file.name not in QUESTION_FILES for row in lines(file)]
        memories[character.name] = [{**row, **answered.get(row["key"], {})} for row in rows]
        asked = [row for name in QUESTION_FILES for row in _lines_if_any(character / name)]
        questions += [_question({**row, "guess": guesses.get(row["id"])}, row.get("now", now)) for row in asked]
    return RetrievalSet(directory.name, memories, questions)


def foreign_set(directory: Path) -> RetrievalSet:
    """A set of rows {id, store, text, session?, date?, speaker?, caption?, questions?} and questions {id, store, query, relevant, category?, guess?}.

    Questions of the category `adversarial` are left out: their premises are false, and their labels are not.
    """
    memories: dict[str, list[Row]] = defaultdict(list)
    for row in lines(directory / "corpus.jsonl"):
        memories[row["store"]].append(_memory(row))
    rows = lines(directory / "queries.jsonl")
    return RetrievalSet(
        directory.resolve().name, memories, [_question(row, row.get("now"), "") for row in rows if row.get("category") != "adversarial"]
    )


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    with file.open(encoding="utf-8") as rows:
        yield from (json.loads(row) for row in rows)


def _lines_if_any(file: Path) -> Iterator[dict[str, Any]]:
    return lines(file) if file.exists() else iter(())


def _question(row: Row, now: str | None, half: str | None = None) -> Asked:
    return Asked(
        id=row["id"],
        store=row["store"],
        query=row["query"],
        relevant=tuple(row["relevant"]),
        category=row.get("category") or "any",
        now=now,
        outdated=tuple(row.get("outdated", ())),
        half=_half(row["id"]) if half is None else half,
        guess=row.get("guess") or "",
        answer=str(row.get("answer") or ""),
    )


def _half(question_id: str) -> str:
    return "held-out" if int(re.findall(r"\d+", question_id)[-1]) % 2 else "development"


def _memory(row: Row) -> Row:
    caption = f" [image: {row['caption']}]" if row.get("caption") else ""
    memory = {
        "key": row["id"],
        "content": row["text"] + caption,
        "source": row.get("speaker"),
        "session_id": str(row["session"]) if "session" in row else None,
        "occurred_at": row.get("date"),
        "questions": row.get("questions"),
    }
    return {name: value for name, value in memory.items() if value}
