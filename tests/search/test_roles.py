"""Who speaks beside what they are called: lines of assistants and bots count less, those of people and of the persona don't."""

import json
from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy
from memory_mcp.language.names import is_assistant
from memory_mcp.search.context import context
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines

LONG_ANSWER = "京都旅行の計画についてお答えします。京都は見どころが多く、京都旅行の計画は季節で変わります。" * 12
TOLD = "京都旅行は妹と行くことにした"


@pytest.fixture
def imported(nilou, personas, now, zone):
    """Imports lines of a JSON Lines file; returns how many were refused."""

    def imported(*rows, into="nilou"):
        lines = [(number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1)]
        return import_lines(lambda: personas.writing(into), lines, ImportOptions(now, zone, Privacy())).refused

    return imported


def contents(recalled):
    return [hit.memory.content for hit in recalled.hits]


@pytest.mark.parametrize("name", ["ChatGPT", "Claude", "Claude Code", "Codex", "Gemini CLI", "Copilot", "GitHub Copilot", "ＣｈａｔＧＰＴ"])
def test_what_an_assistant_known_by_its_name_said_stands_behind_what_people_said(say, ask, name):
    say(TOLD, source="user")
    say(LONG_ANSWER, source=name)
    assert is_assistant(name)
    assert contents(ask("京都旅行の計画は誰と？"))[0] == TOLD
    assert contents(ask(f"{name}は京都旅行の計画について何を言った？"))[0] == LONG_ANSWER


def test_a_bot_of_any_name_is_known_by_its_role_and_a_person_of_an_assistants_name_too(imported, say, ask):
    say(TOLD, source="健太")
    assert imported({"content": LONG_ANSWER, "source": "旅の友", "role": "assistant"}) == 0
    assert contents(ask("京都旅行の計画は誰と？"))[0] == TOLD
    say("毎朝、犬と川まで走る", source="健太")
    assert imported({"content": "犬は川が好き、犬は川で泳ぐ、犬は川から帰らない", "source": "Claude", "role": "user"}) == 0
    assert contents(ask("犬は川が好き？"))[0].startswith("犬は川が好き")


def test_a_personas_own_lines_are_its_own_whatever_it_is_called(say, ask, nilou):
    say("京都旅行は妹と", source="健太")
    say("京都旅行の計画は、妹と三日間、紅葉の京都を歩く旅行", source="Claude")
    assert contents(ask("京都旅行の計画は？"))[0] == "京都旅行は妹と"
    nilou.context.update({"persona_info": {"name": "Claude"}})
    assert contents(ask("京都旅行の計画は？"))[0].startswith("京都旅行の計画は")


def test_a_role_goes_with_its_memory_through_an_export(imported, nilou, personas, now, zone):
    assert imported({"content": "配信した", "source": "deploy", "role": "assistant"}) == 0
    lines = list(export_lines(nilou, ExportOptions()))
    assert imported(*map(json.loads, lines), into="dori") == 0
    with personas.reading("dori") as dori:
        assert list(export_lines(dori, ExportOptions())) == lines
    assert imported({"content": "配信した", "role": "boss"}) == 1


def test_chatter_of_an_agent_takes_one_place_among_the_latest(say, nilou, now, settings):
    def recent():
        found = context(nilou, "", max_tokens=5_000, models=unloaded_models(settings), settings=settings, now=now)
        return [hit.memory.content for layer, hit in found.hits if layer == "recent"]

    for day in range(6):
        say(f"日曜の市場で苺を{day + 2}箱買った", at=now - timedelta(days=20 - day), source="user")
    for number in range(30):
        say(f"テストは{number + 3}件とも通りました。", at=now - timedelta(hours=30 - number), source="Claude Code", kind="conversation")
    assert recent() == ["テストは32件とも通りました。", *(f"日曜の市場で苺を{count}箱買った" for count in (7, 6, 5, 4))]


def test_where_only_an_agent_spoke_its_lines_are_the_latest(say, nilou, now, settings):
    for number in range(4):
        say(f"モジュール{number}の設計を決めた。", at=now - timedelta(hours=9 - number), source="Codex")
    found = context(nilou, "", max_tokens=5_000, models=unloaded_models(settings), settings=settings, now=now)
    assert len(found.hits) == 4
