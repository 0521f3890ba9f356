"""The six tools as a client sees them when nothing goes wrong, in both protocol eras."""

import pytest

pytestmark = pytest.mark.both_eras


@pytest.fixture
def tulips(persona):
    """The key of what the persona remembers about tulips."""
    return persona("remember", content="旅人はチューリップが好き", source="旅人", tags=["花"])["key"]


def test_what_is_remembered_in_japanese_is_recalled(persona, name):
    stored = persona("remember", content="旅人は苺のタルトが好き", source="旅人")
    found = persona("recall", query="苺が好きなのは誰？")
    assert stored["stored"]
    assert stored["indexed"] == "now"
    assert found["persona"] == name
    assert found["mode"] == "keyword"
    assert not found["reranked"]
    assert [(hit["key"], hit["content"], hit["source"]) for hit in found["hits"]] == [(stored["key"], "旅人は苺のタルトが好き", "旅人")]


def test_every_tool_says_whose_memory_it_used(persona, name, tulips):
    answers = [
        persona("get_context"),
        persona("remember", content="雨が降った"),
        persona("recall", query="雨"),
        persona("revise", key=tulips, importance=0.9),
        persona("forget", keys=[tulips]),
        persona("update_context", emotion="嬉しい"),
    ]
    assert [answer["persona"] for answer in answers] == [name] * 6


def test_a_recall_says_what_it_was_made_without(own_server, connect):
    nilou = connect(own_server, "nilou")
    nilou("remember", content="踊りの稽古は火曜日")
    assert nilou("recall", query="稽古")["degraded"] == []
    own_server.configure(embeddings_model="cl-nagoya/ruri-v3-30m", reranker_model="hotchpotch/japanese-reranker-xsmall-v2")
    found = nilou("recall", query="稽古")
    assert found["degraded"] == ["embedder_absent", "reranker_absent"]
    assert found["mode"] == "keyword"
    assert found["index_lag"] == 0


def test_the_first_answers_of_a_new_persona_say_that_it_is_new(persona):
    assert persona("recall", query="何か")["new_persona"]
    assert persona("remember", content="はじめまして")["new_persona"]
    assert "new_persona" not in persona("recall", query="何か")


def test_a_name_that_nobody_has_is_answered_with_the_names_that_may_be_meant(own_server, connect):
    connect(own_server, "nilou")("remember", content="スメールの踊り子")
    answer = connect(own_server, "nilou2")("recall", query="踊り子")
    assert answer["new_persona"]
    assert answer["did_you_mean"] == ["nilou"]
    assert answer["hits"] == []


def test_the_same_write_again_answers_with_the_first_key(persona):
    first = persona("remember", content="約束は三時")
    again = persona("remember", content="約束は三時")
    assert again["key"] == first["key"]
    assert not again["stored"]
    assert "revise" in again["note"]


def test_what_is_so_again_is_stored_though_it_was_said_in_the_same_words_a_moment_ago(persona):
    first = persona("remember", content="会議は15時から")
    second = persona("remember", content="会議は16時からに変更", supersedes=first["key"])
    third = persona("remember", content="会議は15時から", supersedes=second["key"])
    assert third["stored"]
    again = persona("remember", content="会議は15時から", supersedes=second["key"])
    assert (again["stored"], again["key"]) == (False, third["key"])
    hits = persona("recall", query="会議は何時から")["hits"]
    assert [hit["key"] for hit in hits] == [third["key"]]


def test_a_memory_that_says_nearly_the_same_is_stored_and_reported(persona):
    first = persona("remember", content="旅人は朝ごはんにパンケーキを食べる")
    second = persona("remember", content="旅人は朝ごはんにパンケーキを食べるよ")
    assert second["stored"]
    assert [similar["key"] for similar in second["similar"]] == [first["key"]]


def test_a_date_in_words_is_answered_with_the_day_that_was_understood(persona):
    said = persona("remember", content="歯医者の予約は11月30日の15時。", occurred_at="11月30日15時")
    assert said["occurred_at"] == "2025-11-30T15:00:00+09:00"
    again = persona("remember", content="歯医者の予約は11月30日の15時。", occurred_at="11月30日15時")
    assert (again["stored"], again["occurred_at"]) == (False, said["occurred_at"])
    assert "occurred_at" not in persona("remember", content="花が咲いた", occurred_at="2025-10-20T09:00")
    assert "occurred_at" not in persona("remember", content="花が散った")


