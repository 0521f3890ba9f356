"""What is stored of experiences: verdicts move with their memories and are erased with them."""

import json
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Feedback
from memory_mcp.features.experience.advice import lower_bound
from memory_mcp.remember.merge import merge, undo
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import feedback, memories
from memory_mcp.store.erasure import erase
from memory_mcp.store.experience_text import Experience, read
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines


@pytest.fixture
def judged(nilou, say, now):
    """judged(text, *verdicts): a memory with these verdicts; returns it as stored."""

    def judged(text, *verdicts, query="苺はどこ", **fields):
        key = say(text, **fields).key

        def add(connection):
            memory = memories.by_keys(connection, [key])[key]
            feedback.add(connection, memory.id, [Feedback(verdict, now, f"run {n}", query) for n, verdict in enumerate(verdicts)])
            return memory

        return nilou.database.write(add)

    return judged


def counts_of(persona, memory):
    with persona.database.read() as connection:
        return dict(feedback.counts(connection, [memory.id]).get(memory.id, feedback.Counts()).times)


def exported(persona):
    return list(export_lines(persona, ExportOptions()))


def test_an_export_of_imported_verdicts_equals_them(judged, nilou, personas, now, zone):
    judged("苺のタルトが好き", "helped", "used", "worked")
    lines = exported(nilou)
    assert [entry["verdict"] for entry in json.loads(lines[0])["feedback"]] == ["helped", "used", "worked"]
    options = ImportOptions(now, zone, Privacy())
    result = import_lines(lambda: personas.writing("dori"), [(1, lines[0].encode())], options)
    assert result.stored == 1
    with personas.reading("dori") as dori:
        assert exported(dori) == lines


@pytest.mark.parametrize("entry", [{"verdict": "great", "at": "2025-10-30"}, {"verdict": "helped"}, {"verdict": "helped", "at": "noon"}])
def test_a_line_with_a_verdict_that_nobody_gave_is_refused(personas, now, zone, entry):
    line = json.dumps({"content": "苺", "feedback": [entry]}).encode()
    assert import_lines(lambda: personas.writing("dori"), [(1, line)], ImportOptions(now, zone, Privacy())).refused == 1


def test_verdicts_on_what_was_merged_count_for_what_stays_until_that_is_undone(judged, nilou, now):
    kept, merged = judged("苺のタルトが好き", "worked"), judged("苺のタルトが大好き", "worked", "failed")
    done = merge(nilou, [merged.key], kept.key, reason=None, now=now, privacy=Privacy())
    assert counts_of(nilou, kept) == {"worked": 2, "failed": 1}
    undo(nilou, done.operation_id, now=now)
    assert counts_of(nilou, kept) == {"worked": 1}


def test_nothing_is_left_of_the_verdicts_on_what_is_erased_and_of_queries_that_quote_it(judged, nilou, now):
    gone = judged("苺のタルトが好き", "helped", query="苺のタルト")
    kept, other = judged("旅行は秋", "helped", query="苺の季節の旅行"), judged("犬が好き", "hurt", query="どの犬")

    def erase_it(connection):
        memories.set_deleted(connection, gone.id, now)
        return erase(connection, [gone], now, "test")

    nilou.database.write(erase_it)
    with nilou.database.read() as connection:
        left = feedback.of_memories(connection, [gone.id, kept.id, other.id])
    assert {memory: one.query for memory, (one,) in left.items()} == {kept.id: "", other.id: "どの犬"}


def test_an_experience_that_is_revised_is_found_by_what_it_says_now(say, nilou, now):
    told = Experience("請求書を出す", when="月末", steps=("頼む",))
    key = say(told.text(), kind="experience", questions=list(told.matched_by)).key
    memory = revise(nilou, key, Revision(content=told.text().replace("請求書", "領収書")), now=now + timedelta(hours=1), privacy=Privacy())
    assert memory.questions == ("領収書を出す", "月末")
    memory = revise(nilou, key, Revision(revision=1), now=now + timedelta(hours=2), privacy=Privacy())
    assert memory.questions == ("請求書を出す", "月末")


@pytest.mark.parametrize(
    "said",
    [
        Experience(
            "DBを移す", when="夜", not_when="月末", strategy="sequential", steps=("写す\n\n  そして\n1. 数える", "消す"), lesson="遅い"
        ),
        Experience("Ship it", sign="Friday:\nevening", instead="- wait", severity=5, lesson="2. it broke"),
        Experience("Strategy: x", steps=("When: now \n then",)),
    ],
)
def test_an_experience_reads_as_it_was_written(said):
    assert read(said.text()) == said


def test_what_a_person_writes_by_hand_is_read_too():
    text = "## 請求書を出す\n使うとき： 月末\n\n- 頼む\n* 出す\nよく遅れる\n代わりに: 待つ\n重大さ: 9\n進め方: 並列で"
    assert read(text) == Experience(
        "請求書を出す", when="月末", steps=("頼む", "出す"), lesson="よく遅れる\n重大さ: 9", instead="待つ", strategy="parallel"
    )


def test_the_lower_bound_of_a_rate_is_wilsons():
    assert [round(lower_bound(worked, tried), 3) for worked, tried in ((0, 0), (1, 1), (2, 2), (18, 20), (0, 5))] == [
        0,
        0.207,
        0.342,
        0.699,
        0,
    ]


COFFEE, FORBIDDEN = "朝はコーヒー飲まないと動けない", "コーヒーは医者に止められた"


def found(ask, query):
    """What a search finds: text → the judgement that stands against it, best first."""
    return {hit.memory.content: hit.confirmation.judged for hit in ask(query).hits}


@pytest.mark.parametrize("verdict", ["stale", "hurt"])
def test_one_judgement_puts_a_memory_behind_what_else_answers_and_the_hit_says_so(judged, say, ask, verdict):
    say(FORBIDDEN)
    judged(COFFEE)
    assert [*found(ask, "コーヒー飲んでいいんだっけ")] == [COFFEE, FORBIDDEN]
    judged(COFFEE, verdict)
    assert [*found(ask, "コーヒー飲んでいいんだっけ").items()] == [(FORBIDDEN, None), (COFFEE, verdict)]


def test_what_was_judged_stale_is_still_found_where_nothing_else_answers(judged, say, ask):
    judged(COFFEE, "stale", "stale", "stale")
    say("犬の散歩は夕方")
    assert found(ask, "コーヒー飲んでいいんだっけ") == {COFFEE: "stale"}


def test_a_later_judgement_that_it_helps_or_a_revision_lifts_it_again(judged, say, ask, nilou, now):
    say(FORBIDDEN)
    judged(COFFEE, "stale", "helped")
    assert [*found(ask, "コーヒー飲んでいいんだっけ").items()] == [(COFFEE, None), (FORBIDDEN, None)]
    stale = judged(COFFEE, "stale")
    assert [*found(ask, "コーヒー飲んでいいんだっけ")] == [FORBIDDEN, COFFEE]
    text = "朝はコーヒー飲まないと動けない、デカフェだけど"
    revise(nilou, stale.key, Revision(content=text), now=now + timedelta(hours=1), privacy=Privacy())
    assert [*found(ask, "コーヒー飲んでいいんだっけ").items()] == [(text, None), (FORBIDDEN, None)]


def test_what_misled_once_and_helped_often_stays_where_it_was(judged, say, ask):
    say(FORBIDDEN)
    judged(COFFEE, "helped", "helped", "hurt")
    assert [*found(ask, "コーヒー飲んでいいんだっけ").items()] == [(COFFEE, None), (FORBIDDEN, None)]
