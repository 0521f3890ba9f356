"""Which memories are used: noted beside the calls, written down later, of weight only where somebody asks for it."""

import json
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.errors import StoreFull
from memory_mcp.jobs.usage_counts import COUNTED_LIMIT, Usage
from memory_mcp.store import usage_and_forgetting
from memory_mcp.store.usage_and_forgetting import forgetting_curve
from memory_mcp.transfer.jsonlines import export_lines


def fields(persona):
    return {row["key"]: row for row in map(json.loads, export_lines(persona))}


def test_uses_are_counted_when_nobody_calls_and_nothing_else_of_a_memory_changes(say, nilou, now, settings):
    key, other = say("苺が好き").key, say("メロンが苦手").key
    before = fields(nilou)
    usage = Usage()
    usage.note("nilou", [key], now)
    usage.note("nilou", [key, "memory_none"], now + timedelta(minutes=1))
    assert fields(nilou) == before
    assert usage.step(nilou, now, settings) is False
    used = fields(nilou)[key]
    assert (used.pop("usage_count"), used.pop("last_used_at")) == (2, "2025-10-30T03:01:00.000000+00:00")
    assert used == before[key]
    assert fields(nilou)[other] == before[other]
    usage.step(nilou, now, settings)
    assert fields(nilou)[key]["usage_count"] == 2


def test_what_one_persona_uses_counts_for_nobody_else(say, nilou, now, settings):
    key = say("苺が好き").key
    usage = Usage()
    usage.note("dori", [key], now)
    usage.step(nilou, now, settings)
    assert "usage_count" not in fields(nilou)[key]


def test_what_is_noted_when_the_server_stops_is_written_down_and_creates_nobody(say, nilou, personas, now):
    key = say("苺が好き").key
    usage = Usage()
    usage.note("nilou", [key], now)
    usage.note("dori", ["memory_none"], now)
    usage.write_all(personas)
    assert fields(nilou)[key]["usage_count"] == 1
    assert not personas.exists("dori")


def test_what_could_not_be_written_down_is_counted_by_the_next_try(say, nilou, now, settings, monkeypatch):
    key = say("苺が好き").key
    usage = Usage()
    usage.note("nilou", [key], now)

    def full_while_it_is_shown_again(_connection, _noted):
        usage.note("nilou", [key], now + timedelta(minutes=1))
        raise StoreFull("the disk is full")

    monkeypatch.setattr(usage_and_forgetting, "record_uses", full_while_it_is_shown_again)
    with pytest.raises(StoreFull):
        usage.step(nilou, now, settings)
    monkeypatch.undo()
    usage.step(nilou, now, settings)
    assert fields(nilou)[key]["usage_count"] == 2
    assert fields(nilou)[key]["last_used_at"] == (now + timedelta(minutes=1)).isoformat(timespec="microseconds")


def test_there_is_a_limit_to_what_is_noted(nilou, now, settings, say):
    key = say("苺が好き").key
    usage = Usage()
    usage.note("nilou", (str(number) for number in range(COUNTED_LIMIT)), now)
    usage.note("nilou", [key], now)
    usage.step(nilou, now, settings)
    assert "usage_count" not in fields(nilou)[key]


def test_half_is_left_after_the_half_life_and_importance_and_use_make_it_longer(now):
    month = now - timedelta(days=30)
    assert forgetting_curve(now, 0.5, 0, now, 30) == 1
    assert forgetting_curve(month, 0.5, 0, now, 30) == pytest.approx(0.5)
    assert forgetting_curve(month, 1.0, 0, now, 30) == pytest.approx(0.5**0.5)
    assert forgetting_curve(month, 0.0, 0, now, 30) == pytest.approx(0.25)
    assert forgetting_curve(month, 0.5, 1, now, 30) == pytest.approx(0.5**0.5)
    assert forgetting_curve(now + timedelta(days=1), 0.5, 0, now, 30) == 1


@pytest.fixture
def old_and_new(say):
    """The same words from last year and from today, and an important one between."""
    return [
        say("公園で犬と散歩した", occurred_at="2024-10-30").key,
        say("公園で犬と散歩した", occurred_at="2025-04-30", importance=1.0).key,
        say("公園で犬と散歩した", occurred_at="2025-10-30").key,
    ]


def weighing(weight):
    return Settings(embeddings_model=None, reranker_model=None, decay={"weight": weight, "half_life_days": 60})


def test_without_a_weight_age_counts_for_nothing(ask, old_and_new):
    scores = {hit.score for hit in ask("公園で犬と散歩").hits}
    assert len(scores) == 1
    assert all("freshness" not in hit.why for hit in ask("公園で犬と散歩").hits)


def test_with_a_weight_the_fresh_and_the_important_come_first_and_nothing_is_left_out(ask, old_and_new):
    hits = ask("公園で犬と散歩", under=weighing(0.3)).hits
    assert [hit.memory.key for hit in hits] == old_and_new[::-1]
    assert [hit.why.get("freshness", 0) for hit in hits] == sorted((hit.why.get("freshness", 0) for hit in hits), reverse=True)
    assert hits[0].why["freshness"] > 0.2


def test_what_is_used_is_fresh_again(ask, old_and_new, nilou, now, settings):
    usage = Usage()
    usage.note("nilou", [old_and_new[0]] * 3, now)
    usage.step(nilou, now, settings)
    assert [hit.memory.key for hit in ask("公園で犬と散歩", under=weighing(0.3)).hits][:2] == [old_and_new[0], old_and_new[2]]
