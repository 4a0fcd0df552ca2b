"""How the documentation is built: `make docs`, without a network."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]

project = "disclosure_pipeline"
author = "The authors of disclosure_pipeline"
[release] = re.findall(
    r'^version = "(.+)"$', (_ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
)
language = "en"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extensions"]
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
