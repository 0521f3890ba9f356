"""The toolset `compat`."""

from memory_mcp.features.compat import operations
from memory_mcp.server.feature import Feature
from memory_mcp.server.operation import operations_of

FEATURE = Feature(toolsets={"compat": operations_of(operations)})
