"""What a chat model reads in memories: only what stands there, marked as its own finding, and nothing private is shown to it."""

import json
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Llm, Privacy, Settings
from memory_mcp.errors import ChatFailed
from memory_mcp.features.graph.llm_extraction import parse_answer, step
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.llm.chat import Chat
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store.graph import consistency
from memory_mcp.store.graph.schema import ENTITY_TYPE_NAMES

FAKE = "langchain_core.language_models.fake_chat_models:FakeListChatModel"
ANSWER = {
    "entities": [{"name": "ダイズ", "type": "object"}, {"name": "みどり", "type": "Person"}],
    "relations": [{"source": "みどり", "type": "walks", "target": "ダイズ", "confidence": 0.7}],
}


class Model:
    """Answers each question with the next of its answers, and remembers what it was asked; None: it fails."""

    name = "fake:Chat"

    def __init__(self, *answers):
        self.answers, self.asked = [*answers], []

    def ask(self, instructions, text, now):
        self.asked.append((instructions, text))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ChatFailed("it could not be asked", "TimeoutError")
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


@pytest.fixture
def read(nilou, now, settings):
    """Has everything read that waits."""

    def read(model, under=settings):
        for _ in range(100):
            while update_graph(nilou, now):
                pass
            if not step(nilou, now, under, model):
                return
        raise AssertionError("it never comes to an end")

    return read


def found_by_model(persona):
    with persona.database.read() as connection:
        names = connection.execute(
            "SELECT e.name, e.type, em.start, em.confidence FROM entity_mentions em JOIN entities e ON e.id = em.entity "
            "WHERE em.method = 'model' ORDER BY em.start"
        ).fetchall()
        related = connection.execute(
            "SELECT s.name, r.type, t.name, r.confidence, r.method FROM relations r JOIN entities s ON s.id = r.source "
            "JOIN entities t ON t.id = r.target WHERE r.method = 'model'"
        ).fetchall()
    return names, related


def test_what_a_model_reads_is_in_the_graph_as_its_finding(say, read, nilou):
    say("夕方みどりがダイズと散歩に出た")
    model = Model("はい、こちらです。\n```json\n" + json.dumps(ANSWER, ensure_ascii=False) + "\n```")
    read(model)
    names, related = found_by_model(nilou)
    assert [row[:2] for row in names] == [("みどり", "Person"), ("ダイズ", "Object")]
    assert {row[3] for row in names} == {0.8}
    assert related == [("みどり", "walks", "ダイズ", 0.7, "model")]
    read(model)
    assert len(model.asked) == 1


def test_the_chat_model_of_the_configuration_is_asked(say, read, nilou):
    say("夕方みどりがダイズと散歩に出た")
    chat = Chat(lambda: Llm(chat_class=FAKE, arguments={"responses": [json.dumps(ANSWER, ensure_ascii=False)]}))
    read(chat)
    chat.close()
    assert found_by_model(nilou)[1]


@pytest.mark.parametrize("level", ["private", "secret"])
def test_what_is_private_or_secret_is_never_shown_to_a_model(say, read, level):
    say("夕方みどりがダイズと散歩に出た", privacy_level=level)
    say("ありがとう！")
    model = Model(ANSWER)
    read(model)
    assert model.asked == []


def test_what_the_rules_of_privacy_take_out_is_not_shown_either(say, read, nilou):
    say("みどりの番号は 090-1234-5678 です")
    strict = Settings(embeddings_model=None, reranker_model=None, privacy={"phone": "redact"})
    model = Model({"entities": [{"name": "090-1234-5678", "type": "Object"}]})
    read(model, under=strict)
    ((_, text),) = model.asked
    assert "1234" not in text
    assert found_by_model(nilou)[0] == []


def test_what_does_not_stand_in_the_text_is_not_taken(say, read, nilou):
    say("夕方みどりがダイズと散歩に出た")
    made_up = {
        "entities": [{"name": "太郎", "type": "Person"}],
        "relations": [{"source": "みどり", "type": "loves", "target": "太郎"}, {"source": "みどり", "type": "みどり"}],
    }
    read(Model(made_up))
    assert found_by_model(nilou) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "わかりません。",
        "{",
        "[1, 2]",
        '{"entities": "みどり"}',
        '{"entities": [["みどり"]], "relations": {"a": 1}}',
        '{"entities": [{"name": 5}], "relations": [{"source": "みどり", "target": null, "type": "x"}]}',
        '{"relations": [{"source": "みどり", "target": "ダイズ", "type": "> >"}]}',
        '{"relations": [{"source": "みどり", "target": "みどり", "type": "walks"}]}',
        '{"a": ' * 3_000,
    ],
)
def test_an_answer_that_can_not_be_used_says_nothing(answer):
    read = parse_answer(answer, "夕方みどりがダイズと散歩に出た", ENTITY_TYPE_NAMES)
    assert (read.entities, read.relations) == ((), ())


