"""The names that are kept ready to be looked for, against what the database says: also after what was begun and not done."""

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.graph.query.retrieval import known_entities
from memory_mcp.store.graph.entities import names, records
from memory_mcp.store.graph.entities.names import RECENT_LIMIT


@pytest.fixture
def known(nilou):
    """The known names in a text, as it has them; each leads to the entity that is called so."""

    def find(text):
        with nilou.database.read() as connection:
            found = known_entities(connection, nilou.names, text)
            called = records.by_ids(connection, [entity for entity, _ in found])
            said = [text[mention.start : mention.end] for _, mention in found]
            assert [called[entity].name for entity, _ in found] == said
            return said

    return find


@pytest.fixture
def given_up(nilou, now):
    """A write that makes these, looks for them, and fails."""

    def fail(*made):
        def work(connection):
            for name in made:
                records.create(connection, name, "Object", 1.0, now)
            assert len(known_entities(connection, nilou.names, "、".join(made))) == len(made)
            raise InvalidInput("it is given up", "", "")

        with pytest.raises(InvalidInput):
            nilou.database.write(work)

    return fail


def make(persona, now, *made):
    persona.database.write(lambda connection: [records.create(connection, name, "Object", 1.0, now) for name in made])


def test_rolled_back_name_is_unknown_and_its_replacement_is_known(nilou, now, known, given_up):
    make(nilou, now, "ミケ")
    given_up("ダイズ")
    make(nilou, now, "コタロウ")
    assert known("ミケ、ダイズ、コタロウ") == ["ミケ", "コタロウ"]


def test_partial_retry_of_a_rolled_back_write_keeps_nothing_else(nilou, now, known, given_up):
    given_up("ダイズ", "コタロウ")
    make(nilou, now, "ハチ", "コタロウ")
    assert known("ダイズ、コタロウ、ハチ") == ["コタロウ", "ハチ"]


def test_names_reloaded_within_a_failed_write_are_dropped(nilou, now, known, given_up):
    made = [f"第{number}号機" for number in range(RECENT_LIMIT + 10)]
    given_up(*made)
    make(nilou, now, *(f"第{number}番艦" for number in range(RECENT_LIMIT + 10)))
    assert known("第7号機と第7番艦") == ["第7番艦"]


def test_rolled_back_change_does_not_hide_the_next_one(nilou, now, known):
    make(nilou, now, "ミケ", "ハチ", "タマ")
    assert known("ミケとハチとタマ") == ["ミケ", "ハチ", "タマ"]

    def forget(connection, name):
        connection.execute("DELETE FROM entities WHERE name = ?", (name,))
        names.mark_changed(connection)
        assert [mention.name for _, mention in known_entities(connection, nilou.names, "ハチとミケ")] == ["ハチ"]

    def given_up(connection):
        forget(connection, "ミケ")
        raise InvalidInput("it is given up", "", "")

    with pytest.raises(InvalidInput):
        nilou.database.write(given_up)

    def done(connection):
        connection.execute("DELETE FROM entities WHERE name = 'ハチ'")
        names.mark_changed(connection)

    nilou.database.write(done)
    assert known("ミケとハチとタマ") == ["ミケ", "タマ"]
