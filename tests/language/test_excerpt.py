"""What of a long text is shown: the part that answers, and whole sentences around it."""

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.budget import WINDOW_CHARACTERS, best_window, estimate_tokens, excerpt
from memory_mcp.language.tokens import query_tokens

DIARY = "".join(f"{number}日目は雨だったので宿で本を読んでいた。とても静かだった。" for number in range(60))
SECRET = "夕方に健太が苺のタルトを焼いてくれた。"
TEXT = DIARY[:900] + SECRET + DIARY[900:]
PROSE = st.text(alphabet=st.sampled_from("あい漢 a.。！\n」"), max_size=400)


def test_the_window_is_where_the_words_of_the_question_are():
    start, end = best_window(TEXT, query_tokens("健太は何を焼いた？"), (0, len(TEXT)))
    assert SECRET in TEXT[start:end]
    assert end - start <= WINDOW_CHARACTERS


def test_an_inflected_word_finds_its_other_forms():
    text = "It rained all day and nothing happened at all. " * 30 + "He studies botany. " + "We slept and slept again. " * 40
    start, end = best_window(text, query_tokens("What did he study?"), (0, len(text)))
    assert "studies botany" in text[start:end]


def test_of_windows_with_the_same_words_the_first_is_taken():
    assert best_window(DIARY, query_tokens("静か"), (0, len(DIARY)))[0] == 0


def test_only_the_given_part_is_looked_at_and_is_the_answer_where_it_has_none_of_the_words():
    assert best_window(TEXT, query_tokens("健太"), (0, 800)) == (0, 800)
    start, end = best_window(TEXT, query_tokens("静かな宿"), (700, 1500))
    assert 700 <= start < end <= 1500
    assert end - start < 800


def test_what_fits_is_shown_whole():
    assert excerpt("短い。", (0, 3), 10) == "短い。"


def test_the_part_is_shown_with_whole_sentences_around_it():
    place = TEXT.index(SECRET)
    shown = excerpt(TEXT, (place, place + len(SECRET)), 200)
    assert SECRET in shown
    assert shown.startswith("…")
    assert shown.endswith("。…")
    assert 150 < estimate_tokens(shown) <= 200
    assert 40 < shown.index(SECRET) < 160


def test_at_its_ends_a_text_has_no_ellipsis():
    assert not excerpt(TEXT, (0, 20), 100).startswith("…")
    assert not excerpt(TEXT, (len(TEXT) - 20, len(TEXT)), 100).endswith("…")


def test_a_part_that_is_too_long_itself_is_cut_at_its_end():
    shown = excerpt(TEXT, (100, 800), 50)
    assert shown.startswith("…" + TEXT[100:140])
    assert shown.endswith("…")


@given(PROSE, st.integers(0, 400), st.integers(0, 400), st.integers(2, 80))
def test_an_excerpt_never_costs_more_than_it_may_and_is_a_part_of_the_text(text, one, other, budget):
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    shown = excerpt(text, (start, end), budget)
    assert estimate_tokens(shown) <= budget
    assert shown.strip("…").strip() in text


def test_of_a_part_that_is_too_long_itself_that_is_shown_which_has_the_words():
    for budget in (40, 60, 100, 400):
        shown = excerpt(TEXT, (600, 1500), budget, query_tokens("健太は何を焼いた？"))
        assert SECRET in shown
        assert estimate_tokens(shown) <= budget
