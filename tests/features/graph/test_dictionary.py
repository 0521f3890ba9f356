"""Names that a dictionary knows: found in the background beside marks, known names and rules, and only where there is a dictionary."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.features.graph import dictionary
from memory_mcp.features.graph.dictionary import ProperNouns, installed, proper_nouns
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.language.names import Mention
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store.graph.entities import records

needs_sudachi = pytest.mark.skipif(installed() is None, reason="SudachiPy is not installed: the extra sudachi")


class Names:
    """A dictionary of a few words."""

    def __init__(self, **types):
        self.types, self.opened = types, 0

    def open(self):
        self.opened += 1

    def find(self, text):
        return [
            Mention(name, type_, text.find(name), text.find(name) + len(name), "dictionary")
            for name, type_ in self.types.items()
            if name in text
        ]


@pytest.fixture
def named(nilou, now):
    """What is named in which way, after everything was woven with a dictionary."""

    def named(found):
        while update_graph(nilou, now, found):
            pass
        with nilou.database.read() as connection:
            rows = connection.execute(
                "SELECT e.name, e.type, em.method FROM entity_mentions em JOIN entities e ON e.id = em.entity ORDER BY em.memory, em.start"
            )
            return [tuple(row) for row in rows]

    return named


def test_a_name_that_only_the_dictionary_knows_is_found_in_the_background(say, named, nilou):
    say("健太の母は料理教室をしている")
    found = Names(健太="Person")
    assert named(found) == [("健太", "Person", "dictionary")]
    assert found.opened > 0
    with nilou.database.read() as connection:
        (kenta,) = records.by_name(connection, "健太")
    assert (kenta.extraction_count, kenta.confidence) == (1, 0.6)


def test_what_is_named_already_the_dictionary_does_not_name_again(say, named):
    say("田中さんが[[ソニー|Organization]]に入った")
    assert named(Names(田中="Location", ソニー=None)) == [("田中", "Person", "rule"), ("ソニー", "Organization", "marked")]


def test_a_changed_text_keeps_no_name_of_the_dictionary(say, named, nilou, now):
    key = say("健太の母は料理教室をしている").key
    found = Names(健太="Person")
    named(found)
    revise(nilou, key, Revision(content="料理教室の話"), now=now, privacy=Privacy())
    assert named(found) == []


def test_where_there_is_no_dictionary_it_is_said_once_and_the_rules_go_on(monkeypatch, caplog):
    monkeypatch.setattr(dictionary, "installed", lambda: None)
    proper_nouns.cache_clear()
    assert proper_nouns() is proper_nouns() is None
    proper_nouns.cache_clear()
    assert caplog.text.count('pip install "persona-memory-mcp[sudachi]"') == 1


@needs_sudachi
def test_sudachi_finds_people_with_surname_and_given_name_as_one_and_places_where_they_stand():
    name = installed()
    text = "村上春樹は健太と軽井沢へ行った"
    found = list(ProperNouns(name).find(text))
    assert [(mention.name, mention.type) for mention in found] == [("村上春樹", "Person"), ("健太", "Person"), ("軽井沢", "Location")]
    assert all(text[mention.start : mention.end] == mention.name for mention in found)


@needs_sudachi
def test_sudachi_reads_long_texts_and_leaves_others_alone():
    found = ProperNouns(installed())
    assert len(list(found.find("村上春樹を読む。" * 4_000))) > 100
    assert list(found.find("Murakami went to Kyoto")) == []
