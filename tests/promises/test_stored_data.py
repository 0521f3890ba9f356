"""What the server of November 2026 stored is answered, exported and written to as by that server."""

import json
import zipfile

import pytest
from processes import serving
from stored_data import ARCHIVE, ENCRYPTED, PLAIN, QUESTIONS, Client, answers, as_then, configuration, without_today

pytestmark = pytest.mark.slow


def test_stored_data_gives_the_answers_that_it_gave_and_takes_new_memories(tmp_path):
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "master.key").chmod(0o600)
    given = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    with serving(tmp_path, configuration(tmp_path, 3_600)) as server:
        before, now = without_today(given["answers"]), answers(server, given["secret"])
        assert now.keys() == before.keys()
        for name in (f"{persona}: {query}" for persona in (PLAIN, ENCRYPTED) for query in QUESTIONS):
            now[name] = now[name][: len(before[name])]  # searches find more than they did
        different = [name for name in now if as_then(now[name], before[name]) != as_then(before[name], before[name])]
        assert {name: now[name] for name in different} == {}
        for persona in (PLAIN, ENCRYPTED):
            client = Client(server, persona, given["secret"])
            key = client.tool("remember", content="抹茶を買った。")["key"]
            assert [hit["key"] for hit in client.tool("recall", query="抹茶")["hits"]] == [key]
        assert Client(server, PLAIN).get("/api/stats").status_code == 401
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
