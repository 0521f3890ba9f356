"""Where the machine is Japanese, commands speak Japanese to people, and what programs read is the same as everywhere."""

import ast
import re
import socket
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from error_wordings import PACKAGE, sayings, wordings

from memory_mcp import cli
from memory_mcp.cli.help_pages import descriptions, line_breaks, paragraphs
from memory_mcp.cli.japanese import named, worded
from memory_mcp.config.reading import language_of_machine
from memory_mcp.domain import MODES
from memory_mcp.wording import catalog, sentence

TOOLS_PAGE = PACKAGE.parent / "docs" / "tools-recall.md"
TABLES = catalog()
HELP = {paragraph for described in descriptions(typer.main.get_command(cli.app)) for paragraph in paragraphs(described.help)}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command line on a Japanese machine. Returns its status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(arguments)
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


@pytest.mark.feature("all")
def test_every_command_argument_and_option_is_explained_in_japanese_and_nothing_else():
    assert set(TABLES["help"]) == HELP
    assert all(re.search("[ぁ-んァ-ヶ一-龥]", japanese) for japanese in TABLES["help"].values() if " " in japanese)


def parameters(command: Any) -> Iterator[Any]:
    yield from command.params
    for inner in getattr(command, "commands", {}).values():
        yield from parameters(inner)


def test_every_argument_and_option_has_help():
    assert [parameter.name for parameter in parameters(typer.main.get_command(cli.app)) if not parameter.help] == []


def test_every_error_of_commands_and_features_has_japanese():
    assert (wordings("cli") | wordings("features")) - set(TABLES["sentences"]) == set()


def test_every_sentence_that_commands_and_features_tell_has_japanese():
    told = {text for text in sayings("cli") | sayings("features") if re.search("[a-z]{3}", text)}
    assert len(told) > 200
    assert told - set(TABLES["sentences"]) - set(TABLES["values"]) == set()


def test_a_command_prints_english_sentences_only_where_they_are_translated():
    english = re.compile(r"[a-z]{2,} [a-z]{2,}")
    printed = [
        constant.value
        for path in (PACKAGE / "cli").glob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("echo", "secho") and call.args
        for constant in ([call.args[0]] if isinstance(call.args[0], ast.Constant) else getattr(call.args[0], "values", []))
        if isinstance(constant, ast.Constant)
    ]
    assert [sentence for sentence in printed if english.search(str(sentence))] == []


def test_help_is_japanese(run: Run):
    status, out, _ = run("recall", "--help")
    assert status == 0
    assert "ペルソナの記憶を検索します。" in out
    assert "オプション" in out
    assert "この説明を表示します。" in out
    assert not re.search("Options|Show this|Default:", out)
    assert "記憶を1件保存します。" in run()[1]


@pytest.mark.parametrize("columns", ["60", "80"])
def test_a_page_of_help_shows_every_sentence_whole(run: Run, monkeypatch: pytest.MonkeyPatch, columns: str):
    monkeypatch.setenv("COLUMNS", columns)
    for arguments in ([], ["recall", "--help"], ["encrypt", "--help"], ["import", "--help"], ["persona"]):
        page = re.sub(r"[\s│]", "", run(*arguments)[1])
        assert "…" not in page
    assert "ペルソナの記憶を検索します。質問を省くと最近の記憶を表示します。" in re.sub(r"[\s│]", "", run()[1])


def test_a_flag_takes_no_value_on_a_page_of_help(run: Run):
    assert "<bool>" not in run("recall", "--help")[1]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("終了ステータス 1: 見つからない記憶", 16, ["終了ステータス ", "1: 見つからない", "記憶"]),
        ("記憶を1件保存します。", 20, ["記憶を1件保存しま", "す。"]),
        ("（終わり）の前", 6, ["（終わ", "り）の", "前"]),
        ("/very/long/path", 6, ["/very/", "long/p", "ath"]),
        ("", 6, [""]),
    ],
)
def test_a_line_of_japanese_ends_between_characters_and_not_before_punctuation(text: str, width: int, lines: list[str]):
    breaks = [0, *line_breaks(text, width), len(text)]
    assert [text[start:end] for start, end in pairwise(breaks)] == lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nope"], "--nope というオプションはありません。`memory-mcp --help` を参照してください。"),
        (["nope"], "'nope' というコマンドはありません。`memory-mcp --help` を参照してください。"),
        (["recal"], "'recal' というコマンドはありません。'recall' のことですか？`memory-mcp --help` を参照してください。"),
        (["persona", "rename"], "引数 'NAME' が必要です。`memory-mcp persona rename --help` を参照してください。"),
        (["serve", "--port", "x"], "'--port' の値が使えません。整数で指定してください。`memory-mcp serve --help` を参照してください。"),
        (["serve", "--port"], "'--port' には値が必要です。`memory-mcp --help` を参照してください。"),
        (
            ["remember", "a", "--importance", "3"],
            "'--importance' の値が使えません。1 以下で指定してください。`memory-mcp remember --help` を参照してください。",
        ),
        (["recall", "a", "b", "c"], "余分な引数があります: b c。`memory-mcp recall --help` を参照してください。"),
        (["recall", "a", "--url", "nowhere"], "'nowhere' はサーバーの URL ではありません。http://127.0.0.1:8000 のように書いてください。"),
        (["backup", "--data", "gone"], "gone はデータディレクトリではありません。--data で指定してください。"),
    ],
)
def test_a_mistake_is_told_in_japanese(run: Run, arguments: list[str], told: str):
    status, out, err = run(*arguments)
    assert status != 0
    assert out == ""
    assert err == f"memory-mcp: {told}\n"


