"""Counts the modules that run in one `remember` and one `recall`, with and without a known name: python -m benchmarks.modules_walked [--list]

Without models. `--list` prints the modules too, as paths within the package.
"""

import sys
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import memory_mcp
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question

ROOT = Path(memory_mcp.__file__).parent
CALLS = (
    ("remember", "names nobody known", "雨が降って、洗濯物が濡れた"),
    ("remember", "names somebody known", "健太と海へ行った"),
    ("recall", "names nobody known", "洗濯物はどうなった？"),
    ("recall", "names somebody known", "健太は何が好き？"),
)


def main() -> None:
    files: set[str] = set()

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)  # writes run in a thread of their own
    sys.setprofile(note)
    now, zone, settings = datetime.now(UTC), ZoneInfo("Asia/Tokyo"), Settings(embeddings_model=None, reranker_model=None)
    models = Models(None, None, ModelState("off"), ModelState("off"))
    with tempfile.TemporaryDirectory() as directory:
        registry = Personas(Path(directory))
        with registry.writing("bench") as persona:
            for call, title, text in (("remember", "", "[[健太|Person]]は苺が好きだ"), ("recall", "", "何の話？"), *CALLS):
                files.clear()
                if call == "remember":
                    remember(persona, draft(text, now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
                else:
                    asked = question(settings=settings, now=now, query=text)
                    recall(persona, asked, models=models, settings=settings, now=now)
                walked = sorted(str(Path(file).relative_to(ROOT)) for file in files.copy() if Path(file).is_relative_to(ROOT))
                if title:
                    print(f"{len(walked):4} {call}, {title}", *(walked if "--list" in sys.argv else ()), sep="\n")
        registry.close()


if __name__ == "__main__":
    main()
