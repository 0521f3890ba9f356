"""What is private does not reach the disk: not by any field, not by any way in, and not in what is kept beside a memory."""

import json
import time
from contextlib import nullcontext
from datetime import timedelta

import apsw
import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Restored
from memory_mcp.errors import InvalidInput
from memory_mcp.language.privacy.redaction import KINDS
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.transfer.jsonlines import ImportOptions, export_lines, import_lines

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
CARD, MAIL, PHONE = "4111 1111 1111 1111", "taro@example.com", "090-1234-5678"
REDACT, OFF = (Privacy(**dict.fromkeys(KINDS, mode)) for mode in ("redact", "off"))


@pytest.fixture
def bytes_of(data_directory):
    """Everything that is on the disk, once nobody has it open."""

    def read(personas) -> bytes:
        personas.close()
        return b"".join(path.read_bytes() for path in sorted(data_directory.rglob("*")) if path.is_file())

    return read


def stored(persona, key):
    with persona.database.read() as connection:
        return memories.by_keys(connection, [key])[key]


def everywhere(secret: str) -> Draft:
    return Draft(
        f"これは{secret}です",
        source=f"s {secret}",
        session_id=f"i {secret}",
        category=f"c {secret}",
        tags=(f"t {secret}",),
        questions=(f"q {secret}",),
        state={"emotion": f"e {secret}"},
        metadata={"a": [{"b": secret}], f"n {secret}": 1},
    )


@pytest.mark.parametrize("word", ["password", "パスワード", "API key", "the token"])
def test_a_secret_that_is_named_by_the_tag_or_the_speaker_before_it_is_not_stored(nilou, now, zone, word):
    secret = "kQ9zL2mX7pR4tV6w"
    named = Draft(secret, source=word, tags=("重要", word, secret, secret[::-1]))
    memory = stored(nilou, remember(nilou, named, now=now, zone=zone, privacy=Privacy()).key)
    assert memory.content == "[REDACTED_API_KEY]"
    assert memory.tags == ("重要", word, "[REDACTED_API_KEY]", secret[::-1])
    unnamed = Draft(f"{secret} は部品の番号", source="健太", tags=("重要", secret))
    memory = stored(nilou, remember(nilou, unnamed, now=now, zone=zone, privacy=Privacy()).key)
    assert (memory.content, memory.tags) == (f"{secret} は部品の番号", ("重要", secret))


def test_a_secret_in_any_field_is_in_no_byte_of_the_data(personas, nilou, now, zone, bytes_of):
    key = remember(nilou, everywhere(TOKEN), now=now, zone=zone, privacy=Privacy()).key
    revise(
        nilou, key, Revision(content=f"また{TOKEN}", tags=(TOKEN,), category=TOKEN, reason=f"because {TOKEN}"), now=now, privacy=Privacy()
    )
    forget(nilou, [key], reason=f"it was {TOKEN}", dry_run=False, now=now, privacy=Privacy())
    remember_many(nilou, [everywhere(f"{CARD} ")], now=now, zone=zone, privacy=Privacy())
    import_lines(
        lambda: nullcontext(nilou),
        [(1, json.dumps({"content": TOKEN, "metadata": {"x": TOKEN}}).encode())],
        ImportOptions(now, zone, privacy=Privacy()),
    )
    data = bytes_of(personas)
    assert data.count(b"[REDACTED_API_KEY]") >= 15
    assert b"[REDACTED_CREDIT_CARD]" in data
    assert TOKEN.encode() not in data
    assert TOKEN[4:20].encode() not in data
    assert TOKEN[4:20].lower().encode() not in data  # as the words of the lexical index are
    assert CARD.encode() not in data


def test_each_field_has_its_placeholder(nilou, now, zone):
    memory = stored(nilou, remember(nilou, everywhere(MAIL), now=now, zone=zone, privacy=REDACT).key)
    held = "[REDACTED_EMAIL]"
    assert (memory.content, memory.source, memory.session_id, memory.category) == (
        f"これは{held}です",
        f"s {held}",
        f"i {held}",
        f"c {held}",
    )
    assert (memory.tags, memory.questions, memory.state) == ((f"t {held}",), (f"q {held}",), {"emotion": f"e {held}"})
    assert memory.metadata == {"a": [{"b": held}], f"n {held}": 1}
    assert memory.micro_summary == memory.content


def test_the_answer_counts_what_went_and_what_stayed(nilou, now, zone):
    told = remember(nilou, Draft(f"{TOKEN} {MAIL} {MAIL}"), now=now, zone=zone, privacy=Privacy())
    assert (told.redacted, told.flagged) == ({"api_key": 1}, {"email": 2})


def test_what_is_flagged_stays_and_is_found_by_its_tag(say, ask):
    key = say(f"太郎の番号は{PHONE}", tags=["友だち"]).key
    (hit,) = ask(tags=["contains:phone"]).hits
    assert (hit.memory.key, hit.memory.content, hit.memory.tags) == (key, f"太郎の番号は{PHONE}", ("友だち", "contains:phone"))
    assert [hit.memory.key for hit in ask("太郎の番号").hits] == [key]


def test_a_revision_sets_the_marks_anew(nilou, say, now):
    key = say(f"太郎の番号は{PHONE}").key
    assert revise(nilou, key, Revision(tags=("友だち",)), now=now, privacy=Privacy()).tags == ("友だち", "contains:phone")
    assert revise(nilou, key, Revision(content=f"太郎のメールは{MAIL}"), now=now, privacy=Privacy()).tags == ("友だち", "contains:email")
    assert revise(nilou, key, Revision(importance=0.9), now=now, privacy=Privacy()).tags == ("友だち", "contains:email")
    assert revise(nilou, key, Revision(content="太郎の連絡先は忘れた"), now=now, privacy=Privacy()).tags == ("友だち",)


