"""Measure how high the live figures are in the built site: `python -m book.heights FOLDER` writes heights.json.

Until a figure is live, the page keeps that much room for it, so that the text below does not jump.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import sync_playwright

from .printing import browser as chromium

PATH = Path(__file__).with_name("heights.json")
WINDOWS = (320, 345, 375, 412, 480, 560, 640, 690, 768, 900, 1024, 1200, 1440)
MEASURE = """() => [...document.querySelectorAll("figure.live-figure")].map((figure) =>
  [figure.id, figure.clientWidth, figure.querySelector(".explore").clientHeight])"""


def measure(site: Path) -> dict[str, list[list[int]]]:
    """For each live figure "<chapter>#<cell>", its height in boxes of some widths, [[width, height], …]."""
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        for path in sorted((site / "chapters").glob("*.html")):
            page.goto(path.resolve().as_uri())
            if not page.locator(".explore").count():
                continue
            page.wait_for_function("!document.querySelector('.explore:not(:has(.live))')")
            sizes: dict[str, dict[int, int]] = {}
            for width in WINDOWS:
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_timeout(150)
                for name, wide, high in page.evaluate(MEASURE):
                    sizes.setdefault(name, {})[wide] = high
            for name, steps in sizes.items():
                cell = page.locator(f"#{name}").get_attribute("data-cell")
                found[f"{path.stem}#{cell}"] = steps_of(steps)
        browser.close()
    return found


def steps_of(sizes: dict[int, int]) -> list[list[int]]:
    """Heights by width as steps: each up to the middle between two widths, equal neighbours as one."""
    widths = sorted(sizes)
    steps = [[(a + b) // 2, sizes[a]] for a, b in pairwise(widths)] + [[10_000, sizes[widths[-1]]]]
    return [a for a, b in pairwise([*steps, [0, 0]]) if abs(a[1] - b[1]) > 8]


if __name__ == "__main__":
    measured = measure(Path(sys.argv[1]))
    lines = (f"  {json.dumps(name)}: {json.dumps(steps)}" for name, steps in measured.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"Live figures measured: {len(measured)}.")
