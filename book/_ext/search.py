"""The search index, by Pagefind: sections with excerpts, in pieces of which a search loads what it needs."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

FOLDER = "_static/pagefind"
NO_TEXT = [".headerlink", ".offer", ".tag_hide-input"]
# Pagefind's own pages of results; search.js makes ours.
UNUSED = (
    "pagefind-ui.*",
    "pagefind-modular-ui.*",
    "pagefind-component-ui.*",
    "pagefind-highlight.js",
)


def write_index(site: Path) -> None:
    """Index what the pages of the site mark as text, and write the index beside them.

    Nothing where Pagefind has no program for this machine: search.js then uses Sphinx's index.
    """
    if find_spec("pagefind_bin") is None:
        return
    asyncio.run(_write(site))
    for pattern in UNUSED:
        for path in (site / FOLDER).glob(pattern):
            path.unlink()


async def _write(site: Path) -> None:
    from pagefind.index import IndexConfig, PagefindIndex

    config = IndexConfig(output_path=str(site / FOLDER), exclude_selectors=NO_TEXT)
    async with PagefindIndex(config=config) as index:
        await index.add_directory(str(site))
