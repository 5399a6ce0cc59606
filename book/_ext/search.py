"""The search index, by Pagefind: sections with excerpts, in pieces of which a search loads what it needs."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = "_static/pagefind"
NO_TEXT = ".headerlink, .offer, .tag_hide-input, .meanings"
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
    Raises subprocess.CalledProcessError if it fails.
    """
    if find_spec("pagefind_bin") is None:
        return
    options = (
        "--site",
        str(site),
        "--output-path",
        str(site / FOLDER),
        "--exclude-selectors",
        NO_TEXT,
    )
    subprocess.run(
        [sys.executable, "-m", "pagefind", *options, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for pattern in UNUSED:
        for path in (site / FOLDER).glob(pattern):
            path.unlink()
