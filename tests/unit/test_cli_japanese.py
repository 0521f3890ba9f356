"""Where the machine is Japanese, commands speak Japanese to people, and what programs read is the same as everywhere."""

import ast
import re
import socket
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from error_wordings import PACKAGE, wordings

from memory_mcp import cli
from memory_mcp.cli.japanese import descriptions, line_breaks, named, paragraphs, worded
from memory_mcp.config.reading import language_of_machine
from memory_mcp.domain import MODES
from memory_mcp.server.translations import Translations

TOOLS_PAGE = PACKAGE.parent / "docs" / "tools.md"
TABLES = tomllib.loads(Path(cli.__file__).with_name("japanese.toml").read_text(encoding="utf-8"))
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


def test_every_command_argument_and_option_is_explained_in_japanese_and_nothing_else():
    assert set(TABLES["help"]) == HELP
    assert all(re.search("[ぁ-んァ-ヶ一-龥]", japanese) for japanese in TABLES["help"].values() if " " in japanese)


def parameters(command: Any) -> Iterator[Any]:
    yield from command.params
    for inner in getattr(command, "commands", {}).values():
        yield from parameters(inner)


def test_every_argument_and_option_has_help():
    assert [parameter.name for parameter in parameters(typer.main.get_command(cli.app)) if not parameter.help] == []


def test_every_error_of_the_commands_has_japanese():
    of_commands = wordings("cli") - {"{0}."}
    assert of_commands - set(TABLES["errors"]) == set()


@pytest.mark.slow
def test_every_error_that_has_japanese_is_one_that_the_product_words_so_with_the_same_places():
    assert set(TABLES["errors"]) - wordings() == set()
    for english, japanese in {**TABLES["errors"], **TABLES["usage"]}.items():
        assert set(re.findall(r"{\d}", japanese)) <= set(re.findall(r"{\d}", english)), english


def test_every_sentence_that_commands_tell_has_japanese():
    table = Translations.of(TABLES["told"])
    sentences = [sentence for path in (PACKAGE / "cli").glob("*.py") for sentence in told_in(ast.parse(path.read_text(encoding="utf-8")))]
    assert len(sentences) > 50
    assert [sentence for sentence in sentences if re.search("[a-z]{3}", sentence) and table.find(sentence.strip()) is None] == []
    for english, japanese in TABLES["told"].items():
        assert set(re.findall(r"{\d}", japanese)) <= set(re.findall(r"{\d}", english)), english


def told_in(tree: ast.AST) -> Iterator[str]:
    """The sentences that `tell` and `worded` are called with, with - for each value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("tell", "worded"):
            match node.args[0]:
                case ast.Constant(value=str(sentence)):
                    yield sentence
                case ast.JoinedStr(values=parts):
                    yield "".join(part.value if isinstance(part, ast.Constant) else "-" for part in parts)


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


def test_what_stands_in_a_place_is_in_the_source():
    source = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    words = source + source.replace("_", " ")
    assert [part for part in TABLES["parts"] if not all(piece in words for piece in re.split(r"{\d}", part))] == []


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
    ("english", "japanese"),
    [
        ("さくら: stored as memory_1", "さくら: 保存しました（memory_1）"),
        ("さくら: 3 memories", "さくら: 3件"),
        ("  similar to memory_1: 苺: 好き", "  似た記憶 memory_1: 苺: 好き"),
        ("さくら: 3 would be stored, 0 known already, 1 would be refused", "さくら: （試行）新規 3件、既存 0件、拒否 1件"),
        ("line 3", "3行目"),
        ("upcoming on 2026-11-20", "予定日 2026-11-20"),
        ("さくら: memory_1 is back from the trash, revision 2", "さくら: memory_1 をごみ箱から戻しました（第2版）"),
        (
            "さくら: 1 memory, 1 waiting for a vector; database and lexical index are sound",
            "さくら: 1件、ベクトル待ち 1件。データベースと単語インデックスに異常はありません",
        ),
        (
            "1 backup of this server, the newest of 2025-10-30, may hold it until somebody removes them: backup.enabled is false, and nothing removes the old ones",
            "このサーバーのバックアップ（最新は 2025-10-30）には、削除するまで残ることがあります（自動バックアップがオフのため、古いものは消えません）",
        ),
        ("nobody worded this", "nobody worded this"),
    ],
)
def test_sentences_keep_their_values_and_their_indentation(monkeypatch: pytest.MonkeyPatch, english: str, japanese: str):
    assert worded(english) == english
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert worded(english) == japanese


def test_every_mode_and_every_reason_for_a_degraded_answer_is_named_with_its_meaning(monkeypatch: pytest.MonkeyPatch):
    table = TOOLS_PAGE.read_text(encoding="utf-8").partition("#### Degraded")[2].partition("`context_unreadable")[0]
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
