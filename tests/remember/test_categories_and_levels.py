"""What else a memory says of itself: a category to filter by, who may see it, metadata, and the line that stands for it."""

import json
from contextlib import nullcontext

import apsw
import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Restored
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import METADATA_LIMIT
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines
from memory_mcp.transfer.obsidian_export import files

FIRST, SECOND = "健太は苺が好きだけど、メロンは苦手だと昨日の夕食のときに話してくれた。", "理由は聞かなかったけれど、たぶん食感だろう。"
LONG = FIRST + SECOND + "そのあと三人で海まで歩いて、夜は花火を見て、遅くに帰った。"


def stored(persona, key):
    with persona.database.read() as connection:
        return memories.by_keys(connection, [key])[key]


def keys_of(recalled):
    return [hit.memory.key for hit in recalled.hits]


def test_what_is_not_said_is_internal_and_has_no_category(nilou, say):
    memory = stored(nilou, say("京都").key)
    assert (memory.category, memory.privacy_level, memory.metadata) == (None, "internal", {})


def test_category_level_and_metadata_are_kept(nilou, say):
    told = {"category": " 料理 ", "privacy_level": "Private", "metadata": {"device": "phone", "place": {"lat": 35.0, "tags": ["a", None]}}}
    memory = stored(nilou, say("湯豆腐", **told).key)
    assert (memory.category, memory.privacy_level, memory.metadata) == ("料理", "private", told["metadata"])


@pytest.mark.parametrize("query", ["", "苺"])
def test_a_category_filters_in_upper_or_lower_case(say, ask, query):
    wanted = say("苺のタルトを焼いた", category="Cooking").key
    say("苺を買った", category="shopping")
    say("苺はどこ")
    assert keys_of(ask(query, category="cooking")) == [wanted]


@pytest.mark.parametrize("level", ["hidden", "SECRETS", "公開"])
def test_a_level_that_there_is_not_is_refused(say, level):
    with pytest.raises(InvalidInput, match="public, internal, private, secret"):
        say("京都", privacy_level=level)


@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {"a": "x" * METADATA_LIMIT}, {"a": "\ud800"}, {"a": {1, 2}}])
def test_metadata_that_can_not_be_kept_are_refused(say, metadata):
    with pytest.raises(InvalidInput, match="metadata"):
        say("京都", metadata=metadata)


def test_a_revision_changes_category_and_level_and_keeps_what_they_were(nilou, say, now):
    key = say("抹茶の店", category="店").key
    revise(nilou, key, Revision(category="京都"), now=now, privacy=Privacy())
    memory = revise(nilou, key, Revision(privacy_level="secret"), now=now, privacy=Privacy())
    assert (memory.category, memory.privacy_level, memory.content, memory.revision) == ("京都", "secret", "抹茶の店", 3)
    with nilou.database.read() as connection:
        versions = connection.execute("SELECT revision, category, privacy_level FROM memory_versions ORDER BY revision").fetchall()
        changes = connection.execute(
            "SELECT before ->> 'category', after ->> 'category' FROM operations WHERE operation = 'update'"
        ).fetchall()
    assert versions == [(1, "店", "internal"), (2, "京都", "internal")]
    assert changes == [("店", "京都"), (None, None)]


def test_an_index_shows_the_line_that_was_made_of_the_memory(say, ask, nilou, now):
    key = say(LONG).key
    assert [hit.text for hit in ask("苺", detail="index").hits] == [FIRST + SECOND]
    revise(nilou, key, Revision(content="苺の季節は終わった。"), now=now, privacy=Privacy())
    (hit,) = ask("苺", detail="index").hits
    assert (hit.text, hit.truncated) == ("苺の季節は終わった。", False)


