"""What remember answers of current memories near to the new one, and how a link between two is taken back."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.search import related as search_for_related
from memory_mcp.server.answer_text import answer_text
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)

TOLD = [
    "メッセージングはKafkaで行く方針。",
    "陶芸教室は毎週水曜の夜七時から。先生は白洲さん。",
    "むぎはチキン味のカリカリしか食べない。",
    "12月19日と20日は、朔と下呂温泉に泊まる予定。",
    "靴のサイズは23.5センチ。幅が広いので、細い靴は足が痛くなる。",
    "祖母は小松のグループホームで暮らしている。",
]


@pytest.fixture
def keys(persona):
    return {text: persona("remember", content=text)["key"] for text in TOLD}


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("むぎがチキン味に飽きた。まぐろ味に替えたら完食。", TOLD[2]),
        ("下呂はやめて、和倉温泉に泊まることにした。", TOLD[3]),
        ("陶芸教室は今月から土曜の午後二時になった。", TOLD[1]),
    ],
)
def test_remember_names_current_memories_about_the_same(persona, keys, text, near):
    answer = persona("remember", content=text)
    assert answer["related"][0]["key"] == keys[near]
    assert len(answer["related"]) <= search_for_related.RELATED_LIMIT
    assert all(len(memory["content"]) <= 40 for memory in answer["related"])
    assert estimate_tokens(json.dumps(answer["related"], ensure_ascii=False)) <= 120
    assert f"related {keys[near]}" in answer_text(answer)


def test_what_is_near_to_nothing_has_nothing_related(persona, keys):
    assert "related" not in persona("remember", content="窓を青く塗った")


def test_related_never_names_what_similar_names_nor_what_is_replaced(persona, keys):
    similar = persona("remember", content="メッセージングはKafkaで行く方針です。")
    assert [memory["key"] for memory in similar["similar"]] == [keys[TOLD[0]]]
    assert keys[TOLD[0]] not in [memory["key"] for memory in similar.get("related", [])]
    new = persona("remember", content="メッセージングはNATSで行く", supersedes=keys[TOLD[0]])
    later = persona("remember", content="メッセージングのNATSは三台で動かす")
    named = [memory["key"] for memory in later["related"]]
    assert new["key"] in named
    assert keys[TOLD[0]] not in named


def test_a_call_again_with_supersedes_replaces_a_related_memory(persona, keys):
    text = "陶芸教室は今月から土曜の午後二時になった。"
    first = persona("remember", content=text)
    again = persona("remember", content=text, supersedes=first["related"][0]["key"])
    assert (again["key"], again["stored"]) == (first["key"], False)
    (hit,) = persona("recall", query="陶芸教室はいつ？", top_k=1)["hits"]
    assert (hit["key"], hit["supersedes"]) == (first["key"], keys[TOLD[1]])
    assert keys[TOLD[1]] not in [hit["key"] for hit in persona("recall", query="陶芸教室はいつ？")["hits"]]


def test_another_persona_and_an_import_have_nothing_related(server, persona, keys, connect, http, name):
    assert "related" not in connect(server, f"{name}-other")("remember", content="むぎがチキン味に飽きた")
    line = json.dumps({"content": "むぎがチキン味に飽きた", "key": "imported"}, ensure_ascii=False)
    assert "related" not in http.post("/api/import", content=line, headers={"X-Persona": name}).json()


def test_a_token_that_may_not_read_learns_nothing(own_server, own_http):
    def token(scopes):
        return create_token(own_server.data, name="", personas=("nilou",), scopes=scopes, now=NOON, expires_at=None)[1]

    full, blind = token(TOKEN_SCOPES), token([scope for scope in TOKEN_SCOPES if scope != "read"])

    def store(secret, content):
        headers = {"Authorization": f"Bearer {secret}"}
        return own_http.post("/api/memories", json={"content": content}, headers=headers).json()

    store(full, TOLD[2])
    assert "related" not in store(blind, "むぎがチキン味に飽きた。")
    assert store(full, "むぎがチキン味を残した。")["related"]


def test_what_goes_wrong_in_the_search_fails_no_write(persona, keys, monkeypatch):
    monkeypatch.setattr(search_for_related, "SEARCH_SECONDS", 0.0)
    answer = persona("remember", content="むぎがチキン味に飽きた。")
    assert answer["stored"] is True
    assert "related" not in answer


def test_fifty_writes_at_once_are_all_stored_and_answered(server, connect, http, name):
    headers = {"X-Persona": name}
    texts = [f"むぎの{number}回目の健康診断は{number}月" for number in range(1, 51)]
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda text: http.post("/api/memories", json={"content": text}, headers=headers, timeout=60), texts))
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["stored"] for answer in answers)
    assert (
        http.get("/api/recall", params={"query": "むぎの7回目の健康診断", "top_k": 1}, headers=headers).json()["hits"][0]["content"]
        == texts[6]
    )


def test_a_pool_has_its_own_related_memories_named_as_personas_know_them(serving, tmp_path, connect):
    pool = "旅の支度のことを皆で話し合うためのとても長い名前の集まり"
    with serving(tmp_path, pools={pool: {"writers": ["nilou", "other"]}}) as own:
        writer, other = connect(own, "nilou"), connect(own, "other")
        for text in (TOLD[3], "12月20日の朝は下呂の朝市に寄る", "下呂温泉の宿は水明館"):
            writer("remember", content=text, pool=pool)
        writer("remember", content="下呂には犬を連れて行かない")
        answer = other("remember", content="下呂はやめて、和倉温泉に泊まることにした。", pool=pool)
        assert answer["related"]
        assert estimate_tokens(json.dumps(answer["related"], ensure_ascii=False)) <= 120
        known = {hit["key"]: hit["content"] for hit in other("recall", keys=[memory["key"] for memory in answer["related"]])["hits"]}
        assert set(known) == {memory["key"] for memory in answer["related"]}
        assert "下呂には犬を連れて行かない" not in known.values()
        assert "related" not in other("remember", content="下呂温泉の宿の水明館を予約した")


def test_a_link_is_taken_back_over_http_and_in_the_dashboard(persona, http, server, name):
    old = persona("remember", content="プリウスに乗ってる")["key"]
    new = persona("remember", content="プリウスを手放してヤリスを買った")["key"]
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, NOON):
            pass
    headers = {"X-Persona": name}

    def links():
        answer = http.get("/api/graph/memory-links", params={"key": new, "types": ["newer"]}, headers=headers).json()
        return [(link["direction"], link["memory"]["key"], link["method"]) for link in answer["links"]]

    hits = persona("recall", query="何に乗ってる？")["hits"]
    assert [(hit["key"], hit.get("superseded_by")) for hit in hits] == [(new, None), (old, new)]
    assert f"replaced by {new}" in answer_text({"hits": hits})
    assert links() == [("to", old, "rule")]
    pair = http.get("/api/organize", headers=headers).json()["contradictions"]
    assert [[(memory["key"], memory.get("outdated_by")) for memory in memories] for memories in pair] == [[(old, new), (new, None)]]
    taken_back = http.post("/api/organize/unlink", json={"newer": new, "earlier": old}, headers=headers)
    assert (taken_back.status_code, taken_back.json()["method"]) == (200, "rule")
    assert links() == []
    again = http.post("/api/organize/unlink", json={"newer": new, "earlier": old}, headers=headers)
    assert (again.status_code, "is not linked as newer than" in again.json()["error"]) == (404, True)
    assert [hit["key"] for hit in persona("recall", query="何に乗ってる？")["hits"]] == [old]
