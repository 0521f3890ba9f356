"""What end-to-end tests start from: a real server in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import RunningServer, serving


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(tmp_path) as server:
        yield server
