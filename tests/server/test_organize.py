"""What could be tidied, merging and undoing, as a tool and as routes."""

import json

import pytest
import typer.testing

from memory_mcp.cli import app as command_line
from memory_mcp.language.labels import LIST_LIMIT
from memory_mcp.server.actions.organize import SHOWN_LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "upkeep"])]  # a persona with a graph for each test


@pytest.fixture
def pair(persona):
    """Two memories that say the same: (the more important, the other)."""
    kept = persona("remember", content="旅人は苺のタルトが大好きだ", importance=0.9, tags=["食べ物"])["key"]
    return kept, persona("remember", content="旅人は苺のタルトが大好きだ。", tags=["旅人"])["key"]


def export(http, name):
    return http.get("/api/export", params={"include_deleted": "true"}, headers=[("X-Persona", name.encode())]).text


def test_duplicates_are_listed_with_how_alike_they_are_and_why(persona, name, pair):
    persona("remember", content="踊りの稽古は火曜日")
    told = persona("organize")
    (group,) = told["duplicates"]
    assert told["persona"] == name
    assert group["into"]["key"] == pair[0]
    assert [(alike["key"], alike["why"]) for alike in group["merge"]] == [(pair[1], "same words")]
    assert 0.8 <= group["merge"][0]["similarity"] <= 1
    assert (told["compared"], told["of"], told["meaning"]) == (3, 3, False)


def test_listing_changes_nothing(persona, http, name, pair):
    before = export(http, name)
    persona("organize", top_k="5")
    assert export(http, name) == before


def test_what_was_merged_is_found_once_and_can_be_taken_back(persona, http, name, pair):
    before = export(http, name)
    merged = persona("organize", merge=[pair[1]], into=pair[0], reason="同じ")
    assert [outcome["outcome"] for outcome in merged["outcomes"]] == ["kept", "merged"]
    assert [hit["key"] for hit in persona("recall", query="苺のタルト")["hits"]] == [pair[0]]
    (listed,) = persona("organize")["merges"]
    assert (listed["operation_id"], listed["into"], listed["merge"]) == (merged["operation_id"], pair[0], [pair[1]])
    undone = persona("organize", undo=merged["operation_id"])
    assert undone["undoes"] == merged["operation_id"]
    assert {outcome["outcome"] for outcome in undone["outcomes"]} == {"restored"}
    assert export(http, name) == before
    assert persona("organize")["merges"] == []


def test_empty_talk_is_listed_and_still_recalled(persona):
    told = persona("remember", content="おはようございます！")
    assert (told["stored"], told["low_value"]) == (True, "greeting")
    assert "low_value" not in persona("remember", content="踊りの稽古は火曜日")
    key = told["key"]
    told = persona("organize")
    assert [(found["key"], found["why"]) for found in told["low_value"]] == [(key, "greeting")]
    assert told["counts"]["low_value"] == 1
    assert [hit["key"] for hit in persona("recall", query="おはようございます")["hits"]] == [key]


