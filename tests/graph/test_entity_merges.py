"""One person under many names: made one and told apart again, in any order, whatever was written or erased in between."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from graph_work import sum_up_from_the_ground
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import erasure, memories
from memory_mcp.store.graph.entities import entity_merges, records

LATER = timedelta(hours=1)
NOON, TOKYO = datetime(2025, 10, 30, 3, tzinfo=UTC), ZoneInfo("Asia/Tokyo")


class People:
    """A persona's entities by their own names, and everything that is counted of them."""

    def __init__(self, persona, now, zone):
        self.persona, self.now, self.zone = persona, now, zone

    def say(self, content, **fields):
        return remember(
            self.persona, draft(content, now=self.now, zone=self.zone, **fields), now=self.now, zone=self.zone, privacy=Privacy()
        ).key

    def weave(self):
        while update_graph(self.persona, self.now):
            pass

    def later(self):
        self.now += LATER

    def id(self, name):
        """By the name that it has itself."""
        with self.persona.database.read() as connection:
            return connection.execute("SELECT id FROM entities WHERE name = ?", (name,)).get

    def merge(self, kept, merged):
        return self.persona.database.write(
            lambda connection: entity_merges.merge(connection, self.id(kept), self.id(merged), "the same", self.now)
        )

    def undo(self, number):
        return self.persona.database.write(lambda connection: entity_merges.undo(connection, number, self.now))

    def groups(self):
        with self.persona.database.read() as connection:
            rows = connection.execute(
                "SELECT k.name, group_concat(e.name, '+' ORDER BY e.id) FROM entities e JOIN entities k ON k.id = coalesce(e.merged_into, e.id) "
                "GROUP BY k.id HAVING count(*) > 1 ORDER BY k.id"
            )
            return dict(rows)

    def relations(self):
        with self.persona.database.read() as connection:
            return connection.execute(
                "SELECT s.name, r.type, t.name, r.weight, r.evidence_count, r.confidence, r.method, r.created_at, r.last_evidence_at, r.notes "
                "FROM relations r JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target ORDER BY 1, 2, 3"
            ).fetchall()

    def told(self):
        """(source, type, target): weight."""
        return {row[:3]: row[3] for row in self.relations()}

    def everything(self):
        """Names, aliases, mentions, evidence and relations, as a test can compare them: only what is counted of a merged one is left out."""
        with self.persona.database.read() as connection:
            tables = [
                connection.execute("SELECT id, type, name, description, importance, merged_into FROM entities ORDER BY id").fetchall(),
                connection.execute(
                    "SELECT name, extraction_count, first_mentioned_at, last_mentioned_at FROM entities WHERE merged_into IS NULL ORDER BY id"
                ).fetchall(),
                connection.execute("SELECT entity, alias FROM entity_aliases ORDER BY entity, alias").fetchall(),
                connection.execute("SELECT * FROM entity_mentions ORDER BY memory, entity, start").fetchall(),
                connection.execute("SELECT * FROM relation_evidence ORDER BY id").fetchall(),
            ]
        return [*tables, self.relations()]

    def from_the_ground_up(self):
        sum_up_from_the_ground(self.persona, self.now)
        return self.everything()

    def erase(self, *keys):
        """For good."""
        forget(self.persona, list(keys), reason=None, dry_run=False, now=self.now, privacy=Privacy())

        def work(connection):
            erasure.erase(connection, list(memories.by_keys(connection, keys).values()), self.now, "test")

        self.persona.database.write(work)

    def found(self, name):
        with self.persona.database.read() as connection:
            return [entity.name for entity in records.by_name(connection, name)]


@pytest.fixture
def people(nilou, now, zone):
    return People(nilou, now, zone)


@pytest.fixture
def two_names(people):
    """田中 and たなっち, who are one: a relation between them, one of the same type to the same third, and one that each has alone."""
    people.say("田中さんと[[京都|Location]]へ行った", relations=["田中 > works_on > プロジェクトA", "田中 > knows > たなっち"])
    people.say(
        "[[たなっち|Person]]は[[プロジェクトA|Task]]が好き", relations=["たなっち > works_on > プロジェクトA", "たなっち > likes > 苺"]
    )
    people.say("[[たなっち|Person]]と田中さんと佐藤さん")
    people.weave()
    people.later()
    return people


