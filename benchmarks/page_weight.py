"""What the first page of the dashboard weighs and how soon it is seen, in the machine's Chromium.

    python -m benchmarks.page_weight [--visits 5] [--out results.jsonl]

Prints one JSON line: the bytes of the page, its styles, scripts and icons, compressed by gzip; the median and the least of the first contentful
paint of visits on loopback with an empty cache; and the largest layout shift, on a desk and on a phone.
"""

import argparse
import gzip
import json
import shutil
import statistics
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, sync_playwright

from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, running

PERSONA, PATH = "bench", "/p/bench/ui/today"
SIZES = {"desk": {"width": 1280, "height": 820}, "phone": {"width": 390, "height": 844}}
OBSERVE = """window.shifts = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shifts += entry.value; })
    .observe({ type: "layout-shift", buffered: true });"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def lines() -> bytes:
    """Memories of a month, two of which say the same."""
    rows: list[dict[str, Any]] = [{"content": f"{number}日目。駅前の店で昼を食べた。", "source": "健太"} for number in range(30)]
    rows += [{"content": f"毎週火曜の夜は英会話{word}通っている。"} for word in ("教室に", "の教室に")]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def visited(browser: Browser, url: str, size: str) -> tuple[dict[str, int], float, float]:
    """The compressed bytes by kind, the first contentful paint in milliseconds, and the layout shift of one visit."""
    context = browser.new_context(viewport=SIZES[size], base_url=url, locale="ja")  # type: ignore[arg-type]
    page, answers = context.new_page(), []
    page.on("response", lambda answer: answers.append(answer))
    page.add_init_script(OBSERVE)
    page.goto(PATH)
    page.locator("#decide[hx-get]").wait_for(state="detached")
    page.wait_for_load_state("networkidle")
    weights: dict[str, int] = {}
    for answer in answers:
        kind = answer.headers.get("content-type", "").partition(";")[0].rpartition("/")[2]
        weights[kind] = weights.get(kind, 0) + len(gzip.compress(answer.body()))
    paint, shift = page.evaluate(PAINT), page.evaluate("() => window.shifts")
    context.close()
    return weights, paint, shift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = parser.parse_args()
    report = Report(asked.out)
    report.add([machine("page_weight")])
    with running(NO_MODELS) as server, sync_playwright() as playwright:
        httpx2.post(f"{server.url}/api/import", content=lines(), headers={"X-Persona": PERSONA}).raise_for_status()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for size in SIZES:
            visits = [visited(browser, server.url, size) for _ in range(asked.visits)]
            weights = visits[0][0]
            report.add(
                [
                    {
                        "what": "today",
                        "on": size,
                        **{f"{kind}_gzip": count for kind, count in weights.items()},
                        "all_gzip": sum(weights.values()),
                        "first_paint_ms": round(statistics.median(paint for _, paint, _ in visits), 1),
                        "least_first_paint_ms": round(min(paint for _, paint, _ in visits), 1),
                        "layout_shift": round(max(shift for *_, shift in visits), 4),
                    }
                ]
            )
        browser.close()


if __name__ == "__main__":
    main()
