"""Whose name a question holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.names import named_speakers


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("健太は何が好き？", "健太"), ("昨日健太が言っていたこと", "健太"), ("健太さんの猫", "健太"), ("健太の猫", "健太さん"),
        ("さくらちゃんは？", "さくら先輩"), ("昨日のゆいの話", "ゆい"), ("ナヒーダさんの花", "ナヒーダ"), ("ﾅﾋｰﾀﾞの花", "ナヒーダ"),
        ("What did CAROLINE say?", "Caroline"), ("caroline’s dog", "Caroline"), ("Ａｌｅｘは何が好き", "alex"), ("アレックスとAlexの犬", "Alex"),
        ("Was hat Jürgen gesagt?", "jürgen"), ("What did Kenta-san eat?", "Kenta"), ("What did Kenta eat?", "Kenta-san"),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(question, source):
    assert named_speakers(question, [source, "someone else", None]) == {source}


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("What did Samantha say?", "Sam"), ("a different example", "Sam"), ("アンパンは好き？", "アン"), ("うまいもの", "まい"),
        ("岬の話", "岬"), ("A friend of mine", "a"), ("What did the user say?", "user"), ("Which AI assistant is it?", "Assistant"),
        ("私は何が好き？", "私"), ("相手は何と言った？", "相手"), ("健太は？", "花子"), ("", "健太"), ("Did susan write?", "su-san"),
        ("健太は？", ""), ("健太は？", "さん"), ("my system", "System"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_name_is_none(question, source):
    assert named_speakers(question, [source]) == frozenset()


def test_several_may_be_named():
    assert named_speakers("健太とCarolineは知り合い？", ["健太", "Caroline", "花子", None, "健太"]) == {"健太", "Caroline"}


def test_no_source_is_an_expression():
    assert named_speakers("who is (a+)+ or [x", ["(a+)+", ".*", "[x", "\\w"]) == {"(a+)+", "[x"}


@given(st.text(), st.lists(st.text() | st.none()))
def test_any_question_and_any_sources_have_an_answer(question, sources):
    assert named_speakers(question, sources) <= set(sources)
