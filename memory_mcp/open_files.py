"""How many files and connections the process may have open at once."""

import sys

# The open personas with five connections to each database and as many callers as may wait: many systems allow 1,024, macOS 256.
WANTED = 4_096


def allow() -> None:
    """Raises the soft limit to `WANTED`, as far as the hard one goes."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  Windows has none

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        reachable = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
        if soft != resource.RLIM_INFINITY and soft < reachable:
            resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
