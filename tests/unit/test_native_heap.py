"""Telling the C library's allocator: a process of its own, because what it is told holds for good."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, threading
from memory_mcp import native_heap
if {shared}:
    native_heap.share_heaps()
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


def heaps(*, shared: bool) -> int:
    """How many glibc made for eight threads."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(shared=shared)], capture_output=True, text=True, check=True, timeout=60)
    return ran.stderr.count("Arena ")


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has to be asked")
def test_threads_share_two_heaps():
    assert heaps(shared=False) > 2
    assert heaps(shared=True) == 2
