"""persona_context.json: read, changed, touched, and edited by hand."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.errors import StoreDamaged, StoreReadOnly
from memory_mcp.store.files.persona_context import PersonaContext, conversation_at

SEED = {
    "user_info": {"name": "旅人", "nickname": "Traveler", "preferred_address": "旅人さん"},
    "persona_info": {"name": "ニィロウ", "nickname": "", "preferred_address": "ニィロウ"},
    "current_emotion": "joy",
    "physical_state": "normal",
    "mental_state": "calm",
    "environment": "theatre",
    "relationship_status": "friends",
    "last_conversation_time": "2025-10-30T12:00:00+09:00",
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "persona_context.json"


@pytest.fixture
def context(path):
    return PersonaContext(path)


def stored(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_file_of_the_older_server_is_read_as_it_is(context, path):
    path.write_text(json.dumps(SEED), encoding="utf-8")
    assert context.read() == SEED


def test_a_missing_file_reads_as_empty_values_and_is_not_made_by_reading(context, path):
    read = context.read()
    assert read.keys() == SEED.keys()
    assert read["user_info"] == {"name": "", "nickname": "", "preferred_address": ""}
    assert read["last_conversation_time"] is None
    assert not path.exists()


def test_what_the_file_does_not_say_of_a_person_reads_as_empty(context, path):
    path.write_text('{"user_info": {"name": "旅人"}}', encoding="utf-8")
    assert context.read()["user_info"] == {"name": "旅人", "nickname": "", "preferred_address": ""}


def test_a_change_tells_before_and_after_and_keeps_the_rest(context, path):
    path.write_text(json.dumps(SEED), encoding="utf-8")
    before, after = context.update({"current_emotion": "sadness", "user_info": {"nickname": "T"}})
    assert before == SEED
    assert after == {**SEED, "current_emotion": "sadness", "user_info": {**SEED["user_info"], "nickname": "T"}}
    assert stored(path) == after


def test_fields_beyond_ours_are_kept(context, path):
    path.write_text(json.dumps({**SEED, "favourite": "苺", "user_info": {"birthday": "3 March"}}), encoding="utf-8")
    context.update({"environment": "home"})
    assert stored(path)["favourite"] == "苺"
    assert stored(path)["user_info"]["birthday"] == "3 March"


def test_a_change_that_changes_nothing_does_not_write(context, path):
    path.write_text(json.dumps(SEED), encoding="utf-8")
    before = path.stat()
    context.update({"current_emotion": "joy"})
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_conversation_is_noted_to_the_second_with_its_offset(context, path):
    context.update(conversation_at(datetime(2025, 10, 30, 12, 0, 0, 123, tzinfo=ZoneInfo("Asia/Tokyo"))))
    assert stored(path)["last_conversation_time"] == "2025-10-30T12:00:00+09:00"


def test_an_edit_by_hand_is_seen_by_the_next_reader(context, path):
    context.update({"current_emotion": "joy"})
    path.write_text(json.dumps({**SEED, "current_emotion": "anger"}), encoding="utf-8")
    assert context.read()["current_emotion"] == "anger"


def test_the_file_can_be_read_by_people(context, path):
    context.update({"current_emotion": "喜び"})
    assert '\n  "current_emotion": "喜び"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '"x"',
        '{"user_info": "旅人"}',
        '{"persona_info": null}',
        "[" * 100_000,
        r'{"current_emotion": "\ud83d"}',
        r'{"user_info": {"\uDE00": "x"}}',
    ],
)
def test_a_damaged_file_is_reported_and_left_for_its_owner_to_mend(context, path, damage):
    path.write_text(damage, encoding="utf-8")
    with pytest.raises(StoreDamaged, match=r"persona_context\.json"):
        context.read()
    with pytest.raises(StoreDamaged, match=r"persona_context\.json"):
        context.update({"current_emotion": "joy"})
    assert path.read_text(encoding="utf-8") == damage


def test_what_an_escape_of_two_halves_says_is_a_whole_character(context, path):
    path.write_text(r'{"current_emotion": "\ud83d\ude00 \u5b09"}', encoding="utf-8")
    assert context.read()["current_emotion"] == "😀 嬉"


def test_a_file_that_cannot_be_written_is_reported(tmp_path):
    context = PersonaContext(tmp_path / "gone" / "persona_context.json")
    with pytest.raises(StoreReadOnly, match="can't be written"):
        context.update({"current_emotion": "joy"})


def test_changes_at_the_same_time_are_all_kept(context, path):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: context.update({f"field-{number}": number}), range(20)))
    assert [stored(path)[f"field-{number}"] for number in range(20)] == list(range(20))


def test_a_persona_that_does_not_exist_has_an_empty_context_that_cannot_change():
    assert PersonaContext(None).read()["current_emotion"] == ""
    with pytest.raises(ValueError, match="does not exist"):
        PersonaContext(None).update({"current_emotion": "joy"})
