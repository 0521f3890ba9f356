"""A server that takes the time from a file: 「先週末」 is then asked as on the day that a question was written for.

    python -m benchmarks.clocked --clock FILE --config FILE --data DIRECTORY

The file holds one ISO time with an offset. It is read at every call; while it is not there, the time is the real one.
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from memory_mcp.app import serve


def time_in(file: Path) -> datetime:
    """What the file says, or the real time."""
    try:
        return datetime.fromisoformat(file.read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        return datetime.now(UTC)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    serve(arguments.config, arguments.data, port=0, clock=lambda: time_in(arguments.clock))
