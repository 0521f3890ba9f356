"""What a refusal quotes of what it refuses."""

import json

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.server.errors import REFUSAL_LIMIT, http_refusal, wording


def test_a_refusal_of_usual_length_is_said_whole():
    assert wording("x" * REFUSAL_LIMIT, Privacy()) == "x" * REFUSAL_LIMIT


@pytest.mark.parametrize("length", [REFUSAL_LIMIT, 5_000_000])
def test_a_very_long_one_keeps_what_happened_and_what_to_do(length):
    error = InvalidInput(f"the name is {'x' * length}", "it is too long", "Send a shorter one")
    said = json.loads(http_refusal(error, rules=Privacy()).body)["error"]
    assert said.startswith("the name is xxx")
    assert said.endswith("it is too long. Send a shorter one.")
    assert len(said) < REFUSAL_LIMIT + 10
