"""The read path on a real store: what is found, in which order, and what the answer says of itself."""

from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Fusion, Privacy, Settings
from memory_mcp.domain import Question
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.remember.forget import forget
from memory_mcp.search.pipeline import recall

WITH_MODELS = Settings()


def contents(recalled) -> list[str]:
    return [hit.memory.content for hit in recalled.hits]


def keys_of(recalled) -> list[str]:
    return [hit.memory.key for hit in recalled.hits]


@pytest.fixture
def fruit(say):
    """Three memories of one subject that tags, importance and date tell apart."""
    say("果物は苺", tags=["食", "Like"], importance=0.9, occurred_at="2025-10-01")
    say("果物は林檎", tags=["食"], importance=0.5, occurred_at="2025-10-17")
    say("果物は桃", importance=0.1, occurred_at="2025-10-18")


@pytest.mark.parametrize("query", ["苺", "夕飯", "ｶﾚｰ", "Pythonの本", "python", "昨日の夕飯は何だった？"])
def test_a_short_japanese_or_mixed_query_finds_its_memory_first(say, ask, query):
    say("犬の散歩に行った")
    say("夕飯に苺カレーを食べながらＰｙｔｈｏｎの本を読んだ", occurred_at="2025-10-01")
    say("別の話")
    assert contents(ask(query))[0].startswith("夕飯に苺カレー")


def test_the_better_match_comes_first_and_says_why(say, ask):
    say("京都へ行った")
    say("京都の夕飯はカレー")
    first, second = ask("京都のカレー").hits
    assert first.memory.content == "京都の夕飯はカレー"
    assert first.score > second.score > 0
    assert first.why["lexical"] == 1.0
    assert first.why["lexical"] >= second.why["lexical"] > 0


def test_words_that_stand_side_by_side_in_the_question_count_more_where_they_do_so_in_a_memory(say, ask):
    for number in range(25):
        say(f"Watered the tree {number} times")
    say("The hotel is called Blue Bay")
    say("A bay hotel, painted blue")
    assert contents(ask("Which hotel is Blue Bay?")) == ["The hotel is called Blue Bay", "A bay hotel, painted blue"]


def test_words_side_by_side_find_nothing_that_a_filter_leaves_out(say, ask):
    say("The hotel is called Blue Bay", tags=["trip"])
    say("A bay, painted blue", tags=["art"])
    assert contents(ask("Blue Bay", tags=["art"])) == ["A bay, painted blue"]
    assert contents(ask("Blue Bay", tags=["none"])) == []


def test_nothing_found_is_an_answer(say, ask):
    say("京都へ行った")
    recalled = ask("ラーメン")
    assert (recalled.hits, recalled.more, recalled.best_score) == ((), 0, None)


def test_a_persona_that_does_not_exist_has_no_memories(personas, now, settings, say):
    say("京都へ行った")
    with personas.reading("nobody") as nobody:
        for question in (Question(query="京都"), Question(mode="recent"), Question(keys=("k",))):
            assert recall(nobody, question, models=unloaded_models(settings), settings=settings, now=now).hits == ()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tags": ["食"]}, {"果物は苺", "果物は林檎"}),
        ({"tags": ["食", "like"]}, {"果物は苺"}),
        ({"tags": ["無い"]}, set()),
        ({"min_importance": 0.5}, {"果物は苺", "果物は林檎"}),
        ({"date_range": "2025-10-17"}, {"果物は林檎"}),
        ({"date_range": "2025-10-17.."}, {"果物は林檎", "果物は桃"}),
        ({"date_range": "先月"}, set()),
        ({"tags": ["食"], "min_importance": 0.6, "date_range": "2025-10"}, {"果物は苺"}),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "keyword", "recent"])
def test_filters_hold_in_every_mode(fruit, ask, mode, filters, expected):
    assert set(contents(ask("果物", mode=mode, **filters))) == expected
    if mode == "recent":
        assert set(contents(ask(mode=mode, **filters))) == expected


