"""Summaries in the background: of sessions and days, made anew when their sources change, gone when those are."""

import json
from contextlib import nullcontext
from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Context, Privacy, Settings
from memory_mcp.domain import Draft, Filters
from memory_mcp.errors import ChatFailed
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.context import context
from memory_mcp.store import erasure, memories, summary_rows
from memory_mcp.store.summary_rows import Subject
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines
from memory_mcp.upkeep import retention_rules
from memory_mcp.upkeep.extractive_summary import CHARACTERS_LIMIT
from memory_mcp.upkeep.summarization import step

TALK = (
    "来週の京都旅行の宿を予約した。",
    "宿は金閣寺の近くの旅館だよ。",
    "旅館の夕食は18時からだって。",
    "京都駅には15時に着く予定。",
    "抹茶のアイスも食べたいな。",
    "おはよう！",
)

A_FEW = Settings(embeddings_model=None, reranker_model=None, summaries={"min_memories": 2})


class Writer:
    """A chat model that says what it is told to, or fails."""

    name = "fake:Chat"

    def __init__(self, answer="二人は京都へ行く。", failing=False):
        self.answer, self.failing, self.asked = answer, failing, []

    def ask(self, instructions, text, now):
        self.asked.append((instructions, text))
        if self.failing:
            raise ChatFailed("it could not be asked", "TimeoutError")
        return self.answer


@pytest.fixture
def talk(say):
    """A session of six turns; returns their keys."""

    def talk(session="s1", texts=TALK, **fields):
        return [say(text, session_id=session, source="健太", **fields).key for text in texts]

    return talk


@pytest.fixture
def work(nilou, now, settings):
    """Does all there is to do, some time later; returns the summaries outside the trash."""

    def work(hours=1.0, chat=None, under=settings):
        for _ in range(200):
            if not step(nilou, now + timedelta(hours=hours), under, chat):
                with nilou.database.read() as connection:
                    return memories.recent(connection, Filters(kind="summary"), 50)
        raise AssertionError("it never comes to an end")

    return work


def in_trash(nilou):
    return [row["key"] for row in map(json.loads, export_lines(nilou, ExportOptions(deleted=True))) if row.get("deleted_at")]


def test_a_summary_of_what_has_expired_is_withdrawn_with_it_and_made_again_without_it(talk, say, work, nilou, now):
    talk()
    say("金庫の番号は4711です。", session_id="s1", source="健太", expires_at="1d")
    assert "4711" in work()[0].content
    assert retention_rules.trash_expired(nilou, now + timedelta(days=1))
    with nilou.database.read() as connection:
        assert memories.recent(connection, Filters(kind="summary"), 50) == []
    assert "4711" not in work(hours=48)[0].content


def test_a_session_that_has_fallen_silent_is_summarised(talk, work, nilou):
    keys = talk()
    (summary,) = work()
    assert summary.kind == "summary"
    assert summary.session_id == "s1"
    assert summary.content.startswith("2025-10-30 · 健太 · 5件\n- 健太: ")
    assert "おはよう" not in summary.content
    assert len(summary.content) <= CHARACTERS_LIMIT
    assert summary.metadata == {"summary_of": "session", "subject": "s1", "made_by": "extractive"}
    with nilou.database.read() as connection:
        assert summary_rows.sources(connection, summary.key) == sorted(keys[:5])


def test_a_session_that_goes_on_is_not_summarised_yet(talk, work):
    talk()
    assert work(hours=0.4) == []


def test_a_day_is_summarised_when_it_is_over(talk, work):
    talk(session=None)
    assert work(hours=1) == []
    (summary,) = work(hours=13)
    assert summary.metadata["subject"] == "2025-10-30"


def test_a_day_begins_and_ends_where_its_people_live(say, work, now):
    for number in range(5):
        say(f"夜更かしの話{number}、ラジオを聞いた。", occurred_at="2025-10-29T23:50:00+09:00")
    (summary,) = work(hours=0)
    assert summary.metadata["subject"] == "2025-10-29"


def test_a_plan_belongs_to_the_conversation_and_the_day_on_which_it_was_made(talk, say, work, nilou, ask):
    talk()
    plan = say("由美: Claraを来週採用する。", session_id="s1", source="健太", occurred_at="2025-11-06").key
    about = say("2025-11-06 の予定の話をした。", session_id="s1", source="健太").key
    session, day = sorted(work(hours=24 * 9), key=lambda summary: summary.metadata["summary_of"], reverse=True)
    assert session.content.startswith("2025-10-30 · ")
    assert {session.event_time.date().isoformat(), day.event_time.date().isoformat()} == {"2025-10-30"}
    assert day.metadata["subject"] == "2025-10-30"
    with nilou.database.read() as connection:
        assert {plan, about} <= set(summary_rows.sources(connection, day.key))
        assert {moment.date().isoformat() for moment in memories.span(connection)} == {"2025-10-30"}


