"""The limit of open files: a process of its own, because what is raised stays so."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from memory_mcp import open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
open_files.allow()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def allowed(soft: int, hard: int) -> list[int]:
    """The soft and the hard limit afterwards."""
    program = PROGRAM.format(soft=soft, hard=hard)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return [int(limit) for limit in ran.stdout.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [(256, 5_000, 4_096), (256, 1_000, 1_000), (4_500, 5_000, 4_500)],
    ids=["too few for all open personas", "the hard limit is kept", "more is left as it is"],
)
def test_a_server_may_open_as_many_files_as_its_personas_need(soft, hard, then):
    assert allowed(soft, hard) == [then, hard]