def test_a_named_date_raises_its_memories_and_filters_none(fruit, ask):
    recalled = ask("10月17日の果物")
    assert contents(recalled)[0] == "果物は林檎"
    assert len(recalled.hits) == 3
    assert recalled.hits[0].why["date"] is True
    assert "date" not in recalled.hits[1].why


def test_a_question_that_shares_no_word_finds_the_day_it_names(say, ask):
    say("寿司だった", occurred_at="昨日")
    say("寿司だった！", occurred_at="2025-09-01")
    assert contents(ask("昨日？")) == ["寿司だった"]
    assert contents(ask("昨日？", date_range="先週〜今日")) == contents(ask("yesterday", date_range="昨日")) == ["寿司だった"]
    assert contents(ask("昨日？", date_range="2025-09-01")) == []


def test_a_date_that_the_caller_gives_decides_over_one_in_the_query(fruit, ask):
    assert contents(ask("10月17日の果物", date_range="2025-10-18")) == ["果物は桃"]


def test_a_memory_that_is_dated_by_its_day_is_not_of_the_night_before(say, ask):
    say("夕飯は鍋", occurred_at="3日前の夜")
    say("夜更けに電話", occurred_at="2日前の1時半")
    say("夕飯は寿司", occurred_at="2日前")
    for query in ("", "夕飯と電話", "2日前の夕飯"):
        assert set(contents(ask(query, date_range="3日前の夜"))) == {"夕飯は鍋", "夜更けに電話"}
    assert set(contents(ask(date_range="2日前"))) == {"夜更けに電話", "夕飯は寿司"}


def test_a_query_may_quote_an_impossible_date(say, ask):
    say("既定値は 0001-01-01")
    assert len(ask("0001-01-01 とは何").hits) == 1


def test_recent_shows_the_latest_event_first_whenever_it_was_told(say, ask, now):
    say("今の話")
    say("昔の話", at=now + timedelta(minutes=1), occurred_at="2025-01-01")
    say("昨日の話", at=now + timedelta(minutes=2), occurred_at="昨日")
    recalled = ask(mode="recent", top_k=2)
    assert contents(recalled) == ["今の話", "昨日の話"]
    assert (recalled.mode, recalled.more) == ("recent", 1)


def test_recent_with_a_query_shows_only_what_matches_latest_first(fruit, say, ask):
    say("別の話")
    recalled = ask("果物", mode="recent")
    assert contents(recalled) == ["果物は桃", "果物は林檎", "果物は苺"]
    assert recalled.mode == "recent"


def test_keys_are_fetched_in_their_order_and_the_missing_ones_named(say, ask, nilou, now):
    first, second = say("一").key, say("二").key
    forget(nilou, [first], reason=None, dry_run=False, now=now, privacy=Privacy())
    recalled = ask(keys=[second, "memory_x", first])
    assert keys_of(recalled) == [second, first]
    assert recalled.missing == ("memory_x",)
    assert recalled.hits[1].memory.deleted_at == now


def test_a_guessed_answer_searches_too(say, ask):
    say("苺のケーキ")
    assert contents(ask("好物は", hypothetical="ケーキが好き")) == ["苺のケーキ"]


def test_the_query_counts_more_than_a_guess(say, ask, now):
    say("苺のケーキ", at=now - timedelta(days=1))
    say("栗のケーキ")
    assert contents(ask("苺", hypothetical="栗")) == ["苺のケーキ", "栗のケーキ"]


def test_a_query_of_punctuation_looks_for_itself(say, ask):
    say("彼は言った「……」")
    say("沈黙")
    assert contents(ask("……")) == ["彼は言った「……」"]


def test_top_k_cuts_and_more_tells_how_many_were_left(say, ask):
    for number in range(8):
        say(f"京都の話 {number}")
    recalled = ask("京都", top_k=3)
    assert (len(recalled.hits), recalled.more) == (3, 5)


