"""Conversations of a server in a process of its own, which is stopped or killed while a model talks."""

import itertools
import json
import re
import signal
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from openai_wire import vendor
from processes import serving

pytestmark = pytest.mark.slow

KEY = "sk-proj-" + "Ab1cD2eF3g" * 6
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_server_that_is_stopped_or_killed_while_a_model_talks_keeps_whole_turns_alone(tmp_path: Path) -> None:
    with vendor() as model:
        keys = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}
        ids = {}
        for number in (signal.SIGKILL, signal.SIGTERM):
            model.steps = ["はい。", itertools.repeat("…", 6_000)]
            with serving(tmp_path, environment=keys) as server, httpx2.Client(base_url=f"{server.url}/p/nilou/ui", timeout=60) as room:
                form_key = re.search(r'name="form_key" value="([0-9a-f]+)"', room.get("/chat/one").text)
                assert form_key
                fields = {"form_key": form_key[1], "model": "openai:x"}
                whole = room.post("/chat/say", content=urlencode({**fields, "text": "一"}), headers=FORM)
                assert '"event": "saved"' in whole.text
                begun = re.search(r'"event": "begun".*', whole.text)
                assert begun
                fields["id"] = ids[number] = json.loads("{" + begun[0])["id"]
                with room.stream("POST", "/chat/say", content=urlencode({**fields, "text": "二"}), headers=FORM) as answer:
                    lines = answer.iter_lines()
                    assert any("text_piece" in line for line in lines)
                    status = server.stop(number)
                assert status == (0 if number is signal.SIGTERM else -signal.SIGKILL)
                log = (tmp_path / "server.log").read_text(encoding="utf-8")
                assert "Traceback" not in log
                assert KEY not in log
        with serving(tmp_path) as server:
            for number in (signal.SIGKILL, signal.SIGTERM):
                known = httpx2.get(f"{server.url}/api/conversation", params={"id": ids[number]}, headers={"X-Persona": "nilou"})
                assert [[message["text"] for message in turn["messages"]] for turn in known.json()["turns"]] == [["一", "はい。"]]
    assert KEY not in json.dumps([path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()])
