"""Nicknames such as あっくん, and names that are also how a sentence ends, such as かな: where they are somebody, and where they are nobody."""

import pytest

from memory_mcp.dates.spans import composed_with_places
from memory_mcp.graph.extract.extraction import extract_mentions
from memory_mcp.language.names import Candidate, Gazetteer, Match
from memory_mcp.store.graph.schema import ENTITY_TYPES

TYPES = [row[0] for row in ENTITY_TYPES]


def named(text, *people):
    """Who is named in a text where these people are known."""
    called = (
        Match(start, end, tuple(Candidate(who, people[who], "Person") for who in found))
        for start, end, found in Gazetteer(zip(people, range(len(people)), strict=True)).find(*composed_with_places(text))
    )
    return [(mention.name, mention.type) for mention in extract_mentions(text, TYPES, called)]


@pytest.mark.parametrize("text", ["あっくんと遊んだ。", "あっくんだよ", "昨日はあっくんの家にいた", "[[あっくん]]が来た"])
def test_a_nickname_is_one_with_its_honorific(text):
    (mention,) = extract_mentions(text, TYPES)
    assert (mention.name, mention.type or mention.likely, mention.aliases) == ("あっくん", "Person", ())
    assert [name for name, _ in named(text, "あっくん", "あっ")] == ["あっくん"]


@pytest.mark.parametrize(
    "text",
    [
        "昨日は地震があった。",
        "あっという間に終わった。",
        "あっ、忘れた",
        "たった三日で",
        "さっと来て",
        "よっと持ち上げた",
        "坊っちゃんを読んだ",
    ],
)
def test_what_a_nickname_begins_with_is_nobody(text):
    assert named(text, "あっ", "たっ", "さっ", "よっ", "坊っ") == []


@pytest.mark.parametrize(
    "text",
    [
        "かなに会った",
        "昨日かなと会った",
        "健太とかなは姉妹",
        "「かな」と呼ぶ",
        "今日はかなさんといる",
        "母とかなちゃん",
        "かな、元気？",
        "先日かなの家で",
        "妹の名前はかなです",
        "娘はかなという名前",
        "妹がかなだよ",
        "友達のかなからLINEが来た",
        "昨日かなへ手紙を書いた",
    ],
)
def test_a_name_that_is_how_a_sentence_ends_is_found_where_somebody_is_meant(text):
    assert ("かな", "Person") in named(text, "かな")


@pytest.mark.parametrize(
    "text",
    [
        "いいのかな。",
        "大丈夫かな",
        "元気かなと思った",
        "雨かな？と言う",
        "彼かもと心配した",
        "ここからは遠い",
        "パンだけでいい",
        "それもかなー",
        "来るのかも。",
        "静かなので眠れた",
        "豊かなのに",
        "誰かなと振り返った",
        "行こう…かな",
        "「それ」から始める",
        "りんご（赤）だけでいい",
    ],
)
def test_how_a_sentence_ends_is_nobody_of_that_name(text):
    assert named(text, "かな", "かも", "から", "だけ") == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("りっくんとみっちゃんは仲良し", ["りっくん", "みっちゃん"]),
        ("ゆいちゃんとりこちゃんが来た", ["ゆい", "りこ"]),
        ("たっくんやあっくんと", ["たっくん", "あっくん"]),
    ],
)
def test_of_two_who_stand_side_by_side_each_is_named(text, names):
    assert [name for name, _ in named(text)] == names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("妹はさえです", True),
        ("親友のさえが結婚した", True),
        ("妹のさえに会った", True),
        ("さえさんが来た", True),
        ("子供さえできる", False),
        ("水さえあればいい", False),
    ],
)
def test_a_name_that_is_a_particle_is_found_where_it_is_told_to_be_one(text, found):
    assert (("さえ", "Person") in named(text, "さえ")) is found


@pytest.mark.parametrize("text", ["もっとちゃんと食べて", "きっとちゃんとする", "バス代ちゃんと払った"])
def test_what_stands_before_chanto_is_no_nickname(text):
    assert not {name for name, _ in named(text)} & {"もっと", "きっと", "バス代"}
