"""What a server with many personas does while nobody calls: it looks at those that have something to do, and leaves the others closed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from figures import Figure
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Draft, Restored
from memory_mcp.encoders.cache import Caches
from memory_mcp.jobs.chore_worker import ChoreWorker
from memory_mcp.jobs.chores import ChoreParts, background_chores
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.llm.chat import Chat
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ExportOptions, export_lines

MANY = 12
HOUR = timedelta(hours=1)


class Watched(Personas):
    """Personas that count who is looked at."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, open_limit=4)
        self.looked_at: list[str] = []

    @contextmanager
    def reading(self, name: str) -> Iterator[Persona]:
        self.looked_at.append(name)
        with super().reading(name) as persona:
            yield persona


class Idle:
    """A server's chores over many personas, and a clock that jumps."""

    def __init__(self, directory: Path, now: datetime) -> None:
        self.personas, self.now, self.usage = Watched(directory), now, Usage()
        self.settings = Settings.model_validate({"embeddings_model": None, "reranker_model": None, "upkeep": {"idle_seconds": 0}})
        parts = ChoreParts(self.personas, unloaded_models, IndexCache(), Caches().clear, self.usage, Chat(lambda: self.settings.llm))
        chores = background_chores(parts, lambda _: None)
        self.worker = ChoreWorker(self.personas, chores, lambda: self.settings, lambda: self.now)

    def write(self, name: str, *drafts: Draft) -> list[str]:
        with self.personas.writing(name) as persona:
            stored = remember_many(persona, drafts, now=self.now, zone=ZoneInfo("Asia/Tokyo"), privacy=Privacy())
        self.worker.wake(name)
        return [outcome.key for outcome in stored]

    def hours(self, count: int) -> list[str]:
        """Lets time pass, with a look each ten minutes. Whom the chores looked at, in order."""
        self.personas.looked_at.clear()
        for _ in range(count * 6):
            self.now += HOUR / 6
            while not self.worker.step(self.now):
                pass
        return list(self.personas.looked_at)


@pytest.fixture
def idle(data_directory: Path, now: datetime) -> Iterator[Idle]:
    made = Idle(data_directory, now)
    for number in range(MANY):
        made.write(f"p{number}", Draft("苺が好き"), Draft("桃も好き"))
    yield made
    made.personas.close()


def test_what_has_expired_is_in_no_summary_even_for_a_moment(data_directory: Path, now: datetime) -> None:
    idle = Idle(data_directory, now)
    turns = [
        Draft(f"旅行の{part}を{part}ごとに相談した。", session_id="s", kind="conversation")
        for part in ("宿", "電車", "食事", "土産", "予算")
    ]
    idle.write("p", *turns, Draft("金庫の暗証番号は4711です。", session_id="s", kind="conversation", expires_at=now + HOUR / 4))
    idle.hours(1)
    with idle.personas.reading("p") as persona:
        lines = list(export_lines(persona, ExportOptions(deleted=True, versions=True)))
    assert [json.loads(line)["kind"] for line in lines if "4711" in line] == ["conversation"]
    assert [line for line in lines if '"kind": "summary"' in line]
    idle.personas.close()


@pytest.mark.slow
def test_personas_that_nothing_happens_to_stay_closed(idle: Idle, figure: Figure) -> None:
    assert set(idle.hours(1)) == {f"p{number}" for number in range(MANY)}
    idle.hours(24)  # the day is over, and looked at once
    looked = idle.hours(24)
    figure(f"upkeep: looks at {MANY} quiet personas in 24 hours", str(len(looked)))
    assert looked == []


@pytest.mark.slow
def test_one_that_is_written_to_is_looked_at_alone(idle: Idle) -> None:
    idle.hours(25)
    idle.write("p7", Draft("メロンは苦手"))
    assert set(idle.hours(1)) == {"p7"}


@pytest.mark.slow
def test_one_that_is_read_is_opened_once_to_count_that(idle: Idle) -> None:
    idle.hours(25)
    (key,) = idle.write("p3", Draft("メロンは苦手"))
    idle.hours(25)
    idle.usage.note("p3", [key], idle.now)
    assert idle.hours(1) == ["p3"]


@pytest.mark.slow
def test_what_falls_due_later_is_done_then(idle: Idle) -> None:
    idle.settings = idle.settings.model_copy(update={"retention": idle.settings.retention.model_copy(update={"conversation_days": 2.0})})
    idle.hours(25)
    (key,) = idle.write("p5", Draft("今日の話", kind="conversation", restored=Restored(updated_at=idle.now)))
    idle.hours(46)
    with idle.personas.reading("p5") as persona, persona.database.read() as connection:
        assert connection.execute("SELECT deleted_at FROM memories WHERE key = ?", (key,)).get is None
    idle.hours(3)
    with idle.personas.reading("p5") as persona, persona.database.read() as connection:
        assert connection.execute("SELECT deleted_at FROM memories WHERE key = ?", (key,)).get is not None
    idle.hours(24 * 31)
    with idle.personas.reading("p5") as persona, persona.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM memories WHERE key = ?", (key,)).get == 0


@pytest.mark.slow
def test_a_session_is_summarised_when_it_has_been_quiet_and_again_when_retention_takes_of_it(idle: Idle) -> None:
    retention = idle.settings.retention.model_copy(update={"conversation_days": 2.0})
    idle.settings = idle.settings.model_copy(update={"retention": retention})
    places = ("京都", "奈良", "金沢", "松本", "萩", "長崎")
    idle.write("p2", *(Draft(f"{place}で桜を見た。", session_id="旅", kind="conversation") for place in places))
    idle.hours(2)

    def summary() -> tuple[object, ...] | None:
        with idle.personas.reading("p2") as persona, persona.database.read() as connection:
            return connection.execute("SELECT deleted_at FROM memories WHERE kind = 'summary' AND session_id = '旅'").fetchone()

    assert summary() == (None,)
    idle.hours(24 * 3)
    found = summary()
    assert found
    assert found[0] is not None


@pytest.mark.slow
def test_a_changed_rule_is_looked_at_for_everybody(idle: Idle) -> None:
    idle.hours(25)
    idle.settings = idle.settings.model_copy(update={"retention": idle.settings.retention.model_copy(update={"fact_days": 0.01})})
    assert set(idle.hours(1)) == {f"p{number}" for number in range(MANY)}