def test_an_answer_keeps_to_its_budget_and_says_what_it_cut(say, ask):
    for number in range(4):
        say(f"京都{number}。" + "とても長い話。" * 40)
    recalled = ask("京都", max_tokens=500)
    assert sum(estimate_tokens(hit.text) for hit in recalled.hits) <= 500
    assert recalled.hits[-1].truncated
    assert len(recalled.hits) + recalled.more == 4


def test_an_index_shows_a_line_of_each(say, ask):
    say("京都。\n" + "とても長い話。" * 100)
    (hit,) = ask("京都", detail="index").hits
    assert hit.truncated
    assert "\n" not in hit.text


def test_of_equal_matches_the_later_one_comes_first(say, ask):
    for day in ("2025-10-02", "2025-10-03", "2025-10-01"):
        say("京都", occurred_at=day)
    assert [hit.memory.occurred_at.day for hit in ask("京都").hits] == [2, 1, 30]  # midnight in Tokyo is the day before in UTC


def test_hits_below_the_least_score_are_left_out_and_the_best_told(say, ask):
    say("京都へ行った")
    strict = Settings(embeddings_model=None, reranker_model=None, min_score=1.5)
    recalled = ask("京都", under=strict)
    assert (recalled.hits, recalled.more, recalled.best_score) == ((), 0, 1.0)


def test_the_date_term_can_be_turned_off(fruit, ask):
    off = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(date_boost=0))
    raised, plain = ask("10月17日の果物"), ask("10月17日の果物", under=off)
    assert (contents(raised)[0], contents(plain)[-1]) == ("果物は林檎", "果物は林檎")
    assert raised.hits[0].score == pytest.approx(plain.hits[-1].score + Fusion().date_boost)


def test_a_month_of_a_named_year_is_that_month_alone(say, ask):
    for day in ("2024-03-05", "2025-03-05", "2025-06-05"):
        say("花見の話", occurred_at=day)
    dated = [hit.memory.occurred_at.year for hit in ask("去年の3月の花見").hits if hit.why.get("date")]
    assert dated == [2024]


def test_a_day_with_a_name_finds_its_memories(say, ask):
    say("チキンを焼いた", occurred_at="2024-12-25")
    say("チキンを焼いたりした", occurred_at="2025-06-01")
    assert contents(ask("クリスマスに焼いたもの"))[0] == "チキンを焼いた"


@pytest.fixture
def guests(say):
    """What one person said of the sea, and what another said of the first, which has more of the words."""
    say("海なら一日中いられる", source="健太さん")
    say("健太は海が好き", source="花子")


def test_a_memory_of_the_one_whom_the_query_names_is_raised_and_says_so(guests, ask):
    speakers = {hit.memory.source: hit.why.get("speaker") for hit in ask("健太は海が好き？").hits}
    assert speakers == {"健太さん": True, "花子": None}


def test_the_speaker_term_can_be_turned_off(guests, ask):
    off = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(speaker_boost=0))
    raised, plain = (
        next(hit for hit in answer.hits if hit.memory.source == "健太さん")
        for answer in (ask("健太は海が好き？"), ask("健太は海が好き？", under=off))
    )
    assert raised.score == pytest.approx(plain.score + Fusion().speaker_boost)


@pytest.mark.parametrize("role", ["user", "assistant", "私"])
def test_a_role_is_no_name(say, ask, role):
    say("海が好き", source=role)
    (hit,) = ask(f"{role} は海が好き？").hits
    assert "speaker" not in hit.why


@pytest.fixture
def trip(say):
    """Two memories that match alike; around the earlier one the conversation is about the same."""
    say("宿は海の近く", session_id="trip", occurred_at="2025-10-01T10:00")
    for hour in (12, 14, 16):
        say("駅の話", session_id="trip", occurred_at=f"2025-10-01T{hour}:00")
    say("海の宿と海の魚", session_id="trip", occurred_at="2025-10-01T18:00")
    say("宿は海の近く", session_id="other", occurred_at="2025-10-02")


