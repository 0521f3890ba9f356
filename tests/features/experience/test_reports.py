"""Reports of how a task went, as the store has them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from zoneinfo import ZoneInfo

from memory_mcp.config.settings import Privacy
from memory_mcp.features.experience.reports import Report, report
from memory_mcp.store import feedback, memories
from memory_mcp.store.experience_text import Experience


def test_of_two_reports_of_one_run_at_once_one_counts_and_the_other_leaves_nothing(nilou, now, eventually):
    database = nilou.database
    release, busy = threading.Event(), threading.Event()

    def counted(step):
        told = Report(Experience(task="請求書を出す", steps=(step,)), "worked", run="7")
        return report(nilou, told, [], "", now=now, zone=ZoneInfo("Asia/Tokyo"), privacy=Privacy())

    with ThreadPoolExecutor(3) as threads:
        threads.submit(database.write, lambda connection: (busy.set(), release.wait(60)))
        assert busy.wait(60)
        both = [threads.submit(counted, step) for step in ("締め番号をもらう", "控えを入れる")]
        eventually(lambda: database._writes.qsize() == 2)
        release.set()
        first, second = sorted((future.result() for future in both), key=lambda one: one.repeated)
    assert (first.repeated, second.repeated, second.made) == (False, True, ())
    assert dict(second.counted) == {first.made[0]: ["worked"]}
    with database.read() as connection:
        assert list(feedback.of_run(connection, "7", "")) == list(first.made)
        assert memories.counts(connection)["memories"] == 1
