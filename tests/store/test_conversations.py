"""Conversations in a persona's files: erased with the memories that they quote, and wherever the persona goes."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import InvalidInput
from memory_mcp.personas import lifecycle
from memory_mcp.remember.forget import forget
from memory_mcp.store import conversations, erasure
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines
from memory_mcp.upkeep import purge

SECRET = "鰻鱧鯰の密談は zqxunique です"


@pytest.fixture
def talk(now):
    """talk(persona, "c-1", 1, "text", stored=(key,)): stores a turn."""

    def talk(persona, conversation, number, text, **fields):
        turn = Turn(number, now + timedelta(minutes=number), "openai:x", ({"role": "user", "text": text},), **fields)
        new = Conversation(conversation, text, now, now)
        return persona.database.write(lambda connection: conversations.add_turn(connection, new, turn))

    return talk


@pytest.fixture
def read():
    """read(persona): the texts of all turns by conversation."""

    def read(persona):
        with persona.database.read() as connection:
            known = conversations.page(connection, -1)
            return {
                conversation.id: [turn.messages[0]["text"] for turn in conversations.turns(connection, conversation.id)]
                for conversation in known
            }

    return read


@pytest.fixture
def erase(now):
    """erase(persona, key): forgets a memory and erases it for good."""

    def erase(persona, key):
        forget(persona, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
        purge.erase(persona, [key], rule="asked for", now=now)
        assert purge.sweep(persona, IndexCache())

    return erase


def copied(persona, personas, name, now, zone):
    """The numbered lines of an export, which were imported as another persona."""
    lines = [(number, line.encode()) for number, line in enumerate(export_lines(persona, ExportOptions(conversations=True)), 1)]
    import_lines(lambda: personas.writing(name), lines, ImportOptions(now, zone, Privacy()))
    return lines


def bytes_of(persona):
    return b"".join(path.read_bytes() for path in persona.database.path.parent.rglob("*") if path.is_file())


def test_turns_that_quote_an_erased_memory_are_erased_with_it_to_the_last_byte(nilou, say, talk, read, erase):
    key = say(SECRET).key
    other = say("海辺の散歩").key
    talk(nilou, "c-1", 1, f"覚えて: {SECRET}", stored=(key,))
    talk(nilou, "c-1", 2, "うなぎの件、どうなった", recalled=(key, other))
    talk(nilou, "c-1", 3, "海辺に行こう", recalled=(other,))
    talk(nilou, "c-2", 1, json.dumps({"content": SECRET}))
    erase(nilou, key)
    assert read(nilou) == {"c-1": ["海辺に行こう"]}
    assert b"zqxunique" not in bytes_of(nilou)
    assert "鰻".encode() not in bytes_of(nilou)


def test_a_greeting_that_is_erased_takes_only_the_turns_that_it_came_from(nilou, say, talk, read, erase, now):
    for text in ("はい", "ありがとうございます"):
        key = say(text).key
        talk(nilou, text, 1, f"{text}。覚えて", stored=(key,))
        talk(nilou, text, 2, f"{text}、また明日")
        forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
        assert purge.plan(nilou, [key]).turns == 1
        erase(nilou, key)
    assert read(nilou) == {"はい": ["はい、また明日"], "ありがとうございます": ["ありがとうございます、また明日"]}


def test_a_deleted_conversation_leaves_no_byte_and_no_import_or_merge_brings_it_back(nilou, personas, talk, read, now, zone):
    talk(nilou, "c-1", 1, SECRET)
    talk(nilou, "c-2", 1, "海辺")
    kept = copied(nilou, personas, "collei", now, zone)
    done = Operation("delete_conversation", None, now)
    nilou.database.write(lambda connection: erasure.erase_conversation(connection, "c-1", done))
    assert purge.sweep(nilou, IndexCache())
    assert b"zqxunique" not in bytes_of(nilou)
    result = import_lines(lambda: nullcontext(nilou), kept, ImportOptions(now, zone, Privacy()))
    assert (result.conversations, result.already_known, [refusal.reason for refusal in result.errors]) == (
        0,
        2,
        ["it was erased here: what was erased isn't brought back by an import. Leave the line out."] * 2,
    )
    with personas.reading("collei") as collei:
        assert read(collei) == {"c-2": ["海辺"], "c-1": [SECRET]}
        lifecycle.merge(collei, nilou, now)
    assert read(nilou) == {"c-2": ["海辺"]}


def test_an_export_with_conversations_is_imported_as_it_was(nilou, personas, talk, say, read, now, zone):
    key = say("苺が好き").key
    talk(nilou, "c-1", 1, "苺の話", stored=(key,))
    talk(nilou, "c-1", 2, "\u2028つづき")
    lines = list(export_lines(nilou, ExportOptions(conversations=True)))
    assert list(export_lines(nilou)) == lines[:1]
    numbered = [(number, line.encode()) for number, line in enumerate(lines, 1)]
    options = ImportOptions(now, zone, Privacy())
    assert import_lines(lambda: personas.writing("collei"), numbered, options).conversations == 3
    again = import_lines(lambda: personas.writing("collei"), numbered, options)
    assert (again.conversations, again.already_known, again.refused) == (0, 4, 0)
    with personas.reading("collei") as collei:
        assert list(export_lines(collei, ExportOptions(conversations=True))) == lines


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"turn_of": "c-1", "number": 0, "ended_at": "2025-01-01T00:00:00Z", "model": "m", "messages": []}, "number is out of range"),
        ({"turn_of": "c-1", "number": 1, "ended_at": "2025-01-01T00:00:00Z", "model": "m", "messages": []}, "isn't stored"),
        ({"turn_of": "c-1", "number": 1, "ended_at": "x", "model": "m", "messages": []}, "ended_at is 'x'"),
        ({"turn_of": "c-1", "number": 1, "model": "m", "messages": []}, "ended_at is missing"),
        ({"turn_of": "c-1", "messages": [1]}, "messages is a list"),
        ({"conversation": "c-1"}, "created_at is missing"),
        ({"conversation": "c-1", "oops": 1}, "unknown field 'oops'"),
    ],
)
def test_a_line_of_a_conversation_that_can_not_be_used_is_refused(personas, now, zone, line, words):
    result = import_lines(lambda: personas.writing("collei"), [(1, json.dumps(line).encode())], ImportOptions(now, zone, Privacy()))
    assert result.refused == 1
    assert words in result.errors[0].reason


def test_a_merge_of_personas_brings_conversations_but_for_what_was_erased_here(nilou, say, personas, talk, read, erase, now, zone):
    secret, known = say(SECRET).key, say("苺が好き").key
    talk(nilou, "c-1", 1, "苺", recalled=(known,))
    talk(nilou, "c-1", 2, "うなぎ", recalled=(secret,))
    copied(nilou, personas, "collei", now, zone)
    erase(nilou, secret)
    assert read(nilou) == {"c-1": ["苺"]}
    with personas.writing("collei") as collei:
        talk(collei, "c-2", 1, f"{SECRET}か")
        talk(collei, "c-3", 1, "桃")
        talk(collei, "c-4", 1, "やはりうなぎ", recalled=(secret,))
    with personas.reading("collei") as collei:
        lifecycle.merge(collei, nilou, now)
    assert read(nilou) == {"c-3": ["桃"], "c-1": ["苺"]}


def test_a_turn_that_fails_leaves_the_conversation_as_it_was(nilou, talk, read):
    talk(nilou, "c-1", 1, "苺")
    talk(nilou, "c-1", 2, "桃")
    with pytest.raises(InvalidInput):
        talk(nilou, "c-1", 2, "梨")
    with nilou.database.read() as connection:
        broken = replace(conversations.turns(connection, "c-1")[0], number=1, messages=(object(),))
        new = conversations.by_id(connection, "c-1")
    with pytest.raises(TypeError):
        nilou.database.write(lambda connection: conversations.add_turn(connection, new, broken, replacing=True))
    assert read(nilou) == {"c-1": ["苺", "桃"]}