def test_what_else_its_session_holds_raises_a_memory(trip, ask):
    def sessions(recalled):
        return [hit.memory.session_id for hit in recalled.hits if hit.memory.content == "宿は海の近く"]

    off = Settings(embeddings_model=None, reranker_model=None, fusion=Fusion(session_weight=0))
    assert sessions(ask("海の宿"))[0] == "trip"
    assert sessions(ask("海の宿", under=off)) == ["other", "trip"]


def test_a_hit_says_what_its_session_has_of_the_words(trip, ask):
    told = {(hit.memory.session_id, hit.memory.content): hit.why for hit in ask("海の宿").hits}
    assert 0 < told["trip", "宿は海の近く"]["session"] <= 1
    assert "session" not in told["other", "宿は海の近く"]


def test_without_models_on_purpose_nothing_is_degraded(say, ask):
    say("京都")
    recalled = ask("京都")
    assert (recalled.mode, recalled.reranked, recalled.degraded, recalled.index_lag) == ("keyword", False, (), 0)


def test_models_that_are_wanted_and_not_there_are_named(say, ask):
    say("京都")
    recalled = ask("京都", under=WITH_MODELS)
    assert (recalled.mode, recalled.reranked, recalled.degraded) == ("keyword", False, ("embedder_absent", "reranker_absent"))
    assert len(recalled.hits) == 1


def test_who_asks_for_keywords_misses_no_embedder(say, ask):
    assert ask("京都", mode="keyword", under=WITH_MODELS).degraded == ("reranker_absent",)


@pytest.mark.parametrize(("under", "reason"), [(None, "embedder_off"), (WITH_MODELS, "embedder_absent")])
def test_a_semantic_search_without_a_model_answers_by_keyword_and_says_so(say, ask, settings, under, reason):
    say("京都")
    recalled = ask("京都", mode="semantic", under=under or settings)
    assert recalled.mode == "keyword"
    assert reason in recalled.degraded
    assert contents(recalled) == ["京都"]


def test_reading_changes_nothing_in_the_file(say, ask, nilou):
    say("京都")

    def state():
        with nilou.database.read() as connection:
            return connection.execute("SELECT * FROM memories").fetchall(), connection.pragma("data_version")

    before = state()
    ask("京都")
    assert state() == before


@pytest.mark.slow
def test_the_longest_query_that_is_allowed_is_answered(say, ask):
    say("京都へ行った")
    kanji = "".join(chr(0x4E00 + number) for number in range(9_900))
    assert contents(ask(f"京都 {kanji}", hypothetical=kanji[::-1])) == ["京都へ行った"]


@pytest.mark.parametrize("filters", [{"date_range": "昨日"}, {"tags": ["夕飯"]}, {"min_importance": 0.9}])
def test_filters_without_a_query_ask_for_the_latest_that_pass_them(say, ask, filters):
    say("カレーを食べた", occurred_at="昨日", tags=["夕飯"], importance=0.9)
    say("別の日の別の話", occurred_at="2025-01-01")
    answer = ask(**filters)
    assert (answer.mode, contents(answer)) == ("recent", ["カレーを食べた"])


@pytest.mark.parametrize("mode", ["Keyword", " RECENT "])
def test_a_mode_may_be_written_in_capitals(say, ask, mode):
    say("カレー")
    assert contents(ask("カレー", mode=mode)) == ["カレー"]


def test_the_same_sentence_is_a_hit_once(say, ask):
    """Said in several conversations, in other punctuation or width."""
    for session, content in enumerate(("苺が好き", "苺が好き！", "苺が好き。", "「苺が好き」", "苺が、好き")):
        say(content, session_id=str(session))
    for content in ("苺のケーキを焼いた", "苺を摘みに行った", "COFFEEと苺", "coffeeと苺！"):
        say(content)
    recalled = ask("苺", top_k=4)
    assert {hit.memory.content.strip("！。「」") for hit in recalled.hits} - {"苺が、好き"} >= {"苺のケーキを焼いた", "苺を摘みに行った"}
    assert (len(recalled.hits), recalled.more) == (4, 0)
