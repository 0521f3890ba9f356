"""Text to lexical tokens: what is found by which query hangs on this alone."""

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from memory_mcp.characters import is_japanese
from memory_mcp.language import tokens as text_tokens
from memory_mcp.language.tokens import (
    QUERY_PHRASES_LIMIT,
    forget_tokens,
    fragments,
    in_one_width,
    is_single_kanji,
    jaccard,
    kana_words,
    normalise,
    query_phrases,
    query_tokens,
    tokens,
    weighed_query_tokens,
)


def test_a_japanese_run_becomes_its_kanji_and_all_overlapping_pairs():
    assert tokens("夕飯は") == ["夕", "夕飯", "飯", "飯は"]


@pytest.mark.parametrize("character", ["苺", "あ", "カ"])
def test_a_run_of_one_character_is_kept_whole(character):
    assert tokens(character) == [character]


def test_a_kana_inside_a_run_is_no_token_of_its_own():
    assert tokens("カレー") == ["カレ", "レー"]


@pytest.mark.parametrize(
    ("one", "other"), [("ﾊﾝﾊﾞｰｸﾞ", "ハンバーグ"), ("ＰＹＴＨＯＮ", "python"), ("２０２５年", "2025年"), ("か\u3099", "が")]
)
def test_width_and_composition_make_no_difference(one, other):
    assert tokens(one) == tokens(other)


def test_latin_words_are_stemmed_and_case_is_lost():
    assert tokens("Running dogs") == tokens("run dog")


@pytest.mark.parametrize(
    ("one", "other"), [("Café", "cafe"), ("Zoë", "ZOE"), ("naïveté", "naivete"), ("Cafe\u0301s", "cafes"), ("Phở", "pho")]
)
def test_marks_of_latin_letters_make_no_difference(one, other):
    assert tokens(one) == tokens(other)


@pytest.mark.parametrize(("one", "other"), [("が", "か"), ("ポ", "ホ"), ("й", "и"), ("ば", "は")])
def test_marks_of_other_letters_make_another_letter(one, other):
    assert tokens(one) != tokens(other)


def test_words_of_two_threads_do_not_get_into_each_other(monkeypatch):
    begun, release = threading.Event(), threading.Event()

    class Slow(EnglishStemmer):
        def _stem(self):
            if self.current == "running":
                begun.set()
                assert release.wait(60)
            return super()._stem()

    monkeypatch.setattr(text_tokens, "_stemmer", Slow())
    forget_tokens()
    with ThreadPoolExecutor() as threads:
        first = threads.submit(tokens, "running")
        assert begun.wait(60)
        second = threads.submit(tokens, "generously")
        with pytest.raises(TimeoutError):
            second.result(0.2)
        release.set()
        assert (first.result(60), second.result(60)) == (["run"], ["generous"])


def test_an_apostrophe_is_no_boundary_straight_or_curled():
    assert tokens("don't") == tokens("don\u2019t") == ["dont"]


def test_mixed_text_is_cut_where_the_script_changes():
    assert tokens("Pythonの本") == ["python", "の本", "本"]


def test_a_kanji_of_the_second_plane_is_a_kanji():
    assert tokens("𩸽と") == ["𩸽", "𩸽と"]


def test_an_emoji_is_a_token():
    assert tokens("やった🎉") == ["やっ", "った", "🎉"]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Wi-Fi", "wifi"),
        ("Wi\u2010Fi", "WiFi"),
        ("wifi", "Wi\u2011Fi"),
        ("WH-1000XM5", "WH1000XM5"),
        ("WH1000XM5", "wh-1000xm5"),
        ("WH-1000XM5", "XM5"),
        ("AT&T", "ATT"),
        ("R&D", "R＆D"),
        ("Node.js", "NodeJS"),
        ("USB-C", "usbc"),
        ("A/B", "AB"),
        ("C++", "Ｃ＋＋"),
        ("C#", "CSharp"),
        ("C♯", "C#"),
        (".NET", "dotnet"),
        ("090-1234-5678", "09012345678"),
        ("￥1,000", "¥1000"),
        ("￥1,000", "1000円"),
        ("1,000,000", "1000000"),
        ("スター・ウォーズ", "スターウォーズ"),
        ("5 km", "5km"),
        ("e-mail", "email"),
    ],
)
def test_a_word_is_found_with_and_without_its_signs(written, asked):
    stored = f" {' '.join(tokens(f'新しい{written}の話'))} "
    assert any(f" {token} " in stored for token in query_tokens(asked))


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("C++", "C"),
        ("C++", "C#"),
        ("C#", "C"),
        ("F#", "F"),
        (".NET", "net"),
        ("3.11", "311"),
        ("3.11", "3 / 11"),
        ("1,000", "1"),
        ("A/B", "B"),
        ("R&D", "R"),
    ],
)
def test_signs_make_another_word(asked, written):
    stored = f" {' '.join(tokens(written))} "
    assert not any(f" {token} " in stored for token in query_tokens(asked))


def test_a_word_of_several_parts_is_found_by_them_and_a_short_one_does_not_ask_for_them():
    assert {"well", "known"} <= set(tokens("well-known")) & set(query_tokens("well-known"))
    assert {"wi", "fi"} <= set(tokens("Wi-Fi"))
    assert not {"wi", "fi"} & set(query_tokens("Wi-Fi"))


def test_what_is_long_or_a_date_is_only_its_parts():
    assert tokens("10/17") == ["10", "17"]
    assert tokens("3-5") == ["3", "5"]
    assert tokens("a-b-c-d-e-f") == ["a", "b", "c", "d", "e", "f"]


