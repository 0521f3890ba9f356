"""What end-to-end tests start from: a real server in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import RunningServer, serving


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of the test's own."""
    with serving(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests of a module that neither stop nor configure it, nor look at who else is there: each is a persona of its own."""
    with serving(tmp_path_factory.mktemp("shared")) as server:
        yield server
