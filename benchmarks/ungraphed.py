"""A server whose writes skip the graph, to measure how much time the graph adds to them.

python -m benchmarks.ungraphed --config FILE --data DIRECTORY
"""

import argparse
from pathlib import Path
from typing import Any

from memory_mcp.app import serve
from memory_mcp.remember import pipeline


class WithoutGraph:
    """Replaces the graph's part of a write and does nothing."""

    def check_relation_types(self, *_: Any) -> None: ...

    def link_entities(self, *_: Any) -> None: ...

    def add_missing_relations(self, *_: Any) -> list[Any]:
        return []

    def update_after_trash(self, *_: Any) -> None: ...


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    if "entity_linking" not in vars(pipeline):
        raise SystemExit("remember.pipeline has no entity_linking: this benchmark would measure writes with the graph")
    vars(pipeline)["entity_linking"] = WithoutGraph()
    serve(arguments.config, arguments.data, port=0)