def test_what_nobody_touched_for_years_is_suggested_unless_it_is_important(persona):
    faded = persona("remember", content="駅前の古い本屋に寄った", occurred_at="2023-01-05")["key"]
    persona("remember", content="母の命日は一月五日", occurred_at="2023-01-05", importance=0.9)
    told = persona("organize")
    assert [found["key"] for found in told["faded"]] == [faded]
    assert told["faded"][0]["retention"] < 0.05


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"merge": ["a"]}, "into is missing"),
        ({"into": "a"}, "into was given without merge"),
        ({"merge": ["a"], "into": "b", "undo": "c"}, "merge and undo were both given"),
        ({"merge": ["a"], "into": "b"}, "no memory has the key"),
        ({"undo": "0" * 32}, "no merge has the operation_id"),
        ({"top_k": SHOWN_LIMIT + 1}, "top_k is 51"),
        ({"merge": [str(number) for number in range(LIST_LIMIT + 1)], "into": "b"}, "merge has 101 entries"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(persona, arguments, words):
    persona("remember", content="踊りの稽古は火曜日")
    assert words in persona.refusal("organize", **arguments)


def test_a_persona_that_does_not_exist_has_nothing_to_tidy_and_stays_uncreated(server, connect):
    nobody = connect(server, "誰でもない")
    assert nobody("organize")["duplicates"] == []
    assert "no memory has the key" in nobody.refusal("organize", merge=["a"], into="b")
    assert not server.directory_of("誰でもない").exists()


def test_keys_of_another_persona_are_unknown_here(server, connect, pair):
    other = connect(server, "dori")
    own = other("remember", content="旅人は苺のタルトが大好きだ")["key"]
    assert "no memory has the key" in other.refusal("organize", merge=[pair[0]], into=own)
    assert "no memory has the key" in other.refusal("organize", merge=[own], into=pair[0])
    assert other("organize")["duplicates"] == []


def test_a_merge_of_another_persona_cannot_be_undone_here(server, connect, persona, pair):
    merged = persona("organize", merge=[pair[1]], into=pair[0])
    other = connect(server, "dori")
    assert "no merge has the operation_id" in other.refusal("organize", undo=merged["operation_id"])


def test_the_routes_do_the_same(persona, http, name, pair):
    headers = [("X-Persona", name.encode())]
    told = http.get("/api/organize", params={"top_k": "1"}, headers=headers).json()
    assert [group["into"]["key"] for group in told["duplicates"]] == [pair[0]]
    before = export(http, name)
    merged = http.post("/api/organize", json={"merge": [pair[1]], "into": pair[0]}, headers=headers).json()
    undone = http.post("/api/organize", json={"undo": merged["operation_id"]}, headers=headers).json()
    assert {outcome["outcome"] for outcome in undone["outcomes"]} == {"restored"}
    assert export(http, name) == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "nothing to do"),
        (b"[]", "no JSON object"),
        (b"[" * 5_000, "not JSON"),
        (b'{"merge": ["\\ud800"], "into": "a"}', "half of a character"),
        (b"{}", "nothing to do"),
        (b'{"merge": "a", "into": "b"}', "wrong type"),
        (b'{"merge": [1], "into": "b"}', "wrong type"),
        (b'{"merg": ["a"]}', "unknown field"),
        (b'{"reason": "' + b"a" * 5_000_000 + b'"}', "too long"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(http, body, words):
    answer = http.post("/api/organize", content=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize("shown", ["0", "51", "x", "-1", "1e9", "٣", "9" * 5_000])
def test_a_length_that_makes_no_sense_is_refused(http, shown):
    answer = http.get("/api/organize", params={"top_k": shown})
    assert answer.status_code == 400
    assert "top_k" in answer.json()["error"]


def test_the_command_lists_merges_and_undoes(server, http, persona, name, pair):
    def run(*arguments):
        result = typer.testing.CliRunner().invoke(command_line, ["organize", "--url", server.url, "--persona", name, *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    persona("remember", content="おはよう！")
    listed = run()
    assert pair[0] in listed
    assert "same words" in listed
    assert "1 of low value" in listed
    before = export(http, name)
    assert f"{pair[1]}: merged" in run("--merge", pair[1], "--into", pair[0])
    operation_id = json.loads(run("--json"))["merges"][0]["operation_id"]
    assert f"--undo {operation_id}" in run()
    assert "restored" in run("--undo", operation_id)
    assert export(http, name) == before


def test_the_command_lists_what_may_be_wrong_with_the_graph(server, persona, name):
    persona("remember", content="荷物を東京に送った", relations=["鈴木 > lives_in > 東京"])
    persona("remember", content="荷物を大阪に送った", relations=["鈴木 > lives_in > 大阪"])
    result = typer.testing.CliRunner().invoke(command_line, ["organize", "--url", server.url, "--persona", name])
    assert "1 pairs of relations contradict each other:\n  鈴木 > lives_in > 東京  |  鈴木 > lives_in > 大阪" in result.output
    assert "orphans" not in result.output
    assert "may contradict" not in result.output


def test_what_may_contradict_is_shown_side_by_side_and_changed_by_nobody(persona):
    persona("remember", content="荷物を東京に送った", relations=["鈴木 > lives_in > 東京"])
    persona("remember", content="荷物を大阪に送った", relations=["鈴木 > lives_in > 大阪"])
    told = persona("organize")
    assert told["opposed_relations"] == [["鈴木 > lives_in > 東京", "鈴木 > lives_in > 大阪"]]
    assert told["counts"]["opposed_relations"] == 1
    assert told["contradictions"] == told["unsure_relations"] == told["orphans"] == []
