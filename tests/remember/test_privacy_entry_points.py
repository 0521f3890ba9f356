"""Every entry point by which text reaches a persona's files, as a table: none stores what the privacy rules exclude."""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import STATE_FIELDS, Draft, StatedRelation
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.language.privacy.redaction import KINDS
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.transfer.jsonlines import ImportOptions, ImportResult, import_lines
from memory_mcp.upkeep import summarization

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
REDACT, OFF = (Privacy(**dict.fromkeys(KINDS, mode)) for mode in ("redact", "off"))
DAY = timedelta(days=1)


class Writer:
    """A persona, and each of the ways in under one set of rules."""

    def __init__(self, persona: Persona, now: datetime, zone: ZoneInfo) -> None:
        self.persona, self.now, self.zone, self.rules = persona, now, zone, REDACT

    def remember(self, content: str = "苺が好き", **fields: Any) -> str:
        return remember(self.persona, Draft(content, **fields), now=self.now, zone=self.zone, privacy=self.rules).key

    def revise(self, key: str, **changes: Any) -> None:
        revise(self.persona, key, Revision(**changes), now=self.now, privacy=self.rules)

    def import_rows(self, *rows: dict[str, Any]) -> ImportResult:
        lines = [(number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1)]
        return import_lines(lambda: nullcontext(self.persona), lines, ImportOptions(self.now, self.zone, self.rules))

    def forget(self, key: str, reason: str) -> None:
        forget(self.persona, [key], reason=reason, dry_run=False, now=self.now, privacy=self.rules)

    def merge(self, reason: str) -> None:
        keys = [self.remember(content) for content in ("苺が好き", "苺が好き。")]
        merge(self.persona, keys[1:], keys[0], reason=reason, now=self.now, privacy=self.rules)

    def relate(self, *stated: StatedRelation) -> None:
        relate(self.persona, stated, now=self.now, privacy=self.rules)

    def unrelate(self, stated: StatedRelation, reason: str | None = None) -> None:
        unrelate(self.persona, stated, reason=reason, now=self.now, privacy=self.rules)

    def version(self, **fields: Any) -> ImportResult:
        memory = {"key": "k", "content": "苺", "revision": 3}
        return self.import_rows(memory, {"version_of": "k", "revision": 1, "content": "桃", "importance": 0.5, **_AT, **fields})

    def restored(self, **fields: Any) -> None:
        """What was stored while nobody looked for anything comes back under the rules of today, in every field but what stays."""
        self.rules = OFF
        key = self.remember(**{"content": "苺が好き", **fields})
        self.rules = REDACT
        self.revise(key, content="桃が好き", tags=())
        self.revise(key, revision=1)

    def summarise(self, answer: str) -> None:
        """By a chat model that says what it may not."""
        lines = [Draft(f"{place}で桜を見た。", session_id="s") for place in ("京都", "奈良", "金沢", "松本", "萩", "長崎")]
        remember_many(self.persona, lines, now=self.now, zone=self.zone, privacy=self.rules)
        settings = Settings(privacy=self.rules.model_dump())
        while summarization.step(self.persona, self.now + DAY, settings, _Chat(answer)):
            pass


class _Chat:
    name = "chat"

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def ask(self, instructions: str, text: str, now: datetime) -> str:
        return self._answer


_AT = {"updated_at": "2025-10-01T00:00:00+09:00"}
_HOLD = StatedRelation("田中", "likes", "苺")
Way = Callable[[Writer], object]

