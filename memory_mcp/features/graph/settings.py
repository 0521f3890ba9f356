"""The keys `graph.…` of config.json."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from memory_mcp.config.group import Group, Keys

if TYPE_CHECKING:
    from memory_mcp.config.settings import Settings


class Graph(Group):
    """What is added to the knowledge graph in the background."""

    link_alike: bool = Field(True, description="Whether memories are linked to those with the most similar vectors.")
    names_by: Literal["rules", "sudachi"] = Field(
        "rules", description="How unmarked, unknown names are found: by rules only, or also by SudachiPy's dictionary."
    )
    ask_model: bool = Field(
        False,
        description="Whether the chat model of `llm` extracts people and relations from memories that are neither private nor secret.",
    )
    judge_newer: bool = Field(
        False,
        description="Whether the chat model of `llm` is asked which memories no longer hold because of a new one. Neither private nor secret ones are sent.",
    )
    alike_from: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The least cosine similarity of two linked memories. `null`: what suits the model, measured when it is loaded.",
    )


def _extras(settings: "Settings") -> Iterator[tuple[str, str, str]]:
    if settings.of(Graph).names_by == "sudachi":
        yield "graph.names_by", "sudachi", "sudachi"


SETTINGS = Keys(
    keys={"graph": (Graph, Field(Graph(), description="What is added to the knowledge graph in the background."))}, extras=_extras
)
