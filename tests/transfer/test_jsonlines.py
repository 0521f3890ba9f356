"""Import and export of JSON lines: nothing is lost or doubled on the way, and a bad line takes no good one with it."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Clash, Remembered
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.transfer import jsonlines
from memory_mcp.transfer.jsonlines import (
    ERRORS_LISTED,
    EXPORT_PAGE,
    ExportOptions,
    ImportOptions,
    ImportResult,
    Refusal,
    export_lines,
    import_lines,
)
from memory_mcp.upkeep import purge

Say = Callable[..., Remembered]
Read = Callable[..., ImportResult]


@pytest.fixture
def read(nilou: Persona, now: datetime, zone: ZoneInfo) -> Read:
    """Imports lines, numbered from 1; one that is an object is written as JSON first."""

    def read(*lines: bytes | dict[str, Any], into: Persona = nilou, at: datetime = now) -> ImportResult:
        raw = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
        return import_lines(lambda: nullcontext(into), list(enumerate(raw, start=1)), ImportOptions(at, zone, privacy=Privacy()))

    return read


def exported(persona: Persona) -> list[str]:
    return list(export_lines(persona, ExportOptions(deleted=True)))


@pytest.fixture
def eventful(nilou: Persona, say: Say, read: Read, now: datetime) -> Persona:
    """A persona with a memory of every kind and in every condition."""
    say("ナヒダは抹茶ラテが好き", tags=["好み", "飲み物"], source="旅人", importance=0.9, questions=["何が好き？"])
    say("うん、明日ね", session_id="夕食", source="nilou", occurred_at="2025-10-17", state={"emotion": "嬉しい"})
    old = say("住まいはスメール", occurred_at="2024-04-01T09:30:00+09:00")
    say("住まいはフォンテーヌに移った", supersedes=old.key)
    wrong = say("誕生日は十月")
    revise(
        nilou,
        wrong.key,
        Revision(content="誕生日は九月\u2028たぶん", tags=("誕生日",), importance=0.7),
        now=now + timedelta(hours=1),
        privacy=Privacy(),
    )
    gone = say("忘れてほしいこと")
    forget(nilou, [gone.key], reason=None, dry_run=False, now=now + timedelta(days=1), privacy=Privacy())
    read(
        {"key": "summary_2025w43", "kind": "summary", "content": "一週間のまとめ", "usage_count": 3, "last_used_at": "2025-10-29T00:00:00Z"}
    )
    return nilou


def test_a_memory_is_known_under_a_key_that_it_had_formerly(nilou: Persona, read: Read, now: datetime) -> None:
    read({"key": "old", "content": "塩は毒。"}, {"key": "other", "content": "苺。"})
    forget(nilou, ["other"], reason=None, dry_run=False, now=now, privacy=Privacy())
    purge.erase(nilou, ["other"], rule="asked for", now=now)
    lines = [
        {"key": "new", "former_keys": ["older", "old"], "content": "塩は毒。"},
        {"key": "another", "former_keys": ["other"], "content": "苺。"},
    ]
    result = read(*lines)
    assert (result.stored, result.already_known, result.refused) == (0, 1, 1)
    assert [json.loads(line)["key"] for line in exported(nilou)] == ["old"]
    assert read({"key": "new", "former_keys": ["older"], "content": "砂糖。"}).stored == 1


def test_a_message_that_was_edited_in_its_program_revises_its_memory(nilou: Persona, now: datetime, zone: ZoneInfo) -> None:
    def read(text: str, edited: str | None, *, at: datetime = now, clash: Clash = "keep") -> tuple[str, int]:
        origin = {"format": "discord", **({"edited_at": edited} if edited else {})}
        line = json.dumps({"key": "m", "content": text, "metadata": {"origin": origin}}).encode()
        options = ImportOptions(at, zone, privacy=Privacy(), clash=clash)
        result = import_lines(lambda: nullcontext(nilou), [(1, line)], options)
        assert result.refused == 0
        row = json.loads(exported(nilou)[0])
        return row["content"], row.get("revision", 1)

    assert read("宿は伏見", None) == ("宿は伏見", 1)
    assert read("宿は別", None) == ("宿は伏見", 1)  # not edited: an importer reads it otherwise
    assert read("宿は南禅寺", "2025-10-29T10:00:00+09:00") == ("宿は南禅寺", 2)
    assert read("宿は伏見", None) == ("宿は南禅寺", 2)  # an older export
    assert read("宿は二条", "2025-10-29T09:00:00+09:00", at=now + timedelta(days=1)) == ("宿は南禅寺", 2)
    assert read("宿は三条", (now + timedelta(hours=1)).isoformat(), at=now + timedelta(days=1)) == ("宿は三条", 3)
    assert read("宿は四条", "no time", at=now + timedelta(days=2)) == ("宿は三条", 3)
    versions = [json.loads(line).get("content") for line in export_lines(nilou, ExportOptions(versions=True))]
    assert versions == ["宿は三条", "宿は伏見", "宿は南禅寺"]


def test_an_export_read_into_a_new_persona_exports_the_same_again(eventful: Persona, personas: Personas, read: Read) -> None:
    first = exported(eventful)
    with personas.writing("さくら") as sakura:
        result = read(*(line.encode() for line in first), into=sakura, at=datetime.fromisoformat("2026-01-01T00:00:00Z"))
        assert result == ImportResult(stored=7)
        assert exported(sakura) == first


def test_an_export_without_the_trash_is_readable_too(eventful: Persona, personas: Personas, read: Read) -> None:
    first = list(export_lines(eventful))
    assert not any("忘れてほしい" in line for line in first)
    with personas.writing("さくら") as sakura:
        assert read(*(line.encode() for line in first), into=sakura).stored == 6
        assert list(export_lines(sakura)) == first


def test_an_export_says_only_what_is_set_in_a_fixed_order(nilou: Persona, say: Say) -> None:
    key = say("猫を飼っている").key
    time = "2025-10-30T03:00:00.000000+00:00"
    plain = {"content": "猫を飼っている", "created_at": time, "updated_at": time, "importance": 0.5, "kind": "fact", "revision": 1}
    plain |= {"privacy_level": "internal"}
    assert exported(nilou) == [json.dumps({"key": key, **plain}, ensure_ascii=False)]


def test_a_restored_memory_keeps_its_neighbours_and_what_it_replaced(eventful: Persona, personas: Personas, read: Read) -> None:
    with personas.writing("さくら") as sakura:
        read(*(line.encode() for line in exported(eventful)), into=sakura)
        with sakura.database.read() as connection:
            replaced = jsonlines.memories.page_for_export(connection, 0, 100, True)[2]
        assert replaced.content == "住まいはスメール"
        assert replaced.superseded_by is not None


def test_reading_an_export_back_into_its_own_persona_stores_nothing(eventful: Persona, read: Read) -> None:
    lines = exported(eventful)
    assert read(*(line.encode() for line in lines)) == ImportResult(already_known=7)
    assert exported(eventful) == lines


def test_lines_without_any_time_are_known_the_next_day_as_well(nilou: Persona, read: Read, now: datetime) -> None:
    lines = [{"content": "犬が好き"}, {"content": "犬が好き", "source": "旅人"}]
    assert read(*lines) == ImportResult(stored=2)
    assert read(*lines, at=now + timedelta(days=1)) == ImportResult(already_known=2)
    assert len(exported(nilou)) == 2


def test_an_imported_memory_is_found_by_its_words(read: Read, ask: Callable[..., Any]) -> None:
    read({"content": "京都で夕飯に湯豆腐を食べた", "occurred_at": "昨日"})
    assert [hit.memory.content for hit in ask("京都の夕飯").hits] == ["京都で夕飯に湯豆腐を食べた"]


def test_a_time_without_an_offset_is_local(nilou: Persona, read: Read) -> None:
    read({"content": "朝の散歩", "created_at": "2025-10-01T07:00:00", "occurred_at": "2025-10-01T06:00"})
    row = json.loads(exported(nilou)[0])
    assert (row["created_at"], row["occurred_at"]) == ("2025-09-30T22:00:00.000000+00:00", "2025-09-30T21:00:00.000000+00:00")


def test_a_bad_line_is_refused_by_its_number_and_the_rest_is_stored(nilou: Persona, read: Read) -> None:
    result = read({"content": "一"}, b"", b"  \r", b"{oops", {"content": "二"}, {"contnt": "三"}, {"content": "四"})
    assert (result.stored, result.refused) == (3, 2)
    assert [refusal.line for refusal in result.errors] == [4, 6]
    assert [json.loads(line)["content"] for line in exported(nilou)] == ["一", "二", "四"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff\xfe{}", "not UTF-8"),
        ('{"content": "海老アレルギー"}'.encode("cp932"), "not UTF-8: byte 14 is invalid, it seems to be Shift_JIS (CP932). Save"),
        (b"{", "not JSON"),
        (b'{"content": "a"} {"content": "b"}', "not JSON"),
        (b'["content"]', "the line is a list"),
        (b"null", "the line is null"),
        (b"[" * 100_000, "can't be read"),
        (b'{"content": "a", "importance": ' + b"9" * 5_000 + b"}", "can't be read"),
        (b"{}", "content is missing"),
        (b'{"content": null}', "content is missing"),
        (b'{"content": " \\n"}', "content is empty"),
        (b'{"content": 7}', "content is a number: it must be a string"),
        (b'{"content": "a\\u0000b"}', "NUL"),
        (b'{"content": "\\ud83d"}', "surrogate"),
        (b'{"content": "a", "tag": ["b"]}', "unknown field 'tag': a similar field is 'tags'"),
        (b'{"content": "a", "xyzzy": 1}', "known fields are key, content"),
        (
            b'{"content": "a", "persona": "nilou"}',
            "unknown field 'persona': lines go to the persona that --persona, the address or the header",
        ),
        (b'{"content": "a", "tags": 7}', "tags is a number: it must be a list of strings, or one string with commas"),
        (b'{"content": "a", "tags": [1]}', "list of strings"),
        (b'{"content": "a", "state": {"emotion": 1}}', "object of strings"),
        (b'{"content": "a", "state": {"mood": "b"}}', "unknown field 'mood'"),
        (b'{"content": "a", "importance": true}', "a number from 0 to 1"),
        (b'{"content": "a", "importance": 1.5}', "from 0 to 1"),
        (b'{"content": "a", "importance": NaN}', "from 0 to 1"),
        (b'{"content": "a", "importance": ' + b"9" * 400 + b"}", "from 0 to 1"),
        (b'{"content": "a", "kind": "dream"}', "kind is 'dream'"),
        (b'{"content": "a", "kind": "summary"}', "summaries are written by the server"),
        (b'{"content": "a", "occurred_at": "2025-02-31"}', "no date"),
        (b'{"content": "a", "created_at": "yesterday"}', "created_at is 'yesterday': it is not an ISO time"),
        (b'{"content": "a", "updated_at": "0001-01-01T00:00:00+09:00"}', "not an ISO time"),
        (b'{"content": "a", "revision": 0}', "revision is out of range"),
        (b'{"content": "a", "revision": 1.0}', "a whole number"),
        (b'{"content": "a", "usage_count": 99999999999999999999}', "usage_count is out of range"),
        (b'{"content": "a", "key": ""}', "key is blank"),
        (b'{"content": "a", "key": "k\\u0000"}', "NUL"),
        (b'{"content": "a", "supersedes": "memory_nowhere"}', "memory_nowhere"),
    ],
)
def test_a_line_is_refused_with_what_is_wrong_with_it(nilou: Persona, read: Read, line: bytes, reason: str) -> None:
    result = read(line)
    assert (result.stored, result.refused) == (0, 1)
    assert reason in result.errors[0].reason
    assert exported(nilou) == []


@pytest.mark.parametrize("tags", ["果物, 好み", "果物、好み，果物"])
def test_tags_may_be_written_as_one_string(nilou: Persona, read: Read, tags: str) -> None:
    assert read({"content": "苺が好き", "tags": tags}).stored == 1
    (line,) = export_lines(nilou)
    assert json.loads(line)["tags"] == ["果物", "好み"]


def test_a_byte_order_mark_before_the_first_line_does_no_harm(read: Read) -> None:
    assert read(b"\xef\xbb\xbf" + b'{"content": "a"}') == ImportResult(stored=1)


def test_a_key_that_another_memory_has_is_refused(read: Read) -> None:
    result = read({"key": "k", "content": "一"}, {"key": "k", "content": "一"}, {"key": "k", "content": "二"})
    assert (result.stored, result.already_known, result.refused) == (1, 1, 1)
    assert "the key k is taken" in result.errors[0].reason


def test_refused_lines_are_told_in_their_order(read: Read) -> None:
    result = read({"content": "a", "supersedes": "nowhere"}, b"?", {"content": "b", "supersedes": "nowhere"})
    assert [refusal.line for refusal in result.errors] == [1, 2, 3]


def test_results_of_batches_add_up_and_list_a_bounded_number_of_errors() -> None:
    many = ImportResult(refused=ERRORS_LISTED, errors=tuple(Refusal(line, "no") for line in range(1, ERRORS_LISTED + 1)))
    total = many + ImportResult(stored=1, already_known=2, refused=1, errors=(Refusal(ERRORS_LISTED + 1, "no"),))
    assert replace(total, errors=()) == ImportResult(1, 2, ERRORS_LISTED + 1)
    assert total.errors == many.errors


def test_what_is_written_during_an_export_neither_doubles_nor_hides_a_memory(nilou: Persona, read: Read) -> None:
    expected = [f"記憶{number}" for number in range(EXPORT_PAGE * 2 + 1)]
    read(*({"content": content} for content in expected))
    seen = []
    for place, line in enumerate(export_lines(nilou)):
        seen.append(json.loads(line)["content"])
        if place == EXPORT_PAGE - 1:
            forget(
                nilou,
                [json.loads(line)["key"]],
                reason=None,
                dry_run=False,
                now=datetime.fromisoformat("2025-11-01T00:00:00Z"),
                privacy=Privacy(),
            )
            read({"content": "途中で書かれた"})
    assert seen == [*expected, "途中で書かれた"]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1).filter(str.strip))
def test_any_text_that_can_be_stored_comes_out_as_it_went_in(nilou: Persona, read: Read, content: str) -> None:
    read({"content": content})
    assert content in [json.loads(line)["content"] for line in exported(nilou)]


def test_what_a_memory_states_moves_with_it(nilou: Persona, say: Say, personas: Personas, read: Read) -> None:
    say("駅で会った", relations=["渋谷駅 > relates_to > 田中", "田中|Person > works_on > プロジェクトA"])
    say("山田の話", relations=["佐藤 > likes > 山田"])
    first = exported(nilou)
    assert json.loads(first[0])["relations"] == [
        "渋谷駅|Location > relates_to > 田中|Person",
        "田中|Person > works_on > プロジェクトA|Task",
    ]
    with personas.writing("さくら") as sakura:
        assert read(*[line.encode() for line in reversed(first)], into=sakura).stored == 2
        assert sorted(exported(sakura)) == sorted(first)
        with sakura.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM relations WHERE method = 'stated'").get == 3


def test_a_relation_whose_name_cannot_be_written_as_one_takes_no_memory_with_it(
    nilou: Persona, say: Say, personas: Personas, read: Read
) -> None:
    say("[[A>B|AB]]の話", relations=["AB > needs > C"])
    with personas.writing("さくら") as sakura:
        assert read(*[line.encode() for line in exported(nilou)], into=sakura).stored == 1


def test_a_state_that_was_secret_stays_secret_after_a_move(nilou: Persona, say: Say, personas: Personas, read: Read, now: datetime) -> None:
    key = say("隠していたこと", privacy_level="secret", category="秘密").key
    revise(nilou, key, Revision(content="もう言えること", privacy_level="public"), now=now, privacy=Privacy())
    whole = ExportOptions(versions=True, secret=True)
    first = list(export_lines(nilou, whole))
    with personas.writing("さくら") as sakura:
        read(*[line.encode() for line in first], into=sakura)
        assert list(export_lines(sakura, whole)) == first
        assert "隠していたこと" not in "".join(export_lines(sakura, ExportOptions(versions=True)))
