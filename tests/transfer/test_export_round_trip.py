"""What an export carries besides the memories: versions, vectors, context; what a dry run predicts; what counts as an edit."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fakes import HashingEmbedder
from index_comparison import compare

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Remembered
from memory_mcp.index import sync
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import versions
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, ImportResult, export_lines, import_lines

Say = Callable[..., Remembered]
Read = Callable[..., ImportResult]
EVERYTHING = ExportOptions(deleted=True, versions=True, vectors=True, context=True)


class Counting(HashingEmbedder):
    """Notes what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[str] = []

    def embed_documents(self, texts):
        self.asked += texts
        return super().embed_documents(texts)


@pytest.fixture
def sakura(personas: Personas) -> Iterator[Persona]:
    with personas.writing("さくら") as persona:
        yield persona


@pytest.fixture
def read(now: datetime, zone: ZoneInfo) -> Read:
    def read(into: Persona, *rows: dict[str, Any] | str, **how: Any) -> ImportResult:
        raw = [(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)).encode() for row in rows]

        @contextmanager
        def opened() -> Iterator[Persona]:
            yield into

        return import_lines(opened, list(enumerate(raw, start=1)), ImportOptions(now, zone, **{"privacy": Privacy(), **how}))

    return read


@pytest.fixture
def eventful(nilou: Persona, say: Say, now: datetime) -> Persona:
    """A persona with earlier states, a trash, a chain of what replaced what, vectors and a context."""
    key = say("誕生日は十月", questions=["誕生日は？"], source="旅人").key
    revise(nilou, key, Revision(content="誕生日は九月", tags=("誕生日",)), now=now + timedelta(hours=1), privacy=Privacy())
    revise(nilou, key, Revision(importance=0.9, reason="大事\u2028だから"), now=now + timedelta(hours=2), privacy=Privacy())
    old = say("住まいはスメール", occurred_at="2024-04-01T09:30:00+09:00")
    say("住まいはフォンテーヌ", supersedes=old.key)
    gone = say("忘れる")
    revise(nilou, gone.key, Revision(content="忘れてほしい"), now=now, privacy=Privacy())
    forget(nilou, [gone.key], reason=None, dry_run=False, now=now, privacy=Privacy())
    nilou.context.update({"user_info": {"name": "旅人"}, "current_emotion": "嬉", "own": {"x": [1]}})
    return nilou


def embed(persona: Persona, embedder: HashingEmbedder, zone: ZoneInfo) -> None:
    indexes = IndexCache()
    while sync.apply_queue(persona, embedder, indexes, zone=zone).waiting:
        pass


def exported(persona: Persona, leaving: ExportOptions = EVERYTHING) -> list[str]:
    return list(export_lines(persona, leaving))


def test_everything_moves_and_a_second_export_equals_the_first(eventful: Persona, sakura: Persona, read: Read, zone: ZoneInfo) -> None:
    embedder = Counting()
    embed(eventful, embedder, zone)
    first = exported(eventful)
    kinds = [next(iter(json.loads(line))) for line in first]
    assert kinds == ["persona_context", "key", "version_of", "version_of", "key", "key", "key", "version_of"]
    assert sum('"vectors"' in line for line in first) == 2  # neither what was replaced nor what is in the trash has any
    moved = read(sakura, *first, generations={embedder.generation: 16})
    assert moved == ImportResult(stored=4, versions=3, context=1, vectors=2)
    fresh = Counting()
    embed(sakura, fresh, zone)
    assert fresh.asked == []
    assert exported(sakura) == first


def test_an_earlier_state_that_comes_back_after_a_move_is_what_it_would_have_been_before(
    nilou: Persona, sakura: Persona, say: Say, read: Read, now: datetime
) -> None:
    told = {"source": "旅人", "session_id": "s", "questions": ["誕生日は？"], "state": {"emotion": "嬉"}, "metadata": {"a": 1}}
    key = say("誕生日は十月", category="人", tags=["日"], importance=0.7, occurred_at="2025-10-01", **told).key
    revise(nilou, key, Revision(content="忘れた", tags=(), importance=0.1, category="他"), now=now, privacy=Privacy())
    read(sakura, *exported(nilou))
    for persona in (nilou, sakura):
        revise(persona, key, Revision(revision=1), now=now + timedelta(hours=1), privacy=Privacy())
    assert exported(sakura) == exported(nilou)
    assert json.loads(exported(sakura, ExportOptions())[0])["category"] == "人"


