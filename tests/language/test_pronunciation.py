"""Words in kana and in Latin letters are compared by their sound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.sound import difference, largest_difference, of_kana, of_latin


def sound_alike(kana: str, latin: str) -> bool:
    sound = of_kana(kana)
    return any(other.consonants == sound.consonants and difference(sound, other) <= largest_difference(sound) for other in of_latin(latin))


@pytest.mark.parametrize(
    "pair",
    "グレタ Greta|マヤ Maya|イングリッド Ingrid|リーファー reefer|コンテナ containers|トマシュ Tomasz|メアリー Mary|リンドホルム Lindholm|"
    "ランブック runbook|マイク Mike|クリスティン Christine|シャーロット Charlotte|トーマス Thomas|ヴィオラ Viola|"
    "キャット cat|ソルバー solver|とましゅ Tomasz|ヨハン Johan|ジョン John|ハリー Harry|フィリップ Philip|エマ Emma".split("|"),
)
def test_a_name_or_loanword_sounds_as_it_is_written_in_kana(pair: str) -> None:
    assert sound_alike(*pair.split())


@pytest.mark.parametrize(
    "pair",
    "グレタ great|マヤ may|マリア more|ハリー hall|コンテナ content|レビュー leave|スクール sql|アン in|ケンカ Kenneth|カメラ Camilla's".split(
        "|"
    ),
)
def test_another_word_does_not(pair: str) -> None:
    assert not sound_alike(*pair.split())


@given(st.text(max_size=200))
def test_any_text_has_a_bounded_number_of_sounds(text: str) -> None:
    assert len(of_latin(text)) <= 16
    assert len(of_kana(text).vowels) == len(of_kana(text).consonants) + 1
