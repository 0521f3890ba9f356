"""The keys `chat.…` of config.json."""

from typing import Annotated, Literal

from pydantic import Field

from memory_mcp.config.group import Group, Keys
from memory_mcp.config.values import ModelName


class Chat(Group):
    """Conversations with a chat model."""

    model: ModelName | None = Field(
        None, description="The model of conversations that name none, as `vendor:model`: openai, anthropic, google or ollama."
    )
    max_tokens: int | None = Field(None, ge=1, description="How many tokens one conversation may use. `null`: no limit.")
    max_cost: float | None = Field(None, ge=0, description="What one conversation may cost, by `chat.prices`. `null`: no limit.")
    prices: dict[ModelName, dict[Literal["input", "output"], Annotated[float, Field(ge=0)]]] = Field(
        {}, description="What a million tokens of a model cost, `input` and `output`, in your currency."
    )
    dashboard_scope: Literal["admin", "write"] = Field(
        "admin",
        description="The scope that a token needs, beside `read` and `write`, to chat in the dashboard, which spends the server's keys.",
    )


SETTINGS = Keys(keys={"chat": (Chat, Field(Chat(), description="Conversations with a chat model: `memory-mcp chat` and the dashboard's."))})
