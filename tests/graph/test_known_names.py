"""The names that are kept ready to be looked for, against what the database says: also after what was begun and not done."""

import pytest

from memory_mcp.dates.spans import composed_with_places
from memory_mcp.errors import InvalidInput
from memory_mcp.graph.query.retrieval import known_entities
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.language import names as known_names
from memory_mcp.language.names import NAME_LIMIT, Gazetteer, Mention
from memory_mcp.store.graph import mentions
from memory_mcp.store.graph.entities import names, records


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


def test_relatives_that_an_older_version_found_stay_when_a_text_is_read_again(nilou, now, say):
    say("昨日母とミケが来た")

    def read_by_an_older_version(connection):
        mother = records.create(connection, "母", "Person", 0.6, now, subtype="family")
        mentions.add(connection, 1, [(mother, Mention("母", "Person", 2, 3, "rule", subtype="family"))], now)
        records.create(connection, "ミケ", "Object", 1.0, now)

    nilou.database.write(read_by_an_older_version)
    while update_graph(nilou, now):
        pass
    with nilou.database.read() as connection:
        rows = connection.execute("SELECT e.name FROM entity_mentions m JOIN entities e ON e.id = m.entity ORDER BY m.start")
        assert [name for (name,) in rows] == ["母", "ミケ"]


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
    made = [f"第{number}号機" for number in range(310)]
    given_up(*made)
    make(nilou, now, *(f"第{number}番艦" for number in range(310)))
    assert known("第7号機と第7番艦") == ["第7番艦"]


def test_names_that_come_one_at_a_time_are_each_built_in_a_few_times(nilou, now, known, monkeypatch):
    build, built = known_names.AhoCorasick, []

    def counting(patterns, **options):
        built.append(len(patterns))
        return build(patterns, **options)

    monkeypatch.setattr(known_names, "AhoCorasick", counting)
    for number in range(300):
        make(nilou, now, f"第{number}号機")
        assert known(f"第{number}号機と第0号機") == [f"第{number}号機", "第0号機"]
    assert sum(built) < 300 * 20


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


def test_names_are_no_longer_than_a_name_may_be_however_a_text_writes_them(nilou, say):
    for text in ("Aaa " * 5000, "We met Aaa" + " Aaa" * 200 + ".", f"[[{'森' * 300}|Person]]と会った", "彼は" + "ミ" * 400 + "さんだ"):
        say(text)
    with nilou.database.read() as connection:
        assert [name for (name,) in connection.execute("SELECT alias FROM entity_aliases WHERE length(alias) > ?", (NAME_LIMIT,))] == []


def test_a_name_of_an_older_version_that_is_too_long_is_not_looked_for():
    names_of = {name: number for number, name in enumerate(("森" * NAME_LIMIT, "林" * (NAME_LIMIT + 1)))}
    text = "森" * NAME_LIMIT + "と" + "林" * (NAME_LIMIT + 1)
    assert [entities for *_, entities in Gazetteer(names_of.items()).find(*composed_with_places(text))] == [[0]]


def test_a_long_text_and_many_names_are_searched_in_parts_with_nothing_left_out(monkeypatch):
    names_of = [(f"名{number}番", number) for number in range(50)]
    text = "、".join(name for name, _ in names_of * 3)
    whole = sorted(Gazetteer(names_of).find(*composed_with_places(text)))
    monkeypatch.setattr(known_names, "NAMES_AT_ONCE", 7)
    monkeypatch.setattr(known_names, "CHARACTERS_AT_ONCE", 11)
    assert sorted(Gazetteer(names_of).find(*composed_with_places(text))) == whole
    assert len(whole) == 150
