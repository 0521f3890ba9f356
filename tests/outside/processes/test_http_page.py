"""The commands of docs/http.md, run in their order against a server, as somebody pastes them."""

import json
import re
import shutil
import subprocess

import pytest
from processes import ROOT, RunningServer

from memory_mcp.server.http.routes import OPERATIONS

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl and bash")
def test_every_command_of_the_page_does_what_the_page_says(shared_server: RunningServer) -> None:
    script = "\n".join(f"{block}\necho" for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    script = script.replace("http://127.0.0.1:8000", shared_server.url).replace("\ncurl", "\necho; curl")
    done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    assert [answer.get("persona") for answer in answers] == ["sakura"] * 6 + ["さくら"] * 5 + [None]
    began, stored, found, corrected, forgotten, restored, *japanese, refused = answers
    assert began["new_persona"]
    assert set(stored) == set(json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]))
    assert [hit["content"] for hit in found["hits"]] == ["Kenta is allergic to shrimp."]
    assert corrected["content"] == restored["content"] == "Kenta is allergic to shrimp and crab."
    assert [outcome["outcome"] for outcome in forgotten["outcomes"]] == ["forgotten"]
    _, _, *recalled, noted = japanese
    assert [[hit["content"] for hit in answer["hits"]] for answer in recalled] == [["健太は海老アレルギー。"]] * 2
    assert set(noted["changed"]) == {"emotion", "user_info"}
    assert refused["error"].startswith("unknown field 'text'. Known fields are content, source, session_id")


def test_the_page_names_only_routes_that_exist() -> None:
    ours = {operation.route.name for operation in OPERATIONS if operation.route}
    named = set(re.findall(r"`((?:GET|POST|PATCH|DELETE) /api/[a-z/_.]+)`", PAGE))
    assert {name for name in named if "/database/" not in name} <= ours