def test_secret_memories_leave_only_when_asked_for(nilou, say, now):
    say("苺が好き")
    say("日記の鍵の場所", privacy_level="secret")
    forget(nilou, [say("古い鍵の場所", privacy_level="secret").key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert [("鍵" in line) for line in export_lines(nilou)] == [False]
    assert [("鍵" in line) for line in export_lines(nilou, ExportOptions(secret=True))] == [False, True]
    assert len(list(export_lines(nilou, ExportOptions(deleted=True)))) == 1
    assert len(list(export_lines(nilou, ExportOptions(deleted=True, secret=True)))) == 3
    with nilou.database.read() as connection:
        assert [memories.secret_count(connection, trash) for trash in (False, True)] == [1, 2]


def test_the_persona_itself_finds_what_is_secret(say, ask):
    key = say("日記の鍵は植木鉢の下", privacy_level="secret").key
    assert keys_of(ask("鍵")) == [key]


def test_metadata_are_shown_where_a_memory_is_fetched_and_they_fit(say, ask):
    small, large = say("小", metadata={"device": "phone"}).key, say("大", metadata={"log": "x" * 9_000}).key
    assert [hit.with_metadata for hit in ask(keys=[small, large], max_tokens=1000).hits] == [True, False]
    assert [hit.with_metadata for hit in ask(keys=[large], max_tokens=5000).hits] == [True]
    assert not any(hit.with_metadata for hit in ask("小").hits)


def test_an_export_with_what_is_secret_reads_into_another_persona_as_the_same(nilou, personas, say, now, zone):
    say("苺", category="果物", metadata={"a": [1, {"b": None}]}, privacy_level="public")
    say("鍵", privacy_level="secret")
    first = list(export_lines(nilou, ExportOptions(secret=True)))
    assert '"category": "果物", "privacy_level": "public"' in first[0]
    with personas.writing("さくら") as sakura:
        same = [
            Draft("苺", category="果物", metadata={"a": [1, {"b": None}]}, privacy_level="public", restored=Restored("k1")),
            Draft("鍵", privacy_level="secret", restored=Restored("k2")),
        ]
        assert [outcome.outcome for outcome in remember_many(sakura, same, now=now, zone=zone, privacy=Privacy())] == ["stored", "stored"]
        assert [line.partition('"content"')[2] for line in export_lines(sakura, ExportOptions(secret=True))] == [
            line.partition('"content"')[2] for line in first
        ]


def test_other_tools_read_category_level_and_line(data_directory, nilou, say):
    say("苺", category="果物")
    connection = apsw.Connection(str(data_directory / "nilou" / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("SELECT category, privacy_level, micro_summary FROM memories").fetchall() == [("果物", "internal", "苺")]
    connection.close()


def test_a_draft_of_nothing_special_is_as_it_was(now, zone, nilou):
    told = draft("京都へ行った", now=now, zone=zone)
    assert told == Draft("京都へ行った")
    assert remember(nilou, told, now=now, zone=zone, privacy=Privacy()).stored


def test_what_was_once_secret_leaves_in_no_form_unless_asked_for_and_stays_so_elsewhere(nilou, personas, say, now, zone):
    key = say("鍵は植木鉢の下", privacy_level="secret").key
    revise(nilou, key, Revision(content="植木鉢を買った", privacy_level="internal"), now=now, privacy=Privacy())

    def leaves(persona, leaving):
        notes = [file.text for file in files(persona, leaving, zone)]
        return ["鍵" in "".join(written) for written in (export_lines(persona, leaving), notes)]

    everything = ExportOptions(versions=True, secret=True)
    assert leaves(nilou, ExportOptions(versions=True)) == [False, False]
    assert leaves(nilou, everything) == [True, True]
    lines = [(number, line.encode()) for number, line in enumerate(export_lines(nilou, everything), 1)]
    with personas.writing("さくら") as sakura:
        assert import_lines(lambda: nullcontext(sakura), lines, ImportOptions(now, zone, privacy=Privacy())).versions == 1
        assert leaves(sakura, ExportOptions(versions=True)) == [False, False]
        assert list(export_lines(sakura, everything)) == [line.decode() for _, line in lines]


def test_an_earlier_state_that_does_not_say_its_level_has_that_of_its_memory(nilou, now, zone):
    memory = {"key": "k", "content": "植木鉢", "revision": 2, "privacy_level": "secret"}
    version = {"version_of": "k", "revision": 1, "content": "鍵", "updated_at": "2025-01-01T00:00:00Z"}
    lines = [(number, json.dumps(row).encode()) for number, row in enumerate((memory, version), 1)]
    assert import_lines(lambda: nullcontext(nilou), lines, ImportOptions(now, zone, privacy=Privacy())).versions == 1
    revise(nilou, "k", Revision(privacy_level="internal"), now=now, privacy=Privacy())
    assert not any("鍵" in json.loads(line)["content"] for line in export_lines(nilou, ExportOptions(versions=True)))