def test_a_port_that_is_taken_is_told_in_japanese(run: Run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        _, _, err = run("serve", "--data", "memory", "--port", port)
    assert re.search(rf"127\.0\.0\.1:{port} で待ち受けられません（.*）。そのポートを使っているプログラムを止めるか、", err)


def test_what_a_command_did_is_told_in_japanese(run: Run):
    assert run("backup", "--data", ".")[1] == "ここにペルソナはありません。\n"
    identity = run("token", "create", "--all-personas", "--data", ".", "--name", "鍵")[2].split()[1].rstrip(":")
    assert run("token", "revoke", identity, "--data", ".")[1] == f"トークン {identity} を取り消しました。\n"


@pytest.mark.parametrize(
    ("said", "japanese"),
    [
        (sentence("{}: {} as {}", "さくら", sentence("stored"), "memory_1"), "さくら: 保存しました（memory_1）"),
        (sentence("{}: {} as {}", "stored", "known already", "all"), "stored: すでにあります（all）"),
        (sentence("{}: {}", "さくら", sentence("{} memories", 3)), "さくら: 3件"),
        (sentence("  similar to {}: {}", "memory_1", "苺: 好き"), "  似た記憶 memory_1: 苺: 好き"),
        (
            sentence("{}: {} {}stored, {} known already, {} {}refused", "さくら", 3, "would be ", 0, 1, "would be "),
            "さくら: （試行）新規 3件、既存 0件、拒否 1件",
        ),
        (sentence("line {}", 3), "3行目"),
        (sentence("upcoming on {}", "2026-11-20"), "予定日 2026-11-20"),
        ("nobody worded this", "nobody worded this"),
        (sentence("{} is unknown to the {}", "it", "catalog"), "it is unknown to the catalog"),
        (sentence("memory-mcp: {}", "{} and {0} are no places"), "memory-mcp: {} and {0} are no places"),
    ],
)
def test_sentences_keep_their_values_and_their_indentation(monkeypatch: pytest.MonkeyPatch, said: str, japanese: str):
    assert worded(said) == said
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert worded(said) == japanese


def test_every_mode_and_every_reason_for_a_degraded_answer_is_named_with_its_meaning(monkeypatch: pytest.MonkeyPatch):
    table = TOOLS_PAGE.read_text(encoding="utf-8").partition("### Degraded")[2].partition("`context_unreadable")[0]
    reasons = {reason for line in table.splitlines() for reason in re.findall(r"`(\w+)`", line.split("|")[1] if line else "")}
    assert "rerank_deadline" in reasons
    names = {("degraded", reason) for reason in reasons} | {("mode", mode) for mode in (*MODES, "hybrid")}
    assert {named(*name) for name in names} == {name for _, name in names}
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert [name for name in names if not re.fullmatch(rf"[ぁ-んァ-ヶ一-龥].* \[{name[1]}\]", named(*name))] == []


def test_an_error_that_no_table_has_is_told_as_it_is(run: Run, tmp_path: Path):
    tmp_path.joinpath("config.json").write_text("[", encoding="utf-8")
    assert re.fullmatch(r"memory-mcp: config\.json .*\n", run("backup", "--data", ".")[2])


def test_what_programs_read_is_the_same(run: Run, monkeypatch: pytest.MonkeyPatch):
    for arguments in (
        ["connect", "--client", "cursor", "-p", "a", "--only", "snippet"],
        ["token", "list", "--json", "--data", "."],
        ["--version"],
    ):
        japanese = run(*arguments)
        with monkeypatch.context() as patch:
            patch.setenv("LC_ALL", "en_US.UTF-8")
            assert run(*arguments) == japanese
        assert japanese[0] == 0


def test_a_group_without_a_command_shows_its_help_and_nothing_else(run: Run):
    status, out, err = run("persona")
    assert status != 0
    assert "ペルソナの名前を変えます。" in out
    assert err == ""


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "ja_JP.UTF-8"}, "en"),
        ({"LC_MESSAGES": "ja_JP", "LANG": "C"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "MEMORY_MCP_LANGUAGE": "en"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "MEMORY_MCP_LANGUAGE": "auto"}, "ja"),
    ],
)
def test_the_language_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], language: str):
    for name in ("MEMORY_MCP_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language_of_machine() == language
