"""How the documentation is built: `make docs`, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT / "docs" / "extensions"), str(_ROOT), str(_ROOT / "benchmarks")]

import disclosure_pipeline  # noqa: E402 (found through the line above)

project = "disclosure_pipeline"
author = "The authors of disclosure_pipeline"
release = disclosure_pipeline.__version__
language = "en"

extensions = ["myst_parser", "generated"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["generated", "extensions"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "none"
# Blocks that are no language to Pygments.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "disclosure_pipeline"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a browser refuses pages that are files
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#12436D", "color-brand-content": "#12436D"},
    "dark_css_variables": {"color-brand-primary": "#6FC6BF", "color-brand-content": "#6FC6BF"},
}
