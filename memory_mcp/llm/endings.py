"""Why an answer ended, in the words of all vendors."""

from typing import Literal

# How what is not an answer to the user ends: the call of a tool, and what was withheld or broken off.
CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
WITHHELD = frozenset(
    {
        *("content_filter", "safety", "refusal", "recitation", "blocklist", "prohibited_content", "spii", "language"),
        *("image_safety", "malformed_function_call", "error", "cancelled", "abort"),
    }
)
AT_LIMIT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})

# A limit of tokens, the vendor that withholds the rest, or a stream that ended without saying why.
Cut = Literal["", "limit", "withheld", "unknown"]
CUT_MARK = " […]"


def cut_of(reason: str) -> Cut:
    """What kept an answer from being whole that ended for this reason, as its vendor words it; empty if it is whole."""
    word = reason.casefold()
    return "limit" if word in AT_LIMIT else "withheld" if word in WITHHELD else ""
