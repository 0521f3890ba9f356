"""The keys `experience.…` of config.json."""

from pydantic import Field

from memory_mcp.config.group import Group, Keys


class Advising(Group):
    """What `advise` advises."""

    similar_from: dict[str, float] = Field(
        {},
        description="From which similarity to a task on its experience is advised, by embedding model, and by `words` for searches without one. "
        "Of others: 0.5 for every model, 0.43 for words.",
    )
    success_from: float = Field(
        0.9, ge=0, le=1, description="The share of the tries that must have worked for steps to be advised; below, they are warned of."
    )
    half_life_days: float = Field(90, gt=0, le=36_500, description="After how many days without use an experience ranks half as high.")


SETTINGS = Keys(keys={"experience": (Advising, Field(Advising(), description="What `advise` advises."))})
