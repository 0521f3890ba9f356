"""What this process takes of the machine: processor cores, open files, and memory of the C library."""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

# The open personas with five connections to each database and as many callers as may wait: many systems allow 1,024, macOS 256.
OPEN_FILES = 4_096
M_ARENA_MAX = -8  # malloc.h
HEAPS = 2
# A look costs milliseconds: soon again where there was much to give back, else seldom.
SOON_SECONDS, SELDOM_SECONDS = 5.0, 60.0
MUCH_BYTES = 16 * 1024 * 1024


def usable_cores() -> int:
    """How many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: what a container or taskset allows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_running(process: int) -> bool:
    """Whether there is a process with this id; on Windows, where asking would end it, always true."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # of another user
    return True


def allow_open_files() -> None:
    """Raises the soft limit of open files and connections to `OPEN_FILES`, as far as the hard one goes."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  Windows has none

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        reachable = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < reachable:
            resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))


def share_heaps() -> None:
    """Lets all threads that start from now on allocate from two heaps.

    By default glibc makes up to eight for each core, and memory freed in one can't be used by another: 10 to 20 MB more with fifty
    callers. Python's own objects, nearly all allocations, don't come from these heaps, so that threads hardly wait for each other.
    """
    if library := _glibc():
        library.mallopt(M_ARENA_MAX, HEAPS)


def return_freed() -> None:
    """Returns to the system the memory that the C library keeps of what was freed: 75 MB after a model was loaded."""
    if library := _glibc():
        library.malloc_trim(0)


def resident_bytes() -> int:
    """How much memory this process has; 0 where only Linux would tell."""
    if sys.platform != "linux":
        return 0
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class FreedMemory:
    """Gives memory that was needed once back to the system: of a large answer, of an import, of many calls at once. Looks again and again,
    because the C library keeps what is freed, and doesn't tell how much that is."""

    def __init__(self, resident_bytes: Callable[[], int] = resident_bytes, return_freed: Callable[[], None] = return_freed) -> None:
        self._resident_bytes, self._return_freed = resident_bytes, return_freed
        self._wait_seconds = SOON_SECONDS

    def step(self) -> float:
        """Gives back what is free now. Returns how many seconds to wait before the next look."""
        before = self._resident_bytes()
        self._return_freed()
        gave_much = before - self._resident_bytes() >= MUCH_BYTES
        self._wait_seconds = SOON_SECONDS if gave_much else min(self._wait_seconds * 2, SELDOM_SECONDS)
        return self._wait_seconds


def _glibc() -> ctypes.CDLL | None:
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return library
    return None
