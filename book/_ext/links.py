"""Where the pages lead, raw HTML included, which Sphinx does not look into."""

from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit


def dead(site: Path, pages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each page with each link or picture of its own that leads nowhere within the site.

    A PDF in download/ counts as there: it is printed when the pages are done.
    """
    read = {f"{page}.html": _Page(site / f"{page}.html") for page in pages}
    for name, page in read.items():
        for target in page.to:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(urljoin(f"/{name}", parts.path or f"/{name}")).lstrip("/")
            lost = path in read and parts.fragment and unquote(parts.fragment) not in read[path].ids
            printed = path.startswith("download/") and path.endswith(".pdf")
            if lost or not (printed or (site / path).is_file()):
                yield name, target


class _Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.to: dict[str, None] = {}  # in order, each once
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.to[value] = None
