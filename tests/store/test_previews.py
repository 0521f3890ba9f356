"""Lists read the beginnings of memories: however long the texts are, no more of them leaves the database."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.language.budget import preview
from memory_mcp.store import memories

LONG = {
    "words": "健太は京都に住んでいる。 " * 15_000,
    "blanks between": "健太は" + " " * 1_000 + "京都に" + "\n" * 1_000 + "住んでいる。" * 1_000,
    "blanks up to the end": "健太は" + " " * 1_000 + "京都に住んでいる。",
    "as long as a preview": "あ" * 200,
    "one more": "あ" * 201,
    "an ellipsis": "あ" * 199 + "…" + " " * 600 + "い",
    "short": "健太は\n京都に住んでいる。",
}


@pytest.mark.parametrize("content", LONG.values(), ids=LONG)
@pytest.mark.parametrize("characters", [80, 200])
def test_a_preview_is_that_of_the_whole_text(nilou, say, content, characters):
    key = say(content).key
    with nilou.database.read() as connection:
        ids = memories.ids_of_keys(connection, [key])
        (shown,) = memories.beginnings(connection, ids, characters).values()
        whole = memories.by_ids(connection, ids)[shown.id]
    assert preview(shown.content, characters) == preview(whole.content, characters)
    assert len(shown.content) <= 2 * characters
    assert shown.key == whole.key


def test_of_long_texts_only_the_beginnings_leave_the_database(nilou, say, now):
    for number in range(3):
        say(f"{number} {LONG['words']}", occurred_at="明日")
    with nilou.database.read() as connection:
        sizes = []
        connection.row_trace = lambda _cursor, row: sizes.append(sum(len(value) for value in row if isinstance(value, str))) or row
        plans = memories.upcoming(connection, now, now + timedelta(days=7), ZoneInfo("Asia/Tokyo"), 10, characters=200)
        assert len(memories.beginnings(connection, [plan.id for plan in plans], 200)) == 3
        connection.row_trace = None
    assert len(sizes) == 6
    assert max(sizes) < 2_000


def test_text_that_was_written_by_hand_as_bytes_is_shown_as_before(nilou, say):
    key = say("健太は京都に住んでいる。").key
    nilou.database.write(
        lambda connection: connection.execute("UPDATE memories SET content = CAST(? AS BLOB) WHERE key = ?", ("京都" * 150, key))
    )
    with nilou.database.read() as connection:
        (shown,) = memories.beginnings(connection, memories.ids_of_keys(connection, [key]), 200).values()
    assert preview(shown.content, 200) == preview("京都" * 150, 200)
