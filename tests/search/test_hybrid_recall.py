"""Recall with models: meaning and words together, the cross-encoder before the cut, and every absence said aloud."""

import time
from dataclasses import replace

import pytest
from fakes import HashingEmbedder, OverlapReranker

from memory_mcp.config.settings import Fusion, Privacy, Settings
from memory_mcp.domain import Feedback
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.index.sync import apply_queue
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.remember.forget import forget
from memory_mcp.search.context import context
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store import feedback, memories
from memory_mcp.store.vectors.index_cache import IndexCache

LOADED, ABSENT, OFF = ModelState("loaded", "fake"), ModelState("absent", "fake", error="gone"), ModelState("off")
SETTINGS = Settings(embeddings_model="fake", reranker_model="fake")


@pytest.fixture
def indexes():
    return IndexCache()


@pytest.fixture
def embedder():
    return HashingEmbedder(256)


@pytest.fixture
def embed(nilou, embedder, indexes, zone):
    """Embeds whatever waits for it."""

    def embed(by=embedder):
        while apply_queue(nilou, by, indexes, zone=zone).waiting:
            pass

    return embed


@pytest.fixture
def ask(nilou, now, indexes):
    """Recalls with the given models."""

    def ask(query, embedder=None, reranker=None, settings=SETTINGS, deadline=None, **fields):
        states = LOADED if embedder else ABSENT, LOADED if reranker else ABSENT
        asked = question(settings=settings, now=now, query=query, **{"detail": "why", **fields})
        models = Models(embedder, reranker, *states)
        return recall(nilou, asked, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)

    return ask


def contents(answer):
    return [hit.memory.content for hit in answer.hits]


def test_with_both_models_nothing_is_degraded_and_each_hit_says_why(say, embed, ask, embedder):
    say("猫と海辺を散歩した")
    embed()
    answer = ask("海辺の猫", embedder, OverlapReranker())
    assert (answer.mode, answer.reranked, answer.degraded, answer.index_lag) == ("hybrid", True, (), 0)
    assert set(answer.hits[0].why) == {"lexical", "dense", "rerank"}


@pytest.mark.parametrize(("name", "value"), [("session_id", "海"), ("source", "健太"), ("kind", "experience")])
def test_a_search_by_meaning_looks_only_among_what_passes_the_filter(say, embed, ask, embedder, name, value):
    for number in range(40):
        say(f"猫と海辺を散歩した {number}", session_id="山", source="美咲", kind="fact")
    say("犬と駅前を歩いた", **{"session_id": "山", "source": "美咲", "kind": "fact", name: value})
    embed()
    for mode in ("auto", "semantic"):
        assert contents(ask("猫と海辺を散歩した", embedder, mode=mode, top_k=5, **{name: value})) == ["犬と駅前を歩いた"]


class Preferring(OverlapReranker):
    """Finds all alike but some, which it is sure of."""

    def __init__(self, liked=()):
        super().__init__()
        self.liked = dict.fromkeys(liked, 0.9)

    def _score(self, query_tokens, text):
        return self.liked.get(text, 0.05)


def test_a_memory_at_fused_rank_12_is_first_when_the_reranker_says_so(say, embed, ask, embedder):
    for number in range(14):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    fused = contents(ask("海辺で猫と散歩した", embedder, top_k=14))
    planted = fused[11]
    answer = ask("海辺で猫と散歩した", embedder, Preferring(liked=[planted]), under_weight(0.6), top_k=5)
    assert planted not in fused[:5]
    assert contents(answer)[0] == planted


def test_a_reranker_adds_to_the_score_and_a_weight_of_0_leaves_it(say, embed, ask, embedder):
    for number in range(4):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    fused = {hit.memory.content: hit.score for hit in ask("海辺で猫と散歩した", embedder).hits}
    liked = list(fused)[2]
    scores = {
        weight: {
            hit.memory.content: hit.score
            for hit in ask("海辺で猫と散歩した", embedder, Preferring(liked=[liked]), under_weight(weight)).hits
        }
        for weight in (0.0, 0.1, 0.2)
    }
    assert scores[0.0] == fused
    added = {weight: {text: found[text] - fused[text] for text in fused} for weight, found in scores.items()}
    assert added[0.1][liked] > 0
    assert all(added[0.2][text] == pytest.approx(2 * added[0.1][text], abs=0.001) for text in fused)
    assert all(added[0.2][text] <= 0 for text in fused if text != liked)


