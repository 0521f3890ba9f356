"""A server whose writes go past the graph, to measure what the graph costs them.

python -m benchmarks.ungraphed --config FILE --data DIRECTORY
"""

import argparse
from pathlib import Path
from typing import Any

from memory_mcp.app import serve
from memory_mcp.remember import pipeline


class WithoutGraph:
    """Stands where the graph's part of a write stands, and does nothing."""

    def check_types(self, *_: Any) -> None: ...

    def name_entities(self, *_: Any) -> None: ...

    def state_further(self, *_: Any) -> list[Any]:
        return []

    def after_coming_or_going(self, *_: Any) -> None: ...


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    vars(pipeline)["naming"] = WithoutGraph()
    serve(arguments.config, arguments.data, port=0)
