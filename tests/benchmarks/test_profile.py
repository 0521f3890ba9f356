"""The profile's sums: whose work a stack is."""

from benchmarks.profile import part_of, shares

LOOP = "run_forever (/usr/lib/python3.11/asyncio/base_events.py:607)"
TOOL = "call_tool (/venv/lib/python3.11/site-packages/fastmcp/server/server.py:12)"
RECALL = "recall (/srv/memory_mcp/search/pipeline.py:40)"
ENCODED = "encode (/usr/lib/python3.11/json/encoder.py:200)"


def test_a_stack_belongs_to_the_innermost_part_that_is_known():
    assert part_of([LOOP, TOOL, RECALL]) == "search"
    assert part_of([LOOP, TOOL]) == part_of([LOOP]) == "protocol"
    assert part_of([LOOP, TOOL, RECALL, "run (/venv/lib/python3.11/site-packages/onnxruntime/capi.py:9)"]) == "onnxruntime"


def test_what_python_does_is_done_for_whoever_calls_it():
    assert part_of([LOOP, RECALL, ENCODED]) == "search"
    assert part_of([ENCODED]) == "python"


def test_shares_are_of_all_samples():
    raw = f"{LOOP};{TOOL} 30\n{LOOP};{RECALL} 60\n{LOOP};{RECALL};{ENCODED} 10"
    assert shares(raw) == {"search": 0.7, "protocol": 0.3}
