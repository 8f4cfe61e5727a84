"""How `make docs` turns these pages into a site. The pages themselves are plain Markdown, as they read on any host."""

from __future__ import annotations

from sphinx.application import Sphinx

project = "intentlog"
author = "the intentlog authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "intentlog"
myst_heading_anchors = 3
# A folder of the contents may still be empty.
suppress_warnings = ["toc.empty_glob"]

CONTENTS = """
```{toctree}
:hidden:
:glob:

*
howto/*
decisions/*
```
"""


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page the site's table of contents, which elsewhere would be noise."""
    if page == "index":
        source[0] += CONTENTS


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
