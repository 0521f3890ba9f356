"""Every server scenario of the protocol's conformance suite, at both revisions: it passes, or the baseline says why not.

The suite drives `everything.py`: the product's own server, with the things on it that the suite asks for by name.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import CLIENTS
from processes import RunningServer, serving

pytestmark = [pytest.mark.slow, pytest.mark.trust]

SUITE = CLIENTS / "node_modules/@modelcontextprotocol/conformance"
BASELINE = yaml.safe_load((CLIENTS / "conformance_baseline.yaml").read_text(encoding="utf-8"))
REVISIONS = ["2025-11-25", "2026-07-28"]
SCENARIO_MILLISECONDS = "20000"


@dataclass(frozen=True)
class Scenario:
    """What became of one scenario: its checks, as the suite wrote them."""

    name: str
    checks: list[dict[str, Any]]

    @property
    def passed(self) -> bool:
        """Nothing failed, and something was checked."""
        statuses = [check["status"] for check in self.checks]
        return "FAILURE" not in statuses and "SUCCESS" in statuses

    @property
    def said(self) -> str:
        return "; ".join(f"{check['id']}: {check.get('errorMessage')}" for check in self.checks if check["status"] == "FAILURE")


def required(revision: str) -> set[str]:
    """The server scenarios that the suite has for a revision: those that count for conformance, and those it only reports."""
    listed = yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8"))
    return {*listed["server"], *(entry["scenario"] for entry in listed["not_scored"] if entry["leg"] == "server")}


def scenario_of(file: Path) -> Scenario:
    """Results are in a directory that is named after the scenario and the moment."""
    name = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", file.parent.name)
    assert name, file
    return Scenario(name[1], json.loads(file.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def server(node: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = '{"embeddings_model": null, "reranker_model": null}'
    with serving(tmp_path_factory.mktemp("server"), settings, command=(sys.executable, str(CLIENTS / "everything.py"))) as server:
        yield server


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_passes_or_stands_in_the_baseline_with_its_reason(node, server, tmp_path, figure, revision):
    told = ["server", "--url", f"{server.url}/mcp", "--requirements", revision, "-o", str(tmp_path), "--timeout", SCENARIO_MILLISECONDS]
    done = node.run(SUITE / "dist/index.js", *told)
    scenarios = [scenario_of(file) for file in tmp_path.glob("*/checks.json")]
    assert {scenario.name for scenario in scenarios} == required(revision), done.stdout + done.stderr

    excused = BASELINE[revision]
    assert all(excused.values()), "each entry of the baseline needs a reason"
    assert set(excused) <= required(revision)
    failed = {scenario.name: scenario.said for scenario in scenarios if not scenario.passed and scenario.name not in excused}
    stale = {scenario.name for scenario in scenarios if scenario.passed and scenario.name in excused}
    passed = sum(scenario.passed for scenario in scenarios)
    figure(f"conformance {revision}: scenarios passed / baselined / failed", f"{passed} / {len(excused) - len(stale)} / {len(failed)}")
    assert not failed
    assert not stale, "these pass now: take them out of the baseline"
    malformed = {scenario.name for scenario in scenarios for check in scenario.checks if _breaks_the_schema(check)}
    assert not malformed, "no scenario may be excused for messages that the specification's schema refuses"


def _breaks_the_schema(check: dict[str, Any]) -> bool:
    return check["id"] == "wire-schema-valid" and check["status"] == "FAILURE"
