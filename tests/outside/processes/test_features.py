"""A folder of features/ can be deleted: what it brings is gone, all else works, and what it has stored stays."""

import json
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import absent_features
import httpx2
import pytest
from fork_server import FORKS, ForkServer
from processes import ROOT, RunningServer, clean_environment, importable, serving

from memory_mcp import cli  # noqa: F401  first: it asks for the commands of features
from memory_mcp.feature import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FEATURES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
# Serves, after it has written what it offers: most of a start is imports, so both are one process, and the packages of others are imported once.
PROGRAM = """
import json, os
from memory_mcp.cli import EVERYDAY, GROUPS, main
from memory_mcp.config.settings import documented_keys
from memory_mcp.server.http.openapi import document
from memory_mcp.server.http.routes import OPERATIONS
from memory_mcp.server.mcp.tools import TOOLSETS
from memory_mcp.server.feature import features
commands = [*EVERYDAY, *(member for _, members in GROUPS.values() for member in members)]
offered = {
    "tools": [action.tool.name for actions in TOOLSETS.values() for action in actions],
    "toolsets": list(TOOLSETS),
    "routes": [action.route.name for action in OPERATIONS],
    "headers": list(document(OPERATIONS)["components"]["parameters"]),
    "pages": [route.path for feature in features() for route in feature.routes],
    "commands": [getattr(command, "__name__", None) or command.info.name for command in commands],
    "settings": [key.partition(".")[0] for key, _, _ in documented_keys()],
}
with open(os.environ["OFFERED"], "w", encoding="utf-8") as file:
    json.dump(offered, file)
main()
"""
REMEMBERED = "Ame drinks barley tea"
POOLS, SHARED = {"pools": {"tea": {"writers": "all"}}}, "The tea house opens at ten"


def name_of(command) -> str:
    return getattr(command, "__name__", None) or command.info.name


def test_every_feature_is_one_that_tests_may_be_marked_with():
    assert set(FEATURES) == absent_features.FEATURES


def brought(feature: str) -> dict[str, set[str]]:
    """What a feature registers, by the kind of thing."""
    parts = {path.stem: import_module(f"memory_mcp.features.{feature}.{path.stem}") for path in (FOLDER / feature).glob("*.py")}
    server = getattr(parts.get("feature"), "FEATURE", None)
    commands = getattr(parts.get("commands"), "COMMANDS", None)
    keys = getattr(parts.get("settings"), "SETTINGS", None)
    return {
        "tools": {action.tool.name for actions in server.toolsets.values() for action in actions} if server else set(),
        "toolsets": set(server.toolsets) if server else set(),
        "routes": {action.route.name for action in server.operations if action.route} if server else set(),
        "headers": {"pool"} if server and server.pools else set(),
        "pages": {route.path for route in server.routes} if server else set(),
        "commands": {name_of(command) for command in (*commands.everyday, *commands.data, *commands.admin)} if commands else set(),
        "settings": set(keys.keys) if keys else set(),
    }


@dataclass(frozen=True)
class Copy:
    """A copy of the package, and what starts servers of it."""

    package: Path
    environment: Mapping[str, str]
    forks: ForkServer | None

    @property
    def features(self) -> Path:
        return self.package / "features"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    directory = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "memory_mcp", directory / "memory_mcp", copy_function=os.symlink)
    paths = os.pathsep.join([str(directory), importable()["PYTHONPATH"]])
    environment = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": ""}  # compiled once
    forks = ForkServer(clean_environment(environment), PROGRAM) if FORKS else None
    yield Copy(directory / "memory_mcp", environment, forks)
    if forks:
        forks.close()


@contextmanager
def serving_copy(copy: Copy, directory: Path, config: str = "{}") -> Iterator[tuple[RunningServer, httpx2.Client]]:
    """A server of the package in a copy, and a client of its."""
    command = None if copy.forks else (sys.executable, "-P", "-c", PROGRAM)
    environment = {**copy.environment, "OFFERED": str(directory / "offered.json")}
    with (
        serving(directory, config, command=command, forks=copy.forks, environment=environment) as server,
        httpx2.Client(base_url=server.url, headers={"X-Persona": "ame"}, timeout=60, trust_env=False) as http,
    ):
        yield server, http


def offered(directory: Path) -> dict[str, set[str]]:
    """What the server that was started in a directory offers, by the kind of thing."""
    return {kind: set(names) for kind, names in json.loads(directory.joinpath("offered.json").read_text(encoding="utf-8")).items()}


@pytest.fixture(scope="module")
def filled(copy, tmp_path_factory):
    """A data directory with what features store, and its export."""
    directory, config = tmp_path_factory.mktemp("filled"), json.dumps(POOLS)
    with serving_copy(copy, directory, config) as (_, http):
        http.post("/api/memories", json={"content": "Ame met [[Kenta|Person]] in the tea house"}).raise_for_status()
        http.post("/api/report", json={"task": "brew barley tea", "outcome": "worked", "steps": ["boil it"]}).raise_for_status()
        http.post("/api/memories", json={"content": SHARED, "pool": "tea"}).raise_for_status()
        exported = exported_lines(http)
    return directory / "memory", exported, offered(directory)