def test_a_second_import_of_everything_changes_nothing(eventful: Persona, read: Read, zone: ZoneInfo) -> None:
    embedder = Counting()
    embed(eventful, embedder, zone)
    first = exported(eventful)
    assert read(eventful, *first, generations={embedder.generation: 16}) == ImportResult(already_known=8)
    assert exported(eventful) == first


def test_what_moved_with_its_vectors_is_in_the_index(eventful: Persona, sakura: Persona, read: Read, zone: ZoneInfo) -> None:
    embedder, indexes = Counting(), IndexCache()
    embed(eventful, embedder, zone)
    read(sakura, *exported(eventful), generations={embedder.generation: 16})
    while sync.apply_queue(sakura, embedder, indexes, zone=zone).waiting:
        pass
    assert not compare(sakura, embedder.generation, indexes)
    index = indexes.get(sakura.database, embedder.generation)
    assert index is not None
    assert len(index.ids()) == 3


def test_vectors_of_a_model_that_is_not_here_are_left_and_made_anew(eventful: Persona, sakura: Persona, read: Read, zone: ZoneInfo) -> None:
    embed(eventful, Counting(), zone)
    assert read(sakura, *exported(eventful), generations={"another": 16}).vectors_left == 2
    fresh = Counting()
    embed(sakura, fresh, zone)
    assert len(fresh.asked) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vectors: vectors.update(values="AAAA"),
        lambda vectors: vectors.update(values="?"),
        lambda vectors: vectors.update(values="AAAA" * (len(vectors["values"]) // 4)),
        lambda vectors: vectors.update(pieces=[[0, 3], [3, 99]]),
        lambda vectors: vectors.update(pieces=[[0, 2]]),
        lambda vectors: vectors.update(pieces=["x"]),
        lambda vectors: vectors.update(pieces=[[0, True]]),
        lambda vectors: vectors.pop("pieces"),
    ],
)
def test_vectors_that_can_not_be_those_of_a_memory_are_refused(
    nilou: Persona, sakura: Persona, say: Say, read: Read, zone: ZoneInfo, spoil: Callable[[dict[str, Any]], Any]
) -> None:
    embedder = Counting()
    say("猫を飼う")
    embed(nilou, embedder, zone)
    row = json.loads(exported(nilou, ExportOptions(vectors=True))[0])
    spoil(row["vectors"])
    result = read(sakura, row, generations={embedder.generation: 16})
    assert result.refused == 1
    assert "vectors can't be used" in result.errors[0].reason


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"version_of": "nowhere", "revision": 1, "content": "a", "updated_at": "2025-01-01T00:00:00Z"}, "no memory with that key"),
        ({"version_of": "k", "revision": 5, "content": "a", "updated_at": "2025-01-01T00:00:00Z"}, "the memory has revision 2"),
        ({"version_of": "k", "revision": 1, "content": "a"}, "updated_at is missing"),
        ({"version_of": "k", "revision": 1, "contents": "a"}, "a similar field is 'content'"),
        ({"version_of": 7}, "version_of is a number"),
        ({"persona_context": []}, "must be an object"),
        ({"persona_context": {}, "content": "a"}, "a line of its own"),
        ({"persona_context": {"user_info": "a"}}, "must be objects"),
        ({"persona_context": {"own": "あ" * 100_000}}, "200,000 bytes"),
        ('{"persona_context": {"own": "\\ud83d"}}', "plain JSON"),
        ('{"persona_context": {"own": NaN}}', "plain JSON"),
        ({"pieces_of": "k", "pieces": "x"}, "a whole number"),
    ],
)
def test_a_line_beside_the_memories_is_refused_with_what_is_wrong_with_it(nilou: Persona, read: Read, row: Any, reason: str) -> None:
    read(nilou, {"key": "k", "content": "a", "revision": 2})
    result = read(nilou, row)
    assert (result.stored, result.refused) == (0, 1)
    assert reason in result.errors[0].reason


