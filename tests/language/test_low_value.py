"""Which texts are worth nothing by themselves, on a list made by hand: what is flagged must not be missed by anybody."""

import pytest
from places import DATA

from memory_mcp.language.low_value import low_value

LINES = [
    line.partition("\t")
    for line in DATA.joinpath("low_value_lines.tsv").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
WORTHLESS = [text.replace("\\n", "\n") for label, _, text in LINES if label == "low"]
WORTHY = [text.replace("\\n", "\n") for label, _, text in LINES if label == "keep"]


UNSEEN = [
    (label, text)
    for label, _, text in (
        line.partition("\t")
        for line in DATA.joinpath("low_value_lines.tsv").read_text(encoding="utf-8").partition("# written after")[2].splitlines()
    )
    if label in ("low", "keep")
]


def test_the_list_holds_enough_of_both_in_both_languages():
    for texts in (WORTHLESS, WORTHY):
        assert len(texts) >= 60
        japanese = [text for text in texts if any(letter > "\u3000" for letter in text)]
        assert len(japanese) >= 25
        assert len(texts) - len(japanese) >= 25


def test_nearly_everything_that_is_flagged_is_worthless_and_nearly_all_of_that_is_flagged(figure):
    found = [text for text in WORTHLESS if low_value(text)]
    wrong = [text for text in WORTHY if low_value(text)]
    precision, recall = len(found) / (len(found) + len(wrong)), len(found) / len(WORTHLESS)
    figure("low value: lines", len(WORTHLESS) + len(WORTHY))
    figure("low value: precision / recall", f"{precision:.3f} / {recall:.3f}")
    unseen = [text for label, text in UNSEEN if label == "low"]
    figure("low value: recall of what was written after the rules", f"{sum(bool(low_value(text)) for text in unseen) / len(unseen):.2f}")
    assert wrong == []
    assert recall >= 0.9, [text for text in WORTHLESS if not low_value(text)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("おはよう！", "greeting"),
        ("Good night, Nilou!", "greeting"),
        ("うん、わかった", "nod"),
        ("Thank you so much!!", "nod"),
        ("!?…", "no_words"),
        ("あ", "too_short"),
        ("ｗｗｗｗｗｗ", "repetition"),
        ('Traceback (most recent call last):\n  File "app.py", line 3, in <module>\n    main()\nValueError: no', "error_dump"),
    ],
)
def test_a_flag_says_why(text, why):
    assert low_value(text) == why


@pytest.mark.parametrize("text", ["苺", "3", "ok"])
def test_one_character_or_a_digit_is_too_little(text):
    assert low_value(text)


def test_a_long_text_takes_no_long_time_whatever_it_repeats():
    for text in ("はい" * 100_000, "at " * 60_000, "ー" * 200_000, "a b\n" * 50_000):
        assert low_value(text) in (None, "repetition", "too_short")


@pytest.mark.parametrize(
    "text", ["え" * 110 + "x", "うん" * 55 + "苺", "hi" * 55 + "!?x", "ねえ" * 40 + " 苺", "\ufdfa" * 110, "okw" * 36 + "z"]
)
def test_there_are_not_too_many_ways_to_read_a_text(text):
    assert low_value(text) in (None, "repetition", "greeting")
