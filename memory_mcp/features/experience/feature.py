"""Experience: what worked and what failed, how recall does, and weights of the search fitted to judgements."""

from memory_mcp.features.experience import operations
from memory_mcp.server.feature import Feature
from memory_mcp.server.operation import operations_of

FEATURE = Feature(
    operations=operations_of(operations),
    toolsets={"experience": (operations.advise, operations.report, operations.judge)},
)