def test_a_memory_keeps_all_that_was_said_about_it(persona):
    key = persona(
        "remember",
        content="祭りで一緒に踊った",
        source="旅人",
        session_id="s1",
        kind="experience",
        tags=["祭り", "踊り"],
        importance=0.8,
        occurred_at="昨日",
        questions=["昨日は何をした？"],
        state={"emotion": "楽しい"},
    )["key"]
    (hit,) = persona("recall", keys=[key])["hits"]
    assert hit["occurred_at"].startswith("2025-10-29")
    assert hit["ago"] == "昨日"
    assert (hit["kind"], hit["session_id"], hit["tags"], hit["importance"]) == ("experience", "s1", ["祭り", "踊り"], 0.8)
    assert hit["state"] == {"emotion": "楽しい"}
    assert persona("get_context")["state"]["emotion"] == "楽しい"


def test_recall_filters_by_tag_date_and_importance(persona):
    persona("remember", content="花を買った", tags=["買い物"], occurred_at="2025-10-01", importance=0.2)
    persona("remember", content="花が咲いた", tags=["庭"], occurred_at="2025-10-20", importance=0.9)

    def found(**filters):
        return [hit["content"] for hit in persona("recall", query="花", **filters)["hits"]]

    assert found(tags=["買い物"]) == ["花を買った"]
    assert found(date_range="2025-10-15..2025-10-25") == ["花が咲いた"]
    assert found(date_range=["2025-10-15", "2025-10-25"]) == ["花が咲いた"]
    assert found(min_importance=0.5) == ["花が咲いた"]


def test_recall_answers_with_as_many_hits_as_asked_and_counts_the_others(persona):
    for day in range(1, 8):
        persona("remember", content=f"{day}日目の天気は晴れ")
    found = persona("recall", query="天気", top_k=3)
    assert len(found["hits"]) == 3
    assert found["more"] == 4
    assert len(persona("recall", query="天気")["hits"]) == 5


def test_recall_fetches_by_key_and_names_the_keys_that_are_missing(persona, tulips):
    found = persona("recall", keys=[tulips, "memory_0"])
    assert [hit["key"] for hit in found["hits"]] == [tulips]
    assert found["missing"] == ["memory_0"]


def test_recall_lists_the_latest_without_a_query(persona, tulips):
    latest = persona("remember", content="あとのこと")["key"]
    found = persona("recall", mode="recent")
    assert found["mode"] == "recent"
    assert [hit["key"] for hit in found["hits"]] == [latest, tulips]


def test_a_short_list_of_hits_shows_one_line_of_each(persona):
    persona("remember", content="長い話。" * 200)
    (hit,) = persona("recall", query="長い話", detail="index")["hits"]
    assert len(hit["content"]) < 200
    assert hit["truncated"]


def test_a_revision_is_found_and_the_earlier_words_are_not(persona, tulips):
    revised = persona("revise", key=tulips, content="旅人は薔薇が好き", reason="言い間違い")
    assert (revised["revision"], revised["content"]) == (2, "旅人は薔薇が好き")
    assert persona("recall", query="薔薇")["hits"][0]["key"] == tulips
    assert persona("recall", query="チューリップ")["hits"] == []


def test_what_is_forgotten_is_not_recalled_until_it_is_restored(persona, tulips):
    assert persona("forget", keys=[tulips], dry_run=True)["outcomes"] == [{"key": tulips, "outcome": "would_forget"}]
    assert persona("forget", keys=[tulips])["outcomes"] == [{"key": tulips, "outcome": "forgotten"}]
    assert persona("recall", query="チューリップ")["hits"] == []
    assert persona("forget", keys=[tulips])["outcomes"][0]["outcome"] == "already_forgotten"
    persona("revise", key=tulips, restore=True)
    assert persona("recall", query="チューリップ")["hits"][0]["key"] == tulips


def test_what_is_superseded_gives_way_to_what_replaces_it(persona, tulips):
    newer = persona("remember", content="旅人は今はチューリップが苦手", supersedes=tulips)["key"]
    assert [hit["key"] for hit in persona("recall", query="チューリップ")["hits"]] == [newer]
    assert persona("recall", keys=[tulips])["hits"][0]["superseded_by"] == newer