def test_a_context_that_comes_in_fills_what_is_open_and_replaces_nothing(nilou: Persona, read: Read) -> None:
    nilou.context.update({"user_info": {"name": "旅人"}, "current_emotion": "静"})
    line = {"persona_context": {"user_info": {"name": "別人", "nickname": "タビ"}, "current_emotion": "嬉", "environment": "家"}}
    assert read(nilou, line) == ImportResult(context=1)
    told = nilou.context.read()
    assert told["user_info"] == {"name": "旅人", "nickname": "タビ", "preferred_address": ""}
    assert (told["current_emotion"], told["environment"]) == ("静", "家")
    assert read(nilou, line) == ImportResult(already_known=1)


def noted(content: str, **fields: Any) -> dict[str, Any]:
    return {"key": "note_0", "content": content, "session_id": "a.md", "metadata": {"origin": {"format": "obsidian"}}, **fields}


def test_an_edited_note_is_a_revision_of_the_same_memory(nilou: Persona, read: Read) -> None:
    assert read(nilou, noted("一"), clash="revise") == ImportResult(stored=1)
    assert read(nilou, noted("二", tags=["語"]), clash="revise") == ImportResult(revised=1)
    assert read(nilou, noted("二", tags=["語"]), clash="revise") == ImportResult(already_known=1)
    (row,) = map(json.loads, exported(nilou, ExportOptions()))
    assert (row["content"], row["tags"], row["revision"]) == ("二", ["語"], 2)
    with nilou.database.read() as connection:
        assert [version.content for version in versions.for_export(connection, "note_0")] == ["一"]


def test_a_note_may_close_a_memory_and_never_opens_one(nilou: Persona, read: Read) -> None:
    read(nilou, noted("一"), clash="revise")
    assert read(nilou, noted("一", privacy_level="secret"), clash="revise") == ImportResult(revised=1)
    assert read(nilou, noted("一", privacy_level="secret"), clash="revise") == ImportResult(already_known=1)
    assert read(nilou, noted("二"), clash="revise") == ImportResult(revised=1)
    (row,) = map(json.loads, exported(nilou, ExportOptions(secret=True)))
    assert (row["content"], row["privacy_level"]) == ("二", "secret")


