"""What is done about the files of older servers."""

from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.features.adoption.moving import move_into_place, take_over_tables
from memory_mcp.upkeep.older_data import OlderData

OLDER_DATA = OlderData(legacy_items, move_into_place, take_over_tables)
