"""Whichever way a memory is written, the same is refused in the same words, and nothing of it is stored."""

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.language.relation_notation import format_relation
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.validation import draft
from memory_mcp.transfer.jsonlines import ImportOptions, import_lines

Way = Callable[[Mapping[str, Any]], str]


@pytest.fixture
def way(request, nilou, now, zone) -> Way:
    """Writes a memory in the way of this name. Returns why it is refused, "" if it is not."""

    def one(fields):
        try:
            remember(nilou, draft(**fields, now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        except MemoryMCPError as error:
            return str(error)
        return ""

    def many(fields):
        try:
            checked = draft(**fields, now=now, zone=zone)
        except InvalidInput as error:
            return str(error)
        return remember_many(nilou, [checked], now=now, zone=zone, privacy=Privacy())[0].reason

    def lines(fields, *before, dry_run=None):
        rows = [(number, json.dumps(row).encode()) for number, row in enumerate((*before, fields), start=1)]
        result = import_lines(lambda: nullcontext(nilou), rows, ImportOptions(now, zone, privacy=Privacy(), dry_run=dry_run))
        return "".join(refusal.reason for refusal in result.errors)

    def trial(fields, *before):
        return lines(fields, *before, dry_run=Foreseen())

    return {"remember": one, "remember_many": many, "import": lines, "trial": trial}[request.param]


def stored(persona):
    with persona.database.read() as connection:
        return [
            *connection.execute(
                "SELECT content FROM memories UNION ALL SELECT name FROM entities UNION ALL SELECT operation FROM operations"
            )
        ]


WAYS = ("remember", "remember_many", "import", "trial")
REFUSED = {
    "there is no type 'Nonsense'": {"relations": ["Bob|Nonsense > likes > tea"]},
    "there is no type 'Ghost'": {"relations": ["Ann > likes > tea", "Bob|Person > knows > Ann|Ghost"]},
    "the relation 'Bob > likes' can't be read": {"relations": ["Bob > likes"]},
    "the relation 'Bob > likes > Bob' has the same name at both ends": {"relations": ["Bob > likes > Bob"]},
    "supersedes names nobody_1": {"supersedes": "nobody_1"},
    "a key holds what is not stored here": {"supersedes": "token-ghp_16C7e42F292c6912E7710c838347Ae178B4a"},
    "content is empty": {"content": " "},
    "importance is 2": {"importance": 2.0},
    "privacy_level is 'open'": {"privacy_level": "open"},
    "kind is 'dream'": {"kind": "dream"},
}


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize(("reason", "fields"), REFUSED.items(), ids=list(REFUSED))
def test_what_one_way_refuses_each_refuses(way, nilou, reason, fields):
    assert way({"content": "Bob drinks tea", **fields}).startswith(reason)
    assert stored(nilou) == []


@pytest.mark.parametrize("way", ["remember", "remember_many", "import"], indirect=True)
def test_a_type_of_the_personas_own_is_known_in_each(way, nilou):
    nilou.database.write(
        lambda connection: connection.execute("INSERT INTO entity_types(name, display_name, user_defined) VALUES ('Pet', 'ペット', 1)")
    )
    assert way({"content": "Bob drinks tea", "relations": ["Bob|Pet > likes > tea", "Ann|ペット > likes > tea"]}) == ""


@pytest.mark.parametrize("way", ["import", "trial"], indirect=True)
def test_a_file_brings_the_types_that_its_memories_name(way):
    assert way({"content": "Bob drinks tea", "relations": ["Bob|Pet > likes > tea"]}, {"entity_type": "Pet"}) == ""


def test_a_name_with_a_bar_is_no_end_of_a_relation_that_can_be_written():
    assert format_relation(StatedRelation("Docs | Home", "links_to", "tea")) is None
    assert format_relation(StatedRelation("Bob", "likes", "tea", "Person")) == "Bob|Person > likes > tea"
