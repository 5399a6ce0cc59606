"""Print each chapter of the built site to a PDF: `python -m book.printing FOLDER`, with headless Chromium."""

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --no-pdf-header-footer --generate-pdf-document-outline"
).split()


def print_page(chromium: str, page: Path, paper: Path) -> None:
    """Print one page of the site, its live figures at rest and its solutions open.

    Raises RuntimeError if no PDF comes of it.
    """
    with tempfile.TemporaryDirectory() as profile:
        made = Path(profile) / "page.pdf"
        done = subprocess.run(
            [
                chromium,
                *OPTIONS,
                f"--user-data-dir={profile}",
                f"--print-to-pdf={made}",
                f"{page.as_uri()}?print",
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode or not made.exists():
            raise RuntimeError(f"{page.name} was not printed: {done.stderr[-500:]}")
        shutil.move(made, paper)


def main(site: Path) -> int:
    """Print what is not printed yet, or was before its page changed; says what it did."""
    chromium = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if chromium is None:
        print("No Chromium here, so no PDFs; a browser can print a chapter as well.")
        return 0
    jobs = []
    for page in sorted((site / "chapters").glob("[0-9][0-9]_*.html")):
        paper = site / "download" / f"{page.stem}.pdf"
        if not paper.exists() or paper.stat().st_mtime < page.stat().st_mtime:
            jobs.append((chromium, page.resolve(), paper))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: print_page(*job), jobs))
    print(f"Chapters printed: {len(jobs)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
