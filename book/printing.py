"""Print each chapter of the built site to a PDF: `python -m book.printing FOLDER`, with headless Chromium."""

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Ubuntu's chromium is a snap: it sees its own /tmp, and no hidden folder.
PROGRAMS = ("google-chrome", "chromium", "chromium-browser")
ADVICE = (
    "The pages themselves are built. To print them too, put another browser on the PATH, one of "
    f"{', '.join(PROGRAMS)} (the first is taken), or keep the book where a snap may write: under "
    "your home, in no hidden folder."
)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --no-pdf-header-footer --generate-pdf-document-outline"
).split()


class PrintingError(RuntimeError):
    """No PDF came of a page."""


def browser() -> str | None:
    """The path of the first of PROGRAMS that is here."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def print_page(chromium: str, page: Path, paper: Path) -> None:
    """Print one page of the site, its live figures at rest and its solutions open.

    Raises PrintingError, with the program's name and what it said, if no PDF comes of it.
    """
    paper.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paper.parent, ignore_cleanup_errors=True) as profile:
        made = Path(profile) / "page.pdf"
        places = f"--user-data-dir={profile}", f"--print-to-pdf={made}"
        try:
            done = subprocess.run(
                [chromium, *OPTIONS, *places, f"{page.as_uri()}?print"],
                capture_output=True,
                text=True,
                timeout=1800,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PrintingError(f"{chromium} did not print {page.name}: {error}") from error
        if done.returncode or not made.exists():
            said = done.stderr.strip()[-500:] or f"it ended with {done.returncode} and no PDF"
            raise PrintingError(f"{chromium} did not print {page.name}: {said}")
        made.replace(paper)


def main(site: Path) -> int:
    """Print what is not printed yet, or was before its page changed; says what it did, and returns the exit status."""
    chromium = browser()
    if chromium is None:
        print("No Chromium here, so no PDFs; a browser can print a chapter as well.")
        return 0
    jobs = []
    for page in sorted((site / "chapters").glob("[0-9][0-9]_*.html")):
        paper = site.resolve() / "download" / f"{page.stem}.pdf"
        if not paper.exists() or paper.stat().st_mtime < page.stat().st_mtime:
            jobs.append((chromium, page.resolve(), paper))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: print_page(*job), jobs))
    except PrintingError as error:
        print(f"{error}\n{ADVICE}", file=sys.stderr)
        return 1
    print(f"Chapters printed: {len(jobs)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
