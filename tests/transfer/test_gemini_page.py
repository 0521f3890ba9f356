"""The page that Takeout makes of Gemini's activities unless one asks for JSON is read like the latter, in any language."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.transfer.formats import gemini
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.table import ROWS

CELL = '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1'


def activity(program: str, body: str) -> str:
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid"><div class="header-cell mdl-cell">'
        f'<p class="mdl-typography--title">{program}<br></p></div>{CELL}">{body}</div>{CELL} mdl-typography--text-right"></div>'
        f'<div class="content-cell mdl-typography--caption"><b>Products:</b><br>&emsp;{program}<br></div></div></div>'
    )


def page(tmp_path: Path, *activities: str, styles: int = 200_000) -> Path:
    path = tmp_path / "MyActivity.html"
    style = f"<style>.mdl-grid{{}}{' ' * styles}</style>"
    path.write_text(f"<html><head><title>My Activity</title>{style}</head><body>{''.join(activities)}</body></html>")
    return path


def read(path: Path) -> list[ImportItem]:
    kind = detect_format(path)
    assert kind == "gemini"
    return list(ROWS[kind].read(path, ReadOptions(zone=ZoneInfo("Asia/Tokyo")), print))


@pytest.mark.parametrize(
    ("program", "prompted", "time"),
    [
        ("Gemini Apps", "Prompted&nbsp;", "Feb 2, 2026, 7:24:02\u202fAM UTC"),
        ("Gemini アプリ", "送信したメッセージ:&nbsp;", "2026/02/02 16:24:02 JST"),
        ("Gemini アプリ", "送信したメッセージ:&nbsp;", "2026年2月2日 16:24:02 JST"),
        ("Gemini-Apps", "Eingegebener Prompt:&nbsp;", "02.02.2026, 08:24:02 MEZ"),
        ("Applications Gemini", "Prompt saisi :&nbsp;", "2 févr. 2026, 08:24:02 CET"),
        ("Gemini 앱", "", "2026. 2. 2. 오후 4:24:02 KST"),
        ("Gemini Apps", "Prompted&nbsp;", "2 Feb 2026, 12:54:02 IST"),
        ("Gemini Apps", "Prompted&nbsp;", "2 Feb 2026, 16:24:02"),
    ],
)
def test_a_prompt_and_its_answer_are_two_turns_at_their_second(tmp_path: Path, program: str, prompted: str, time: str) -> None:
    body = f"{prompted}2 &lt; 3?<br>at 10:20<br>{time}<br><p>It <b>is</b>.</p><table><tr><td>a</td><td>b</td></tr></table>"
    items = read(page(tmp_path, activity("Search", f"Searched for x<br>{time}<br>"), activity(program, body)))
    said = [(item.row["source"], item.row.get("role"), item.row["occurred_at"], item.row["content"]) for item in items if item.row]
    assert said == [
        ("user", None, "2026-02-02T07:24:02+00:00", "2 < 3?\nat 10:20"),
        ("Gemini", "assistant", "2026-02-02T07:24:02+00:00", "It is.\na b"),
    ]
    assert [item for item in items if item.row is None] == []


def test_files_and_what_was_no_prompt_are_counted(tmp_path: Path) -> None:
    asked = "Prompted&nbsp;look<br>Attached 1 file.<br>-&nbsp;<a href='i.png'>i.png</a><br>Feb 2, 2026, 7:24:02 AM UTC<br><p>seen</p>"
    items = read(
        page(tmp_path, activity("Gemini Apps", asked), activity("Gemini Apps", "Used Gemini Apps<br>Feb 2, 2026, 7:22:02 AM JST<br>"))
    )
    assert [item.row["content"] for item in items if item.row] == ["look", "seen"]
    assert [item.left_out for item in items if item.left_out] == ["contents of files", "notices"]


def test_a_page_of_something_else_is_a_document(tmp_path: Path) -> None:
    assert detect_format(page(tmp_path, activity("Search", "Searched for x<br>Feb 2, 2026, 7:24:02 AM UTC<br>"))) == "document"


def test_an_activity_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini, "ACTIVITY_LIMIT_CHARACTERS", 10_000)
    path = page(tmp_path, activity("Gemini Apps", f"Prompted&nbsp;{'x' * 20_000}<br>"), styles=100)
    assert [item.refused.partition(":")[0] for item in read(path)] == [f"{path.name} is not read"]