def test_a_day_takes_no_memory_of_another_day_that_names_it(talk, say, work, now):
    talk(session=None)
    say("2025-10-30 に健太と話した。", at=now + timedelta(days=2))
    (summary,) = work(hours=24 * 5)
    assert "5件" in summary.content


def test_a_summary_has_the_tags_of_what_its_text_contains(talk, work, nilou, personas, now, zone, settings):
    keys = talk(texts=("宿の電話は090-1234-5678だよ。", "連絡先は taro@example.com です。", *TALK))
    (summary,) = work()
    assert summary.tags == ("contains:email", "contains:phone")
    exported = list(export_lines(nilou))
    lines = [line.encode() for line in exported]
    import_lines(lambda: personas.writing("dori"), list(enumerate(lines, 1)), ImportOptions(now, zone, privacy=Privacy()))
    with personas.writing("dori") as dori:
        brought = {row["key"]: row for row in map(json.loads, export_lines(dori)) if "key" in row}
    assert brought[summary.key] == next(row for row in map(json.loads, exported) if row.get("key") == summary.key)
    for key in keys[:2]:
        forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    (summary,) = work(hours=2)
    assert summary.tags == ()


def test_too_little_is_not_summarised(talk, work):
    talk(texts=TALK[:4])
    assert work() == []


def test_nothing_is_done_twice_and_nothing_is_made_anew_without_reason(talk, work, nilou):
    talk()
    work()
    before = list(export_lines(nilou))
    work(hours=2)
    assert list(export_lines(nilou)) == before


def test_a_summary_is_made_anew_under_the_same_key_when_something_is_added(talk, say, work):
    talk()
    (first,) = work()
    say("帰りに嵐山にも寄ることにした。", session_id="s1", source="さくら")
    (second,) = work(hours=2)
    assert (second.key, second.revision) == (first.key, first.revision + 1)
    assert "さくら" in second.content
    assert "6件" in second.content


def test_what_is_forgotten_leaves_the_summary_at_once_and_the_next_one_is_without_it(talk, work, nilou, now):
    keys = talk()
    (first,) = work()
    forget(nilou, [keys[0]], reason=None, dry_run=False, now=now + timedelta(hours=2), privacy=Privacy())
    assert first.key in in_trash(nilou)
    (second,) = work(hours=4)
    assert second.key == first.key
    assert "予約した" not in second.content
    assert "4件" in second.content


def test_what_comes_back_from_the_trash_comes_back_into_the_summary(talk, work, nilou, now):
    keys = talk()
    (first,) = work()
    forget(nilou, [keys[0]], reason=None, dry_run=False, now=now + timedelta(hours=2), privacy=Privacy())
    work(hours=4)
    revise(nilou, keys[0], Revision(restore=True), now=now + timedelta(hours=5), privacy=Privacy())
    (third,) = work(hours=7)
    assert third.content == first.content


def test_a_summary_of_which_no_source_is_left_stays_in_the_trash(talk, work, nilou, now):
    keys = talk()
    (first,) = work()
    forget(nilou, keys, reason=None, dry_run=False, now=now + timedelta(hours=2), privacy=Privacy())
    assert work(hours=4) == []
    assert first.key in in_trash(nilou)


def test_a_summary_that_somebody_forgot_stays_forgotten_until_its_sources_change(talk, say, work, nilou, now):
    talk()
    (first,) = work()
    forget(nilou, [first.key], reason=None, dry_run=False, now=now + timedelta(hours=2), privacy=Privacy())
    assert work(hours=4) == []
    say("もう一泊することにした。", session_id="s1", at=now + timedelta(hours=5))
    assert [summary.key for summary in work(hours=7)] == [first.key]


def test_a_memory_that_was_replaced_is_in_no_new_summary(talk, say, work, now):
    keys = talk()
    work()
    say("夕食は19時に変わった。", session_id="s2", supersedes=keys[2], at=now + timedelta(hours=2))
    (summary,) = work(hours=4)
    assert "18時" not in summary.content


def test_a_purge_is_told_which_summaries_to_erase_and_the_next_ones_are_made_of_the_rest(talk, work, nilou):
    keys = talk()
    (first,) = work()

    def purge(connection):
        found = erasure.release_derived(connection, [keys[0]])
        for key in (*found, keys[0]):
            connection.execute("DELETE FROM memories WHERE key = ?", (key,))
        return found

    assert nilou.database.write(purge) == [first.key]
    (second,) = work(hours=4, under=A_FEW)
    assert second.key != first.key
    assert "予約した" not in second.content
    with nilou.database.read() as connection:
        assert keys[0] not in summary_rows.sources(connection, second.key)


