"""A persona as an Obsidian vault: notes that somebody likes to read, and that come back without loss and without doubling."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Remembered
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.transfer.formats import obsidian
from memory_mcp.transfer.formats.obsidian_notes import links_in
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, ImportResult, export_lines, import_lines
from memory_mcp.transfer.obsidian_export import archive, files

Say = Callable[..., Remembered]
ALL = ExportOptions(deleted=True, versions=True, context=True)


@pytest.fixture
def eventful(nilou: Persona, say: Say, now: datetime) -> Persona:
    say("うん、明日ね", session_id="夕食/会", source="旅人", occurred_at="2025-10-17T21:30", tags=["約束", "two words"])
    say("京都: 湯豆腐 #食 [[x]]?\n\n二段落", source="CON", occurred_at="2025-10-17T23:50", state={"emotion": "嬉"}, questions=["何を？"])
    old = say("---\n住まいはスメール\n---\n", occurred_at="2024-04-01T09:30:00+09:00")
    say("\r\n住まいは\u2028フォンテーヌ 😀\x85\ufeff \n", supersedes=old.key, importance=0.25)
    wrong = say("誕生日は十月")
    revise(nilou, wrong.key, Revision(content="誕生日は九月", reason="まちがい"), now=now + timedelta(hours=1), privacy=Privacy())
    gone = say("忘れてほしい")
    forget(nilou, [gone.key], reason=None, dry_run=False, now=now, privacy=Privacy())
    nilou.context.update({"user_info": {"name": "旅人"}})
    return nilou


@pytest.fixture
def unpacked(zone: ZoneInfo, tmp_path: Path) -> Callable[..., Path]:
    def unpacked(persona: Persona, leaving: ExportOptions = ALL, name: str = "vault") -> Path:
        with zipfile.ZipFile(io.BytesIO(b"".join(archive(persona, leaving, zone)))) as notes:
            assert notes.testzip() is None
            assert len(set(map(str.casefold, notes.namelist()))) == len(notes.namelist())
            notes.extractall(tmp_path / name)
        return tmp_path / name

    return unpacked


@pytest.fixture
def read(now: datetime, zone: ZoneInfo) -> Callable[[Persona, Path], ImportResult]:
    def read(into: Persona, place: Path) -> ImportResult:
        def refuse(sentence: str) -> None:
            pytest.fail(sentence)

        found = list(obsidian.read(source_of(place), refuse))
        assert [one.refused for one in found if one.refused] == []
        lines = [json.dumps(one.row, ensure_ascii=False).encode() for one in found]
        return import_lines(lambda: nullcontext(into), list(enumerate(lines, start=1)), ImportOptions(now, zone, Privacy(), "revise"))

    return read


@pytest.fixture
def sakura(personas: Personas) -> Iterator[Persona]:
    with personas.writing("さくら") as persona:
        yield persona


def said(persona: Persona) -> list[str]:
    return sorted(export_lines(persona, ALL))


def names(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*.md"))


def test_a_vault_read_into_a_new_persona_is_the_same_persona(eventful: Persona, sakura: Persona, unpacked: Any, read: Any) -> None:
    result = read(sakura, unpacked(eventful))
    assert result == ImportResult(stored=6, versions=1, context=1)
    assert said(sakura) == said(eventful)


def test_a_vault_read_into_its_own_persona_changes_nothing(eventful: Persona, unpacked: Any, read: Any) -> None:
    before = said(eventful)
    assert read(eventful, unpacked(eventful)) == ImportResult(already_known=8)
    assert said(eventful) == before


def test_a_note_that_was_edited_moved_and_renamed_revises_its_memory(eventful: Persona, unpacked: Any, read: Any) -> None:
    place = unpacked(eventful, ExportOptions())
    (note,) = [path for path in place.rglob("*.md") if "誕生日" in path.name]
    text = note.read_text(encoding="utf-8").replace("誕生日は九月", "誕生日は八月")
    note.unlink()
    (place / "人").mkdir()
    (place / "人" / "誕生日.md").write_text(text.replace("importance: 0.5", "importance: 0.75"), encoding="utf-8")
    assert read(eventful, place) == ImportResult(already_known=4, revised=1)
    (row,) = [json.loads(line) for line in export_lines(eventful) if "誕生日" in line]
    assert (row["content"], row["importance"], row["revision"]) == ("誕生日は八月", 0.75, 3)


def test_a_vault_has_a_note_for_each_memory_day_session_and_speaker(eventful: Persona, unpacked: Any) -> None:
    found = names(unpacked(eventful))
    folders = {
        name: sum(path.startswith(f"{name}/") for path in found)
        for name in ("memories", "trash", "versions", "days", "sessions", "sources")
    }
    assert folders == {"memories": 5, "trash": 1, "versions": 1, "days": 3, "sessions": 1, "sources": 2}
    assert "persona.md" in found
    assert re.fullmatch(r"memories/2025-10/2025-10-17 うん、明日ね [0-9a-f]{10}\.md", next(path for path in found if "うん" in path))
    assert not re.search(r'[\\:*?"<>|#^\[\]]', "".join(found))


def test_the_links_of_a_note_lead_to_notes_and_a_day_lists_its_memories_in_order(eventful: Persona, unpacked: Any) -> None:
    place = unpacked(eventful, ExportOptions())
    known = {path.relative_to(place).with_suffix("").as_posix() for path in place.rglob("*.md")}
    known |= {Path(name).name for name in known}
    texts = {path.name: path.read_text(encoding="utf-8") for path in place.rglob("*.md")}
    fronts = "".join(text.split("---\n")[1] for text in texts.values())
    assert links_in(fronts)
    assert set(links_in(fronts)) <= known
    day = texts["2025-10-17.md"]
    assert set(links_in(day)) <= known
    assert [line.split(" ")[1] for line in day.splitlines() if line.startswith("- ")] == ["21:30", "23:50"]
    (newer,) = [text for name, text in texts.items() if "フォンテーヌ" in name]
    assert "住まいはスメール" in newer.split("---\n")[1]


def test_a_note_is_the_memory_s_words_and_nothing_else(eventful: Persona, unpacked: Any) -> None:
    (note,) = [path for path in unpacked(eventful).rglob("*.md") if "湯豆腐" in path.name and "memories" in str(path)]
    front, _, body = note.read_text(encoding="utf-8").removeprefix("---\n").partition("---\n")
    assert body == "京都: 湯豆腐 #食 [[x]]?\n\n二段落\n"
    assert 'state: {"emotion": "嬉"}\n' in front
    assert "date: 2025-10-17\n" in front


def test_a_vault_of_nobody_is_an_empty_zip(personas: Personas, zone: ZoneInfo) -> None:
    with personas.reading("誰か") as nobody, zipfile.ZipFile(io.BytesIO(b"".join(archive(nobody, ALL, zone)))) as notes:
        assert notes.namelist() == []


LABEL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=LABEL.filter(str.strip), label=LABEL)
def test_whatever_a_memory_says_its_note_lies_inside_the_vault_and_reads_back(
    nilou: Persona, now: datetime, zone: ZoneInfo, content: str, label: str
) -> None:
    line = json.dumps({"content": content, "source": label, "session_id": label, "tags": [label]}).encode()
    import_lines(lambda: nullcontext(nilou), [(1, line)], ImportOptions(now, zone, privacy=Privacy()))
    for file in files(nilou, ExportOptions(), zone):
        folder, _, name = file.path.rpartition("/")
        assert re.fullmatch(r"memories/\d{4}-\d{2}|days|sessions|sources", folder)
        assert not re.search(r'[\\/:*?"<>|\x00-\x1f]', name)
        assert len(name.encode()) < 250
        assert name.removesuffix(".md").strip(". ") == name.removesuffix(".md")


def test_a_vault_has_relations_and_no_earlier_state_that_was_secret(
    nilou: Persona, say: Say, personas: Personas, now: datetime, zone: ZoneInfo, tmp_path: Path
) -> None:
    key = say("隠していたこと", privacy_level="secret", relations=["田中 > works_on > プロジェクトA"]).key
    revise(nilou, key, Revision(content="もう言えること", privacy_level="public"), now=now, privacy=Privacy())
    leaving = ExportOptions(versions=True)
    notes = [file.text for file in files(nilou, leaving, zone)]
    assert "隠していたこと" not in "".join(notes)
    assert any("田中 > works_on > プロジェクトA" in note for note in notes)


def imported(into: Persona, place: Path, now: datetime, zone: ZoneInfo, **how: Any) -> ImportResult:
    rows = [one.row for one in obsidian.read(source_of(place), print) if one.row]
    rows[-1] |= how
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    return import_lines(lambda: nullcontext(into), list(enumerate(lines, start=1)), ImportOptions(now, zone, Privacy(), "revise"))


def test_a_vault_imported_again_is_refreshed_and_deleted_notes_are_offered_for_forgetting(
    nilou: Persona, tmp_path: Path, now: datetime, zone: ZoneInfo
) -> None:
    place = tmp_path / "vault"
    place.mkdir()
    for name in ("母", "夕飯", "古い", "移す"):
        (place / f"{name}.md").write_text(f"{name}の話", encoding="utf-8")
    assert imported(nilou, place, now, zone).stored == 4
    assert imported(nilou, place, now, zone) == ImportResult(already_known=4)
    (place / "母.md").write_text("母は元気", encoding="utf-8")
    (place / "古い.md").unlink()
    (place / "人").mkdir()
    (place / "移す.md").rename(place / "人" / "移した.md")
    (place / "夕飯.md").write_bytes(b"\x81\x00\xfd\xfe\xff")  # can't be read, and isn't deleted for that
    keys = {row["content"]: row["key"] for row in map(json.loads, export_lines(nilou))}
    again = imported(nilou, place, now, zone)
    assert (again.revised, again.stored, again.dropped) == (1, 1, 0)
    assert [(gone.note, gone.keys) for gone in again.deleted_notes] == [("古い.md", (keys["古いの話"],)), ("移す.md", (keys["移すの話"],))]
    assert len(list(export_lines(nilou))) == 5
    assert imported(nilou, place, now, zone, forget=True).dropped == 2
    assert imported(nilou, place, now, zone).deleted_notes == ()
    assert {row["content"] for row in map(json.loads, export_lines(nilou))} == {"夕飯の話", "母は元気", "移すの話"}


def test_an_exported_note_that_was_deleted_is_offered_for_forgetting(
    eventful: Persona, unpacked: Any, say: Say, now: datetime, zone: ZoneInfo
) -> None:
    place = unpacked(eventful, ExportOptions())
    say("書き出した後の話")
    (note,) = [path for path in place.rglob("*.md") if "誕生日" in path.name]
    key = next(json.loads(line)["key"] for line in export_lines(eventful) if "誕生日" in line)
    note.unlink()
    (moved,) = [path for path in place.rglob("*.md") if "フォンテーヌ" in path.name]
    moved.rename(place / "住まい.md")
    result = imported(eventful, place, now, zone)
    assert [(gone.note, gone.keys) for gone in result.deleted_notes] == [(note.stem, (key,))]


def test_a_note_is_no_person_for_its_title_and_a_link_with_a_path_is_whom_it_shows(
    nilou: Persona, tmp_path: Path, now: datetime, zone: ZoneInfo
) -> None:
    place = tmp_path / "vault"
    place.mkdir()
    (place / "夕飯ノート.md").write_text("[[人/ダイズ|ダイズ]]と湯豆腐を食べた。", encoding="utf-8")
    imported(nilou, place, now, zone)
    while update_graph(nilou, now):
        pass
    with nilou.database.read() as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM entities")}
    assert "ダイズ" in names
    assert not {name for name in names if "夕飯" in name or "/" in name}