def test_punctuation_and_blanks_leave_no_token():
    assert tokens(" 「…」。！？ -- \n") == []


def test_stored_text_keeps_its_repetitions_and_a_query_does_not():
    assert tokens("tea tea") == ["tea", "tea"]
    assert query_tokens("tea tea") == ["tea"]


def test_function_words_are_dropped_from_queries_only():
    assert query_tokens("what is the tea") == ["tea"]
    assert len(tokens("what is the tea")) == 4


def test_a_query_of_nothing_but_function_words_keeps_them():
    assert query_tokens("who are you") == tokens("who are you")


def test_words_side_by_side_in_a_query_are_phrases():
    assert query_phrases("What did the prior art search cost at Blue Bay, Blue Bay?") == [
        "prior art",
        "art search",
        "search cost",
        "blue bay",
        "bay blue",
    ]
    assert query_phrases("京都のBlue Note東京") == ["blue note"]
    assert query_phrases("京都の寺") == []


@given(st.text(alphabet="ab e'é夕.!"))
def test_every_phrase_of_a_query_stands_in_the_same_stored_text(text):
    stored = f" {' '.join(tokens(text))} "
    assert all(f" {phrase} " in stored for phrase in query_phrases(text))


def test_the_phrases_of_a_long_query_are_bounded():
    assert len(query_phrases(" ".join(f"w{number}" for number in range(1_000)))) == QUERY_PHRASES_LIMIT


@given(st.text())
def test_no_token_is_empty_or_holds_what_would_end_a_quoted_token(text):
    for token in tokens(text):
        assert token
        assert not set(token) & set("\"' \x00\n")


@given(st.text())
def test_a_query_asks_only_for_tokens_that_the_same_stored_text_has(text):
    stored = f" {' '.join(tokens(text))} "
    assert all(f" {token} " in stored for token in query_tokens(text))


@given(st.text(alphabet="あがカ夕飯京都ー々"))
def test_every_pair_of_neighbours_in_a_japanese_text_is_found_again(text):
    found = set(tokens(text))
    for pair in zip(normalise(text), normalise(text)[1:], strict=False):
        wanted = tokens("".join(pair))
        assert found >= {token for token in wanted if len(token) == 2 and not token.isascii()}


def test_single_kanji_are_told_from_pairs_and_kana():
    assert [is_single_kanji(token) for token in ("苺", "夕飯", "あ", "a")] == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"), [("hello", False), ("héllo 한국어", False), ("hello 本", True), ("ﾃスト", True), ("ﾃｽﾄ", True)]
)
def test_japanese_is_recognised_by_a_single_kana_or_kanji(text, expected):
    assert is_japanese(text) is expected


def test_sameness_is_shared_tokens_over_all_tokens():
    assert jaccard({"a", "b"}, {"b", "c"}) == pytest.approx(1 / 3)
    assert jaccard(set(), set()) == 0.0


def test_a_word_in_latin_letters_counts_as_a_japanese_one_in_a_japanese_query():
    assert weighed_query_tokens("Kafkaの本") == ["kafka"] * 3 + ["の本", "本"]
    assert weighed_query_tokens("How much is Kafka?") == query_tokens("How much is Kafka?")


def test_a_word_in_katakana_is_searched_as_a_whole_and_by_its_ends():
    assert weighed_query_tokens("バージョン") == ["バー ージ ジョ ョン", "バー ージ", "ジョ ョン"]
    assert weighed_query_tokens("スポーツジム") == ["スポ ポー ーツ ツジ ジム", "スポ ポー", "ジム"]


def test_a_word_of_two_or_three_katakana_is_searched_as_a_whole_if_it_is_known():
    assert weighed_query_tokens("テスト", {"テス スト"}) == ["テス スト"] * 3
    assert weighed_query_tokens("プリヤ", {"テス スト"}) == ["プリ", "リヤ"]
    assert weighed_query_tokens("ジム", {"ジム"}) == ["ジム"] * 3
    assert weighed_query_tokens("マヤ", {"ジム"}) == ["マヤ"]


@pytest.mark.parametrize(
    ("query", "of_words", "parts"),
    [
        ("作りたいものは", [], {"りた", "たい"}),
        ("私のねこは", ["ねこ"], {"のね"}),
        ("りんごはたべた", ["りん んご", "たべ べた"], {"ごは", "はた", "りん"}),
        ("カレーとおにぎり", ["おに にぎ", "にぎ ぎり"], {"とお", "おに"}),
        ("みかん", ["みか かん"], {"みか", "かん"}),
    ],
)
def test_a_word_of_hiragana_is_found_by_three_kana_and_pairs_outside_of_words_by_nothing(query, of_words, parts):
    assert kana_words(query) == of_words
    assert parts <= fragments(query, kana_words(query))
    assert fragments(query, kana_words(query)).isdisjoint(of_words)


def test_a_long_query_is_searched_by_its_tokens():
    query = "バージョン " + " ".join(f"word{number}" for number in range(100))
    assert weighed_query_tokens(query) == query_tokens(query)


@given(st.text(alphabet="アバージョンagか漢 ー"))
def test_what_is_weighed_is_made_of_the_tokens_of_the_query(text):
    asked = {part for token in query_tokens(text) for part in token.split()}
    assert {token for phrase in weighed_query_tokens(text) for token in phrase.split()} <= asked


@given(st.text(st.sampled_from("！？（）：～／％＆＋　ＡａéＺ９ｱﾊﾞ\u0301\u3099かハ㈱ﬁ豈한,!~")))
def test_one_width_is_that_of_unicode_also_where_marks_meet_what_combines_with_them(text):
    assert in_one_width(text) == unicodedata.normalize("NFKC", text)
