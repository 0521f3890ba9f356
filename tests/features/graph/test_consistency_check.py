"""What may be wrong with a graph is listed, sums that are wrong are put right, and nothing that anybody said goes."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.features.graph import background
from memory_mcp.features.graph.relation_edits import relate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget
from memory_mcp.store.graph import consistency, relations
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.relations import Evidence

EXTRA = (
    "INSERT INTO relations SELECT 1000, 4, 1, 'nonsense', subtype, directed, weight, evidence_count, confidence, NULL, NULL, method, "
    "validation_status, NULL, created_at, updated_at, last_evidence_at FROM relations WHERE id = 1"
)


def rows(persona):
    with persona.database.read() as connection:
        return (
            connection.execute(
                "SELECT source, target, type, directed, weight, evidence_count, confidence FROM relations ORDER BY 1, 2, 3"
            ).fetchall(),
            connection.execute("SELECT id, extraction_count FROM entities ORDER BY id").fetchall(),
        )


def check(persona, now):
    steps = 1
    while background.check_sums(persona, now):
        steps += 1
        assert steps < 100
    return steps


def weave_all(persona, now):
    while update_graph(persona, now):
        pass


@pytest.fixture
def woven(nilou, say, now):
    for one in ("佐藤", "鈴木", "高橋", "伊藤"):
        for other in ("渡辺", "中村", "佐藤"):
            say(f"{one}さんと{other}さんが会った", relations=[f"{one} > knows > {other}さん"] if one != other else [])
    relate(nilou, [StatedRelation("佐藤", "similarity", "渡辺")], now=now, privacy=Privacy())
    weave_all(nilou, now)
    return nilou


def test_a_graph_that_adds_up_is_left_alone(woven, now, caplog):
    with woven.database.read() as connection:
        before = connection.execute("SELECT group_concat(id || updated_at) FROM relations").get
    check(woven, now)
    with woven.database.read() as connection:
        assert connection.execute("SELECT group_concat(id || updated_at) FROM relations").get == before
    assert caplog.text == ""


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE relations SET weight = 0.01 WHERE id = 2",
        "UPDATE relations SET evidence_count = 99",
        "UPDATE relations SET confidence = 0 WHERE id = 3",
        "DELETE FROM relations WHERE id % 2",
        "UPDATE entities SET extraction_count = 7",
        EXTRA,
    ],
)
def test_sums_that_are_wrong_are_put_right_and_told(woven, now, spoil, caplog):
    before = rows(woven)
    woven.database.write(lambda connection: connection.execute(spoil))
    assert rows(woven) != before
    check(woven, now)
    assert rows(woven) == before
    assert "was inconsistent" in caplog.text


def test_many_entities_are_looked_at_a_few_at_a_time(nilou, now):
    relate(
        nilou,
        [StatedRelation(f"人{number}", "knows", f"友{number}") for number in range(background.CHECKED_AT_ONCE)],
        now=now,
        privacy=Privacy(),
    )
    before = rows(nilou)
    nilou.database.write(lambda connection: connection.execute("UPDATE relations SET weight = 0.5 WHERE id > 90"))
    assert check(nilou, now) == 3
    assert rows(nilou) == before
    assert check(nilou, now) == 3


def test_what_may_be_wrong_is_listed_with_how_much_there_is(nilou, say, now):
    relate(
        nilou,
        [StatedRelation("鈴木", "lives_in", "東京"), StatedRelation("鈴木", "lives_in", "大阪"), StatedRelation("鈴木", "likes", "苺")],
        now=now,
        privacy=Privacy(),
    )
    key = say("高橋さんが来た").key

    def guess(connection):
        one, other = (records.by_name(connection, name)[0].id for name in ("東京", "苺"))
        relations.sum_up(connection, relations.add(connection, [Evidence(one, other, "contains", 0.5, 0.3, "model")], now), now)

    nilou.database.write(guess)
    with nilou.database.read() as connection:
        assert consistency.opposed(connection, 10) == ([(("鈴木", "lives_in", "東京"), ("鈴木", "lives_in", "大阪"))], 1)
        assert consistency.unsure(connection, 10) == ([(("東京", "contains", "苺"), 0.3)], 1)
        assert consistency.orphans(connection, 10) == ([], 0)
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        assert consistency.orphans(connection, 10) == ([], 0)  # it may come out of the trash
    nilou.database.write(lambda connection: connection.execute("DELETE FROM memories WHERE key = ?", (key,)))
    with nilou.database.read() as connection:
        assert consistency.orphans(connection, 0) == ([], 1)
        assert consistency.orphans(connection, 10) == (["高橋"], 1)


def test_what_one_memory_half_says_is_unsure_and_two_who_are_only_named_together_are_not(nilou, say, now):
    say("高橋さんと佐藤さんが来た")
    weave_all(nilou, now)

    def guess(memory, type_):
        def work(connection):
            ends = [records.by_name(connection, name)[0].id for name in ("高橋", "佐藤")]
            relations.sum_up(connection, relations.add(connection, [Evidence(*ends, type_, 0.5, 0.5, "model", memory=memory)], now), now)

        nilou.database.write(work)

    def unsure():
        with nilou.database.read() as connection:
            return consistency.unsure(connection, 10)

    assert unsure() == ([], 0)
    guess(1, "knows")
    assert unsure() == ([(("高橋", "knows", "佐藤"), 0.5)], 1)
    say("高橋さんと佐藤さんが帰った")
    guess(2, "knows")
    assert unsure() == ([], 0)


@pytest.mark.parametrize(
    ("one", "other", "opposed"),
    [
        (RelationValidity(None, "2024-03-31"), None, 0),
        (RelationValidity("2020-04-01", "2024-03-31"), RelationValidity("2024-04-01"), 0),
        (RelationValidity(None, "2024-03-31"), RelationValidity(None, "2025-03-31"), 0),
        (RelationValidity("2020-04-01", "2024-03-31"), RelationValidity("2022-04-01"), 1),
        (RelationValidity("2020-04-01"), RelationValidity("2022-04-01"), 1),
    ],
)
def test_of_two_relations_that_held_one_after_the_other_none_is_wrong(nilou, now, one, other, opposed):
    relate(nilou, [StatedRelation("私", "works_at", "Y社")], now=now, privacy=Privacy(), when=one)
    relate(nilou, [StatedRelation("私", "works_at", "X社")], now=now, privacy=Privacy(), when=other)
    with nilou.database.read() as connection:
        assert consistency.opposed(connection, 10)[1] == opposed


def test_whom_only_the_trash_relates_is_no_orphan(nilou, say, now):
    key = say("楽しい日だった", relations=["乙野 > likes > 梨"]).key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        assert consistency.orphans(connection, 10) == ([], 0)


@pytest.mark.parametrize("in_the_trash", [False, True])
def test_whom_a_memory_is_filed_under_is_no_orphan(nilou, say, now, in_the_trash):
    key = say("苺が好きだ。", source="健太", tags=["ダイズ日記"]).key
    while update_graph(nilou, now):
        pass
    if in_the_trash:
        forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        assert records.by_name(connection, "健太")
        assert records.by_name(connection, "ダイズ日記")
        assert consistency.orphans(connection, 10) == ([], 0)
    nilou.database.write(lambda connection: connection.execute("DELETE FROM memories WHERE key = ?", (key,)))
    with nilou.database.read() as connection:
        assert consistency.orphans(connection, 10) == (["健太", "ダイズ日記"], 2)


def test_an_entity_with_thousands_of_relations_is_compared_in_bounded_work(nilou, now):
    count = 3 * consistency.COMPARED_LIMIT

    def work(connection):
        hub = records.create(connection, "鈴木", "Person", 1.0, now)
        places = [records.create(connection, f"町{number}", "Location", 1.0, now) for number in range(count)]
        evidence = [Evidence(hub, place, "lives_in", 0.5, 0.9, "model") for place in places]
        relations.sum_up(connection, relations.add(connection, evidence, now), now)

    nilou.database.write(work)
    with nilou.database.read() as connection:
        listed, counted = consistency.opposed(connection, 10)
    assert len(listed) == 10
    assert counted == consistency.COMPARED_LIMIT * (consistency.COMPARED_LIMIT - 1) // 2