def test_under_stricter_rules_a_revision_takes_the_mark_with_what_it_marked(nilou, say, now):
    key = say(f"太郎の番号は{PHONE}").key
    memory = revise(nilou, key, Revision(content=f"太郎の番号は{PHONE}"), now=now, privacy=REDACT)
    assert (memory.content, memory.tags) == ("太郎の番号は[REDACTED_PHONE]", ())


def test_the_same_write_with_a_secret_in_it_is_the_same_write_again(nilou, now, zone):
    first = remember(nilou, everywhere(TOKEN), now=now, zone=zone, privacy=Privacy())
    again = remember(nilou, everywhere(TOKEN), now=now + timedelta(minutes=1), zone=zone, privacy=Privacy())
    assert (again.key, first.stored, again.stored) == (first.key, True, False)
    assert again.redacted == first.redacted


def test_under_other_rules_a_text_stays_as_it_is(nilou, now, zone):
    told = remember(nilou, everywhere(f"{TOKEN} {MAIL}"), now=now, zone=zone, privacy=OFF)
    memory = stored(nilou, told.key)
    assert memory.content == f"これは{TOKEN} {MAIL}です"
    assert (told.redacted, told.flagged, memory.tags) == ({}, {}, (f"t {TOKEN} {MAIL}",))


@pytest.mark.parametrize("told", [Draft("x", restored=Restored(f"k-{MAIL}")), Draft("x", supersedes=f"k {MAIL}")])
def test_a_key_that_holds_something_private_is_refused_without_saying_it(nilou, now, zone, told):
    with pytest.raises(InvalidInput) as refused:
        remember(nilou, told, now=now, zone=zone, privacy=REDACT)
    assert MAIL not in str(refused.value)
    (outcome,) = remember_many(nilou, [told], now=now, zone=zone, privacy=REDACT)
    assert (outcome.outcome, MAIL in outcome.reason) == ("refused", False)


def test_an_import_counts_and_its_refusals_do_not_say_what_they_refuse(nilou, now, zone):
    rows = [
        {"content": f"一 {TOKEN} {MAIL}"},
        {"content": f"一 {TOKEN} {MAIL}"},
        {"content": "x", "kind": TOKEN},
        {"content": "x", TOKEN: 1},
    ]
    lines = [(number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1)]
    result = import_lines(lambda: nullcontext(nilou), lines, ImportOptions(now, zone, privacy=Privacy()))
    assert (result.stored, result.already_known, result.refused) == (1, 1, 2)
    assert (result.redacted, result.flagged) == ({"api_key": 1}, {"email": 1})
    assert all("[REDACTED_API_KEY]" in refusal.reason and TOKEN not in refusal.reason for refusal in result.errors)


def test_what_was_stored_under_these_rules_moves_to_another_persona_as_it_is(nilou, personas, now, zone):
    remember(nilou, everywhere(f"{TOKEN} {PHONE}"), now=now, zone=zone, privacy=Privacy())
    first = list(export_lines(nilou))
    with personas.writing("さくら") as sakura:
        lines = [(number, line.encode()) for number, line in enumerate(first, start=1)]
        assert import_lines(lambda: nullcontext(sakura), lines, ImportOptions(now, zone, privacy=Privacy())).stored == 1
        assert list(export_lines(sakura)) == first


def test_a_question_is_asked_as_it_would_have_been_stored(nilou, ask, now, zone, settings):
    key = remember(nilou, Draft(f"デプロイ用は{TOKEN}"), now=now, zone=zone, privacy=Privacy()).key
    assert [hit.memory.key for hit in ask(f"{TOKEN} は何用？").hits] == [key]


def test_what_an_older_server_stored_is_adopted_as_it_is(data_directory, now):
    path = data_directory / "nilou" / DATABASE_NAME
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE memories (key TEXT PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT)")
    connection.execute("INSERT INTO memories VALUES ('k', ?, '2025-10-30', '2025-10-30')", (f"鍵は{TOKEN}",))
    connection.close()
    personas = Personas(data_directory)
    with personas.writing("nilou") as nilou:
        assert stored(nilou, "k").content == f"鍵は{TOKEN}"
        assert (
            revise(nilou, "k", Revision(content=f"鍵は{TOKEN}だった"), now=now, privacy=Privacy()).content == "鍵は[REDACTED_API_KEY]だった"
        )
    personas.close()


@pytest.mark.slow
def test_redacting_costs_a_small_part_of_storing(nilou, now, zone, figure, thorough):
    text = "昨日は公園で友だちと会って、コーヒーを飲みました。連絡先は090-1234-5678で、来週の土曜10時30分にまた会う約束をした。" * 3
    rounds = 250 if thorough else 25
    seconds = {"off": 0.0, "on": 0.0}
    for turn in range(4):
        for name, rules in (("off", OFF), ("on", Privacy())):
            begin = time.perf_counter()
            for number in range(rounds):
                told = draft(f"{name} {turn} {number} {text}", now=now, zone=zone, source="健太", tags=["友だち"])
                assert remember(nilou, told, now=now, zone=zone, privacy=rules).stored
            seconds[name] += time.perf_counter() - begin
    figure("privacy: remember with redaction, times as long as without", f"{seconds['on'] / seconds['off']:.2f}")
