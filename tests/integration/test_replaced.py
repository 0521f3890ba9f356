"""What a memory replaced: its words find the new one, and what says it again is left out."""

from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy
from memory_mcp.language.restatement import restates
from memory_mcp.remember.forget import forget
from memory_mcp.search.context import context

HATES = "健太はメロンも苺も嫌いになった。"


@pytest.fixture
def contents(ask):
    def contents(query="", **arguments):
        return [hit.memory.content for hit in ask(query, **arguments).hits]

    return contents


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("健太は苺が好き。", "健太は苺が好きなんだ"),
        ("健太は苺が好き。", "健太は、苺が好きです！"),
        ("会議は10時から", "会議は１０時からです。"),
        ("Kenta likes tea.", "Kenta really likes tea"),
    ],
)
def test_the_same_in_nearly_the_same_words_is_said_again(text, other):
    assert restates(text, other)
    assert restates(other, text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("健太は苺が好き。", "美咲は苺が好き。"),
        ("健太は苺が好き。", "健太は苺が好きではない。"),
        ("健太は苺が好き。", "健太は苺が嫌い。"),
        ("会議は10時から", "会議は11時から"),
        ("Kenta likes tea.", "Misaki likes tea."),
        ("コーヒーが好き", "ケーキが好き"),
        ("健太は苺が好き。", "健太は苺が好きで、毎朝畑を見に行くのを楽しみにしている。"),
    ],
)
def test_another_name_another_number_a_negation_or_more_is_something_else(text, other):
    assert not restates(text, other)


def test_a_context_does_not_say_again_what_was_replaced(say, nilou, now, settings):
    old = say("健太は苺が好き。", session_id="1").key
    say("健太は苺が好きなんだ！", session_id="2")
    say(HATES, at=now + timedelta(hours=1), supersedes=old)
    found = context(nilou, "", max_tokens=1000, models=unloaded_models(settings), settings=settings, now=now)
    assert [hit.memory.content for _, hit in found.hits] == [HATES]


def test_the_words_of_what_was_replaced_find_what_replaced_it_until_it_is_forgotten(say, contents, nilou, now):
    for other in range(25):
        say(f"庭の木を{other}本植えた")
    old = say("写真の整理はPicasaを使う").key
    say("デジカムに乗り換えた", supersedes=old)
    assert contents("Picasa") == ["デジカムに乗り換えた"]
    forget(nilou, [old], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert contents("Picasa") == []


def test_who_replaces_a_memory_is_told_which_others_say_the_same(say):
    old = say("健太は苺が好き。", session_id="1").key
    again = say("健太は苺が好きなんだ！", session_id="2").key
    say("美咲は苺が好き。")
    assert [similar.key for similar in say(HATES, supersedes=old).repeating] == [again]
    assert say("健太は苺が好きだった", session_id="3").repeating == ()
