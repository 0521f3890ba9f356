"""What the C library's allocator is told: to keep few heaps, and to give back what is free. Only glibc has to be asked."""

import ctypes
import sys

M_ARENA_MAX = -8  # malloc.h
HEAPS = 2


def share_heaps() -> None:
    """Lets all threads that start from now on allocate from two heaps.

    By itself glibc makes up to eight for each core, and what is freed in one is of no use to another: 10 to 20 MB more with fifty
    callers. Python's own objects, nearly all of what is allocated, don't come from them, so that the threads hardly wait for each other.
    """
    if library := _glibc():
        library.mallopt(M_ARENA_MAX, HEAPS)


def return_freed() -> None:
    """Gives the system back what loading a model needed for a moment: 75 MB."""
    if library := _glibc():
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return library
    return None
