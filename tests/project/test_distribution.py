"""What registries are told: server.json, the image's labels, the README's mark and the manifest of the bundle agree, and keep the published rules."""

import hashlib
import json
import re
import tomllib
from typing import Any

import jsonschema
import pytest
from places import ROOT

from memory_mcp import __version__

SCHEMAS = ROOT / "tests" / "data" / "schemas"
SERVER = json.loads(ROOT.joinpath("server.json").read_text(encoding="utf-8"))
MANIFEST = json.loads(ROOT.joinpath("distribution/manifest.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
BY_TYPE = {package["registryType"]: package for package in SERVER["packages"]}


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMAS.joinpath(name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(("document", "name"), [(SERVER, "mcp-server-2025-12-11.json"), (MANIFEST, "mcpb-manifest-0.4.json")])
def test_the_documents_keep_their_schema(document, name):
    kind = jsonschema.validators.validator_for(schema(name))
    assert [error.message for error in kind(schema(name)).iter_errors(document)] == []


def test_the_schemas_are_the_published_ones():
    rows = re.findall(r"^\| `([\w.-]+)` .* `([0-9a-f]{64})` \|$", SCHEMAS.joinpath("README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == {path.name for path in SCHEMAS.glob("*.json")}
    assert all(hashlib.sha256(SCHEMAS.joinpath(name).read_bytes()).hexdigest() == digest for name, digest in rows)
    assert SERVER["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def test_the_name_is_the_same_wherever_a_registry_looks_for_it():
    name = SERVER["name"]
    # A boundary must follow: white space, a tag, or the end of the comment.
    assert re.findall(r"mcp-name: (\S+)(?=\s| -->)", ROOT.joinpath("README.md").read_text(encoding="utf-8")) == [name]
    assert f'io.modelcontextprotocol.server.name="{name}"' in ROOT.joinpath("Dockerfile").read_text(encoding="utf-8")
    assert name.partition("/")[2] == BY_TYPE["pypi"]["identifier"] == PROJECT["name"] == MANIFEST["name"]


def test_the_site_links_to_the_repository_of_the_registry():
    assert f"repository: {SERVER['repository']['url']}\n" in ROOT.joinpath("mkdocs.yml").read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere_and_exact():
    assert SERVER["version"] == BY_TYPE["pypi"]["version"] == MANIFEST["version"] == __version__
    assert BY_TYPE["oci"]["identifier"].partition(":")[2] == __version__
    assert f'org.opencontainers.image.version="{__version__}"' in ROOT.joinpath("Dockerfile").read_text(encoding="utf-8")
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_packages_are_of_registries_that_are_allowed():
    assert BY_TYPE["pypi"]["registryBaseUrl"] == "https://pypi.org"
    assert BY_TYPE["oci"]["identifier"].partition("/")[0] in {"docker.io", "ghcr.io", "quay.io", "mcr.microsoft.com"}
    assert "_meta" not in SERVER


def test_every_variable_of_a_template_is_declared_and_every_declared_one_is_used():
    (remote,) = SERVER["remotes"]
    templates = [(remote["url"], remote["variables"])]
    templates += [(header["value"], header["variables"]) for header in [*remote["headers"], *BY_TYPE["oci"]["transport"]["headers"]]]
    for template, variables in templates:
        assert set(re.findall(r"\{(\w+)\}", template)) == set(variables)
    secrets = [name for _, variables in templates for name, variable in variables.items() if variable.get("isSecret")]
    assert secrets == ["token"]


def test_what_a_client_runs_exists():
    assert BY_TYPE["pypi"]["identifier"] in PROJECT["scripts"]  # `uvx NAME` runs the command of that name
    arguments = MANIFEST["server"]["mcp_config"]["args"]
    assert arguments[arguments.index("memory-mcp") :] == ["memory-mcp", "stdio", "--persona", "${user_config.persona}"]
    assert set(re.findall(r"\$\{user_config\.(\w+)\}", " ".join(arguments))) == set(MANIFEST["user_config"])
    assert ROOT.joinpath(MANIFEST["server"]["entry_point"]).is_file()