def test_sources_are_never_changed(talk, work, nilou):
    talk()
    before = list(export_lines(nilou))
    work()
    assert list(export_lines(nilou))[: len(before)] == before


def test_a_chat_model_words_the_summary_in_the_language_of_the_memories(talk, work):
    talk()
    writer = Writer()
    (summary,) = work(chat=writer)
    assert summary.content == "2025-10-30 · 健太 · 5件\n二人は京都へ行く。"
    assert summary.metadata["made_by"] == "model"
    ((instructions, text),) = writer.asked
    assert "要約" in instructions
    assert text.split("\n")[0] == f"健太: {TALK[0]}"


def test_a_chat_model_is_asked_in_english_about_english(say, work):
    for number in range(5):
        say(f"We visited the museum number {number} in Vienna.", session_id="s1")
    writer = Writer("They went to museums.")
    work(chat=writer)
    assert writer.asked[0][0].startswith("Summarise")


def test_when_the_chat_model_fails_the_summary_is_made_without_it_and_says_so(talk, work):
    talk()
    (summary,) = work(chat=Writer(failing=True))
    assert "宿を予約した" in summary.content
    assert summary.metadata["made_by"] == "extractive, because the chat model failed"


def test_a_chat_model_that_talks_too_much_is_cut(talk, work):
    talk()
    (summary,) = work(chat=Writer("長い話です。" * 500))
    assert len(summary.content) <= CHARACTERS_LIMIT


def test_what_is_forgotten_while_the_chat_model_thinks_is_not_stored(talk, work, nilou, now):
    keys = talk()

    class Slow(Writer):
        def ask(self, instructions, text, at):
            if not self.asked:
                forget(nilou, [keys[0]], reason=None, dry_run=False, now=now, privacy=Privacy())
            return super().ask(instructions, text, at)

    (summary,) = work(chat=Slow(), under=A_FEW)
    assert "4件" in summary.content


def test_summaries_are_found_again_after_an_export_and_an_import(talk, work, nilou, personas, now, zone, settings):
    talk()
    (summary,) = work()
    lines = [line.encode() for line in export_lines(nilou)]
    import_lines(lambda: personas.writing("dori"), list(enumerate(lines, 1)), ImportOptions(now, zone, privacy=Privacy()))
    with personas.writing("dori") as dori:
        while step(dori, now + timedelta(hours=20), settings):
            pass
        rows = [json.loads(line) for line in export_lines(dori)]
        with dori.database.read() as connection:
            assert summary_rows.registered(connection, Subject("session", "s1")).key == summary.key
    assert [row["key"] for row in rows if row.get("kind") == "summary" and row.get("session_id") == "s1"] == [summary.key]


def test_an_imported_summary_leaves_when_anything_is_forgotten_before_its_sources_are_known(talk, work, nilou, personas, now, zone):
    keys = talk()
    (summary,) = work()
    lines = [line.encode() for line in export_lines(nilou)]
    import_lines(lambda: personas.writing("dori"), list(enumerate(lines, 1)), ImportOptions(now, zone, privacy=Privacy()))
    with personas.writing("dori") as dori:
        forget(dori, [keys[1]], reason=None, dry_run=False, now=now, privacy=Privacy())
        assert summary.key in in_trash(dori)


def test_searches_do_without_summaries_and_keys_find_them(talk, work, ask):
    talk()
    (summary,) = work()
    for query in ("京都旅行の宿を予約した", "最近どう？"):
        assert summary.key not in [hit.memory.key for hit in ask(query, top_k=20).hits]
    assert [hit.memory.key for hit in ask(kind="summary").hits] == [summary.key]
    assert [hit.memory.key for hit in ask(keys=[summary.key]).hits] == [summary.key]


def test_a_conversation_begins_with_what_says_something_and_with_summaries_of_different_things(talk, say, work, nilou, now, settings):
    talk()
    work(hours=13)
    for text in ("おはよう", "うん", "ありがとう！"):
        say(text, at=now + timedelta(hours=14))
    few = settings.model_copy(update={"context": Context(recent=1)})
    found = context(nilou, "", max_tokens=5_000, models=unloaded_models(few), settings=few, now=now + timedelta(hours=15))
    shown = [(layer, hit.memory.content) for layer, hit in found.hits]
    assert [layer for layer, _ in shown].count("summary") == 1
    assert not {"おはよう", "うん", "ありがとう！"} & {content for _, content in shown}
    assert ("upcoming", TALK[0]) in shown
    assert [layer for layer, _ in shown].count("recent") == 1


