"""The keys of config.json about the gateway."""

from typing import Literal

from pydantic import Field

from memory_mcp.config.group import Group, Keys


class Gateway(Group):
    """Memory for clients of OpenAI's API, whose calls pass through to the vendors of `llm.vendors`."""

    recall: Literal["each", "first", "off"] = Field(
        "each", description="At which messages of the user memories are put in: at each, only at the first of a conversation, at none."
    )
    store: Literal["turns", "facts", "off"] = Field(
        "turns",
        description="What is kept of a conversation: each turn; only what the model stores by tools (`gateway.tools`); nothing.",
    )
    max_tokens: int = Field(
        2000, ge=0, le=100_000, description="How many tokens may be put into one request, what was put in at earlier messages included."
    )
    context_tokens: int = Field(
        200,
        ge=50,
        le=100_000,
        description="How many of these the beginning of a conversation may have: who is who, what matters, what is to come.",
    )
    recall_tokens: int = Field(150, ge=50, le=100_000, description="How many of these a message of the user may have.")
    off_words: list[str] = Field(
        ["オフレコ", "off the record", "### Task:"],
        description="A message that begins with one of these is passed on as it is, and nothing of it is kept. Open WebUI begins tasks of its own with the last.",
    )
    tools: bool = Field(False, description="Whether the model is offered `recall` and `remember`, which clients don't see.")
    tokens_per_day: int | None = Field(
        None,
        ge=1,
        description="How many tokens of the models one token, or one address without a token, may use in a day. `null`: no limit.",
    )


SETTINGS = Keys(keys={"gateway": (Gateway, Field(Gateway(), description="Memory for clients of OpenAI's API."))})
