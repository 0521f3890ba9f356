"""A type that was changed and changed back: whether it leaves a trace, by what was written meanwhile."""

from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.features.graph import entity_edits
from memory_mcp.store.graph.entities.editing import EntityChange


@pytest.fixture
def told(nilou, now):
    """told(type, minutes): somebody tells the type of きなこ so many minutes from now."""

    def told(type_, minutes):
        entity_edits.change(nilou, "きなこ", EntityChange(type=type_), now=now + timedelta(minutes=minutes), privacy=Privacy())

    return told


@pytest.fixture
def known(nilou):
    """known(): the types of whoever is called きなこ, each with how many memories name it."""

    def known():
        with nilou.database.read() as connection:
            return connection.execute("SELECT type, extraction_count FROM entities WHERE name = 'きなこ' ORDER BY type").fetchall()

    return known


def test_reverted_type_leaves_no_trace(say, told, known):
    say("[[きなこ|Object]]を買った")
    told("Person", 1)
    told("Object", 2)
    say("[[きなこ|Object]]を食べた")
    assert known() == [("Object", 2)]
    say("[[きなこ|Person]]が来た")
    assert known() == [("Object", 2), ("Person", 1)]


def test_text_written_before_a_type_was_reverted_names_the_same_entity(say, now, told, known):
    say("[[きなこ|Object]]を買った")
    told("Person", 1)
    say("[[きなこ|Person]]が来た", at=now + timedelta(minutes=2))
    told("Object", 3)
    say("[[きなこ|Person]]が寝た", at=now + timedelta(minutes=4))
    assert known() == [("Object", 3)]
