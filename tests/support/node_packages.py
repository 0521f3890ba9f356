"""Node with the packages of tests/outside/clients, for the tests with real clients.

`make test` installs the packages and passes --require-node: then a missing one is a failure. Without it, it is a skip.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from places import CLIENTS
from processes import clean_environment

PACKAGES = CLIENTS / "node_modules"
OLDEST = (22, 19)
RUN_SECONDS = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--require-node`."""
    parser.addoption("--require-node", action="store_true", help="the tests with real clients must run: missing packages are a failure")


def suitable_node() -> str | None:
    """A Node that runs the packages: the one among them, else the machine's own."""
    for candidate in (*sorted(PACKAGES.glob("node-*/bin/node*")), shutil.which("node")):
        if candidate is not None:
            said = subprocess.run([candidate, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
            found = re.match(r"v(\d+)\.(\d+)", said)
            if found and (int(found[1]), int(found[2])) >= OLDEST:
                return str(candidate)
    return None


class Node:
    """Runs the scripts of the packages."""

    def __init__(self, executable: str, home: Path) -> None:
        self._executable = executable
        self._environment = clean_environment({"HOME": str(home), "USERPROFILE": str(home), "NO_COLOR": "1"})

    def run(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A script from its start to its end."""
        return subprocess.run(
            [self._executable, str(script), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=RUN_SECONDS,
            check=False,
        )

    def started(self, script: Path, *arguments: str) -> subprocess.Popen[str]:
        """A script that reads and writes lines."""
        command = [self._executable, str(script), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self._environment, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Node:
    installed = (PACKAGES / "@modelcontextprotocol" / "sdk").is_dir()
    executable = suitable_node() if installed else None
    if executable:
        return Node(executable, tmp_path_factory.mktemp("home"))
    missing = (
        f"Node {OLDEST[0]}.{OLDEST[1]} or later" if installed else "the packages in tests/outside/clients (`make clients` installs them)"
    )
    if request.config.getoption("--require-node"):
        pytest.fail(f"the tests with real clients must run, but {missing} is missing")
    pytest.skip(f"real clients need {missing}")
