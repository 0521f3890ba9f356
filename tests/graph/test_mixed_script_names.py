"""Names of two scripts or with signs within: one name where the rules can tell, else the part before the honorific."""

import pytest

from memory_mcp.graph.extract.extraction import extract_mentions


def named(text):
    return [(one.name, one.type, one.aliases) for one in extract_mentions(text, ())]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("サチ子さん", "サチ子"),
        ("ハナ子ちゃん", "ハナ子"),
        ("ケン太くん", "ケン太"),
        ("John-Paulさん", "John-Paul"),
        ("ＪＯＨＮさん", "ＪＯＨＮ"),
        ("Ｋさん", "Ｋ"),
    ],
)
@pytest.mark.parametrize("before", ["", "昨日は", "昨日", "「", "田中さんと"])
def test_a_name_of_two_scripts_is_one(before, said, name):
    assert named(f"{before}{said}に会った")[-1] == (name, "Person", (said,))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("いつもモモさんと", "モモ"),
        ("だからユキさんと", "ユキ"),
        ("やさしいケンさん", "ケン"),
        ("きれいなユキさん", "ユキ"),
        ("うちのねこモモちゃん", "モモ"),
        ("カメラマン太郎さん", "太郎"),
        ("サチ子が花子さんと", "花子"),
    ],
)
def test_a_word_before_a_name_is_no_part_of_it(text, name):
    assert [one for one, *_ in named(text)] == [name]


@pytest.mark.parametrize("text", ["くまモンさんに会った", "さかなクンさんの本", "ドラえもんさん", "コロすけくん", "メンバーゆいちゃん"])
def test_half_of_a_name_is_no_name(text):
    assert named(text) == []


@pytest.mark.parametrize("text", ["ＡＩさんに聞いた", "ＮＰＣさん", "メス子猫", "ＰＴＡ様"])
def test_wide_letters_do_not_make_a_name(text):
    assert named(text) == []


@pytest.mark.parametrize("said", ["クン", "くまモン", "A-Aa", "Ａ", "ケン太", "さかな"])
def test_a_text_full_of_beginnings_is_read_as_fast_as_any(said):
    """What is read again from each letter takes minutes: the test's own timeout tells."""
    named((said * 20_000)[:20_000])