@pytest.mark.parametrize(
    ("said", "taken"), [(0.7, 0.7), (1, 0.8), (0, 0.6), (-1, 0.6), ("high", 0.6), (True, 0.6), (None, 0.6), (1e9, 0.6)]
)
def test_a_model_is_believed_no_more_than_a_model_may_be(said, taken):
    row = {"source": "みどり", "type": "goes with", "target": "ダイズ", "confidence": said}
    read = parse_answer(json.dumps({"relations": [row]}), "みどりがダイズと", ENTITY_TYPE_NAMES)
    assert read.relations == (("みどり", "goes_with", "ダイズ", taken),)
    assert [name for name, _ in read.entities] == ["みどり", "ダイズ"]


def test_a_model_that_fails_is_asked_again_later_and_about_another_memory_first(say, nilou, now, settings):
    say("夕方みどりがダイズと散歩に出た")
    say("みどりは雨の日に出かけない")
    model = Model(None, ANSWER, ANSWER)
    while update_graph(nilou, now):
        pass
    with pytest.raises(ChatFailed):
        step(nilou, now, settings, model)
    assert found_by_model(nilou) == ([], [])
    while step(nilou, now + timedelta(hours=1), settings, model):
        pass
    assert [text for _, text in model.asked] == [
        "みどりは雨の日に出かけない",
        "夕方みどりがダイズと散歩に出た",
        "みどりは雨の日に出かけない",
    ]
    assert found_by_model(nilou)[1]


def test_a_changed_memory_is_read_again_and_what_was_read_before_goes(say, read, nilou, now):
    key = say("夕方みどりがダイズと散歩に出た").key
    model = Model(ANSWER)
    read(model)
    revise(nilou, key, Revision(content="夕方みどりは家にいた"), now=now, privacy=Privacy())
    read(model)
    assert len(model.asked) == 2
    names, related = found_by_model(nilou)
    assert [row[0] for row in names] + related == []  # みどり is known by now, and needs no model
    with nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM entity_mentions WHERE method = 'known'").get == 1


def test_a_new_name_makes_older_memories_be_read_for_names_and_no_model_be_asked_again(say, read, nilou):
    say("夕方みどりがダイズとポチと散歩に出た")
    model = Model(ANSWER, {"entities": []})
    read(model)
    say("[[ポチ|Object]]も犬")
    read(model)
    assert len(model.asked) == 2
    assert found_by_model(nilou)[1] == [("みどり", "walks", "ダイズ", 0.7, "model")]


def test_what_is_forgotten_while_the_model_thinks_leaves_nothing(say, read, nilou, now):
    key = say("夕方みどりがダイズと散歩に出た").key

    class Slow(Model):
        def ask(self, instructions, text, now):
            revise(nilou, key, Revision(content="何もなかった日のこと", privacy_level="secret"), now=now, privacy=Privacy())
            return super().ask(instructions, text, now)

    read(Slow(ANSWER))
    assert found_by_model(nilou) == ([], [])


def test_evidence_of_a_model_goes_into_the_trash_with_its_memory(say, read, nilou, now):
    key = say("夕方みどりがダイズと散歩に出た").key
    read(Model(ANSWER))
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert found_by_model(nilou)[1] == []


def test_a_name_within_another_is_named_where_it_stands_alone_and_else_nobody_s(say, read, nilou):
    say("緑川ハナの店で買った。ハナは元気だ")
    read(Model({"entities": [{"name": name, "type": "Person"} for name in ("ハナ", "緑川ハナ", "緑川")]}))
    assert [row[:3] for row in found_by_model(nilou)[0]] == [("緑川ハナ", "Person", 0), ("ハナ", "Person", 11)]
    with nilou.database.read() as connection:
        assert consistency.orphans(connection, 10) == ([], 0)
