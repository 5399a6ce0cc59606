"""Print the built site: `python -m book.printing FOLDER` makes a PDF of each chapter, and one of all, with headless Chromium."""

import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
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
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --no-pdf-header-footer --generate-pdf-document-outline --virtual-time-budget=10000"
).split()
WHOLE = "self-attention-book"
_ARTICLE = re.compile(r"(?s)<article[^>]*>(.*)</article>")
_TITLE = re.compile(r"<title>(?P<page>.*?)(?: — (?P<book>.*?))?</title>")
_ID = re.compile(r'(?<= id=")[^"]+(?=")')


class PrintingError(RuntimeError):
    """No PDF came of a page."""


def browser() -> str | None:
    """The path of the first of PROGRAMS that is here."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def sheet(pages: Sequence[Path]) -> str:
    """One page for paper, of pages of the site: each under a running head of its own, and a place for solutions and answers."""
    texts = [page.read_text(encoding="utf-8") for page in pages]
    found = [_TITLE.search(text) for text in texts]
    titles = [html.unescape(title["page"]) if title else "" for title in found]
    book = next((html.unescape(title["book"]) for title in found if title and title["book"]), "")
    rules = [_head("back", book, "Solutions and answers")]
    insides = [article[1] if (article := _ARTICLE.search(text)) else "" for text in texts]
    counted = Counter(name for inside in insides for name in set(_ID.findall(inside)))
    shared = "|".join(re.escape(name) for name, count in counted.items() if count > 1)
    articles = []
    for page, inside, title in zip(pages, insides, titles, strict=True):
        name = f"p{page.stem.replace('_', '-')}"
        rules.append(_head(name, book, title))
        inside = inside.replace(' loading="lazy"', "")
        if len(pages) > 1:
            inside = re.sub(
                rf'((?:id|describedby)="|href="#)({shared})(?=")', rf"\1{name}-\2", inside
            )
            for other in pages:
                inside = inside.replace(f'href="{other.name}#', 'href="#')
                inside = inside.replace(
                    f'href="{other.name}"', f'href="#p{other.stem.replace("_", "-")}"'
                )
        articles.append(f'<article id="{name}" style="page: {name}">{inside}</article>')
    front = ""
    if len(pages) > 1:
        lines = (
            f'<li><a href="#p{page.stem.replace("_", "-")}">{html.escape(title)}</a></li>'
            for page, title in zip(pages, titles, strict=True)
        )
        front = (
            f'<header class="front"><h1>{html.escape(book)}</h1><ul>{"".join(lines)}</ul></header>'
        )
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{html.escape(book if front else titles[0])}'
        '</title><link rel="stylesheet" href="../_static/book.css"><script src="../_static/paper.js"></script>'
        f"<style>{''.join(rules)}</style></head><body><main>{front}{''.join(articles)}"
        '<article id="back" style="page: back"></article></main></body></html>'
    )


def _head(name: str, left: str, right: str) -> str:
    """The rule that puts a running head on the pages of that name."""

    def said(text: str) -> str:
        return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'

    font = "font: 9pt system-ui, sans-serif; color: #555"
    return f"@page {name} {{ @top-left {{ content: {said(left)}; {font} }} @top-right {{ content: {said(right)}; {font} }} }}"


def print_pages(chromium: str, pages: Sequence[Path], paper: Path) -> None:
    """Print pages of the site as one PDF, figures and questions at rest, solutions and answers at the back.

    Raises PrintingError, with the program's name and what it said, if no PDF comes of it.
    """
    paper.parent.mkdir(exist_ok=True)
    site, name = paper.parent.parent, pages[0].name if len(pages) == 1 else "the whole book"
    with tempfile.TemporaryDirectory(dir=site, ignore_cleanup_errors=True) as folder:
        page, made = Path(folder) / f"{paper.stem}.html", Path(folder) / "page.pdf"
        page.write_text(sheet(pages), encoding="utf-8")
        places = f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}"
        try:
            done = subprocess.run(
                [chromium, *OPTIONS, *places, f"{page.as_uri()}?print"],
                capture_output=True,
                text=True,
                timeout=1800,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PrintingError(f"{chromium} did not print {name}: {error}") from error
        if done.returncode or not made.exists():
            said = done.stderr.strip()[-500:] or f"it ended with {done.returncode} and no PDF"
            raise PrintingError(f"{chromium} did not print {name}: {said}")
        made.replace(paper)


def main(site: Path) -> int:
    """Print what is not printed yet, or was before its page changed; says what it did, and returns the exit status."""
    chromium = browser()
    if chromium is None:
        print("No Chromium here, so no PDFs; a browser can print a chapter as well.")
        return 0
    site = site.resolve()
    chapters = sorted((site / "chapters").glob("[0-9][0-9]_*.html"))
    papers = {page.stem: [page] for page in chapters} | {WHOLE: chapters}
    jobs = []
    for name, pages in papers.items():
        paper = site / "download" / f"{name}.pdf"
        changed = max((page.stat().st_mtime for page in pages), default=0)
        if pages and (not paper.exists() or paper.stat().st_mtime < changed):
            jobs.append((chromium, pages, paper))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: print_pages(*job), jobs))
    except PrintingError as error:
        print(f"{error}\n{ADVICE}", file=sys.stderr)
        return 1
    print(f"Papers printed: {len(jobs)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
