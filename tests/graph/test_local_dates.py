"""A date without a year is resolved from the local day of the memory, not from that of UTC."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, StatedRelation
from memory_mcp.features.graph.relation_edits import relate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import memories
from memory_mcp.store.graph.entities import records
from memory_mcp.transfer.jsonlines import ImportOptions, import_lines

# Five o'clock on New Year's morning in Tokyo.
MORNING = datetime(2025, 12, 31, 20, tzinfo=UTC)


@pytest.fixture
def days(nilou):
    """The days that are named."""

    def days(name):
        with nilou.database.read() as connection:
            return [one.name for one in records.by_name(connection, name) if one.type == "TimeUnit"]

    return days


@pytest.mark.parametrize(
    ("text", "asked", "day"),
    [
        ("1月1日に会った", "1月1日", "2026-01-01"),
        ("1月3日に初詣に行く", "1月3日", "2026-01-03"),
        ("今年10月に引っ越す", "2026年10月", "2026-10"),
        ("12月31日は寒かった", "12月31日", "2025-12-31"),
    ],
)
def test_memory_of_new_years_morning_is_dated_in_the_new_year(say, nilou, zone, days, text, asked, day):
    key = say(text, at=MORNING).key
    assert days(asked) == [day]
    revise(nilou, key, Revision(content=f"{text}。"), now=MORNING.astimezone(zone), privacy=Privacy())
    assert days(asked) == [day]


def test_later_memory_about_that_morning_is_dated_in_the_new_year(say, days):
    say("1月1日に会った", at=datetime(2026, 6, 1, tzinfo=UTC), occurred_at="2026-01-01T05:00:00+09:00")
    assert days("1月1日") == ["2026-01-01"]


def test_memory_read_again_keeps_its_local_dates(say, nilou, zone, days):
    say("桃香と1月1日に会った", at=MORNING)
    say("[[桃香]]は元気", at=MORNING)
    while update_graph(nilou, MORNING.astimezone(zone)):
        pass
    assert days("1月1日") == ["2026-01-01"]


def test_relation_stated_that_morning_is_dated_in_the_new_year(nilou, zone, days):
    relate(nilou, [StatedRelation("健太", "met_on", "1月1日")], now=MORNING.astimezone(zone), privacy=Privacy())
    assert days("1月1日") == ["2026-01-01"]


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_first_and_last_representable_dates_are_resolved(nilou, zone, end):
    told = Draft("1月1日に会った。12月31日に会う", occurred_at=datetime.fromisoformat(end))
    (outcome,) = remember_many(nilou, [told], now=MORNING, zone=zone, privacy=Privacy())
    assert outcome.outcome == "stored"


def test_what_is_imported_without_a_time_is_no_plan_for_tomorrow(nilou, now, zone):
    dated = "2019年10月17日の日記\n明日は遠足"
    texts = ("明日は歯医者", "来週の金曜に面接", "12月1日に発表会", dated)
    lines = [(number, json.dumps({"content": content}, ensure_ascii=False).encode()) for number, content in enumerate(texts, 1)]
    import_lines(lambda: nullcontext(nilou), lines, ImportOptions(now, zone, privacy=Privacy()))

    def times():
        with nilou.database.read() as connection:
            upcoming = memories.upcoming(connection, now, now + timedelta(days=90), zone, 5)
            starts = [row[0] for row in connection.execute("SELECT start FROM memory_dates ORDER BY start")]
            return [memory.content for memory in upcoming], starts

    # A day of the calendar is the next one.
    expected = ["12月1日に発表会"], [f"{day}T15:00:00.000000+00:00" for day in ("2019-10-16", "2019-10-17", "2025-11-30")]
    assert times() == expected
    # Also after its text is read again.
    nilou.database.write(
        lambda connection: connection.execute("INSERT OR REPLACE INTO graph_queue(memory, named) SELECT id, 0 FROM memories")
    )
    while update_graph(nilou, now.astimezone(zone)):
        pass
    assert times() == expected