def test_update_context_answers_with_what_was_and_what_is(persona):
    persona("update_context", emotion="普通", user_info={"name": "空"})
    answer = persona("update_context", emotion="嬉しい", user_info={"nickname": "旅人"})
    assert answer["changed"]["emotion"] == {"before": "普通", "after": "嬉しい"}
    assert answer["changed"]["user_info"] == {"before": {"name": "空"}, "after": {"name": "空", "nickname": "旅人"}}


def test_an_empty_text_clears_a_part_of_the_context_and_null_leaves_it(persona):
    persona("update_context", emotion="普通", environment="劇場", user_info={"name": "空", "nickname": "旅人"})
    answer = persona("update_context", emotion="", environment=None, user_info={"nickname": "", "name": None})
    assert answer["changed"] == {
        "emotion": {"before": "普通", "after": ""},
        "user_info": {"before": {"name": "空", "nickname": "旅人"}, "after": {"name": "空"}},
    }
    context = persona("get_context")
    assert (context["state"], context["user_info"]) == ({"environment": "劇場"}, {"name": "空"})


def test_an_empty_list_takes_all_tags_away_and_null_leaves_them(persona, tulips):
    assert persona("revise", key=tulips, tags=None, importance=0.9)["tags"] == ["花"]
    assert persona("revise", key=tulips, tags="", importance=0.8)["tags"] == ["花"]
    assert "tags" not in persona("revise", key=tulips, tags="[]")
    persona("revise", key=tulips, tags=["花", "庭"])
    assert "tags" not in persona("revise", key=tulips, tags=[])
    assert persona("recall", query="チューリップ", tags=["花"])["hits"] == []


def test_the_context_says_who_how_many_when_and_what_fits_the_topic(persona, tulips):
    persona("update_context", user_info={"name": "空"}, persona_info={"nickname": "ニィロウ"}, environment="劇場")
    for number in range(12):
        persona("remember", content=f"雑談その{number}")
    context = persona("get_context", query="チューリップ")
    assert context["memories"] == 13
    assert context["now"] == context["last_conversation_time"] == "2025-10-30T12:00:00+09:00"
    assert (context["user_info"], context["persona_info"]) == ({"name": "空"}, {"nickname": "ニィロウ"})
    assert context["state"] == {"environment": "劇場"}
    assert (context["hits"][0]["_source"], context["hits"][0]["key"]) == ("semantic", tulips)
    assert len(context["hits"]) <= 10
    assert len({hit["key"] for hit in context["hits"]}) == len(context["hits"])


def test_an_answer_stays_within_its_budget(persona):
    for number in range(20):
        persona("remember", content=f"{number}番目の長い思い出。" + "とても楽しかった。" * 30)
    answer = persona("recall", query="思い出", top_k=20, max_tokens=1000)
    assert 0 < len(answer["hits"]) < 20
    assert answer["more"] == 20 - len(answer["hits"])
    assert sum(len(hit["content"]) for hit in answer["hits"]) < 1000


def test_category_level_and_metadata_go_in_and_come_out(persona):
    told = {"category": "料理", "privacy_level": "private", "metadata": '{"device": "phone", "times": [1, 2]}'}
    key = persona("remember", content="湯豆腐の作り方", **told)["key"]
    (found,) = persona("recall", query="湯豆腐", category="料理")["hits"]
    assert (found["category"], found["privacy_level"]) == ("料理", "private")
    assert "metadata" not in found
    (fetched,) = persona("recall", keys=[key])["hits"]
    assert fetched["metadata"] == {"device": "phone", "times": [1, 2]}
    revised = persona("revise", key=key, category="夕食", privacy_level="secret")
    assert (revised["category"], revised["privacy_level"], revised["content"]) == ("夕食", "secret", "湯豆腐の作り方")


def test_metadata_that_are_no_object_are_refused(persona):
    assert "object" in persona.refusal("remember", content="x", metadata="phone")
    assert "10,000" in persona.refusal("remember", content="x", metadata={"a": "x" * 10_000})
    assert "public, internal, private, secret" in persona.refusal("remember", content="x", privacy_level="hidden")
