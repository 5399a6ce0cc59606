"""Configuration of the site. `make book` builds it from the notebooks' stored outputs, without a network."""

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

project = "Self-attention, measured"
author = "The authors of the book"
copyright = "The authors; text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "book._ext"]
exclude_patterns = ["_build", "_ext", "_static", "**.ipynb_checkpoints"]

nb_execution_mode = "off"
nb_mime_priority_overrides = [("html", "text/html", 1)]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath", "deflist"]
myst_update_mathjax = False
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say it, with shapes
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
default_role = "code"
python_use_unqualified_type_names = True

html_theme = "sphinx_book_theme"
html_title = project
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_favicon = "_static/favicon.svg"
html_sidebars = {"**": ["home.html", "search-button-field.html", "sbt-sidebar-nav.html"]}
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a page from the file system may not
html_use_index = True
html_domain_indices = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_persistent": [],
    "footer_content_items": ["copyright.html"],
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "show_navbar_depth": 1,
    "max_navbar_depth": 1,
    "navigation_with_keys": False,
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
