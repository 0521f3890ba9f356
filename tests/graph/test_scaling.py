"""Reading or changing a few entities costs the database the same whether it holds thirty others or three thousand."""

import pytest

from memory_mcp.domain import Filters
from memory_mcp.store.graph import consistency, memory_links, mentions, relations
from memory_mcp.store.graph.entities import editing, entity_merges, entity_vectors, names, records

STEPS = 100  # of SQLite's own machine, which are counted in such lots
WORKS = {
    "memories that name somebody": lambda connection, now: mentions.memories_of(connection, {1: 1.0}, Filters(), 20),
    "memories that state something of somebody": lambda connection, now: mentions.memories_stating(connection, {1: 1.0}, Filters(), 20),
    "counting mentions": lambda connection, now: mentions.recount(connection, [1]),
    "whom a memory stands against": lambda connection, now: memory_links.contradicting_memories(connection, 1, 40),
    "what is newer": lambda connection, now: memory_links.newest(connection, [1], Filters()),
    "what was stated beside a memory": lambda connection, now: relations.stated_by_hand_about(connection, [1]),
    "one relation more": lambda connection, now: relations.sum_up(connection, relations.pairs_of_memories(connection, [1]), now),
    "the vector of somebody": lambda connection, now: entity_vectors.of_memories(connection, "generation", 1),
    "the daily check of counts": lambda connection, now: consistency.wrong_counts(connection, [1]),
    "the daily check of sums": lambda connection, now: consistency.wrong_sums(connection, [1]),
    "finding somebody by name": lambda connection, now: records.by_name(connection, "田中"),
    "the names of somebody": lambda connection, now: records.by_ids(connection, [1]),
    "taking a relation back": lambda connection, now: relations.reject(connection, 1, 2, "knows", None, now),
    "all relations of somebody": lambda connection, now: relations.rebuild_sums(connection, [1], now),
    "making two one": lambda connection, now: entity_merges.merge(connection, 1, 2, None, now),
    "taking somebody away": lambda connection, now: editing.delete(connection, records.by_ids(connection, [1])[1]),
}


def cost_of(persona, now, work):
    """How many lots of steps the work takes. Nothing of it stays."""

    class Undone(Exception):
        pass

    lots = 0

    def count():
        nonlocal lots
        lots += 1
        return False

    def run(connection):
        connection.set_progress_handler(count, STEPS)
        try:
            work(connection, now)
        finally:
            connection.set_progress_handler(None)
        raise Undone

    with pytest.raises(Undone):
        persona.database.write(run)
    return lots


def others(persona, now, many):
    """So many who are named, two and two, in a few memories each, and related."""

    def write(connection):
        first = connection.execute("SELECT max(id) FROM entities").get + 1
        for number in range(first, first + many):
            assert records.create(connection, f"別人{number}", "Person", 0.6, now) == number
        connection.execute(
            "INSERT INTO entity_mentions SELECT m.id, e.id, 1000 + e.id, 1001 + e.id, 'mentions', 0.5, 'rule', 0.6, m.created_at "
            "FROM entities e JOIN memories m ON m.id = 2 + e.id % 3 WHERE e.id >= ?",
            (first,),
        )
        pairs = relations.add(
            connection,
            [relations.Evidence(one, one + 1, "knows", 0.8, 1.0, "stated", memory=2) for one in range(first, first + many - 1)],
            now,
        )
        relations.sum_up(connection, pairs, now)
        names.mark_changed(connection)

    persona.database.write(write)


@pytest.mark.slow
@pytest.mark.parametrize("what", WORKS)
def test_cost_does_not_grow_with_the_number_of_entities(nilou, say, now, what):
    say("田中さんが来た", relations=["田中 > knows > 鈴木"])
    for _ in range(3):
        say("[[佐藤]]の話")
    others(nilou, now, 30)
    few = cost_of(nilou, now, WORKS[what])
    others(nilou, now, 3_000)
    assert cost_of(nilou, now, WORKS[what]) <= 2 * few + 10


def test_looking_for_relations_that_contradict_costs_in_proportion_to_those_of_one_entity(nilou, say, now):
    say("田中さんが来た")

    def live_in(first, many):
        def write(connection):
            places = [records.create(connection, f"町{number}", "Place", 0.6, now) for number in range(first, first + many)]
            evidence = [relations.Evidence(1, place, "lives_in", 0.8, 1.0, "stated", memory=1) for place in places]
            relations.sum_up(connection, relations.add(connection, evidence, now), now)

        nilou.database.write(write)
        return cost_of(nilou, now, lambda connection, now: consistency.opposed(connection, 20))

    few = live_in(0, 500)
    assert live_in(500, 1_500) <= 5 * few


def test_looking_for_a_contradiction_costs_nothing_for_memories_that_only_name_the_same(nilou, say, now):
    say("田中さんが来た", relations=["田中 > lives_in > 町"])
    say("田中さんはいつも誰かといる")

    def met(first, many):
        def write(connection):
            others = [records.create(connection, f"客{number}", "Person", 0.6, now) for number in range(first, first + many)]
            relations.add(
                connection, [relations.Evidence(1, one, "co_occurrence", 0.2, 0.5, "co_occurrence", memory=2) for one in others], now
            )

        nilou.database.write(write)
        return cost_of(nilou, now, WORKS["whom a memory stands against"])

    few = met(0, 20)
    assert met(20, 2_000) <= few + 5


def test_older_texts_are_read_once_for_all_names_learned_since(nilou, say, now):
    for number in range(40):
        say(f"{number}番の人が町に来た")

    def reading(count):
        learned = [(number, f"名前{number}") for number in range(count)]
        return cost_of(nilou, now, lambda connection, now: names.memories_containing(connection, learned))

    assert reading(1) > 1
    assert reading(1_000) <= reading(1) + 2
