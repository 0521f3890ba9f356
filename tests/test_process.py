"""What a process takes of the machine: in a process of its own, because what is set holds for good."""

import subprocess
import sys

import pytest

ALLOCATING = """
import ctypes, threading
from memory_mcp import process
if {shared}:
    process.share_heaps()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)
def allocate():
    together.wait()
    library.malloc(1000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library.malloc_stats()
"""
OPENING = """
import resource
from memory_mcp import process
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
process.allow_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)


def heaps(*, shared: bool) -> int:
    """How many glibc made for eight threads."""
    return run(ALLOCATING.format(shared=shared)).stderr.count("Arena ")


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has to be asked")
def test_threads_share_two_heaps():
    assert heaps(shared=False) > 2
    assert heaps(shared=True) == 2


def allowed(soft: int, hard: int) -> list[int]:
    """The soft and the hard limit afterwards."""
    return [int(limit) for limit in run(OPENING.format(soft=soft, hard=hard)).stdout.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [(256, 5_000, 4_096), (256, 1_000, 1_000), (4_500, 5_000, 4_500)],
    ids=["too few for all open personas", "the hard limit is kept", "more is left as it is"],
)
def test_a_server_may_open_as_many_files_as_its_personas_need(soft, hard, then):
    assert allowed(soft, hard) == [then, hard]
