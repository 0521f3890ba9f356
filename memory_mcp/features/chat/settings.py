"""The keys `chat.…` of config.json."""

from typing import Annotated, Any, Literal

from pydantic import Field

from memory_mcp.config.group import Group, Keys
from memory_mcp.config.values import ModelName


class Chat(Group):
    """Conversations with a chat model."""

    model: ModelName | None = Field(
        None,
        description="The model of conversations that name none: `vendor:model` (openai, anthropic, google, ollama), `name/model` of `llm.vendors`, or a class that `chat.arguments` names.",
    )
    arguments: dict[ModelName, dict[str, Any]] = Field(
        {},
        description="Arguments of models, such as `temperature` and `max_tokens`, by the name of the model; that may be a LangChain chat model of your own, as `package.module:Class`.",
    )
    mcp: str | None = Field(
        None,
        description="A file with further MCP servers for all conversations, the dashboard's too: an mcp.json as VS Code or Claude has it. `null`: none.",
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


SETTINGS = Keys(
    keys={"chat": (Chat, Field(Chat(), description="Conversations with a chat model: `memory-mcp chat` and the dashboard's."))},
    only_in_the_file=frozenset({"chat.arguments", "chat.mcp"}),  # they run code, and say where conversations are sent
    secret=frozenset({"chat.arguments"}),
)
