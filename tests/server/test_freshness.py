"""How fresh a hit is: how old, when it was told again, and what it replaced."""

import pytest

from memory_mcp.server.views import what_differs


@pytest.fixture
def told_before(http, name):
    """told_before(content, **fields): a memory told on October 1, four weeks before; returns nothing."""

    def told_before(content, **fields):
        line = {"content": content, "created_at": "2025-10-01T09:00:00+09:00", **fields}
        answer = http.post("/api/import", json=line, headers={"X-Persona": name})
        assert answer.json()["stored"] == 1, answer.text

    return told_before


def hit_of(persona, query, rank=0):
    return persona("recall", query=query)["hits"][rank]


def test_a_hit_says_how_old_it_is_in_words_and_as_a_date(persona, told_before):
    told_before("旅人は海が好き")
    hit = hit_of(persona, "海")
    assert (hit["created_at"], hit["ago"]) == ("2025-10-01T09:00:00+09:00", "4週間前")
    assert "2025-10-01 4週間前: 旅人は海が好き" in persona.result("recall", {"query": "海"}).content[0].text
    assert "confirmed_at" not in hit


def test_what_was_told_again_is_confirmed_then(persona, told_before):
    told_before("旅人の誕生日は6月1日", source="旅人", occurred_at="2025-06-01T00:00:00+09:00")
    again = persona("remember", content="旅人の誕生日は6月1日", source="旅人", occurred_at="2025-06-01")
    assert not again["stored"]
    assert hit_of(persona, "誕生日")["confirmed_at"] == "2025-10-30T12:00:00+09:00"
    assert ", confirmed 2025-10-30: 旅人の誕生日" in persona.result("recall", {"query": "誕生日"}).content[0].text
    assert "confirmed_at" in persona("get_context", query="誕生日")["hits"][0]


def test_the_same_words_stored_again_confirm_the_first(persona, told_before):
    told_before("合言葉は睡蓮", key="first")
    key = persona("remember", content="合言葉は睡蓮")["key"]
    first, again = persona("recall", keys=["first", key])["hits"]
    assert first["confirmed_at"] == again["created_at"]
    assert "confirmed_at" not in again
    persona("forget", keys=[key])
    assert "confirmed_at" not in persona("recall", keys=["first"])["hits"][0]


def test_a_retry_confirms_nothing(persona):
    for _ in range(2):
        persona("remember", content="約束は三時", occurred_at="2025-10-29")
    assert "confirmed_at" not in hit_of(persona, "約束")


def test_a_changed_fact_says_what_it_replaced(persona):
    old = persona("remember", content="旅人は苺のタルトが好き")["key"]
    persona("remember", content="旅人は苺のタルトが嫌い", supersedes=old)
    hit = hit_of(persona, "苺")
    assert (hit["supersedes"], hit["replaced"]) == (old, "…好き")
    assert ", replaced …好き: " in persona.result("recall", {"query": "苺"}).content[0].text
    persona("forget", keys=[old])
    assert "replaced" not in hit_of(persona, "苺")


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("夜間処理の開始は2時。", "夜間処理の開始は1時15分に早めた。", "…2時。"),
        ("Kenta lives in Osaka", "Kenta lives in Oslo", "…Osaka"),
        ("苺が好き", "苺が好きだったけど、今は嫌い", "苺が好き"),
        ("猫を\n飼っている", "犬を飼っている", "猫を 飼っている"),
        ("京都の長い話。" * 20, "別", "京都の長い話。京都の長…"),
    ],
)
def test_what_was_replaced_begins_where_it_differs(old, new, shown):
    assert what_differs(old, new, 12) == shown