def test_an_old_copy_of_a_note_undoes_nothing_that_was_changed_since(nilou: Persona, read: Read, now: datetime) -> None:
    read(nilou, noted("一"), clash="revise")
    revise(nilou, "note_0", Revision(content="会話で直した"), now=now, privacy=Privacy())
    assert read(nilou, noted("一"), clash="revise") == ImportResult(already_known=1)
    forget(nilou, ["note_0"], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert read(nilou, noted("三"), clash="revise") == ImportResult(already_known=1)
    assert exported(nilou, ExportOptions()) == []


def test_pieces_that_a_note_has_no_more_go_to_the_trash_and_those_of_others_stay(nilou: Persona, read: Read) -> None:
    about = {"metadata": {"origin": {"format": "obsidian"}}}
    rows = [{"key": f"note_{number}", "content": f"{number}", **about} for number in range(12)]
    read(
        nilou,
        *rows,
        {"key": "note_x_3", "content": "別のノート", **about},
        {"key": "note_9x", "content": "別", **about},
        {"key": "note_99", "content": "手で"},
    )
    refused = read(nilou, {"pieces_of": "note", "pieces": 2}, may_delete=False)
    assert (refused.dropped, refused.refused) == (0, 1)
    assert read(nilou, {"pieces_of": "note", "pieces": 2}).dropped == 10
    assert [json.loads(line)["content"] for line in exported(nilou, ExportOptions())] == ["0", "1", "別のノート", "別", "手で"]
    assert read(nilou, {"pieces_of": "note", "pieces": 2}) == ImportResult()


def test_a_note_that_was_imported_before_notes_had_keys_is_known(nilou: Persona, read: Read) -> None:
    read(nilou, {"content": "一", "session_id": "a.md", "created_at": "2025-10-01T00:00:00Z"})
    assert read(nilou, noted("一", created_at="2025-10-02T00:00:00Z"), clash="revise") == ImportResult(already_known=1)


def test_equal_chat_messages_are_two_memories(nilou: Persona, read: Read) -> None:
    about = {"metadata": {"origin": {"format": "chatgpt"}}, "session_id": "c", "content": "はい"}
    rows = [{"key": "chatgpt_1", **about}, {"key": "chatgpt_2", **about}]
    assert read(nilou, *rows, clash="keep") == ImportResult(stored=2)
    assert read(nilou, *rows, clash="keep") == ImportResult(already_known=2)


def test_what_was_kept_is_not_changed_by_another_text_under_its_key(nilou: Persona, read: Read) -> None:
    read(nilou, noted("一"))
    assert read(nilou, noted("二"), clash="keep") == ImportResult(already_known=1)
    assert read(nilou, noted("二")).refused == 1


def test_a_dry_run_foresees_what_the_import_comes_to_and_stores_nothing(eventful: Persona, sakura: Persona, read: Read) -> None:
    read(sakura, {"key": "k", "content": "ある"}, {"content": "ある二"})
    rows = [
        *exported(eventful, ExportOptions(deleted=True, versions=True, context=True)),
        {"key": "k", "content": "別"},
        {"content": "ある二"},
        {"content": "新"},
        {"content": "新"},
        {"content": "後", "supersedes": "nowhere"},
        {"key": "n", "content": "一"},
        {"key": "n", "content": "一"},
        {"key": "n", "content": "二"},
        {"content": "続き", "supersedes": "n"},
        {"version_of": "nobody", "revision": 1, "content": "a", "updated_at": "2025-01-01T00:00:00Z"},
        {"oops": 1},
    ]
    before = exported(sakura)
    foreseen = Foreseen()
    half = len(rows) // 2
    dry = read(sakura, *rows[:half], dry_run=foreseen) + read(sakura, *rows[half:], dry_run=foreseen)
    assert exported(sakura) == before
    done = read(sakura, *rows)
    assert [getattr(dry, name) for name in ("stored", "already_known", "refused", "versions", "context")] == [7, 3, 5, 3, 1]
    assert [refusal.reason for refusal in dry.errors] == [refusal.reason for refusal in done.errors]
    assert (dry.stored, dry.already_known, dry.refused, dry.versions, dry.context) == (
        done.stored,
        done.already_known,
        done.refused,
        done.versions,
        done.context,
    )


@pytest.mark.parametrize(("clash", "counts"), [("keep", (1, 2, 0)), ("revise", (1, 1, 1))])
def test_a_dry_run_knows_what_an_edit_is(nilou: Persona, read: Read, clash: Any, counts: tuple[int, int, int]) -> None:
    read(nilou, noted("一"))
    rows = [noted("二"), {"key": "new", "content": "三"}, {"key": "new", "content": "三"}]
    dry = read(nilou, *rows, clash=clash, dry_run=Foreseen())
    assert (dry.stored, dry.already_known, dry.revised) == counts
    done = read(nilou, *rows, clash=clash)
    assert (done.stored, done.already_known, done.revised) == counts


@pytest.mark.slow
def test_a_line_with_vectors_is_never_longer_than_an_import_takes(nilou: Persona, sakura: Persona, read: Read, zone: ZoneInfo) -> None:
    read(nilou, {"content": "😀" * 199_999}, {"content": "短い"})
    embedder = HashingEmbedder(4096)
    embed(nilou, embedder, zone)
    lines = exported(nilou, ExportOptions(vectors=True))
    assert ['"vectors"' in line for line in lines] == [False, True]
    assert read(sakura, *lines, generations={embedder.generation: 4096}).stored == 2


def test_what_is_private_is_stored_neither_in_an_earlier_state_nor_in_a_context(nilou: Persona, read: Read) -> None:
    card = "カードは4111 1111 1111 1111"
    version = {"version_of": "k", "revision": 1, "content": card, "updated_at": "2025-01-01T00:00:00Z", "reason": card}
    read(nilou, {"key": "k", "content": "a", "revision": 2}, version, {"persona_context": {"environment": card}})
    lines = "".join(exported(nilou))
    assert "4111" not in lines
    assert lines.count("[REDACTED_CREDIT_CARD]") == 3


def test_vectors_of_a_text_that_is_redacted_here_are_left(nilou: Persona, read: Read) -> None:
    embedder = Counting()
    content = "カードは4111 1111 1111 1111"
    vector = embedder.embed_documents([content]).astype("<f4").tobytes()
    told = {"generation": embedder.generation, "pieces": [[0, len(content)]], "values": base64.b64encode(vector).decode()}
    result = read(nilou, {"content": content, "vectors": told}, generations={embedder.generation: 16})
    assert result.stored == 1
    with nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM vectors").get == 0
