"""What a client is shown of one memory."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from memory_mcp.domain import Memory
from memory_mcp.server.views import memory_view

TOKYO = ZoneInfo("Asia/Tokyo")


def test_a_memory_says_when_it_was_changed_once_it_was(now):
    memory = Memory(id=1, key="memory_1", content="旅人は苺が好き", created_at=now, updated_at=now)
    changed = replace(memory, updated_at=now + timedelta(hours=2))
    assert "updated_at" not in memory_view(memory, memory.content, TOKYO, now)
    assert memory_view(changed, memory.content, TOKYO, now)["updated_at"] == (now + timedelta(hours=2)).astimezone(TOKYO).isoformat(
        timespec="seconds"
    )
