"""Disks that fill up: a real one of a few megabytes where it may be mounted, and a limit on file sizes everywhere else."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import RunningServer

DISK_BYTES = 6 * 1024 * 1024
BLOCK = bytes(4096)


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A tmpfs of 6 MiB. Skips the test where mounting is not allowed."""
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", directory], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk can't be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


def fill_up(disk: Path) -> Path:
    """A file that takes the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(BLOCK)
            except OSError:
                return filler


@contextmanager
def no_file_may_grow(server: RunningServer) -> Iterator[None]:
    """As long as the block runs, every write of the server fails (EFBIG), as one beyond a quota does."""
    before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