def test_what_two_names_say_of_the_same_third_weighs_together_and_what_they_say_of_each_other_is_nothing(two_names):
    two_names.merge("田中", "たなっち")
    told = two_names.told()
    assert told["田中", "works_on", "プロジェクトA"] == 0.96
    assert told["田中", "likes", "苺"] == 0.8
    assert not [pair for pair in told if "たなっち" in pair or pair[0] == pair[2]]
    assert two_names.everything() == two_names.from_the_ground_up()


def test_a_merge_that_is_undone_leaves_everything_as_it_was(two_names):
    before = two_names.everything()
    number = two_names.merge("田中", "たなっち")
    assert two_names.everything() != before
    assert two_names.found("たなっち") == ["田中"]
    two_names.undo(number)
    assert two_names.everything() == before
    two_names.weave()
    assert two_names.everything() == before


def test_what_is_written_after_a_merge_belongs_to_whose_name_it_used_when_that_is_undone(two_names):
    number = two_names.merge("田中", "たなっち")
    two_names.say("たなっちさんと鈴木さんが来た", relations=["たなっち > knows > 鈴木"])
    two_names.say("田中さんと高橋さんが来た")
    two_names.say("[[たなっち]]と伊藤さんが来た")
    two_names.weave()
    assert {("田中", "knows", "鈴木"), ("田中", "co_occurrence", "伊藤"), ("田中", "co_occurrence", "高橋")} <= set(two_names.told())
    two_names.undo(number)
    two_names.weave()
    told = set(two_names.told())
    assert {("たなっち", "knows", "鈴木"), ("たなっち", "co_occurrence", "鈴木"), ("たなっち", "co_occurrence", "伊藤")} <= told
    assert ("田中", "co_occurrence", "高橋") in told
    assert not told & {("田中", "knows", "鈴木"), ("田中", "co_occurrence", "鈴木"), ("田中", "co_occurrence", "伊藤")}
    assert two_names.everything() == two_names.from_the_ground_up()


def test_merges_are_undone_in_any_order(people):
    people.say("甲さんと乙さんと丙さんと丁さんが来た")
    people.weave()
    before = people.everything()
    first, second, third = people.merge("甲", "乙"), people.merge("丙", "甲"), people.merge("丙", "丁")
    assert people.groups() == {"丙": "甲+乙+丙+丁"}
    people.undo(first)
    assert people.groups() == {"丙": "甲+丙+丁"}
    again = people.merge("乙", "丙")
    assert people.groups() == {"乙": "甲+乙+丙+丁"}
    people.undo(second)
    assert people.groups() == {"乙": "乙+丙+丁"}
    people.undo(third)
    people.undo(again)
    assert (people.groups(), people.everything()) == ({}, before)


def test_those_who_are_one_are_not_made_one_again_in_either_direction(people):
    people.say("甲さんと乙さんと丙さん")
    people.merge("甲", "乙")
    people.merge("乙", "丙")
    for kept, merged in (("甲", "乙"), ("乙", "甲"), ("丙", "乙"), ("甲", "甲")):
        with pytest.raises(InvalidInput, match="one already"):
            people.merge(kept, merged)
    with pytest.raises(InvalidInput, match="no merge 77"):
        people.undo(77)


def test_a_relation_that_was_taken_back_of_the_one_name_is_stated_again_for_both(two_names, nilou, now):
    works = StatedRelation("たなっち", "works_on", "プロジェクトA")
    assert unrelate(nilou, works, reason="no", now=now, privacy=Privacy())
    number = two_names.merge("田中", "たなっち")
    assert ("田中", "works_on", "プロジェクトA") not in two_names.told()
    relate(nilou, [StatedRelation("田中", "works_on", "プロジェクトA")], now=now, privacy=Privacy())
    assert ("田中", "works_on", "プロジェクトA") in two_names.told()
    assert unrelate(nilou, works, reason="no", now=now, privacy=Privacy())
    two_names.undo(number)
    assert not {("田中", "works_on", "プロジェクトA")} & set(two_names.told())
    assert two_names.everything() == two_names.from_the_ground_up()


def test_who_is_erased_meanwhile_leaves_the_others_one_and_they_can_still_be_told_apart(people):
    people.say("甲さんが来た")
    only = people.say("乙さんが来た")
    people.say("丙さんが来た")
    number = people.merge("乙", "甲")
    people.merge("丙", "乙")
    people.erase(only)
    assert people.id("乙") is None
    assert people.groups() == {"丙": "甲+丙"}
    other = people.merge("丙", people_named(people, "丁"))
    people.undo(other)
    assert people.groups() == {"丙": "甲+丙"}
    people.undo(number)
    assert people.groups() == {}
    assert people.everything() == people.from_the_ground_up()


