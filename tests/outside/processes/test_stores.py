"""Which store a command works on: the one that is named, never whatever server answers at the configured address."""

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import typer
from figures import Figure
from processes import RunningServer, command, serving
from stdio_host import call

from memory_mcp import cli
from memory_mcp.client import langchain
from memory_mcp.client.langchain import PersonaRetriever
from memory_mcp.config.reading import user_data_directory
from memory_mcp.errors import ServerUnreachable

pytestmark = pytest.mark.slow

NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The server at the configured address, of a data directory that nobody else names. It knows さくら."""
    with serving(tmp_path_factory.mktemp("other"), NO_MODELS) as server:
        server.memory_mcp("remember", "猫の名前はもなか", "-p", "さくら")
        yield server


@pytest.fixture
def at_home(other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A user with an empty home, in an empty directory, on whose machine the other server answers where a server is expected."""
    said = {name: str(tmp_path / "home") for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA")}
    said["MEMORY_MCP_SERVER_PORT"] = other.url.rpartition(":")[2]
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    for name in ("URL", "DATA", "CONFIG", "PERSONA", "TOKEN"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return said


@pytest.fixture
def run(at_home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    """run(*arguments): status, stdout and stderr of a command of that user."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(arguments)
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def rows(server: RunningServer) -> str:
    return server.memory_mcp("recall", "-p", "さくら", "-n", "50").stdout


def session_start() -> TextIOWrapper:
    """What an agent writes to its hook when a conversation begins."""
    return TextIOWrapper(BytesIO(b'{"hook_event_name": "SessionStart"}'))


def named_by_variable(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MCP_DATA", str(directory / "mine"))


def named_by_checkout(directory: Path, _: pytest.MonkeyPatch) -> None:
    (directory / "memory").mkdir()
    (directory / "config.json").write_text(NO_MODELS)


def named_by_what_a_server_left(directory: Path, _: pytest.MonkeyPatch) -> None:
    (directory / "memory").mkdir()
    (directory / "memory/.server.lock").touch()


def users_own(_directory: Path, _: pytest.MonkeyPatch) -> None:
    persona = user_data_directory() / "nilou"
    persona.mkdir(parents=True)
    (persona / "persona.json").write_text('{"name": "nilou"}')


NAMED = [named_by_variable, named_by_checkout, named_by_what_a_server_left, users_own]


# Each command that calls a server; those that start one themselves, or print what others are to call, have tests of their own.
COMMANDS = [
    "remember よその話",
    "recall もなか",
    "recent",
    "context",
    "expire-session s never",
    "personas",
    "revise KEY よその話",
    "forget KEY",
    "import a.jsonl",
    "export",
    "sync folder",
    "organize",
    "figures",
    "weights",
    "history KEY",
    "purge KEY",
    "pack make a.pack --name a --signer b",
    "pack install a.pack",
    "persona list",
    "persona stats",
    "persona rename さくら さくろ",
    "persona copy さくら さくろ",
    "persona merge さくら さくろ",
    "persona erase さくら --confirm さくら",
]
OTHERS = {"chat", "stdio", "connect", "hook"}


def commands_with(option: str, tree: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    for name, inner in getattr(tree, "commands", {}).items():
        yield from commands_with(option, inner, (*words, name))
    if any(parameter.name == option for parameter in tree.params):
        yield " ".join(words)


def test_every_command_that_calls_a_server_is_tried() -> None:
    found = commands_with("url", typer.main.get_command(cli.app))
    names = {name for name in found if name not in OTHERS and name.split()[0] not in cli.GROUPS}
    assert names == {name for name in names for line in COMMANDS if line == name or line.startswith(f"{name} ")}
    assert len(names) == len(COMMANDS)


@pytest.mark.parametrize("name_it", NAMED)
def test_a_store_that_no_server_serves_is_not_swapped_for_another(
    name_it: Callable[[Path, pytest.MonkeyPatch], None], run: Run, other: RunningServer, monkeypatch: pytest.MonkeyPatch, figure: Figure
) -> None:
    name_it(Path.cwd(), monkeypatch)
    (Path.cwd() / "folder").mkdir()
    (Path.cwd() / "a.jsonl").write_text('{"content": "よその話"}\n', encoding="utf-8")
    made = other.memory_mcp("pack", "make", str(Path.cwd() / "a.pack"), "--name", "a", "--signer", "b", "-p", "さくら")
    assert made.returncode == 0, made.stderr
    before, key = rows(other), json.loads(other.memory_mcp("recall", "-p", "さくら", "--json").stdout)["hits"][0]["key"]
    for line in COMMANDS:
        status, out, err = run(*line.replace("KEY", key).replace("make a.pack", "make b.pack").split())
        assert status == 1, line
        assert "もなか" not in out, line
        assert "no server serves the data directory" in err, line
        assert f"the one at {other.url} serves another" in err
        assert "serve --data" in err
        assert "--url" in err
    monkeypatch.setattr("sys.stdin", session_start())
    status, out, err = run("hook", "-p", "さくら")
    assert (status, json.loads(out)) == (0, {})
    assert "serves another" in err
    assert rows(other) == before
    figure("commands in a store without a server, beside another's", len(COMMANDS) + 1)


def test_a_server_of_the_store_is_used_wherever_it_answers(
    run: Run, other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MCP_DATA", str(tmp_path / "mine"))
    with serving(tmp_path, NO_MODELS, data=tmp_path / "mine") as mine:
        assert run("remember", "ここだけの話", "-p", "さくら")[0] == 0
        assert "ここだけの話" in rows(mine)
        # As in a container whose port is another outside: the note has an address at which nobody answers.
        note = tmp_path / "mine/.server.json"
        told = json.loads(note.read_text())
        note.write_text(json.dumps({**told, "url": "http://127.0.0.1:9"}))
        monkeypatch.setenv("MEMORY_MCP_SERVER_PORT", mine.url.rpartition(":")[2])
        assert "ここだけの話" in run("recall", "話", "-p", "さくら")[1]
    assert "ここだけの話" not in rows(other)


def test_where_nobody_names_a_store_and_the_user_has_none_the_server_that_answers_is_used(run: Run, other: RunningServer) -> None:
    assert "もなか" in run("recall", "猫", "-p", "さくら")[1]
    (Path.cwd() / "memory").mkdir()  # of another program
    status, out, err = run("recall", "猫", "-p", "さくら")
    assert (status, "もなか" in out, "new in" in err) == (0, True, False)
    assert other.process.poll() is None


def test_an_address_goes_before_what_the_environment_names_and_must_not_contradict_a_directory(
    run: Run, other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MCP_DATA", str(tmp_path / "mine"))
    assert "もなか" in run("recall", "猫", "-p", "さくら", "--url", other.url)[1]
    monkeypatch.setenv("MEMORY_MCP_URL", other.url)
    assert "もなか" in run("recall", "猫", "-p", "さくら")[1]
    for data, is_said in ((tmp_path / "mine", True), (other.data, False)):
        monkeypatch.setattr("sys.stdin", session_start())
        said = run("hook", "-p", "さくら", "--data", str(data))
        assert (f"--data {data} goes before MEMORY_MCP_URL, which names {other.url}" in said[2]) is is_said
        assert ("もなか" in said[1]) is not is_said
    chat = ("chat", "--once", "hi", "-m", "ollama:x", "--url", other.url)
    assert "--url and --data name two stores" in run(*chat, "--data", str(tmp_path / "mine"))[2]
    assert "two stores" not in run(*chat, "--data", str(other.data))[2]


def test_a_retriever_is_not_given_another_store_either(
    run: Run, other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langchain, "DEFAULT_URL", other.url)
    assert [found.page_content for found in PersonaRetriever(persona="さくら").invoke("猫")] == ["猫の名前はもなか"]
    monkeypatch.setenv("MEMORY_MCP_DATA", str(tmp_path / "mine"))
    with pytest.raises(ServerUnreachable, match="serves another"):
        PersonaRetriever(persona="さくら")


def test_a_store_without_the_persona_says_which_one_has_it(at_home: dict[str, str], other: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(NO_MODELS)
    data = ("--data", str(tmp_path / "mine"))
    told = f"さくら is new in {tmp_path}/mine; another store on this machine has one of that name: --url {other.url}"
    done = command("stdio", *data, "-p", "さくら", stdin=call(1, "remember", content="一"), environment=at_home)
    assert told in done.stderr
    assert json.loads(done.stdout)["result"]["structuredContent"]["stored"]
    again = command("stdio", *data, "-p", "さくら", stdin=b"", environment=at_home)
    assert "is new in" not in again.stderr
    unknown = command("stdio", *data, "-p", "誰も知らない", stdin=b"", environment=at_home)
    assert "is new in" not in unknown.stderr
    # Of a directory that nobody serves, too.
    home = {**at_home, "MEMORY_MCP_DATA": str(tmp_path / "mine"), "MEMORY_MCP_SERVER_PORT": "9"}
    done = command("stdio", "--data", str(tmp_path / "third"), "-p", "さくら", stdin=b"", environment=home)
    assert f"--data {shlex.quote(str(tmp_path / 'mine'))}" in done.stderr


def test_a_chat_begins_in_the_store_that_is_named(at_home: dict[str, str], other: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(NO_MODELS)
    named = {**at_home, "MEMORY_MCP_DATA": str(tmp_path / "mine"), "OLLAMA_HOST": "http://127.0.0.1:9"}
    before = rows(other)
    done = command("chat", "--once", "もなかは元気？", "-m", "ollama:x", "--transcript", "-p", "さくら", environment=named)
    assert f"さくら is new in {tmp_path}/mine" in done.stderr
    assert (tmp_path / "mine/.server.lock").exists()
    assert rows(other) == before


def test_a_client_gets_the_store_that_answers_now_or_the_directory_that_is_named(
    run: Run, other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = ("connect", "-p", "さくら", "--only", "snippet", "--client")

    def ways(*options: str) -> tuple[list[str], str]:
        desktop = json.loads(run(*connect, "claude-desktop", *options)[1])["mcpServers"]["memory"]["args"]
        return desktop[desktop.index("stdio") + 3 :], json.loads(run(*connect, "cursor", *options)[1])["mcpServers"]["memory"]["url"]

    assert ways() == (["--url", other.url], f"{other.url}/mcp")
    monkeypatch.setenv("MEMORY_MCP_DATA", str(tmp_path / "mine"))
    status, _, err = run(*connect, "cursor")
    assert (status, f"the one at {other.url} serves another" in err) == (1, True)
    assert json.loads(run(*connect, "claude-desktop")[1])["mcpServers"]["memory"]["args"][-2:] == ["--data", str(tmp_path / "mine")]
    assert ways("--url", other.url) == (["--url", other.url], f"{other.url}/mcp")
    assert ways("--data", str(other.data)) == (["--data", str(other.data)], f"{other.url}/mcp")
    with serving(tmp_path, NO_MODELS, data=tmp_path / "mine") as mine:
        assert ways() == (["--data", str(tmp_path / "mine")], f"{mine.url}/mcp")


def test_doctor_lists_the_stores_of_this_machine_and_who_serves_them(
    run: Run, other: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_own(Path.cwd(), monkeypatch)
    with serving(tmp_path, NO_MODELS, data=tmp_path / "mine") as mine:
        mine.memory_mcp("remember", "一", "-p", "さくら")
        monkeypatch.setenv("MEMORY_MCP_DATA", str(tmp_path / "mine"))
        told = run("doctor")[1]
        assert f"{tmp_path}/mine holds 1 persona(s), 1 memory: the server at {mine.url} serves it, and commands here use it" in told
        assert f"{user_data_directory()} holds 1 persona(s): no server serves it" in told
        assert f"{other.url} holds 1 persona(s), 1 memory: a server of another directory answers" in told
        assert "さくら in more than one of them" in told
        monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
        assert f"{other.url}: ペルソナ 1人、記憶 1件。別のディレクトリのサーバーが応答しています" in run("doctor")[1]
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("MEMORY_MCP_DATA")
    assert f"{other.url} holds 1 persona(s), 1 memory" in run("doctor", "--data", str(other.data))[1].replace(str(other.data), other.url)


def test_doctor_names_databases_in_a_data_directory_that_no_server_reads(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "mine"
    (data / "lists").mkdir(parents=True)
    for name in ("memo.db", "lists/todo.sqlite3"):
        with closing(sqlite3.connect(data / name)) as database:
            database.execute("CREATE TABLE t (x)")
    (data / "notes.txt").write_text("SQLite")
    told = run("doctor", "--data", str(data))[1]
    assert "2 database(s) that no persona has stay as they are: lists/todo.sqlite3, memo.db." in told