def test_what_one_model_finds_of_all_memories_moves_none_of_them(say, embed, ask, embedder):
    for number in range(9):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    fused = ask("海辺で猫と散歩した", embedder, top_k=9)
    answer = ask("海辺で猫と散歩した", embedder, Preferring(), top_k=9)
    assert contents(answer) == contents(fused)
    assert [hit.score for hit in answer.hits] == pytest.approx([hit.score for hit in fused.hits], abs=0.001)


def test_only_the_pool_of_three_times_top_k_is_reranked(say, embed, ask, embedder):
    for number in range(20):
        say(f"海辺の散歩 {number}")
    embed()
    reranker = OverlapReranker()
    answer = ask("海辺の散歩", embedder, reranker, top_k=2)
    assert reranker.pairs_asked == 6
    assert len(answer.hits) + answer.more == 20


def test_a_memory_without_a_common_word_is_found_by_its_vector(say, embed, ask, embedder, nilou):
    class Synonyms(HashingEmbedder):
        def _vector(self, text):
            return super()._vector(text.replace("ねこ", "猫"))

    by = Synonyms(256)
    say("猫")
    say("全く別の話をした日")
    embed(by)
    assert contents(ask("ねこ", by))[0] == "猫"
    assert contents(ask("ねこ")) == []


def test_semantic_mode_ranks_by_vectors_alone(say, embed, ask, nilou):
    class Contrary(HashingEmbedder):
        def _vector(self, text):
            return super()._vector("猫" if "犬" in text else text)

    by = Contrary(256)
    say("犬と暮らす")
    say("猫は苦手")
    embed(by)
    answer = ask("猫", by, mode="semantic")
    assert answer.mode == "semantic"
    assert contents(answer)[0] == "犬と暮らす"


def test_keyword_mode_asks_no_embedder(say, embed, ask, embedder):
    say("海辺の散歩")
    embed()
    asked = embedder.queries_asked
    assert ask("海辺", embedder, mode="keyword").mode == "keyword"
    assert embedder.queries_asked == asked


def test_what_was_just_said_is_found_before_it_has_a_vector(say, embed, ask, embedder):
    say("海辺の散歩")
    embed()
    say("山小屋の散歩")
    answer = ask("山小屋", embedder)
    assert contents(answer)[0] == "山小屋の散歩"
    assert answer.index_lag == 1


def test_a_question_that_a_memory_answers_finds_it(say, embed, ask, embedder):
    say("カレーだった。", questions=["夕飯は何を食べた？"])
    say("夕方に散歩した。")
    embed()
    assert contents(ask("夕飯は何を食べた？", embedder))[0] == "カレーだった。"


def test_a_question_that_a_memory_answers_brings_it_half_way_to_what_says_the_same(say, embed, ask, embedder):
    say("夕飯は何を食べた？")
    say("カレーだった。", questions=["夕飯は何を食べた？"])
    embed()
    same, answered = (hit.why["dense"] for hit in ask("夕飯は何を食べた？", embedder, mode="semantic").hits)
    content_alone = embedder.embed_query("夕飯は何を食べた？") @ embedder.embed_documents(["カレーだった。"])[0]
    assert same > answered
    assert answered - content_alone == pytest.approx((same - content_alone) / 2, abs=0.1)


def test_a_guessed_answer_is_a_further_vector(say, embed, ask, embedder):
    say("苺のショートケーキ")
    say("昨日の天気は雨")
    embed()
    answer = ask("彼女の好物", embedder, hypothetical="苺のショートケーキ")
    assert contents(answer)[0] == "苺のショートケーキ"


@pytest.mark.parametrize(
    ("embedder", "reranker", "reasons"),
    [
        (None, None, ("embedder_absent", "reranker_absent")),
        (HashingEmbedder(256, failing=True), OverlapReranker(), ("embedder_failed",)),
        (HashingEmbedder(256), OverlapReranker(failing=True), ("reranker_failed",)),
        (HashingEmbedder(256, languages=["en"]), OverlapReranker(languages=["en"]), ("embedder_language", "reranker_language")),
    ],
)
def test_what_is_missing_is_named_and_words_still_answer(say, embed, ask, embedder, reranker, reasons):
    say("海辺の散歩")
    embed(HashingEmbedder(256))
    answer = ask("海辺の散歩", embedder, reranker)
    assert answer.degraded == reasons
    assert contents(answer) == ["海辺の散歩"]