def test_the_merged_one_that_is_erased_can_not_be_undone_any_more(people):
    people.say("甲さんが来た")
    only = people.say("乙さんが来た")
    number = people.merge("甲", "乙")
    people.erase(only)
    assert (people.groups(), people.found("乙")) == ({}, [])
    with pytest.raises(InvalidInput, match="no merge"):
        people.undo(number)


def test_the_kept_one_stays_while_somebody_who_is_merged_into_it_is_named(people):
    only = people.say("甲さんが来た")
    other = people.say("乙さんが来た")
    people.merge("甲", "乙")
    people.erase(only)
    assert people.groups() == {"甲": "甲+乙"}
    people.erase(other)
    assert people.id("甲") is None
    assert people.id("乙") is None


def test_who_was_told_apart_is_put_down_as_two_until_they_are_made_one_again(two_names, nilou):
    def apart():
        with nilou.database.read() as connection:
            return entity_merges.distinct_pairs(connection)

    pair = tuple(sorted((two_names.id("田中"), two_names.id("たなっち"))))
    two_names.undo(two_names.merge("田中", "たなっち"))
    assert apart() == {pair}
    two_names.merge("佐藤", "たなっち")
    assert apart() == {tuple(sorted((two_names.id("田中"), two_names.id("佐藤"))))}
    two_names.merge("田中", "佐藤")
    assert apart() == set()


def test_the_history_tells_every_merge_and_which_were_undone(two_names, nilou):
    first = two_names.merge("田中", "たなっち")
    two_names.undo(first)
    second = two_names.merge("たなっち", "田中")
    two_names.merge("京都", "苺")
    with nilou.database.read() as connection:
        told = entity_merges.history(connection, 10, of=two_names.id("田中"))
        every = entity_merges.history(connection, 10)
    assert [(one.number, one.kept_name, one.merged_name, one.undone_at is None) for one in told] == [
        (second, "たなっち", "田中", True),
        (first, "田中", "たなっち", False),
    ]
    assert (len(every), told[0].reason, told[0].merged_at) == (3, "the same", two_names.now)


def people_named(people, name):
    people.say(f"{name}さんが来た")
    return name


NAMES = ("佐藤", "鈴木", "高橋", "田中", "伊藤")
STEPS = st.lists(
    st.tuples(st.just("merge"), st.integers(0, 4), st.integers(0, 4))
    | st.tuples(st.just("undo"), st.integers(0, 9), st.just(0))
    | st.tuples(st.just("say"), st.integers(0, 4), st.integers(0, 4)),
    max_size=12,
)


def say(people, one, other):
    people.say(f"{NAMES[one]}さんと{NAMES[other]}さんが{people.now:%H}時に来た", relations=[f"{NAMES[one]} > knows > 苺"])
    people.weave()


def counted(people):
    with people.persona.database.read() as connection:
        rows = connection.execute("SELECT name, extraction_count FROM entities ORDER BY name").fetchall()
    return rows, sorted((*row[:6],) for row in people.relations())


def do(step, merged, plain, standing):
    """One step: what is said is said to both. `standing` are the numbers of all merges, each with whether it stands."""
    what, one, other = step
    merged.later()
    plain.later()
    if what == "say":
        say(merged, one, other)
        say(plain, one, other)
    elif what == "merge":
        try:
            standing[merged.merge(NAMES[one], NAMES[other])] = True
        except InvalidInput:
            return
    elif one < len(standing) and standing[number := list(standing)[one]]:
        merged.undo(number)
        standing[number] = False


@pytest.mark.slow
@settings(max_examples=25)
@given(steps=STEPS)
def test_whatever_is_merged_undone_and_said_in_whatever_order_ends_as_if_it_had_only_been_said(tmp_path_factory, steps):
    registry = Personas(tmp_path_factory.mktemp("merges"))
    try:
        with registry.writing("merged") as one, registry.writing("plain") as other:
            merged, plain = People(one, NOON, TOKYO), People(other, NOON, TOKYO)
            standing = {}
            for name in range(len(NAMES)):
                say(merged, name, (name + 1) % len(NAMES))
                say(plain, name, (name + 1) % len(NAMES))
            for step in steps:
                do(step, merged, plain, standing)
                assert sum(standing.values()) == sum(group.count("+") for group in merged.groups().values())
            for number in [number for number, stands in standing.items() if stands]:
                merged.undo(number)
            merged.weave()
            assert counted(merged) == counted(plain)
            assert merged.everything() == merged.from_the_ground_up()
    finally:
        registry.close()
