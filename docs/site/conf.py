"""How Sphinx makes the site of the Markdown files in docs: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from vivavoce import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "vivavoce"
author = "the vivavoce authors"
release = __version__
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "markdown_as_site"]
exclude_patterns = ["_build", "site", "pages"]

html_theme = "furo"
html_title = f"vivavoce {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
pygments_style = "tango"

myst_heading_anchors = 6  # the anchors that GitHub gives headings
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config"}
python_maximum_signature_line_length = 100
toc_object_entries = False  # a heading names each object already
default_role = "code"  # docstrings write `name` as Markdown does
