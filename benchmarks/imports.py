"""What importing a long chat costs: LINE's text and Discord's JSON of 100,000 messages, by the command, into a server without models.

python -m benchmarks.imports [--messages 100000] [--programs line discord]

Prints one JSON line for each program: messages a second, messages a processor second of the command and of the server, and together; the most memory that
each held, also for a tenth of the messages; and what is stored after the command was killed in the middle and run again. Linux only.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.dashboard import processor_seconds
from benchmarks.report import Report, machine
from benchmarks.server import Server, running
from benchmarks.texts import sentence

PERSONA, NAMES = "persona-0", ("健太", "さくら", "衛藤 泰地")
BEGUN = datetime(2020, 1, 1, 7)  # noqa: DTZ001  a chat has no zone
MINUTES_BETWEEN = 7
LIMIT_SECONDS = 3_600


def line_text(messages: int) -> Iterator[str]:
    """A talk history as LINE sends it: a line for each day, and one for each message."""
    yield "[LINE] 旅行のトーク履歴\n保存日時：2026/01/01 12:00\n"
    day = ""
    for number in range(messages):
        at = BEGUN + timedelta(minutes=MINUTES_BETWEEN * number)
        if day != (day := f"{at:%Y/%m/%d}"):
            yield f"\n{day}({'月火水木金土日'[at.weekday()]})\n"
        yield f"{at:%H:%M}\t{NAMES[number % len(NAMES)]}\t{sentence(number)}\n"


def discord_json(messages: int) -> Iterator[str]:
    """A channel as DiscordChatExporter writes it."""
    yield '{"guild": {"id": "1", "name": "旅行"}, "channel": {"id": "2", "type": "GuildTextChat", "name": "雑談"}, "messages": [\n'
    for number in range(messages):
        at = BEGUN + timedelta(minutes=MINUTES_BETWEEN * number)
        message = {
            "id": str(number),
            "type": "Default",
            "timestamp": f"{at.isoformat()}.123+09:00",
            "isPinned": False,
            "content": sentence(number),
            "author": {"id": str(number % len(NAMES)), "name": "x", "nickname": NAMES[number % len(NAMES)], "isBot": False, "roles": []},
            "attachments": [],
            "embeds": [],
            "stickers": [],
            "reactions": [],
            "mentions": [],
        }
        yield json.dumps(message, ensure_ascii=False) + ("\n" if number == messages - 1 else ",\n")
    yield "]}\n"


PROGRAMS: dict[str, tuple[str, Callable[[int], Iterator[str]]]] = {
    "line": ("[LINE] 旅行のトーク.txt", line_text),
    "discord": ("旅行 - 雑談.json", discord_json),
}


@dataclass(frozen=True)
class Spent:
    """What an import took: seconds, processor seconds of the command and of the server, and the most memory that the command held, in MB."""

    seconds: float
    command: float
    server: float
    command_mb: float


@contextmanager
def _command(server: Server, file: Path) -> "Iterator[subprocess.Popen[bytes]]":
    import_of = [sys.executable, "-m", "memory_mcp", "import", str(file), "-p", PERSONA, "--url", server.url]
    with subprocess.Popen(import_of, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        yield process


def imported(server: Server, file: Path) -> Spent:
    """Imports a file by the command."""
    server_before, begun, before = processor_seconds(server.pid), time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with _command(server, file) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the import of {file.name} ended with {process.returncode}, after {before}")
    took, of_server = time.perf_counter() - begun, processor_seconds(server.pid) - server_before
    return Spent(took, used.ru_utime + used.ru_stime, of_server, used.ru_maxrss / 1024)


def stored(server: Server) -> int:
    """How many memories the persona has."""
    answer = httpx2.get(f"{server.url}/api/stats", headers={"X-Persona": PERSONA}, timeout=60).raise_for_status().json()
    return int(answer["memories"])


def killed_and_run_again(file: Path, messages: int) -> dict[str, Any]:
    """Kills an import when a part is stored, and runs it again."""
    with running() as server:
        with _command(server, file) as process:
            while (so_far := _stored_or_none(server)) < messages // 4 and process.poll() is None:
                time.sleep(0.2)
            process.kill()
        again = imported(server, file)
        return {"stored_when_killed": so_far, "stored_after_running_again": stored(server), "again_seconds": round(again.seconds, 1)}


def _stored_or_none(server: Server) -> int:
    try:
        return stored(server)
    except httpx2.HTTPStatusError:  # before the first message there is no persona
        return 0


def measured(program: str, messages: int, directory: Path) -> dict[str, Any]:
    """The figures of one program."""
    name, write = PROGRAMS[program]
    sizes: dict[int, tuple[Spent, float]] = {}
    for count in (messages // 10, messages):
        file = Path(directory, str(count), name)
        file.parent.mkdir(exist_ok=True)
        # Not as a whole: the most memory of the command is at least that of this process when it began.
        with file.open("w", encoding="utf-8") as opened:
            opened.writelines(write(count))
        with running() as server:
            sizes[count] = imported(server, file), server.resident_mb()
            if (kept := stored(server)) != count:
                raise SystemExit(f"{kept} of {count} messages are stored")
    (tenth, tenth_mb), (whole, whole_mb) = sizes.values()
    return {
        "what": "import",
        "program": program,
        "messages": messages,
        "per_second": round(messages / whole.seconds),
        "per_processor_second": round(messages / (whole.command + whole.server)),
        "per_processor_second_of_command": round(messages / whole.command),
        "per_processor_second_of_server": round(messages / whole.server),
        "command_mb": round(whole.command_mb),
        "command_mb_of_a_tenth": round(tenth.command_mb),
        "server_mb": round(whole_mb),
        "server_mb_of_a_tenth": round(tenth_mb),
        **killed_and_run_again(file, messages),
    }


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=[*PROGRAMS])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report = Report(arguments.out)
    report.add([machine("imports", messages=arguments.messages)])
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
        for program in arguments.programs:
            report.add([measured(program, arguments.messages, Path(directory))])


if __name__ == "__main__":
    main()
