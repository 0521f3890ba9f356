"""Everything that the server of 27 November 2026 stored is still there, and everything that could be asked of it can still be asked."""

import json
import zipfile
from collections import Counter

import httpx2
import pytest
from processes import serving
from stored_data import Client, as_then
from stored_whole import ARCHIVE, ENCRYPTED, INSTALLED, PLAIN, SURFACE, configuration, routes, surface, told

from memory_mcp.config.reading import load

pytestmark = pytest.mark.slow

THEN = json.loads(SURFACE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stored")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(directory)
    (directory / "master.key").chmod(0o600)
    with serving(directory, configuration(directory, 3_600)) as server:
        yield server


@pytest.fixture(scope="module")
def given():
    with zipfile.ZipFile(ARCHIVE) as archive:
        return json.loads(archive.read("answers.json"))


def _missing(now, then):
    """What an earlier list has and this one lacks, each line compared by the fields that it had."""
    if not isinstance(then, list):
        return [] if as_then(now, then) == as_then(then, then) else [then]
    known = [each for each in now if isinstance(each, dict)]
    return [one for one in then if one not in now and not any(as_then(each, one) == as_then(one, one) for each in known)]


def test_every_stored_row_is_exported_and_every_memory_found_as_before(server, given):
    now = told(server, given["secret"])
    assert Counter({name: len(_missing(now[name], then)) for name, then in given["answers"].items()}).total() == 0, {
        name: missing for name, then in given["answers"].items() if (missing := _missing(now[name], then))
    }


def test_every_store_takes_new_memories(server, given):
    for persona in (PLAIN, ENCRYPTED, INSTALLED):
        client = Client(server, persona, given["secret"])
        key = client.tool("remember", content="抹茶を買った。")["key"]
        assert [hit["key"] for hit in client.tool("recall", query="抹茶", mode="keyword")["hits"]] == [key]


def test_every_command_option_tool_and_argument_is_still_there():
    now = surface()
    for kind in ("commands", "tools"):
        gone = {name: sorted(missing) for name, then in THEN[kind].items() if (missing := {*then} - {*now[kind].get(name, ())})}
        assert gone == {}, kind
        assert {*THEN[kind]} - {*now[kind]} == set(), kind


def test_every_route_takes_what_it_took(server, given):
    headers = {"Authorization": f"Bearer {given['secret']}"}
    described = httpx2.get(f"{server.url}/api/openapi.json", headers=headers, timeout=60, trust_env=False).raise_for_status().json()
    now = routes(described)
    assert {name: missing for name, then in THEN["routes"].items() if (missing := {*then} - {*now.get(name, ())} or name not in now)} == {}


def test_a_configuration_with_every_setting_loads_without_a_warning():
    tree: dict[str, object] = {}
    for key, default in THEN["settings"].items():
        *groups, name = key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[name] = default
    assert load(json.dumps(tree), "config.json", environment={}).warnings == ()
