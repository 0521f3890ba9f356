"""How many processor cores this process may use."""

import os


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: what a container or taskset allows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
