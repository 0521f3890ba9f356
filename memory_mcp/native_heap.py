"""Configures the allocator of the C library to use few heaps and to return free memory. Only glibc needs it."""

import ctypes
import sys

M_ARENA_MAX = -8  # malloc.h
HEAPS = 2


def share_heaps() -> None:
    """Lets all threads that start from now on allocate from two heaps.

    By default glibc makes up to eight for each core, and memory freed in one can't be used by another: 10 to 20 MB more with fifty
    callers. Python's own objects, nearly all allocations, don't come from these heaps, so that threads hardly wait for each other.
    """
    if library := _glibc():
        library.mallopt(M_ARENA_MAX, HEAPS)


def return_freed() -> None:
    """Returns to the system the memory that loading a model needed temporarily: 75 MB."""
    if library := _glibc():
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return library
    return None
