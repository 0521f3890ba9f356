"""A word by which plans move or are off tells so everywhere: of a day, of a plan, and that something changed."""

import pytest

from memory_mcp.dates import change_words
from memory_mcp.language.changes import changes_time, tells_change
from memory_mcp.language.moved_plans import may_tell_move, moved_plan

NOUNS = f"{change_words.CALLED_OFF}|{change_words.POSTPONED}".split("|")
SETTLED = ["になった", "にしました", "になっちゃった", "だって", "とのこと", "となった", "の連絡があった", "することにした", "", "、残念"]
OPEN = ["になるかも", "になったら連絡する", "になってほしい", "にしたくない", "でもいい", "になりそう", "とか", "料は高い"]


@pytest.mark.parametrize("noun", NOUNS)
def test_each_noun_is_known_of_days_plans_and_changes(noun):
    assert tells_change(f"会議は{noun}になった")
    assert may_tell_move(f"会議は{noun}になった。")
    assert moved_plan(f"会議は{noun}になった").is_off


@pytest.mark.parametrize(
    "word", "cancelled|canceled|called off|scrapped|postponed|put off|rescheduled|delayed|pushed back|brought forward".split("|")
)
def test_each_english_word_is_known_of_plans_and_changes(word):
    assert tells_change(f"The meeting was {word}")
    assert may_tell_move(f"The meeting was {word}.")
    assert moved_plan(f"the meeting was {word}").nouns == ("meeting",)


@pytest.mark.parametrize("ending", SETTLED)
def test_what_is_settled_is_off(ending):
    assert moved_plan(f"会議は中止{ending}").is_off


@pytest.mark.parametrize("ending", OPEN)
def test_what_is_wished_or_supposed_is_not_off(ending):
    assert moved_plan(f"会議は中止{ending}") is None


@pytest.mark.parametrize(
    "verb", ["変わった", "変えます", "延ばしてもらった", "早まった", "ずれた", "移された", "繰り上げた", "取り直した", "延長になった"]
)
def test_a_day_is_what_something_moved_to(verb):
    moved = moved_plan(f"会議は\ue000に{verb}")
    assert moved.nouns == ("会議",)
    assert not moved.is_off


@pytest.mark.parametrize("verb", ["変わったら教えて", "変えたい", "変えてほしい", "移っても行く", "変わりません"])
def test_a_day_is_none_that_something_may_move_to(verb):
    assert moved_plan(f"会議は\ue000に{verb}") is None


@pytest.mark.parametrize("text", ["お礼を申し上げました", "漁師になりたくない", "髪を切ってほしい", "気を取り直した"])
def test_what_only_sounds_like_a_change_is_none(text):
    assert not tells_change(text)


def test_a_time_is_what_changed_in_whichever_of_the_events_it_stands():
    assert changes_time("ネットは工事が延期で29日になった")
    assert not changes_time("会議は延期で部屋も変わった")
