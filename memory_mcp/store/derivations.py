"""What else says, or stands for, what some memories say: to be settled before those are erased for good."""

from collections.abc import Collection

import apsw

from memory_mcp.store import memory_merges, summary_rows


def release(connection: apsw.Connection, keys: Collection[str]) -> list[str]:
    """For a purge of these memories: returns the keys of the summaries that are to be erased with them.

    Call it in the purge's transaction, while the rows of the memories are still there. The summaries are put on the list to be made
    anew, of what is left; and whatever stood in the place of these memories stands in the place of what they had replaced.
    """
    found = summary_rows.withdraw_citing(connection, keys)
    memory_merges.bridge(connection, [*keys, *found])
    return found