WAYS: dict[str, Way] = {
    "remember, content": lambda to: to.remember(TOKEN),
    "remember, source": lambda to: to.remember(source=TOKEN),
    "remember, session": lambda to: to.remember(session_id=TOKEN),
    "remember, category": lambda to: to.remember(category=TOKEN),
    "remember, tags": lambda to: to.remember(tags=(TOKEN,)),
    "remember, questions": lambda to: to.remember(questions=(TOKEN,)),
    **{f"remember, {part}": lambda to, part=part: to.remember(state={part: TOKEN}) for part in STATE_FIELDS},
    "remember, a value of metadata": lambda to: to.remember(metadata={"a": [{"b": TOKEN}]}),
    "remember, a name in metadata": lambda to: to.remember(metadata={TOKEN: 1}),
    "remember, an end of a relation": lambda to: to.remember(relations=(StatedRelation(TOKEN, "likes", "苺"),)),
    "remember, the other end": lambda to: to.remember(relations=(StatedRelation("田中", "likes", TOKEN),)),
    "remember, what relates them": lambda to: to.remember(relations=(StatedRelation("田中", TOKEN, "苺"),)),
    "remember, a name in the text": lambda to: to.remember(f"田中さんは{TOKEN}さんと会った"),
    "revise, content": lambda to: to.revise(to.remember(), content=TOKEN),
    "revise, tags": lambda to: to.revise(to.remember(), tags=(TOKEN,)),
    "revise, category": lambda to: to.revise(to.remember(), category=TOKEN),
    "revise, reason": lambda to: to.revise(to.remember(), importance=0.9, reason=TOKEN),
    "forget, reason": lambda to: to.forget(to.remember(), TOKEN),
    "merge, reason": lambda to: to.merge(TOKEN),
    "relate, an end": lambda to: to.relate(StatedRelation("田中", "likes", TOKEN)),
    "relate, what relates them": lambda to: to.relate(StatedRelation("田中", TOKEN, "苺")),
    "unrelate, reason": lambda to: (to.relate(_HOLD), to.unrelate(_HOLD, TOKEN)),
    "import, content": lambda to: to.import_rows({"content": TOKEN}),
    "import, all other fields": lambda to: to.import_rows(
        {"content": "苺", "source": TOKEN, "session_id": f"a {TOKEN}", "category": TOKEN, "tags": [TOKEN], "questions": [TOKEN]}
    ),
    "import, state": lambda to: to.import_rows({"content": "苺", "state": {"emotion": TOKEN}}),
    "import, metadata": lambda to: to.import_rows({"content": "苺", "metadata": {"a": TOKEN, TOKEN: 1}}),
    "import, relations": lambda to: to.import_rows({"content": "苺", "relations": [f"田中 > likes > {TOKEN}"]}),
    "import, a key": lambda to: to.import_rows({"content": "苺", "key": f"k-{TOKEN}"}),
    "import, what is replaced": lambda to: to.import_rows({"content": "苺", "key": "k", "supersedes": f"k {TOKEN}"}),
    "import, an earlier text": lambda to: to.version(content=TOKEN),
    "import, earlier tags": lambda to: to.version(tags=[TOKEN]),
    "import, an earlier category": lambda to: to.version(category=TOKEN),
    "import, why it was changed": lambda to: to.version(reason=TOKEN),
    "import, whose earlier state": lambda to: to.version(version_of=f"k-{TOKEN}"),
    "import, context": lambda to: to.import_rows({"persona_context": {"current_emotion": TOKEN, "user_info": {"name": TOKEN}, TOKEN: 1}}),
    "import, pieces of a note": lambda to: to.import_rows({"pieces_of": TOKEN, "pieces": 1}),
    "import, what links two memories": lambda to: to.import_rows(
        {"content": "苺", "key": "a"}, {"content": "桃", "key": "b"}, {"link": TOKEN, "source": "a", "target": "b", "method": TOKEN}
    ),
    "a summary by a chat model": lambda to: to.summarise(f"鍵は{TOKEN}"),
}
# What an earlier state can bring back. Its own text stays among the versions, as it was.
RESTORED = {
    "content": {"content": TOKEN},
    "source": {"source": TOKEN},
    "session": {"session_id": TOKEN},
    "category": {"category": TOKEN},
    "tags": {"tags": (TOKEN,)},
    "questions": {"questions": (TOKEN,)},
    "state": {"state": {"emotion": TOKEN}},
}


@pytest.fixture
def writer(nilou: Persona, now: datetime, zone: ZoneInfo) -> Writer:
    return Writer(nilou, now, zone)


def held(directory: Path) -> list[str]:
    """The files that hold it, or the words of it."""
    traces = (TOKEN.encode(), TOKEN[4:20].encode(), TOKEN[4:20].lower().encode())
    files: Sequence[Path] = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return [file.name for file in files if any(trace in file.read_bytes() for trace in traces)]


@pytest.mark.parametrize("way", WAYS)
def test_no_entry_point_stores_a_secret(writer: Writer, personas: Personas, data_directory: Path, way: str) -> None:
    WAYS[way](writer)
    personas.close()
    assert held(data_directory) == []


@pytest.mark.parametrize("field", RESTORED)
def test_restored_version_is_redacted_by_current_rules(writer: Writer, field: str) -> None:
    writer.restored(**RESTORED[field])
    with writer.persona.database.read() as connection:
        (row,) = connection.execute("SELECT * FROM memories").fetchall()
        words = connection.execute("SELECT group_concat(body) FROM lexical").get
    assert any("[REDACTED_API_KEY]" in str(value) for value in row)
    assert not any(TOKEN in str(value) for value in row)
    assert TOKEN[4:20].lower() not in words


def test_removed_relation_is_reported_as_it_was_stored(writer: Writer) -> None:
    stated = StatedRelation("田中", "likes", TOKEN)
    writer.relate(stated)
    writer.unrelate(stated)
    with writer.persona.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM operations WHERE operation = 'unrelate'").get == 1


def test_import_counts_redactions_in_versions_and_context(writer: Writer) -> None:
    assert writer.version(content=TOKEN, category=TOKEN).redacted == {"api_key": 2}
    assert writer.import_rows({"persona_context": {"current_emotion": TOKEN}}).redacted == {"api_key": 1}
