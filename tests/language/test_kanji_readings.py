"""Kanji are found by how they are read in words and names."""

import itertools
import time

import pytest

from memory_mcp.language import kanji
from memory_mcp.language.kanji import words_read_as
from memory_mcp.language.sound import in_hiragana


def followers(*words: str) -> dict[str, str]:
    after: dict[str, str] = {}
    for word in words:
        for first, second in itertools.pairwise(word):
            after[first] = after.get(first, "") + second
        after.setdefault(word[-1], "")
    return after


@pytest.mark.parametrize(
    "pair",
    "さわたり 沢渡|ゆずは 柚葉|ちかげ 千景|としょかん 図書館|けんか 喧嘩|せんべい 煎餅|さいとう 斎藤|ささき 佐々木|がっこう 学校|ひこうき 飛行機|めがね 眼鏡|くだもの 果物|"
    "おがわ 小川|にっぽん 日本|いちご 苺|みなと 湊|はるか 遥|しんじゅく 新宿|ほっぽう 北方|てがみ 手紙".split("|"),
)
def test_a_word_is_found_by_its_reading(pair: str) -> None:
    kana, word = pair.split()
    assert word in set(words_read_as(kana, followers(word)))


def test_only_kanji_that_follow_each_other_are_a_word() -> None:
    assert list(words_read_as("さわたり", followers("沢田", "川渡"))) == []


def test_usual_readings_come_before_rare_ones() -> None:
    words = list(dict.fromkeys(words_read_as("さわたり", followers("沢渡", "佐渡"))))
    assert words == ["佐渡", "沢渡"]


@pytest.mark.parametrize("kana", ["か" * 300, "かこきし" * 80, "", "ー" * 300, "んっー"])
def test_a_long_run_of_kana_takes_no_time(kana: str) -> None:
    everything = dict.fromkeys("歌火香化家加科可", "歌火香化家加科可")
    begun = time.process_time()
    assert all(len(word) <= kanji.LONGEST_WORD for word in words_read_as(kana, everything))
    assert time.process_time() - begun < 1


def test_without_the_dictionary_there_are_no_words(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(kanji, "DIRECTORY", tmp_path)
    kanji._table.cache_clear()
    assert list(words_read_as("ちかげ", followers("千景"))) == []
    monkeypatch.undo()
    kanji._table.cache_clear()


@pytest.mark.parametrize(
    ("latin", "kana"),
    [
        ("Chikage", "ちかげ"),
        ("tika", "ちか"),
        ("Honda", "ほんだ"),
        ("Shinji", "しんじ"),
        ("Yuto", "ゆうと"),
        ("Ryō", "りょう"),
        ("matcha", "まっちゃ"),
        ("Namba", "なんば"),
    ],
)
def test_a_romanized_word_is_written_in_hiragana(latin: str, kana: str) -> None:
    assert kana in in_hiragana(latin)


@pytest.mark.parametrize("word", ["Greta", "container", "", "123", "さくら", "l" * 1_000])
def test_what_is_not_romanized_japanese_has_no_hiragana(word: str) -> None:
    assert in_hiragana(word) == []


def test_a_word_of_many_long_vowels_is_written_in_few_ways() -> None:
    assert len(in_hiragana("ko" * 1_000)) <= 8