@pytest.mark.parametrize(
    ("place", "reason"), [("fallback", "embedder_fallback"), ("earlier", "embedder_previous")], ids=["fallback", "earlier"]
)
def test_a_model_that_answers_in_place_of_the_configured_one_is_named(say, embed, nilou, embedder, indexes, now, place, reason):
    say("海辺の散歩")
    models = Models(None, None, ABSENT, OFF, **{place: embedder})

    def ask(mode="auto"):
        asked = question(settings=SETTINGS, now=now, query="海辺の散歩", mode=mode)
        return recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes)

    before = ask()
    assert (before.mode, before.degraded, before.embedder) == ("keyword", (reason, "nothing_embedded_yet"), None)
    embed()
    after = ask()
    assert (after.mode, after.degraded, after.embedder) == ("hybrid", (reason,), "hashing")
    assert (ask("keyword").degraded, ask("keyword").embedder) == ((), None)
    embedder.failing = True
    failed = ask("semantic")
    assert (failed.degraded, failed.embedder) == ((reason, "embedder_failed"), None)
    assert contents(after) == ["海辺の散歩"]


def test_a_reranker_that_is_too_slow_leaves_the_fused_order_and_says_so(say, embed, ask, embedder):
    say("海辺の散歩")
    embed()
    answer = ask("海辺の散歩", embedder, OverlapReranker(), deadline=0.0)
    assert (answer.reranked, answer.degraded) == (False, ("rerank_deadline",))


def test_shorter_of_time_only_the_part_of_long_memories_that_answers_is_read(say, embed, ask, embedder):
    for number in range(5):
        say(f"{'また歩いた。' * 20}海辺で猫と散歩した。{number}回目。{'また歩いた。' * 20}")
    embed()
    long = contents(ask("海辺で猫と散歩した", embedder, top_k=5))
    read: list[str] = []

    class Reading(OverlapReranker):
        def _score(self, query_tokens, text):
            read.append(text)
            return 1.5 if f"{long[3].partition('回目')[0][-1]}回目" in text else 0.5

    reranker = Reading()
    reranker.longest_in_time = 160
    answer = ask("海辺で猫と散歩した", embedder, reranker, top_k=5, deadline=time.monotonic() + 3_600)
    assert (answer.reranked, answer.degraded) == (True, ("rerank_cut",))
    assert contents(answer)[0] == long[3]
    assert len(read) == 5
    assert all("海辺で猫と散歩した" in text and len(text) <= 160 for text in read)
    at_leisure = ask("海辺で猫と散歩した", embedder, reranker, top_k=5)
    assert (at_leisure.reranked, at_leisure.degraded) == (True, ())


def test_late_only_what_the_page_shows_is_read(say, embed, ask, embedder):
    for number in range(9):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    settings = SETTINGS.model_copy(update={"rerank_deadline_ms": 3_600_000})

    def asked(seconds_left):
        return ask("海辺で猫と散歩した", embedder, OverlapReranker(), settings, top_k=3, deadline=time.monotonic() + seconds_left)

    in_time, late = asked(3_000), asked(1_700)
    assert (in_time.reranked, in_time.degraded) == (True, ())
    assert (late.reranked, late.degraded) == (True, ("rerank_shortened",))


def test_short_of_time_what_the_page_shows_is_reranked_and_the_answer_says_so(say, embed, ask, embedder):
    for number in range(9):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    fused = contents(ask("海辺で猫と散歩した", embedder, top_k=9))
    reranker = Preferring(liked=[fused[2], fused[3]])
    reranker.short_of_time = True
    answer = ask("海辺で猫と散歩した", embedder, reranker, under_weight(0.5), top_k=3)
    assert (answer.reranked, answer.degraded) == (True, ("rerank_shortened",))
    assert contents(answer)[0] == fused[2]
    assert fused[3] not in contents(answer)
    assert answer.more == 6


