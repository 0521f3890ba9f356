"""What a memory replaced: its words find the new one."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.remember.forget import forget


@pytest.fixture
def contents(ask):
    def contents(query="", **arguments):
        return [hit.memory.content for hit in ask(query, **arguments).hits]

    return contents


def test_the_words_of_what_was_replaced_find_what_replaced_it_until_it_is_forgotten(say, contents, nilou, now):
    for other in range(25):
        say(f"庭の木を{other}本植えた")
    old = say("写真の整理はPicasaを使う").key
    say("デジカムに乗り換えた", supersedes=old)
    assert contents("Picasa") == ["デジカムに乗り換えた"]
    forget(nilou, [old], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert contents("Picasa") == []
