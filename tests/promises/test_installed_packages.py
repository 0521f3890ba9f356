"""The wheel with the packages that the index has: the newest and the lowest versions that it allows, and the extras."""

import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import httpx2
import pytest
from model_directories import export_of, make_embedder
from packages import ALONE, build, importable, installed, linked, run
from packaging.requirements import Requirement
from processes import RunningServer, serving

from memory_mcp.extras import EXTRAS

pytestmark = [pytest.mark.thorough, pytest.mark.slow, pytest.mark.timeout(1_200)]

LIGHT = ("onnx", "offline", "graph", "langchain", "keyring", "sudachi", "metrics", "otel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("build"))[1]


def lowest(wheel: Path, extras: tuple[str, ...]) -> str:
    """A file of constraints: the lowest version that each range allows."""
    (program,) = metadata.distributions(path=[str(wheel)])
    found = []
    for line in program.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            found += [f"{requirement.name}=={bound.version}" for bound in requirement.specifier if bound.operator == ">="]
    return "\n".join(found)


def serves(commands: Path, directory: Path, config: dict[str, object], embedder: str, eventually: Callable[..., None]) -> None:
    """A server of this environment remembers and recalls, and shows its pages."""
    with serving(directory, json.dumps(config), command=[str(commands / "memory-mcp")], environment=ALONE) as server:
        for arguments in (["remember", "健太は苺が好き。"], ["remember", "[[リサ|Person]]は[[京都|Location]]へ行った。"]):
            assert command(commands, server, *arguments, "-p", "nilou").returncode == 0
        assert "苺" in command(commands, server, "recall", "健太 苺", "-p", "nilou").stdout
        assert get(server, "/ui/today").status_code == 200
        eventually(lambda: get(server, "/ready").json()["models"]["embedder"]["state"] == embedder)
        doctor = command(commands, server, "doctor")
        assert doctor.returncode == 0, doctor.stdout
        assert get(server, "/metrics").status_code == (200 if importable(commands, EXTRAS["metrics"]) else 501)
        if all(module in importable(commands, EXTRAS["graph"]) for module in EXTRAS["graph"]):
            for path in ("/api/graph/statistics", "/api/graph/communities", "/ui/people/picture"):
                assert get(server, path).status_code == 200, path
    assert not re.search("Traceback|ModuleNotFoundError", server.log.read_text(encoding="utf-8"))


def command(commands: Path, server: RunningServer, *arguments: str):
    return run(
        commands / "memory-mcp",
        *arguments,
        MEMORY_MCP_URL=server.url,
        MEMORY_MCP_DATA=str(server.data),
        MEMORY_MCP_CONFIG=str(server.config),
    )


def get(server: RunningServer, path: str):
    return httpx2.get(server.url + path, headers={"X-Persona": "nilou"}, follow_redirects=True, trust_env=False, timeout=60)


@pytest.mark.parametrize(
    ("bound", "extras"), [("newest", ()), ("newest", ("graph", "langchain", "metrics", "otel")), ("lowest", ("graph", "metrics", "otel"))]
)
def test_the_wheel_works_with_the_newest_and_the_lowest_versions_that_it_allows(wheel, tmp_path, bound, extras, eventually):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(lowest(wheel, ("", *extras)) if bound == "lowest" else "", encoding="utf-8")
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    commands = installed(tmp_path / "environment", wanted, "--constraint", str(constraints))
    assert importable(commands, ["torch", "onnxruntime", "rustworkx"]) == (["rustworkx"] if extras else [])
    serves(commands, tmp_path, {"embeddings_model": None, "reranker_model": None}, "off", eventually)


def test_an_exported_model_needs_no_more_than_the_extra_onnx(wheel, tmp_path, eventually):
    export = export_of(make_embedder(tmp_path / "model"), "embedder", tmp_path / "exports")
    commands = installed(tmp_path / "environment", f"{wheel}[onnx]")
    assert importable(commands, ["torch", "langchain_core", *EXTRAS["onnx"]]) == list(EXTRAS["onnx"])
    serves(commands, tmp_path, {"embeddings_model": str(export), "reranker_model": None, "inference_backend": "onnx"}, "loaded", eventually)


def test_all_but_torch_can_be_installed_together(wheel, tmp_path, eventually):
    commands = installed(tmp_path / "environment", f"{wheel}[{','.join(LIGHT)}]")
    optional = sorted({module for extra in LIGHT for module in EXTRAS[extra]})
    assert importable(commands, ["torch", *optional]) == optional
    config = {"embeddings_model": "multilingual-e5-small", "reranker_model": None, "graph": {"names_by": "sudachi"}}
    serves(commands, tmp_path, config, "loaded", eventually)


def test_a_model_needs_no_more_than_the_extra_models(wheel, tmp_path, eventually):
    """Of what is installed here: torch of the index would bring gigabytes."""
    commands = linked(tmp_path / "environment", wheel, "models")
    assert importable(commands, ["onnxruntime", "rustworkx", "langchain_community", *EXTRAS["models"]]) == list(EXTRAS["models"])
    serves(commands, tmp_path, {"embeddings_model": str(make_embedder(tmp_path / "model")), "reranker_model": None}, "loaded", eventually)