def test_what_was_not_read_in_time_keeps_its_score_and_its_place(say, embed, ask, embedder):
    for number in range(9):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    fused = {hit.memory.content: hit.score for hit in ask("海辺で猫と散歩した", embedder, top_k=9).hits}

    class Short(Preferring):
        def score(self, query, texts, deadline=None, at_least=None):
            return super().score(query, texts[:4], deadline)

    answer = ask("海辺で猫と散歩した", embedder, Short(liked=[[*fused][3]]), under_weight(2.0), top_k=9)
    assert answer.degraded == ("rerank_shortened",)
    assert contents(answer)[0] == [*fused][3]
    assert contents(answer)[4:] == [*fused][4:]
    assert [hit.score for hit in answer.hits[4:]] == [*fused.values()][4:]
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


def test_a_named_speaker_survives_reranking(say, embed, ask, embedder):
    say("海が好き", source="健太", session_id="s")
    say("海と山", source="健太", session_id="s")
    embed()
    hits = ask("健太は海が好き？", embedder, Preferring()).hits
    assert all(hit.why["speaker"] and hit.why["session"] and hit.why["rerank"] == 0.05 for hit in hits)
    assert all(hit.score > 0.2 for hit in hits)


def test_a_date_that_the_query_names_survives_reranking(say, embed, ask, embedder):
    say("夕飯はカレーだった", occurred_at="2025-10-29")
    say("夕飯は寿司だった", occurred_at="2025-09-01")
    embed()
    reranker = OverlapReranker(scores={"夕飯はカレーだった": 0.5, "夕飯は寿司だった": 0.6})
    assert contents(ask("昨日の夕飯は？", embedder, reranker))[0] == "夕飯はカレーだった"


def test_filters_hold_for_vectors_too(say, embed, ask, embedder):
    say("海辺の散歩", tags=["夏"])
    say("海辺の夜")
    embed()
    assert contents(ask("海辺", embedder, tags=["夏"])) == ["海辺の散歩"]


def test_a_forgotten_memory_is_not_found_by_the_vector_that_its_index_still_has(say, embed, ask, embedder, nilou, now):
    key = say("海辺の散歩").key
    embed()
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert contents(ask("海辺の散歩", embedder)) == []


def test_a_floor_on_the_score_leaves_nothing_but_the_best_score(say, embed, ask, embedder):
    say("海辺の散歩")
    embed()
    answer = ask("海辺の散歩", embedder, OverlapReranker(scores={"海辺の散歩": 0.2}), settings=replace_floor(0.5))
    assert (answer.hits, answer.best_score) == ((), 0.2)


def test_a_model_may_have_a_floor_of_its_own_under_any_form_of_its_name(say, embed, ask, embedder):
    say("海辺の散歩")
    say("山の散歩")
    embed()
    reranker = OverlapReranker("org/overlap", scores={"海辺の散歩": 0.6, "山の散歩": 0.2})
    own = SETTINGS.model_copy(update={"min_score": 0.1, "min_scores": {"overlap": 0.5, "other": 0.9}})
    assert contents(ask("散歩", embedder, reranker, own)) == ["海辺の散歩"]
    assert len(ask("散歩", embedder, None, own).hits) == 2
    full = SETTINGS.model_copy(update={"min_scores": {"org/overlap": 0.7}})
    answer = ask("散歩", embedder, reranker, full)
    assert (answer.hits, answer.best_score, answer.more) == ((), 0.6, 0)


def test_the_floor_of_an_embedding_model_is_on_its_cosine(say, embed, ask, embedder):
    say("海辺の散歩")
    say("夕飯は蕎麦だった")
    embed()
    say("散歩の約束")  # it has no vector yet, and can't be judged by one
    own = SETTINGS.model_copy(update={"min_scores": {"hashing": 0.8}})
    assert set(contents(ask("海辺の散歩", embedder, None, own))) == {"海辺の散歩", "散歩の約束"}
    embed()
    answer = ask("宇宙の話", embedder, None, own)
    assert answer.hits == ()
    assert answer.best_score < 0.8
    assert len(ask("海辺の散歩", None, None, own).hits) == 2  # by words alone there is no cosine


def test_a_named_day_is_reason_enough_for_a_hit(say, embed, ask, embedder):
    say("蕎麦を食べた", occurred_at="昨日")
    embed()
    own = SETTINGS.model_copy(update={"min_scores": {"hashing": 0.99}})
    assert contents(ask("昨日は何をした？", embedder, None, own)) == ["蕎麦を食べた"]