def exported_lines(http: httpx2.Client) -> list[str]:
    return [line for line in http.get("/api/export").text.splitlines() if '"exported_at"' not in line]


@pytest.mark.parametrize("feature", FEATURES)
def test_without_its_folder_a_feature_is_gone_and_nothing_else(feature, filled, copy, tmp_path):
    folder = copy.features / feature
    folder.rename(tmp_path / feature)
    try:
        check_without(feature, filled, copy, tmp_path)
    finally:
        (tmp_path / feature).rename(folder)


def check_without(feature, stored, copy, tmp_path):
    shutil.copytree(stored[0], tmp_path / "memory")
    config = json.dumps(
        {"toolsets": ["core", "upkeep", "compat", "graph", "experience"], **{key: {} for key in brought(feature)["settings"]}}
    )
    with serving_copy(copy, tmp_path, config) as (server, http):
        assert offered(tmp_path) == {kind: names - brought(feature)[kind] for kind, names in stored[2].items()}
        assert exported_lines(http) == stored[1]
        http.post("/api/memories", json={"content": REMEMBERED}).raise_for_status()
        found = http.get("/api/recall", params={"query": "What does Ame drink?"}).json()["hits"]
        assert REMEMBERED in {hit["content"] for hit in found}
        for toolset in brought(feature)["toolsets"]:
            assert f"toolsets names {toolset}, and nothing here brings its tools" in server.log.read_text(encoding="utf-8")
        warned = [line for line in server.log.read_text(encoding="utf-8").splitlines() if "is ignored" in line]
        assert len(warned) == len(brought(feature)["settings"])
        assert json.loads(server.config.read_text(encoding="utf-8")).items() >= json.loads(config).items()


def test_without_its_folder_no_pool_is_reached_and_nothing_meant_for_one_reaches_a_persona(filled, copy, tmp_path):
    folder, config = copy.features / "pools", json.dumps(POOLS)
    folder.rename(tmp_path / "pools")
    try:
        shutil.copytree(filled[0], tmp_path / "memory")
        with serving_copy(copy, tmp_path, config) as (_, http):
            assert http.get("/api/recall", params={"query": SHARED}).json()["hits"][0]["content"] != SHARED
            assert http.post("/api/memories", json={"content": REMEMBERED, "pool": "tea"}).status_code == 403
            assert http.post("/api/memories", json={"content": REMEMBERED}, headers={"X-Pool": "tea"}).status_code == 403
            assert http.post("/api/purge", json={}, headers={"X-Pool": "tea"}).status_code == 403
            assert exported_lines(http) == filled[1]
    finally:
        (tmp_path / "pools").rename(folder)
    with serving_copy(copy, tmp_path, config) as (_, http):
        found = http.get("/api/recall", params={"query": SHARED}).json()["hits"][0]
    assert (found["content"], found["pool"]) == (SHARED, "tea")


def test_the_example_of_the_readme_brings_all_that_it_registers_and_its_table_stays_without_it(copy, filled, tmp_path):
    files = re.findall(
        r"^`(\S+\.py)`\n\n```python\n(.*?)```", FOLDER.joinpath("README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert sum(len(code.splitlines()) for _, code in files) <= 60
    folder = copy.features / "guestbook"
    folder.mkdir()
    for name, code in [*files, ("guestbook/__init__.py", "")]:
        folder.parent.joinpath(name).write_text(code, encoding="utf-8")
    try:
        config = json.dumps({"guestbook": {"kept": 2}, "upkeep": {"idle_seconds": 0}})
        with serving_copy(copy, tmp_path, config) as (_, http):
            guests = [http.post("/api/guests", json={"name": name}).json()["guests"] for name in ("Keqing", "Ganyu")]
    finally:
        shutil.rmtree(folder)
    assert {kind: names - filled[2][kind] for kind, names in offered(tmp_path).items()} == {
        "tools": {"sign_guestbook"},
        "routes": {"POST /api/guests"},
        "commands": {"sign"},
        "settings": {"guestbook"},
        "pages": set(),
        "headers": set(),
        "toolsets": set(),
    }
    assert guests == [["Keqing"], ["Keqing", "Ganyu"]]
    with serving_copy(copy, tmp_path, config) as (server, http):
        http.post("/api/memories", json={"content": REMEMBERED}).raise_for_status()
        assert http.post("/api/guests", json={"name": "Ningguang"}).status_code == 404
    with closing(sqlite3.connect(next(server.data.glob("ame/memory.sqlite")))) as connection:
        assert connection.execute("SELECT name FROM guests ORDER BY id").fetchall() == [("Keqing",), ("Ganyu",)]