@pytest.mark.slow
def test_thousands_of_memories_are_taken_up_in_small_pieces(nilou, now, zone, settings):
    rows = [Draft(f"{number}番目の話、庭に{number}の花が咲いた。", session_id=f"s{number // 100}") for number in range(3_000)]
    remember_many(nilou, rows[:1], now=now, zone=zone, privacy=Privacy())
    step(nilou, now, settings)
    remember_many(nilou, rows[1:], now=now, zone=zone, privacy=Privacy())
    steps = 0
    while step(nilou, now + timedelta(hours=1), settings):
        steps += 1
    with nilou.database.read() as connection:
        assert len(memories.recent(connection, Filters(kind="summary"), 100)) == 30
    assert steps >= 33


def test_less_may_be_asked_of_a_session(talk, work):
    talk(texts=TALK[:2])
    assert len(work(under=A_FEW)) == 1


def test_what_is_corrected_leaves_the_summary_at_once_and_the_next_one_has_the_correction(talk, work, nilou, now):
    keys = talk()
    (first,) = work()
    revise(nilou, keys[0], Revision(content="来月の奈良旅行の宿を予約した。"), now=now + timedelta(hours=2), privacy=Privacy())
    assert first.key in in_trash(nilou)
    (second,) = work(hours=4)
    assert "来週" not in second.content
    assert "奈良" in second.content


def test_what_is_secret_is_in_no_summary_and_leaves_one_when_it_becomes_so(talk, say, work, nilou, now):
    keys = talk()
    say("金庫の番号は右に三回と左に二回だ。", session_id="s1", source="健太", privacy_level="secret")
    (first,) = work()
    assert "金庫" not in first.content
    revise(nilou, keys[0], Revision(privacy_level="secret"), now=now + timedelta(hours=2), privacy=Privacy())
    assert first.key in in_trash(nilou)
    (second,) = work(hours=4)
    assert "予約した" not in second.content


def test_a_summary_of_something_private_is_private_and_no_chat_model_hears_of_it(talk, say, work):
    talk()
    say("本当は転職を考えている。", session_id="s1", source="健太", privacy_level="private")
    writer = Writer()
    (summary,) = work(chat=writer)
    assert summary.privacy_level == "private"
    assert summary.metadata["made_by"] == "extractive"
    assert writer.asked == []


def test_a_second_summary_of_the_same_day_goes_into_the_trash(talk, work, nilou, now, zone):
    talk()
    (first,) = work()
    twin = Draft("別の要約", kind="summary", session_id="s1", metadata=dict(first.metadata))
    remember_many(nilou, [twin], now=now, zone=zone, privacy=Privacy())
    assert [summary.key for summary in work(hours=4)] == [first.key]


def test_days_at_the_ends_of_time_and_summaries_of_no_day_keep_nobody_from_their_summaries(talk, work, nilou, now, zone):
    talk()
    ends = ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"]
    rows = [
        {"content": f"{number}番目の終わりの話だ。", "created_at": end, "occurred_at": end, "session_id": "終わり"}
        for end in ends
        for number in range(5)
    ]
    rows += [
        {"content": "どの日でもない", "kind": "summary", "key": f"k{number}", "metadata": {"summary_of": "day", "subject": subject}}
        for number, subject in enumerate(["x", "9999-12-31", "20251030", "0001-01-01", ""])
    ]
    lines = [(number, json.dumps(row).encode()) for number, row in enumerate(rows, 1)]
    assert import_lines(lambda: nullcontext(nilou), lines, ImportOptions(now, zone, privacy=Privacy())).refused == 0
    work(hours=14)
    assert {"s1", "終わり"} <= {summary.session_id for summary in work(hours=15)}


@pytest.mark.slow
def test_of_a_very_full_day_the_latest_are_summarised_and_it_says_so(nilou, now, zone, work):
    rows = [Draft(f"{number}冊目の本には海の話が書いてあった。" * 20, occurred_at=now) for number in range(600)]
    remember_many(nilou, rows, now=now, zone=zone, privacy=Privacy())
    (summary,) = work(hours=14)
    assert "500件以上" in summary.content


TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_a_summary_says_nothing_private_and_a_chat_model_is_not_told_any(talk, say, work, nilou):
    talk()
    key = say("あの鍵のことを話した。", session_id="s1").key
    # As it was stored before there were rules.
    nilou.database.write(
        lambda connection: connection.execute("UPDATE memories SET content = ? WHERE key = ?", (f"鍵は{TOKEN}だと話した。", key))
    )
    writer = Writer(answer=f"合言葉は{TOKEN}、連絡は taro@example.com へ。")
    strict = A_FEW.model_copy(update={"privacy": Privacy(email="redact")})
    (summary,) = work(chat=writer, under=strict)
    assert TOKEN not in summary.content
    assert "taro@example.com" not in summary.content
    assert "[REDACTED_API_KEY]" in summary.content
    ((_, asked),) = writer.asked
    assert "あの鍵" not in asked
    assert TOKEN not in asked