def test_a_reranker_does_not_bring_back_what_was_judged_stale(say, embed, ask, embedder, nilou, now):
    stale = say("朝はコーヒーを飲まないと動けない").key
    say("コーヒーは医者に止められた")
    embed()
    nilou.database.write(
        lambda connection: feedback.add(connection, memories.by_keys(connection, [stale])[stale].id, [Feedback("stale", now)])
    )
    answer = ask("コーヒーを飲む", embedder, Preferring(liked=["朝はコーヒーを飲まないと動けない"]))
    assert [(hit.memory.content, hit.confirmation.judged) for hit in answer.hits] == [
        ("コーヒーは医者に止められた", None),
        ("朝はコーヒーを飲まないと動けない", "stale"),
    ]


def replace_floor(score):
    return SETTINGS.model_copy(update={"min_score": score})


def under_weight(weight):
    return SETTINGS.model_copy(update={"fusion": Fusion(rerank_weight=weight)})


def test_what_was_not_read_does_not_reach_the_floor_of_a_reranker(say, embed, ask, embedder):
    for number in range(6):
        say(f"海辺で猫と散歩した{'。また歩いた' * number}")
    embed()
    reranker = Preferring()
    reranker.short_of_time = True
    answer = ask("海辺で猫と散歩した", embedder, reranker, replace_floor(0.1), top_k=2)
    assert (answer.hits, answer.more, answer.best_score) == ((), 0, 0.05)


def test_while_a_new_model_embeds_the_earlier_one_answers(say, embed, nilou, now, indexes, embedder):
    say("海辺の散歩")
    embed()
    other = HashingEmbedder(32, name="other")
    asked = question(settings=SETTINGS, now=now, query="海辺の散歩")
    both = Models(other, None, LOADED, OFF, earlier=embedder)
    assert recall(nilou, asked, models=both, settings=SETTINGS, now=now, indexes=indexes).mode == "hybrid"
    alone = replace(both, earlier=None)
    answer = recall(nilou, asked, models=alone, settings=SETTINGS, now=now, indexes=indexes)
    assert (answer.mode, answer.degraded) == ("keyword", ("reembedding",))


def test_the_context_of_a_topic_uses_the_models(say, embed, nilou, now, indexes, embedder):
    say("海辺の散歩")
    embed()
    models = Models(embedder, OverlapReranker(), LOADED, LOADED)
    found = context(nilou, "海辺", max_tokens=800, models=models, settings=SETTINGS, now=now, indexes=indexes)
    assert (found.recalled.mode, found.recalled.reranked) == ("hybrid", True)


LONG = "".join(f"{number}日目は雨で、宿から出なかった。" for number in range(300))
SECRET = "夕方、健太が苺のタルトを焼いてくれた。"


def test_a_memory_of_many_pieces_comes_once_with_the_one_that_answers(say, embed, ask, embedder):
    key = say(LONG[:3000] + SECRET + LONG[3000:]).key
    say("健太は猫が好き")
    embed()
    for reranker in (None, OverlapReranker()):
        answer = ask("健太は苺のタルトを焼いた？", embedder, reranker)
        (hit,) = [hit for hit in answer.hits if hit.memory.key == key]
        assert SECRET in hit.text
        assert hit.truncated
    assert len(answer.hits) == 2


def test_without_a_model_a_long_memory_is_shown_where_the_words_of_the_question_are(say, ask):
    say(LONG[:3000] + SECRET + LONG[3000:])
    say("健太は猫が好き")
    answer = ask("健太は苺のタルトを焼いた？", mode="keyword")
    assert SECRET in answer.hits[0].text
    assert len(answer.hits) == 2


def test_the_cross_encoder_reads_the_part_of_a_long_memory_that_answers(say, embed, ask, embedder):
    class Recording(OverlapReranker):
        def score(self, query, texts, *more):
            self.texts = texts
            return super().score(query, texts, *more)

    reranker = Recording()
    say(LONG[:3000] + SECRET + LONG[3000:], source="user")
    ask("健太は苺のタルトを焼いた？", None, reranker)
    embed()
    ask("健太は苺のタルトを焼いた？", embedder, reranker)
    (text,) = reranker.texts
    assert text.startswith("user: …")
    assert SECRET in text
    assert estimate_tokens(text) <= 500
