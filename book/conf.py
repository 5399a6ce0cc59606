"""Configuration of the site. `make book` builds it from the notebooks' stored outputs, without a network."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from book.printing import browser  # noqa: E402

# Where the book is published, for the links to Binder and Colab: "https://github.com/owner/name", or "", and then the
# site offers downloads only.
book_repository = ""
book_branch = "main"
# Chapters are printed where there is a Chromium to do it; see printing.py.
book_printed = browser() is not None
# Where Pyodide is, with which the pages run Python: a folder, "release", or "" for what is in the cache; see pyodide.py.
book_pyodide = os.environ.get("PYODIDE", "")

# What a page says of itself to a search engine if it has no text of its own.
book_description = (
    "Take trained models apart, in the browser, and measure every claim about self-attention."
)

project = "Self-attention, measured"
author = "The authors of the book"
copyright = "The authors; text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "book._ext"]
exclude_patterns = ["_build", "_ext", "_static", "editor", "**.ipynb_checkpoints"]

nb_execution_mode = "off"
nb_mime_priority_overrides = [("html", "text/html", 1)]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath", "deflist"]
myst_update_mathjax = False
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say it, with shapes
autodoc_inherit_docstrings = False  # torch's are written in a markup of its own
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
default_role = "code"
python_use_unqualified_type_names = True

html_theme = "basic"  # the look is in _templates and _static
html_title = project
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = [("page.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_permalinks_icon = "#"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a page from the file system may not
html_use_index = True
html_domain_indices = False
